//! Verdicts on synthetic distributed jobs with a known truth: who is late and why, and nobody where nobody is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

use std::path::Path;

use stepscope_diagnose::Finding;
use stepscope_read::{Bytes, Input, Progress};
use stepscope_results::report::Report;
use stepscope_session::Profile;
use stepscope_session::find::{Query, ResolvedSession};
use stepscope_session::report::report;
use stepscope_testkit::corpus::{corpus, names_in};
use stepscope_testkit::stage::jobs::{JobTrouble, data_service, replicas, servers, workers};

fn told(files: Vec<Vec<u8>>, names: &[&str]) -> Report {
    let inputs = files.into_iter().zip(names).map(|(bytes, name)| {
        let input = Input::from_bytes(format!("{name}.xplane.pb"), Bytes::held(bytes));
        ((*name).to_owned(), Ok(input))
    });
    let profile = Profile::read("run".to_owned(), Vec::new(), inputs.collect(), &Progress::new()).unwrap();
    report(&profile, vec!["run".to_owned()]).unwrap()
}

const WORKERS: [&str; 3] = ["worker0", "worker1", "worker2"];

fn verdict(report: &Report) -> (&'static str, Option<&str>) {
    let first = report.findings.first().unwrap();
    (first.id(), first.subject.as_deref())
}

fn finding<'r>(report: &'r Report, id: &str) -> Option<&'r Finding> {
    report.findings.iter().find(|finding| finding.id() == id)
}

#[test]
fn a_late_worker_is_named_with_what_it_does_more_than_the_others() {
    for (trouble, because) in [
        (JobTrouble::ExtraOp, "`extra_work:MatMul`"),
        (JobTrouble::SlowMachine, "its ops take 3.0 times as long as those of the others"),
        (JobTrouble::Python, "in `python`"),
        (JobTrouble::Input, "`Map` of its input pipeline runs alone"),
    ] {
        let report = told(workers(trouble), &WORKERS);
        assert_eq!(verdict(&report), ("straggler", Some("worker1")), "{trouble:?}");
        let said = report.findings[0].words();
        assert!(said.summary.contains(because), "{trouble:?}: {}", said.summary);
        let gain = report.findings[0].gain_ms.unwrap();
        let truth = if trouble == JobTrouble::SlowMachine { 40.0 } else { 60.0 };
        assert!((gain / truth - 1.0).abs() < 0.1, "{trouble:?}: {gain} ms, {truth} ms were planted");
    }
}

#[test]
fn one_slow_op_is_named_and_is_no_slow_machine() {
    let report = told(workers(JobTrouble::SlowOp), &WORKERS);
    assert_eq!(verdict(&report), ("straggler", Some("worker1")));
    let said = report.findings[0].words().summary;
    assert!(said.contains("`loss/Sum:Sum`") && !said.contains("its ops take"), "{said}");
}

#[test]
fn an_exchange_under_compute_is_hidden_and_one_alone_is_not() {
    let hidden = told(workers(JobTrouble::Hidden), &WORKERS);
    assert!(finding(&hidden, "communication-bound").is_none(), "{:?}", verdict(&hidden));
    let alone = told(workers(JobTrouble::Transfer), &WORKERS);
    assert_eq!(verdict(&alone).0, "communication-bound");
}

#[test]
fn a_data_service_is_blamed_only_if_the_trainer_waits_for_it() {
    const MS: i64 = 1_000_000;
    let names = ["trainer", "data worker"];
    let slow = told(data_service(80 * MS), &names);
    assert_eq!(verdict(&slow).0, "input-bound", "{:?}", slow.findings[0].words());
    let words = slow.findings[0].words();
    assert!(words.summary.contains("`tf.data` service"), "{words:?}");
    let all = format!("{} {:?} {:?}", words.summary, words.evidence, words.advice);
    assert!(all.contains("10.0.0.7:5050") && all.contains("`.map(...)` is slow there"), "{all}");
    assert!(!all.contains("Uncompress") && !all.contains("Move the pipeline"), "{all}");
    // Without the worker's file, its stages are not known; the service is blamed all the same.
    let mut files = data_service(80 * MS);
    files.truncate(1);
    let alone = told(files, &names[..1]);
    assert!(
        alone.findings[0].words().summary.contains("`tf.data` service"),
        "{:?}",
        alone.findings[0].words()
    );
    let fast = told(data_service(10 * MS), &names);
    assert!(finding(&fast, "input-bound").is_none(), "{:?}", verdict(&fast));
}

