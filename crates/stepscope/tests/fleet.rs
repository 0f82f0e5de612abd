//! `stepscope fleet` as people run it: on one machine, as an array of tasks, as a nightly job, and with everything that
//! goes wrong on clusters.
#![cfg(unix)]
#![expect(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::{code, root, schema, stepscope};

/// A log directory, with a cache and a place for results beside it.
struct Fleet {
    folder: tempfile::TempDir,
}

impl Fleet {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("logs")).unwrap();
        Fleet { folder }
    }

    /// Three causes: a job that waits for input, a host that is slow in two jobs, and a job that became slower.
    fn planted() -> Self {
        let fleet = Fleet::new();
        for host in 0..6 {
            fleet.place("data/loader", 1, host + 20, "tf-input-bound");
        }
        for job in ["vision/a", "vision/b"] {
            for host in 0..5 {
                fleet.place(job, 1, host, if host == 3 { "jax-train" } else { "jax-plain" });
            }
        }
        for day in 1..=6 {
            fleet.place("nightly", day, 40, if day < 5 { "keras-fit" } else { "keras-plain" });
        }
        fleet
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn place(&self, job: &str, day: u32, host: u32, fixture: &str) -> PathBuf {
        let folder = self.path("logs").join(job).join(format!("plugins/profile/2026_03_{day:02}_04_00_00"));
        fs::create_dir_all(&folder).unwrap();
        let file = folder.join(format!("node-{host:03}.xplane.pb"));
        fs::copy(profile(&root().join("fixtures").join(fixture)), &file).unwrap();
        file
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = stepscope();
        command.arg("fleet").args(args).env("XDG_CACHE_HOME", self.path("cache"));
        for name in
            ["SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT", "JOB_COMPLETION_INDEX"]
        {
            command.env_remove(name);
        }
        command
    }

    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|error| panic!("{args:?}: {error}: {}", said(&output)))
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn profile(fixture: &Path) -> PathBuf {
    let mut todo = vec![fixture.to_owned()];
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.to_string_lossy().ends_with(".xplane.pb") {
            return path;
        }
    }
    panic!("no profile in {}", fixture.display())
}

