//! `stepscope` on buckets of real servers from the package indexes, moto for S3 and Google, Azurite for Azure: a whole fleet
//! gives the same report as the folder that was uploaded, to the byte.
//!
//! They run if STEPSCOPE_TEST_STORES names a Python with `moto[server]`, and for Azure if STEPSCOPE_TEST_AZURITE names the
//! program `azurite-blob`; `cargo xtask live` installs both.
#![cfg(all(unix, feature = "remote"))]
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use stepscope_testkit::skip::{Needs, skip};
use support::{code, root, stepscope};

/// A server with a bucket `profiles` that holds a copy of a folder.
struct Store {
    server: Child,
    endpoint: String,
    /// A signed URL of a file that waits for input; empty if the server has none.
    signed: String,
    folder: tempfile::TempDir,
    /// Where the folder is in the bucket.
    bucket: &'static str,
    variables: Vec<(&'static str, String)>,
}

impl Drop for Store {
    fn drop(&mut self) {
        // They end with their standard input, and what they started with them.
        drop(self.server.stdin.take());
        let _ = self.server.wait();
    }
}

impl Store {
    /// S3. `None`, with a word about it, where there is no server.
    fn s3() -> Option<Self> {
        let mut store = Store::start("stores.py", "s3://profiles/logs", &[])?;
        let endpoint = store.endpoint.clone();
        store.variables = vec![
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_REGION", "us-east-1".to_owned()),
            ("AWS_ACCESS_KEY_ID", "key".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", "secret".to_owned()),
        ];
        Some(store)
    }

    /// Google's requests and lists in XML are those of S3, so that the same server answers them.
    fn google() -> Option<Self> {
        let mut store = Store::start("stores.py", "gs://profiles/logs", &[])?;
        store.variables = vec![("STORAGE_EMULATOR_HOST", store.endpoint.clone())];
        Some(store)
    }

    /// Azure's own emulator, if it is installed.
    fn azure() -> Option<Self> {
        let Some(azurite) = std::env::var_os("STEPSCOPE_TEST_AZURITE") else {
            skip(Needs::Azurite, "STEPSCOPE_TEST_AZURITE names no program azurite-blob");
            return None;
        };
        let mut store = Store::start("azurite.py", "az://profiles/logs", &[azurite])?;
        store.variables = vec![
            ("AZURITE_BLOB_STORAGE_URL", store.endpoint.clone()),
            ("AZURE_STORAGE_USE_EMULATOR", "true".to_owned()),
        ];
        Some(store)
    }

    fn start(script: &str, bucket: &'static str, args: &[std::ffi::OsString]) -> Option<Self> {
        let Some(python) = std::env::var_os("STEPSCOPE_TEST_STORES") else {
            skip(Needs::Stores, "STEPSCOPE_TEST_STORES names no Python with moto");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        fleet(&folder.path().join("logs"));
        let log = fs::File::create(folder.path().join("requests")).unwrap();
        let mut server = Command::new(python)
            .arg(root().join("crates/stepscope/tests/support").join(script))
            .args(args)
            .arg(folder.path().join("logs"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (endpoint, signed) = line.trim().split_once(' ').unwrap_or((line.trim(), ""));
        let (endpoint, signed) = (endpoint.to_owned(), signed.to_owned());
        let said = || fs::read_to_string(folder.path().join("requests")).unwrap_or_default();
        assert!(endpoint.starts_with("http://"), "{endpoint}: {}", said());
        Some(Store { server, endpoint, signed, folder, bucket, variables: Vec::new() })
    }

    fn run(&self, args: &[&str]) -> Output {
        let variables = self.variables.iter().map(|(name, value)| (name, value));
        stepscope().envs(variables).args(args).output().unwrap()
    }

    /// Standard output of a command that must succeed.
    fn answer(&self, args: &[&str]) -> Vec<u8> {
        let output = self.run(args);
        assert_eq!(code(&output), 0, "{args:?}: {}", said(&output));
        output.stdout
    }

    fn local(&self) -> String {
        self.folder.path().join("logs").to_str().unwrap().to_owned()
    }

    /// The bucket's fleet gives the report of the folder, as JSON and as text.
    fn reports_as_the_folder(&self) {
        let json = |path: &str| self.answer(&["fleet", "report", path, "--no-cache", "--json"]);
        self.same(&json(self.bucket), &json(&self.local()), "the whole fleet");
        let text = |path: &str| self.answer(&["fleet", "report", path, "--no-cache"]);
        self.same(&text(self.bucket), &text(&self.local()), "as text");
    }

    /// Names the first line that differs between the bucket's answer and that of the folder, but for addresses: their own
    /// beginnings, and the ids of recordings, which follow from them.
    fn same(&self, one: &[u8], other: &[u8], what: &str) {
        let lines = |text: &[u8]| -> Vec<String> {
            let text = String::from_utf8_lossy(text).replace(&self.local(), self.bucket);
            text.lines().filter(|line| !line.contains("\"recording\": ")).map(str::to_owned).collect()
        };
        let (one, other) = (lines(one), lines(other));
        for (one, other) in one.iter().zip(&other) {
            assert_eq!(one, other, "{what}");
        }
        assert_eq!(one.len(), other.len(), "{what}");
    }

    /// What is missing is told apart.
    fn explains_what_is_missing(&self) {
        let missing = self.run(&["report", &self.bucket.replace("profiles", "nowhere")]);
        assert_eq!(code(&missing), 3);
        assert!(said(&missing).contains("the bucket does not exist"), "{}", said(&missing));
        let missing = self.run(&["report", &self.bucket.replace("logs", "nothing")]);
        assert_eq!(code(&missing), 3);
        assert!(said(&missing).contains("neither a file nor a folder"), "{}", said(&missing));
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Two jobs with several hosts, checkpoints beside one of them, and event files.
fn fleet(logs: &Path) {
    let profile = |fixture: &str| {
        let folder = root().join("fixtures").join(fixture).join("plugins/profile/2026_01_01_00_00_00");
        let mut files = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        files.find(|path| path.to_string_lossy().ends_with(".xplane.pb")).unwrap()
    };
    for (job, fixture, hosts) in [("vision/a", "jax-plain", 3), ("data/loader", "tf-input-bound", 2)] {
        for day in 1..=2 {
            let folder = logs.join(job).join(format!("plugins/profile/2026_03_{day:02}_04_00_00"));
            fs::create_dir_all(&folder).unwrap();
            for host in 0..hosts {
                fs::copy(profile(fixture), folder.join(format!("node-{host:03}.xplane.pb"))).unwrap();
            }
        }
    }
    let weights = logs.join("vision/a/checkpoints/step_100");
    fs::create_dir_all(&weights).unwrap();
    for shard in 0..50 {
        fs::write(weights.join(format!("shard-{shard}.pb")), b"weights").unwrap();
    }
}

#[test]
fn a_bucket_gives_the_report_of_the_folder_to_the_byte() {
    let Some(store) = Store::s3() else { return };
    store.reports_as_the_folder();
    let here = store.answer(&["fleet", "report", &store.local(), "--no-cache", "--json"]);
    let place = |name: &str| store.folder.path().join(name).to_str().unwrap().to_owned();
    let (plan, parts, day) = (place("plan.json"), place("parts"), place("day.part"));
    store.answer(&["fleet", "plan", store.bucket, "--group-bytes", "1000000", "-o", &plan]);
    assert!(
        fs::read_to_string(&plan).unwrap().contains("s3://profiles/logs/vision/a/plugins"),
        "URLs are the ids"
    );
    for shard in ["0/2", "1/2"] {
        store.answer(&["fleet", "partial", &plan, "--shard", shard, "-o", &parts]);
    }
    store.answer(&["fleet", "merge", &parts, "-o", &day]);
    store.same(&store.answer(&["fleet", "report", &day, "--json"]), &here, "as an array of tasks");
    let asked = fs::read_to_string(store.folder.path().join("requests")).unwrap();
    assert!(asked.contains("/profiles"), "requests are logged: {asked:.500}");
    assert!(!asked.contains("checkpoints"), "checkpoints are neither listed nor fetched");
}

#[test]
fn google_and_azure_give_it_as_well() {
    for store in [Store::google(), Store::azure()].into_iter().flatten() {
        store.reports_as_the_folder();
        store.explains_what_is_missing();
    }
}

#[test]
fn folders_without_a_name_are_read_like_others() {
    for store in [Store::s3(), Store::google(), Store::azure()].into_iter().flatten() {
        let twice = store.bucket.replace("logs", "twice");
        let report = String::from_utf8(store.answer(&["fleet", "report", &twice, "--no-cache"])).unwrap();
        assert!(report.contains("Covers 1 of 1 profile in 1 recording of 1 job."), "{report}");
        assert!(report.contains("input-bound"), "{report}");
    }
}

#[test]
fn commands_take_sessions_files_and_web_addresses() {
    let Some(store) = Store::s3() else { return };
    let session = "s3://profiles/logs/data/loader/plugins/profile/2026_03_02_04_00_00";
    let same = |command: &str, below: &str| {
        let clean = |bytes: Vec<u8>, root: &str| String::from_utf8_lossy(&bytes).replace(root, "ROOT");
        let there = clean(
            store.answer(&[command, &format!("s3://profiles/logs{below}"), "--json"]),
            "s3://profiles/logs",
        );
        let here =
            clean(store.answer(&[command, &format!("{}{below}", store.local()), "--json"]), &store.local());
        assert_eq!(there, here, "{command} {below}");
    };
    for (command, below) in [
        ("report", "/data/loader"),
        ("report", "/data/loader/plugins/profile/2026_03_02_04_00_00"),
        ("report", "/vision/a/plugins/profile/2026_03_01_04_00_00/node-001.xplane.pb"),
        ("info", "/vision/a"),
        ("steps", "/vision/a"),
    ] {
        same(command, below);
    }
    let web = String::from_utf8(store.answer(&["report", &store.signed, "--json"])).unwrap();
    assert!(web.contains("input-bound") && web.contains("/node-000.xplane.pb\""), "{web:.300}");
    assert!(!web.contains("Signature"), "no output shows a signature");
    store.answer(&["gate", session, session]);
    store.explains_what_is_missing();
}