#[test]
fn equal_workers_and_those_that_ask_their_leader_name_nobody() {
    for trouble in [JobTrouble::None, JobTrouble::SetUp, JobTrouble::Transfer, JobTrouble::ManyCollectives] {
        let report = told(workers(trouble), &WORKERS);
        assert!(finding(&report, "straggler").is_none(), "{trouble:?}: {:?}", verdict(&report));
    }
}

#[test]
fn waiting_for_a_late_worker_is_not_communication() {
    // Each waits for 60 of 86 ms, and exchanges for 4.
    let report = told(workers(JobTrouble::Python), &WORKERS);
    assert!(finding(&report, "communication-bound").is_none());
    let report = told(workers(JobTrouble::Transfer), &WORKERS);
    assert_eq!(verdict(&report).0, "communication-bound");
}

#[test]
fn workers_that_are_slow_in_turn_are_said_to_be_and_nobody_is_named() {
    let report = told(workers(JobTrouble::InTurn), &WORKERS);
    assert_eq!(verdict(&report), ("step-variance", None));
    let said = report.findings[0].words();
    assert!(said.summary.contains("take turns") && said.summary.contains("`python`"), "{}", said.summary);
    assert!(finding(&report, "straggler").is_none());
}

#[test]
fn many_small_collectives_are_said_to_be_too_many() {
    let report = told(workers(JobTrouble::ManyCollectives), &WORKERS);
    assert_eq!(verdict(&report).0, "communication-bound");
    let said = report.findings[0].words();
    assert!(said.summary.contains("40 small ones"), "{}", said.summary);
    assert!(said.advice[0].contains("bytes_per_pack"), "{:?}", said.advice);
}

#[test]
fn a_worker_without_a_recording_is_missed() {
    let mut files = workers(JobTrouble::Python);
    files.truncate(2);
    let report = told(files, &WORKERS);
    assert_eq!(verdict(&report), ("straggler", Some("worker1")));
    let evidence = report.findings[0].words().evidence;
    assert!(evidence.iter().any(|line| line.starts_with("2 of 3 ranks were recorded")), "{evidence:?}");
    let mut alone = workers(JobTrouble::Python);
    alone.truncate(1);
    let report = told(alone, &WORKERS);
    let evidence = finding(&report, "communication-bound").unwrap().words().evidence;
    assert!(evidence.iter().any(|line| line.contains("Only one of 3 ranks was recorded")), "{evidence:?}");
}

#[test]
fn replicas_inside_one_process_are_compared_as_ranks() {
    let report = told(vec![replicas(8)], &["host0"]);
    assert_eq!(verdict(&report), ("straggler", Some("replica 2")));
    assert!(report.findings[0].words().summary.contains("times as long"), "{:?}", report.findings[0].words());
    let report = told(vec![replicas(1)], &["host0"]);
    assert!(finding(&report, "straggler").is_none());
}

