//! `stepscope` on a bucket of a real S3 server from the package index (moto): a whole fleet gives the same report as the
//! folder that was uploaded, to the byte.
//!
//! They run if STEPSCOPE_TEST_STORES names a Python with `moto[server]`; `cargo xtask live` creates one.
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
    /// A signed URL of a file that waits for input.
    signed: String,
    folder: tempfile::TempDir,
}

impl Drop for Store {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Store {
    /// `None`, with a word about it, where there is no server.
    fn start() -> Option<Self> {
        let Some(python) = std::env::var_os("STEPSCOPE_TEST_STORES") else {
            skip(Needs::Stores, "STEPSCOPE_TEST_STORES names no Python with moto");
            return None;
        };
        let folder = tempfile::tempdir().unwrap();
        fleet(&folder.path().join("logs"));
        let log = fs::File::create(folder.path().join("requests")).unwrap();
        let mut server = Command::new(python)
            .arg(root().join("crates/stepscope/tests/support/stores.py"))
            .arg(folder.path().join("logs"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let (endpoint, signed) = line.trim().split_once(' ').unwrap_or_default();
        let (endpoint, signed) = (endpoint.to_owned(), signed.to_owned());
        let said = || fs::read_to_string(folder.path().join("requests")).unwrap_or_default();
        assert!(endpoint.starts_with("http://"), "{endpoint}: {}", said());
        Some(Store { server, endpoint, signed, folder })
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = stepscope();
        command.env("AWS_ENDPOINT_URL", &self.endpoint).env("AWS_REGION", "us-east-1");
        command.env("AWS_ACCESS_KEY_ID", "key").env("AWS_SECRET_ACCESS_KEY", "secret");
        command.args(args).output().unwrap()
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

/// Names the first line that differs between the bucket's answer and that of the folder `local`, but for addresses: their own
/// beginnings, and the ids of recordings, which follow from them.
fn same(one: &[u8], other: &[u8], local: &str, what: &str) {
    let lines = |text: &[u8]| -> Vec<String> {
        let text = String::from_utf8_lossy(text).replace(local, "s3://profiles/logs");
        text.lines().filter(|line| !line.contains("\"recording\": ")).map(str::to_owned).collect()
    };
    let (one, other) = (lines(one), lines(other));
    for (one, other) in one.iter().zip(&other) {
        assert_eq!(one, other, "{what}");
    }
    assert_eq!(one.len(), other.len(), "{what}");
}

#[test]
fn a_bucket_gives_the_report_of_the_folder_to_the_byte() {
    let Some(store) = Store::start() else { return };
    let (bucket, local) = ("s3://profiles/logs", store.local());
    let report = |path: &str| store.answer(&["fleet", "report", path, "--no-cache", "--json"]);
    let here = report(&local);
    same(&report(bucket), &here, &local, "the whole fleet");
    let text = |path: &str| store.answer(&["fleet", "report", path, "--no-cache"]);
    assert!(text(bucket) == text(&local), "as text");
    let place = |name: &str| store.folder.path().join(name).to_str().unwrap().to_owned();
    let (plan, parts, day) = (place("plan.json"), place("parts"), place("day.part"));
    store.answer(&["fleet", "plan", bucket, "--group-bytes", "1000000", "-o", &plan]);
    assert!(
        fs::read_to_string(&plan).unwrap().contains("s3://profiles/logs/vision/a/plugins"),
        "URLs are the ids"
    );
    for shard in ["0/2", "1/2"] {
        store.answer(&["fleet", "partial", &plan, "--shard", shard, "-o", &parts]);
    }
    store.answer(&["fleet", "merge", &parts, "-o", &day]);
    same(&store.answer(&["fleet", "report", &day, "--json"]), &here, &local, "as an array of tasks");
    let asked = fs::read_to_string(store.folder.path().join("requests")).unwrap();
    assert!(asked.contains("/profiles"), "requests are logged: {asked:.500}");
    assert!(!asked.contains("checkpoints"), "checkpoints are neither listed nor fetched");
}

#[test]
fn commands_take_sessions_files_and_web_addresses() {
    let Some(store) = Store::start() else { return };
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
    let missing = store.run(&["report", "s3://nowhere/logs"]);
    assert!(
        code(&missing) == 3 && said(&missing).contains("the bucket does not exist"),
        "{}",
        said(&missing)
    );
    let missing = store.run(&["report", "s3://profiles/nothing"]);
    assert!(
        code(&missing) == 3 && said(&missing).contains("neither a file nor a folder"),
        "{}",
        said(&missing)
    );
}
