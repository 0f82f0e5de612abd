//! What goes wrong on clusters: files that are cut, disks that are full, workers that are killed or run twice, mounts that
//! hang, results of other versions. Whatever happens, the rest counts and the report says what is missing.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::fs;
use std::hash::Hasher;
#[cfg(target_os = "linux")]
use std::io::{BufRead, BufReader};
#[cfg(target_os = "linux")]
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
#[cfg(target_os = "linux")]
use std::time::Instant;

use serde_json::Value;
use support::code;
use support::fleet::{Fleet, said, support_files};

#[test]
fn damaged_profiles_and_partials_are_named_and_the_rest_counts() {
    let fleet = Fleet::planted();
    let (logs, plan, parts) = (fleet.text("logs"), fleet.text("plan.json"), fleet.text("parts"));
    let cut = fleet.place("vision/a", 1, 2, "jax-plain");
    let content = fs::read(&cut).unwrap();
    fs::write(&cut, &content[..content.len() / 2]).unwrap();
    fs::write(fleet.place("vision/a", 1, 1, "jax-plain"), b"").unwrap();
    let output = fleet.run(&["report", &logs, "--json"]);
    assert_eq!(code(&output), 4);
    assert!(said(&output).contains("21 of 22 profiles"), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["failed"].as_array().map(Vec::len), Some(1));
    assert!(report["failed"][0]["path"].as_str().unwrap().ends_with("node-001.xplane.pb"));
    assert_eq!(report["damaged"][0]["path"], cut.to_str().unwrap());
    // A cut file has no steps. That makes its host neither slow nor its job useless.
    let job = report["jobs"].as_array().unwrap().iter().find(|job| job["job"] == "vision/a").unwrap();
    assert!(job["step_ms"].is_number() && report["unusable"].as_array().unwrap().is_empty(), "{job}");
    let slow: Vec<&Value> = report["hosts"].as_array().unwrap().iter().map(|host| &host["host"]).collect();
    assert_eq!(slow, ["node-003"]);
    // Partials: one is cut, one comes from a later version.
    fleet.run(&["plan", &logs, "--group-bytes", "200000", "-o", &plan]);
    for shard in ["0/3", "1/3", "2/3"] {
        fleet.run(&["partial", &plan, "--shard", shard, "-o", &parts]);
    }
    let shard = |index: usize| fleet.path(&format!("parts/shard-{index:05}-of-00003.part"));
    let bytes = fs::read(shard(0)).unwrap();
    fs::write(shard(0), &bytes[..bytes.len() - 10]).unwrap();
    fs::write(fleet.path("parts/other.part"), b"something else").unwrap();
    let output = fleet.run(&["merge", &parts, "-o", &fleet.text("day.part")]);
    assert_eq!(code(&output), 4);
    let said = said(&output);
    assert!(said.contains("shard-00000-of-00003.part: the partial is truncated"), "{said}");
    assert!(
        said.contains("other.part: this is not a stepscope partial") && said.contains("0 of 3"),
        "{said}"
    );
    // It runs again, because what is there is not whole.
    fleet.run(&["partial", &plan, "--shard", "0/3", "-o", &parts]);
    assert_eq!(fs::read(shard(0)).unwrap(), bytes);
}

#[test]
fn a_run_that_was_killed_goes_on_and_a_cache_that_is_damaged_is_not_used() {
    let fleet = Fleet::planted();
    let logs = fleet.text("logs");
    let expected = fleet.json(&["report", &logs, "--json", "--no-cache"]);
    let mut child = fleet
        .command(&["report", &logs, "--json", "--threads", "1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let kept = || support_files(&fleet.path("cache"));
    while kept().len() < 3 && child.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let files = kept();
    assert!(!files.is_empty());
    let mut damaged = fs::read(&files[0]).unwrap();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    fs::write(&files[0], damaged).unwrap();
    let output = fleet.run(&["report", &logs, "--json"]);
    assert!(said(&output).contains("reused the results of"), "{}", said(&output));
    assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), expected);
}

#[test]
fn a_full_disk_is_said_and_leaves_nothing_half_written() {
    let fleet = Fleet::planted();
    let (logs, plan, parts) = (fleet.text("logs"), fleet.text("plan.json"), fleet.text("parts"));
    fleet.run(&["plan", &logs, "-o", &plan]);
    // Files may hold half a kilobyte; the system's signal is ignored, so that writing fails as on a full disk.
    let script = format!(
        "trap '' XFSZ; ulimit -f 1; exec '{}' fleet partial '{plan}' --shard 0/1 -o '{parts}'",
        env!("CARGO_BIN_EXE_stepscope")
    );
    let output = Command::new("sh").args(["-c", &script]).output().unwrap();
    assert_eq!(code(&output), 3, "{}", said(&output));
    assert!(said(&output).contains("that the disk has space"), "{}", said(&output));
    assert!(fs::read_dir(fleet.path("parts")).unwrap().next().is_none(), "nothing is left");
    let cached = format!(
        "trap '' XFSZ; ulimit -f 1; exec '{}' fleet report '{logs}' --cache '{}'",
        env!("CARGO_BIN_EXE_stepscope"),
        fleet.text("cache")
    );
    let output = Command::new("sh").args(["-c", &cached]).stdout(Stdio::piped()).output().unwrap();
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(said(&output).contains("cannot be kept"), "{}", said(&output));
}