#[test]
fn parameter_servers_are_blamed_only_if_workers_wait_for_them() {
    const MS: i64 = 1_000_000;
    let names = ["worker/0", "ps/0", "ps/1"];
    let even = told(servers([15 * MS, 15 * MS]), &names);
    assert_eq!(verdict(&even), ("parameter-server-bound", None));
    assert!(finding(&even, "communication-bound").is_none() && finding(&even, "straggler").is_none());
    let uneven = told(servers([30 * MS, 2 * MS]), &names);
    assert_eq!(verdict(&uneven), ("parameter-server-bound", Some("ps/0")));
    assert!(uneven.findings[0].words().advice[0].contains("MinSizePartitioner"));
    let idle = told(servers([MS, MS]), &names);
    assert!(finding(&idle, "parameter-server-bound").is_none(), "{:?}", verdict(&idle));
}

/// A recorded job's verdict: what its label says is slow, and who.
#[test]
fn recorded_jobs_agree_with_their_labels() {
    let Some(folder) = corpus("distributed") else { return };
    for name in names_in(&folder) {
        let label = std::fs::read_to_string(folder.join(&name).join("label.json")).unwrap();
        let label: serde_json::Value = serde_json::from_str(&label).unwrap();
        let report = found(&folder.join(&name)).1;
        let wanted = match label["bottleneck"].as_str().unwrap_or_default() {
            "communication" => "communication-bound",
            "parameter-server" => "parameter-server-bound",
            "input" => "input-bound",
            "straggler-rotating" => "step-variance",
            other => other,
        };
        let (id, subject) = verdict(&report);
        assert_eq!(id, wanted, "{name}");
        let slow = label["slow"].as_str().filter(|slow| !slow.is_empty() && wanted == "straggler");
        match (slow, subject) {
            (Some(slow), Some(subject)) => {
                assert!(slow.starts_with(subject), "{name}: {subject}, not {slow}");
            }
            (slow, _) => assert!(slow.is_none() && finding(&report, "straggler").is_none(), "{name}"),
        }
    }
}

/// The names of the hosts of the newest session below a path, and its report.
fn found(path: &Path) -> (Vec<String>, Report) {
    let query = Query { paths: vec![path.to_owned()], ..Query::default() };
    let chosen = ResolvedSession::of(&query, &|_| ()).unwrap();
    let names = chosen.files.iter().map(|file| file.host.clone()).collect();
    let inputs = chosen.files.iter().map(|file| (file.host.clone(), file.open())).collect();
    let profile = Profile::read("run".to_owned(), Vec::new(), inputs, &Progress::new()).unwrap();
    (names, report(&profile, vec!["run".to_owned()]).unwrap())
}

#[test]
fn workers_that_record_themselves_into_one_log_directory_are_one_recording() {
    let folder = tempfile::tempdir().unwrap();
    for (second, file) in workers(JobTrouble::Python).into_iter().enumerate() {
        let session = folder.path().join(format!("plugins/profile/2026_11_18_09_52_{:02}", 10 + second));
        std::fs::create_dir_all(&session).unwrap();
        std::fs::write(session.join("machine.xplane.pb"), file).unwrap();
    }
    let (names, report) = found(folder.path());
    assert_eq!(names, ["machine", "machine (2)", "machine (3)"]);
    assert_eq!(verdict(&report), ("straggler", Some("machine (2)")));
    // Another job that stopped in the same minute shares no collective with it.
    let other = folder.path().join("plugins/profile/2026_11_18_09_52_40");
    std::fs::create_dir_all(&other).unwrap();
    std::fs::write(other.join("machine.xplane.pb"), replicas(1)).unwrap();
    assert_eq!(found(folder.path()).0, ["machine"]);
}

#[test]
fn files_that_are_named_by_their_ports_are_called_by_their_parts() {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("plugins/profile/2026_11_18_09_52_10");
    std::fs::create_dir_all(&session).unwrap();
    for (port, file) in [6009, 6010, 6011].into_iter().zip(servers([15_000_000, 15_000_000])) {
        std::fs::write(session.join(format!("127.0.0.1_{port}.xplane.pb")), file).unwrap();
    }
    let (mut names, _) = found(folder.path());
    names.sort();
    assert_eq!(names, ["ps/0", "ps/1", "worker/0"]);
}
