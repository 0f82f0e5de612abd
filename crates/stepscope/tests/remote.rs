//! URLs where a path is expected: with the feature `remote` against servers on this machine, without it what to do instead.
#![allow(clippy::unwrap_used, reason = "what helps a test may fail it; without the feature nothing does")]

mod support;

use support::{code, stepscope};

#[cfg(feature = "remote")]
#[path = "../../remote/tests/support/mod.rs"]
mod server;

#[cfg(not(feature = "remote"))]
#[test]
fn a_build_without_the_feature_says_how_to_get_it_or_to_copy_the_files() {
    for (command, url, copy) in [
        ("report", "s3://bucket/logs", "aws s3 cp --recursive s3://bucket/logs"),
        ("scalars", "gs://bucket/logs", "gcloud storage cp"),
        ("ops", "https://host/x.json", "curl -O https://host/x.json"),
        ("mcp", "az://container/logs", "azcopy"),
    ] {
        let output = stepscope().args([command, url]).output().unwrap();
        let said = String::from_utf8(output.stderr.clone()).unwrap();
        let usage = command == "mcp";
        assert_eq!(code(&output), if usage { 2 } else { 3 }, "{said}");
        assert!(said.starts_with(&format!("error: cannot read {url}; this build of stepscope")), "{said}");
        assert!(said.contains("--features remote") && said.contains(copy), "{said}");
    }
    let output = stepscope().args(["fleet", "report", "s3://bucket/logs"]).output().unwrap();
    assert!(String::from_utf8(output.stderr).unwrap().contains("--features remote"));
}