#[test]
fn a_full_disk_keeps_what_was_merged_before() {
    let fleet = Fleet::planted();
    let (logs, plan, parts, day) =
        (fleet.text("logs"), fleet.text("plan.json"), fleet.text("parts"), fleet.text("day.part"));
    fleet.run(&["plan", &logs, "-o", &plan]);
    fleet.run(&["partial", &plan, "--shard", "0/1", "-o", &parts]);
    fs::write(&day, b"of yesterday").unwrap();
    let full = |command: &str| {
        let program = env!("CARGO_BIN_EXE_stepscope");
        let script = format!("trap '' XFSZ; ulimit -f 1; exec '{program}' fleet {command}");
        Command::new("sh").args(["-c", &script]).env("XDG_CACHE_HOME", fleet.path("cache")).output().unwrap()
    };
    let output = full(&format!("merge '{parts}' -o '{day}'"));
    assert_eq!(code(&output), 3, "{}", said(&output));
    assert_eq!(fs::read(&day).unwrap(), b"of yesterday");
    // A store that cannot grow stays as it was.
    let store = fleet.text("store");
    assert_eq!(code(&fleet.run(&["watch", &logs, "--store", &store, "--once"])), 0);
    let before = fs::read(fleet.path("store/fleet.part")).unwrap();
    fleet.place("nightly", 9, 40, "keras-plain");
    assert_ne!(code(&full(&format!("watch '{logs}' --store '{store}' --once"))), 0);
    assert_eq!(fs::read(fleet.path("store/fleet.part")).unwrap(), before);
    assert_eq!(code(&fleet.run(&["watch", &logs, "--store", &store, "--once"])), 0);
    assert_eq!(fleet.json(&["report", &fleet.text("store/fleet.part"), "--json"])["covered"], 23);
}

#[test]
fn a_worker_that_is_killed_leaves_nothing_and_runs_again() {
    let fleet = Fleet::planted();
    let (logs, plan, parts) = (fleet.text("logs"), fleet.text("plan.json"), fleet.text("parts"));
    fleet.run(&["plan", &logs, "-o", &plan]);
    let mut child = fleet
        .command(&["partial", &plan, "--shard", "0/1", "--threads", "1", "-o", &parts])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::thread::sleep(Duration::from_millis(50));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(support_files(&fleet.path("parts")).is_empty(), "no partial that others would merge");
    // What a worker left that was killed while it wrote is not taken for a partial.
    fs::create_dir_all(fleet.path("parts")).unwrap();
    fs::write(fleet.path("parts/.shard-00000-of-00001.part.7-0.unfinished"), b"half").unwrap();
    let again = fleet.run(&["partial", &plan, "--shard", "0/1", "-o", &parts]);
    assert_eq!(code(&again), 0, "{}", said(&again));
    assert_eq!(fleet.json(&["report", &parts, "--json"]), fleet.json(&["report", &logs, "--json"]));
}