#[test]
fn planted_causes_come_first() {
    let fleet = Fleet::planted();
    let logs = fleet.text("logs");
    let output = fleet.run(&["report", &logs]);
    assert_eq!(code(&output), 0, "{}", said(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    let first = text.lines().next().unwrap();
    assert!(first.contains("`data/loader` loses most (input-bound"), "{first}");
    let report = fleet.json(&["report", &logs, "--json"]);
    schema::fits(&report);
    assert_eq!((report["covered"].as_u64(), report["failed"].as_array().map(Vec::len)), (Some(22), Some(0)));
    assert_eq!(report["jobs"][0]["job"], "data/loader");
    assert_eq!(report["jobs"][0]["finding"], "input-bound");
    assert_eq!(report["hosts"][0]["host"], "node-003");
    assert_eq!(report["hosts"][0]["slow_in"], 2, "in both jobs");
    assert_eq!(report["changes"][0]["job"], "nightly");
    assert_eq!(report["changes"][0]["day"], "2026-03-05");
    // A job is judged as `report` judges its hosts.
    let alone = support::json("report", &fleet.path("logs/data/loader"));
    let step = report["jobs"][0]["step_ms"].as_f64().unwrap();
    assert!((step - alone["steps"]["median_ms"].as_f64().unwrap()).abs() < 1e-9);
    assert_eq!(report["jobs"][0]["summary"], alone["findings"][0]["summary"]);
    assert!(!fleet.path("logs").join(".cache").exists());
}

#[test]
fn tables_pages_and_hours_are_written() {
    let fleet = Fleet::planted();
    let (logs, page, tables) = (fleet.text("logs"), fleet.text("fleet.html"), fleet.text("tables"));
    let hours = fleet.path("hours.csv");
    fs::write(&hours, "job,devices,hours\nvision/a,64,100\ndata/loader,8,1\n").unwrap();
    let hours = hours.to_str().unwrap();
    let args = ["report", &logs, "--json", "--devices", hours, "--html", &page, "--parquet", &tables];
    let report = fleet.json(&args);
    schema::fits(&report);
    assert_eq!(report["jobs"][0]["job"], "vision/a", "6,400 hours of a little cost more than 8 of much");
    assert!(report["answer"].as_str().unwrap().contains("device hours"));
    assert!(fs::read_to_string(&page).unwrap().contains("data/loader"));
    let parquet = fs::read(fleet.path("tables/jobs.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    let csv = fleet.run(&["report", &logs, "--csv", "--table", "hosts"]);
    let csv = String::from_utf8(csv.stdout).unwrap();
    assert!(csv.starts_with("host,job,slow_fraction,") && csv.contains("node-003,"), "{csv}");
    let pattern = "/(?P<team>vision|data)/(?P<job>[^/]+)/plugins/";
    let named = fleet.json(&["report", &logs, "--json", "--job-pattern", pattern]);
    let jobs = named["jobs"].as_array().unwrap();
    assert!(jobs.iter().any(|job| job["job"] == "loader" && job["labels"]["team"] == "data"), "{jobs:?}");
    let since = fleet.json(&["report", &logs, "--json", "--since", "2026-03-04"]);
    assert_eq!(since["covered"], 3);
}

#[test]
fn an_array_of_tasks_gives_the_same_report_and_names_what_is_missing() {
    let fleet = Fleet::planted();
    let (logs, plan, parts, day) =
        (fleet.text("logs"), fleet.text("plan.json"), fleet.text("parts"), fleet.text("day.part"));
    assert_eq!(code(&fleet.run(&["plan", &logs, "--group-bytes", "200000", "-o", &plan])), 0);
    let shard = |index: &str| {
        let mut command = fleet.command(&["partial", &plan, "-o", &parts]);
        command
            .env("SLURM_ARRAY_TASK_ID", index)
            .env("SLURM_ARRAY_TASK_MIN", "5")
            .env("SLURM_ARRAY_TASK_COUNT", "3");
        command.output().unwrap()
    };
    assert_eq!(code(&shard("5")), 0);
    assert_eq!(code(&shard("7")), 0);
    let merged = fleet.run(&["merge", &parts, "-o", &day]);
    assert_eq!(code(&merged), 4);
    assert!(said(&merged).contains("1 of 3"), "{}", said(&merged));
    let report = fleet.json(&["report", &day, "--json"]);
    assert_eq!(report["missing_shards"], serde_json::json!(["1 of 3"]));
    // The missing one runs; one runs twice.
    assert_eq!(code(&shard("6")), 0);
    assert!(said(&shard("6")).contains("already"));
    let copy = fleet.path("parts/again.part");
    fs::copy(fleet.path("parts/shard-00001-of-00003.part"), &copy).unwrap();
    assert_eq!(code(&fleet.run(&["merge", &parts, &day, "-o", &day])), 0);
    assert_eq!(fleet.json(&["report", &day, "--json"]), fleet.json(&["report", &logs, "--json"]));
    assert_eq!(
        code(&fleet.run(&["partial", &plan, "--shards", "4", "-o", &parts])),
        2,
        "no scheduler says which"
    );
}

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
    assert!(said(&output).contains("21 of 22 hosts"), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["failed"].as_array().map(Vec::len), Some(1));
    assert!(report["failed"][0]["path"].as_str().unwrap().ends_with("node-001.xplane.pb"));
    assert_eq!(report["damaged"][0]["path"], cut.to_str().unwrap());
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

/// Files that were written completely.
fn support_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut todo = vec![folder.to_owned()];
    while let Some(path) = todo.pop() {
        let Ok(entries) = fs::read_dir(&path) else { continue };
        for entry in entries.flatten().map(|entry| entry.path()) {
            if entry.is_dir() {
                todo.push(entry);
            } else if entry.extension().is_some_and(|ending| ending == "part") {
                files.push(entry);
            }
        }
    }
    files.sort();
    files
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
fn a_store_reads_only_what_is_new_and_a_gate_checks_it() {
    let fleet = Fleet::planted();
    let (logs, store) = (fleet.text("logs"), fleet.text("store"));
    let look = || {
        let output = fleet.run(&["watch", &logs, "--store", &store, "--once"]);
        assert_eq!(code(&output), 0, "{}", said(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(look().starts_with("22 new hosts were looked at. "));
    assert!(look().starts_with("0 new hosts were looked at. "));
    fleet.place("nightly", 7, 40, "keras-plain");
    assert!(look().starts_with("1 new host was looked at. "));
    // A host that joins a recording later makes it a new one; what is known of the others is kept.
    fleet.place("vision/a", 1, 9, "jax-plain");
    assert!(look().contains("new hosts were looked at. "));
    let part = fleet.text("store/fleet.part");
    let stored = fleet.json(&["report", &part, "--json"]);
    assert_eq!(stored, fleet.json(&["report", &logs, "--json"]));
    assert_eq!(stored["covered"], 24, "nothing is counted twice");
    assert!(fleet.path("store/jobs.parquet").is_file() && fleet.path("store/fleet.html").is_file());
    // Old profiles may go; the store remembers them.
    fs::remove_dir_all(fleet.path("logs/data")).unwrap();
    look();
    assert_eq!(fleet.json(&["report", &part, "--json"])["covered"], 24);

    let failed = fleet.run(&["gate", &part, "--json"]);
    assert_eq!(code(&failed), 1);
    let checks: Value = serde_json::from_slice(&failed.stdout).unwrap();
    schema::fits(&checks);
    assert_eq!(
        (&checks["passed"], &checks["checks"][0]["job"]),
        (&Value::Bool(false), &Value::from("nightly"))
    );
    let passed = fleet.run(&["gate", &part, "--max-regression", "20%"]);
    assert_eq!(code(&passed), 0, "{}", String::from_utf8_lossy(&passed.stdout));
    assert_eq!(code(&fleet.run(&["gate", &part, "--max-regression", "20%", "--max-lost", "1%"])), 1);
}

#[test]
fn wrong_usage_is_explained() {
    let fleet = Fleet::planted();
    let (logs, inside) = (fleet.text("logs"), fleet.text("logs/store"));
    let output = fleet.run(&["watch", &logs, "--store", &inside, "--once"]);
    assert_eq!(code(&output), 2);
    assert!(said(&output).contains("lies in the log directory"));
    assert!(!fleet.path("logs/store").exists());
    assert_eq!(code(&fleet.run(&["report", &logs, "--job-pattern", "("])), 2);
    assert_eq!(code(&fleet.run(&["report", &logs, "--since", "yesterday"])), 2);
    assert_eq!(code(&fleet.run(&["partial", &logs, "-o", &fleet.text("parts")])), 2);
    let empty = tempfile::tempdir().unwrap();
    assert_eq!(code(&fleet.run(&["report", empty.path().to_str().unwrap()])), 3);
    assert_eq!(code(&fleet.run(&["report", &fleet.text("nowhere")])), 3);
}