#[test]
fn nothing_is_written_to_a_url() {
    let folder = tempfile::tempdir().unwrap();
    let output = stepscope()
        .current_dir(folder.path())
        .args(["demo", "--html", "s3://bucket/report.html"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr.clone()).unwrap();
    assert!(code(&output) != 0 && said.contains("never writes to object stores"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "no folder called s3:");
}

#[cfg(feature = "remote")]
mod with_the_feature {
    use std::collections::BTreeMap;
    use std::process::{Command, Output};
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::server::{Server, bucket, container, object};
    use super::support::{code, root, stepscope};

    fn of(server: &Server) -> Command {
        let mut command = stepscope();
        command.env("AWS_ENDPOINT_URL", &server.url).env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
        command
    }

    fn said(output: &Output) -> String {
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    const SESSION: &str = "plugins/profile/2026_01_01_00_00_00";

    /// A training run, with several thousand checkpoints beside it; and its profile.
    fn objects() -> (BTreeMap<String, Vec<u8>>, Vec<u8>) {
        let folder = root().join("fixtures/tf-input-bound").join(SESSION);
        let mut objects = BTreeMap::new();
        let mut profile = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let (name, bytes) =
                (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap());
            if name.ends_with(".xplane.pb") {
                profile = bytes.clone();
            }
            objects.insert(format!("logs/run/{SESSION}/{name}"), bytes);
        }
        for step in 0..3_000 {
            objects.insert(format!("logs/run/checkpoints/step-{step}/weights.pb"), Vec::new());
        }
        (objects, profile)
    }

    fn run() -> (Server, Vec<u8>) {
        let (objects, profile) = objects();
        (Server::start(bucket(objects)), profile)
    }

    #[test]
    fn google_and_azure_are_read_alike() {
        let google = Server::start(bucket(objects().0));
        let azure = Server::start(container(objects().0));
        for (server, url, variable, flag) in [
            (&google, "gs://bucket/logs", "STORAGE_EMULATOR_HOST", "GOOGLE_SKIP_SIGNATURE"),
            (&azure, "az://bucket/logs", "AZURITE_BLOB_STORAGE_URL", "AZURE_STORAGE_USE_EMULATOR"),
        ] {
            let mut command = stepscope();
            command.env(variable, &server.url).env(flag, "true");
            let output = command.args(["report", url]).output().unwrap();
            assert_eq!(code(&output), 0, "{}", said(&output));
            assert!(String::from_utf8_lossy(&output.stdout).contains("Input-bound"), "{url}");
            assert!(!server.paths().iter().any(|path| path.contains("checkpoints")), "{url}");
            let mut command = stepscope();
            command.env(variable, &server.url).env(flag, "true");
            let missing = command.args(["report", &url.replace("bucket", "nowhere")]).output().unwrap();
            assert!(code(&missing) == 3 && said(&missing).contains("does not exist"), "{}", said(&missing));
        }
    }

    fn without_places(report: &[u8], place: &str) -> String {
        String::from_utf8_lossy(report).replace(place, "PLACE")
    }

    #[test]
    fn a_bucket_reports_what_a_folder_reports_and_checkpoints_are_never_listed() {
        let (server, _) = run();
        let local = root().join("fixtures/tf-input-bound").to_str().unwrap().to_owned();
        for command in ["report", "info", "ops"] {
            let here = stepscope().args([command, &local, "--json"]).output().unwrap();
            let there = of(&server).args([command, "s3://bucket/logs/run", "--json"]).output().unwrap();
            assert_eq!(code(&there), 0, "{}", said(&there));
            assert_eq!(
                without_places(&there.stdout, "s3://bucket/logs/run"),
                without_places(&here.stdout, &local),
                "{command}"
            );
        }
        assert!(!server.paths().iter().any(|path| path.contains("checkpoints")));
        let again = of(&server).args(["compare", "s3://bucket/logs/run", &local]).output().unwrap();
        assert_eq!(code(&again), 0, "{}", said(&again));
        let sql = of(&server)
            .args(["sql", "s3://bucket/logs", "SELECT count(*) FROM event", "--csv"])
            .output()
            .unwrap();
        assert_eq!(code(&sql), 0, "{}", said(&sql));
        let missing = of(&server).args(["report", "s3://elsewhere/x"]).output().unwrap();
        assert_eq!(code(&missing), 3);
        assert!(said(&missing).contains("the bucket does not exist"), "{}", said(&missing));
    }

    #[test]
    fn a_web_server_gives_one_file() {
        let (server, profile) = run();
        drop(server);
        let web = Server::start(move |asked| object(asked, &profile, "\"v\""));
        let url = format!("{}/trainer.xplane.pb", web.url);
        let output = stepscope().args(["report", &url]).output().unwrap();
        assert_eq!(code(&output), 0, "{}", said(&output));
        assert!(String::from_utf8_lossy(&output.stdout).contains("Input-bound"));
        let folder = stepscope().args(["report", &format!("{}/logs/", web.url)]).output().unwrap();
        assert!(code(&folder) == 3 && said(&folder).contains("cannot list folders"), "{}", said(&folder));
    }

    #[cfg(unix)]
    #[test]
    fn a_report_that_only_nsys_reads_is_copied_for_it_and_removed() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let magic = b"NVIDIA Tegra Profiler Report 2026.1.3.\0".to_vec();
        let server =
            Server::start(bucket(BTreeMap::from([("logs/run 1.nsys-rep".to_owned(), magic.clone())])));
        let ask = |path: &std::path::Path| {
            let mut command = of(&server);
            command.env("PATH", "/usr/bin:/bin").env("NSYS_PATH", path).env("XDG_CACHE_HOME", at("cache"));
            command.args(["info", "s3://bucket/logs"]).output().unwrap()
        };
        let without = ask(&at("nowhere"));
        let copy = "`aws s3 cp 's3://bucket/logs/run 1.nsys-rep' . && nsys export --type sqlite";
        assert!(code(&without) == 3 && said(&without).contains(copy), "{}", said(&without));
        rusqlite::Connection::open(at("export.sqlite"))
            .unwrap()
            .execute_batch(stepscope_testkit::nsys::sample().script())
            .unwrap();
        let script =
            format!("#!/bin/sh\ncp \"$8\" {0}/seen\ncp {0}/export.sqlite \"$7\"\n", folder.path().display());
        std::fs::write(at("nsys"), script).unwrap();
        std::fs::set_permissions(at("nsys"), std::fs::Permissions::from_mode(0o755)).unwrap();
        let output = ask(folder.path());
        assert_eq!(code(&output), 0, "{}", said(&output));
        assert_eq!(std::fs::read(at("seen")).unwrap(), magic, "the tool read the report");
        let kept: Vec<_> = std::fs::read_dir(at("cache/stepscope/nsys")).unwrap().flatten().collect();
        assert_eq!(kept.len(), 1, "only the export is kept: {kept:?}");
        let asked = server.paths().len();
        assert!(asked < 12, "{asked} requests");
    }

    #[test]
    fn an_object_that_is_replaced_while_it_is_read_is_damage() {
        let (_, profile) = run();
        // Larger than one range, so that it is asked for twice.
        let body = [profile, vec![0; 9 << 20]].concat();
        let gets = AtomicUsize::new(0);
        let web = Server::start(move |asked| {
            let whole = asked.range().is_some_and(|(from, _)| from > 0);
            let later = whole && gets.fetch_add(1, Ordering::Relaxed) < usize::MAX;
            object(asked, &body, if later { "\"v2\"" } else { "\"v1\"" })
        });
        let url = format!("{}/trainer.xplane.pb", web.url);
        let output = stepscope().args(["report", &url]).output().unwrap();
        assert_eq!(code(&output), 4, "{}", said(&output));
        assert!(
            said(&output).contains("changed while it was read; the object was replaced"),
            "{}",
            said(&output)
        );
    }

    #[test]
    fn a_file_above_the_budget_is_not_even_copied() {
        let (server, profile) = run();
        let budget = (profile.len() / 2).to_string();
        let output = of(&server).args(["--budget", &budget, "report", "s3://bucket/logs"]).output().unwrap();
        assert_eq!(code(&output), 4, "{}", said(&output));
        assert!(said(&output).contains("--budget"), "{}", said(&output));
    }

    #[test]
    fn missing_credentials_are_explained() {
        let mut command = stepscope();
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy().into_owned();
            if name.starts_with("AWS_") {
                command.env_remove(name);
            }
        }
        let output = command.args(["report", "s3://bucket/logs"]).output().unwrap();
        assert_eq!(code(&output), 3, "{}", said(&output));
        // A machine of a cloud may have credentials of its own; elsewhere there are none.
        let explained = said(&output).contains("aws configure export-credentials --format env");
        assert!(explained || said(&output).contains("bucket"), "{}", said(&output));
    }
}
