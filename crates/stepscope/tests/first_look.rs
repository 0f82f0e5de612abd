//! What a new user meets first: help, errors that lead on, lines that fit the terminal, tables that show the culprit.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::fs;
use std::io::Write;
use std::process::Stdio;

use stepscope_testkit::tfevents::{record, scalar};
use support::{code, run, stepscope};

const FIXTURE: &str = "fixtures/tf-input-bound";

/// Standard output of a command on a terminal of this many columns.
fn narrow(columns: usize, args: &[&str]) -> String {
    let output = stepscope().args(args).env("COLUMNS", columns.to_string()).output().unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn lines_fit_the_width_that_columns_asks_for() {
    for command in ["report", "steps", "ops", "input", "functions", "devices", "health", "memory", "scopes"] {
        for columns in [60, 80] {
            let text = narrow(columns, &[command, FIXTURE]);
            // Code that can be copied is never broken.
            let long: Vec<&str> = text
                .lines()
                .filter(|line| line.chars().count() > columns && line.trim().contains(' '))
                .collect();
            assert!(long.is_empty(), "{command} at {columns}: {long:#?}");
        }
    }
}

#[test]
fn columns_that_do_not_fit_are_named() {
    let text = narrow(60, &["ops", FIXTURE]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("Too narrow for") && text.contains("cumulative"), "{text}");
    assert!(!narrow(200, &["ops", FIXTURE]).contains("Too narrow"));
}

#[test]
fn help_is_a_command_too() {
    let help = stepscope().args(["help"]).output().unwrap();
    assert_eq!(code(&help), 0);
    assert!(String::from_utf8(help.stdout).unwrap().contains("Usage: stepscope"));
    let of_command = stepscope().args(["help", "report"]).output().unwrap();
    assert!(String::from_utf8(of_command.stdout).unwrap().contains("Usage: stepscope report"));
}

#[test]
fn the_demo_suggests_only_commands_that_work() {
    let demo = run(&["demo"]);
    let next = demo.lines().find(|line| line.starts_with("next")).unwrap();
    assert!(next.contains("stepscope demo --serve") && !demo.contains("sample.xplane.pb"), "{next}");
}

#[test]
fn a_folder_of_event_files_leads_to_scalars() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("events.out.tfevents.1.x"), record(&scalar(1.0, 1, "loss", 0.5))).unwrap();
    let output = stepscope().arg("report").arg(folder.path()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("stepscope scalars"), "{said}");
}

#[test]
fn a_query_may_come_from_standard_input() {
    for args in [&["sql", FIXTURE, "-", "--csv"][..], &["sql", FIXTURE, "--csv"][..]] {
        let mut command = stepscope();
        let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(b"SELECT 1 + 1 AS two").unwrap();
        let output = child.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().collect::<Vec<_>>(), ["two", "2"], "{args:?}");
    }
}

#[test]
fn a_table_for_a_spreadsheet_has_no_json_in_its_cells() {
    let output = stepscope().args(["steps", FIXTURE, "--csv"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(!text.contains('{'), "{text}");
    let head: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    assert!(head.contains(&"breakdown.input"), "{head:?}");
    assert!(text.lines().all(|line| line.split(',').count() == head.len()), "{text}");
}

#[test]
fn the_longest_op_is_the_first_row_wherever_it_runs() {
    let output = stepscope().args(["ops", FIXTURE, "--json"]).output().unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let times: Vec<f64> =
        rows["rows"].as_array().unwrap().iter().map(|row| row["self_ms"].as_f64().unwrap()).collect();
    assert!(times.is_sorted_by(|a, b| a >= b), "{times:?}");
    assert!(rows["rows"].as_array().unwrap().iter().any(|row| row["input"] == true));
}