#[test]
fn a_shard_that_runs_twice_at_the_same_time_counts_once() {
    let fleet = Fleet::planted();
    let (logs, plan, parts) = (fleet.text("logs"), fleet.text("plan.json"), fleet.text("parts"));
    fleet.run(&["plan", &logs, "-o", &plan]);
    let start = || {
        let mut command =
            fleet.command(&["partial", &plan, "--shard", "0/1", "--threads", "1", "-o", &parts]);
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    let both: Vec<Child> = (0..2).map(|_| start()).collect();
    for mut child in both {
        assert!(child.wait().unwrap().success());
    }
    assert_eq!(fs::read_dir(fleet.path("parts")).unwrap().count(), 1, "one file, and nothing beside it");
    assert_eq!(fleet.json(&["report", &parts, "--json"]), fleet.json(&["report", &logs, "--json"]));
}

#[test]
fn a_partial_of_a_later_version_is_refused_by_name_and_the_others_count() {
    let fleet = Fleet::planted();
    let (logs, plan, parts) = (fleet.text("logs"), fleet.text("plan.json"), fleet.text("parts"));
    fleet.run(&["plan", &logs, "--group-bytes", "200000", "-o", &plan]);
    for shard in ["0/2", "1/2"] {
        fleet.run(&["partial", &plan, "--shard", shard, "-o", &parts]);
    }
    let path = fleet.path("parts/shard-00001-of-00002.part");
    fs::write(&path, later(&fs::read(&path).unwrap())).unwrap();
    let output = fleet.run(&["report", &parts, "--json"]);
    assert_eq!(code(&output), 4);
    assert!(
        said(&output).contains("shard-00001-of-00002.part: the partial has format 9"),
        "{}",
        said(&output)
    );
    assert!(said(&output).contains("reads up to format 2"), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let covered = report["covered"].as_u64().unwrap();
    assert!(covered > 0 && covered < 22, "{covered}");
}

/// The same bytes as a later version would mark them: formats at 8 and 10, checksum at 24 over everything else.
fn later(partial: &[u8]) -> Vec<u8> {
    let number = |from: usize, length: usize| {
        partial[from..from + length]
            .iter()
            .rev()
            .fold(0_usize, |number, byte| number << 8 | usize::from(*byte))
    };
    let length = 32 + number(12, 4) + number(16, 8);
    let mut first = partial[..length].to_vec();
    (first[8], first[10]) = (9, 9);
    let mut hasher = twox_hash::XxHash64::with_seed(0);
    hasher.write(&first[..24]);
    hasher.write(&first[32..]);
    first[24..32].copy_from_slice(&hasher.finish().to_le_bytes());
    [&first, &partial[length..]].concat()
}

#[cfg(target_os = "linux")]
fn assert_all_but_one_covered(report: &Value) {
    let covered = (report["covered"].as_u64(), report["planned"].as_u64());
    assert_eq!(covered, (Some(21), Some(22)), "{}", report["failed"]);
}

/// Holds a lease on a file: opening it blocks until the lease is given back, and that does not happen.
#[cfg(target_os = "linux")]
struct Lease(Child);

#[cfg(target_os = "linux")]
impl Lease {
    fn on(file: &Path) -> Self {
        let script = "import fcntl, os, signal, sys\n\
            signal.signal(signal.SIGIO, signal.SIG_IGN)\n\
            fcntl.fcntl(os.open(sys.argv[1], os.O_RDWR), fcntl.F_SETLEASE, fcntl.F_WRLCK)\n\
            print('held', flush=True)\n\
            signal.pause()\n";
        let mut child =
            Command::new("python3").args(["-c", script]).arg(file).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line.trim(), "held");
        Lease(child)
    }
}

#[cfg(target_os = "linux")]
impl Drop for Lease {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_search_goes_around_what_never_answers() {
    let fleet = Fleet::planted();
    let logs = fleet.text("logs");
    let hung = fleet.place("vision/a", 1, 2, "jax-plain");
    let _lease = Lease::on(&hung);
    let began = Instant::now();
    let output = fleet.run(&["report", &logs, "--json", "--host-time", "2s"]);
    assert!(began.elapsed() < Duration::from_secs(40), "a lease ends after 45 s: {:?}", began.elapsed());
    assert_eq!(code(&output), 4, "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_all_but_one_covered(&report);
    let failed = &report["failed"][0];
    assert_eq!((&failed["job"], &failed["host"]), (&Value::from("vision/a"), &Value::from("node-002")));
    assert!(failed["reason"].as_str().unwrap().contains("its storage does not answer"), "{failed}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_profile_that_never_answers_is_given_up_and_the_others_count() {
    let fleet = Fleet::planted();
    let (logs, plan, parts) = (fleet.text("logs"), fleet.text("plan.json"), fleet.text("parts"));
    let hung = fleet.place("vision/a", 1, 2, "jax-plain");
    fleet.run(&["plan", &logs, "-o", &plan]);
    let lease = Lease::on(&hung);
    let began = Instant::now();
    let output = fleet.run(&["partial", &plan, "--shard", "0/1", "--host-time", "3s", "-o", &parts]);
    assert_eq!(code(&output), 0, "{}", said(&output));
    assert!(began.elapsed() < Duration::from_secs(40), "a lease ends after 45 s: {:?}", began.elapsed());
    let output = fleet.run(&["report", &parts, "--json"]);
    assert_eq!(code(&output), 4);
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_all_but_one_covered(&report);
    let reason = report["failed"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("nothing could be read for 3.00 s; its storage does not answer"), "{reason}");
    // The mount is back: the shard runs again, because a file was missing.
    drop(lease);
    assert_eq!(code(&fleet.run(&["partial", &plan, "--shard", "0/1", "-o", &parts])), 0);
    assert_eq!(fleet.json(&["report", &parts, "--json"])["covered"], 22);
}
