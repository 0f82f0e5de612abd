//! Verdicts on synthetic distributed jobs with a known truth: who is late and why, and nobody where nobody is.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

use stepscope_diagnose::Finding;
use stepscope_read::{Bytes, Input, Progress};
use stepscope_results::report::Report;
use stepscope_session::Profile;
use stepscope_session::report::report;
use stepscope_testkit::stage::jobs::{JobTrouble, replicas, servers, workers};

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
