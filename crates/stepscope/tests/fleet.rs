//! `stepscope fleet` as people run it: on one machine, as an array of tasks, and as a nightly job. `fleet_faults.rs` has what goes
//! wrong.
#![cfg(unix)]

mod support;

use std::fs;

use serde_json::Value;
use support::fleet::{Fleet, said};
use support::{code, schema};

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
fn a_loss_that_no_finding_measures_is_unknown() {
    let lost = |name: &str| {
        let fleet = Fleet::new();
        let logs = support::root().join("fixtures").join(name).display().to_string();
        let report = fleet.json(&["report", &logs, "--json"]);
        report["jobs"][0]["lost_fraction"].clone()
    };
    assert_eq!(lost("nsys-tables"), Value::Null, "the device idles, and nothing says how much a fix saves");
    assert_eq!(lost("jax-train").to_string(), "0.0", "it computes all the time");
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

#[test]
fn jobs_are_named_by_the_verdict_of_their_report() {
    let Some(folder) = stepscope_testkit::corpus::corpus("distributed") else { return };
    let fleet = Fleet::new();
    let report = fleet.json(&["report", &folder.display().to_string(), "--json"]);
    for job in report["jobs"].as_array().unwrap() {
        let name = job["job"].as_str().unwrap();
        let alone = support::json("report", &folder.join(name));
        let first = &alone["findings"][0];
        // A fleet is about what is lost; a verdict without a figure for that names no job.
        if first["gain_ms_per_step"].as_f64().is_some_and(|gain| gain > 0.0) {
            assert_eq!(job["finding"], first["id"], "{name}");
        }
    }
}
