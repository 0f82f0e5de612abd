//! Files appear completely or not at all: a disk that is full leaves the old file, says so, and nothing is called saved.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name).display().to_string()
}

/// Runs stepscope where no file may become larger than 512 bytes. Whoever writes more gets an error, as on a full disk.
fn cramped(folder: &Path, arguments: &[&str]) -> Output {
    let script = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
    let mut command = Command::new("sh");
    command.args(["-c", script, "sh", env!("CARGO_BIN_EXE_stepscope")]).args(arguments).current_dir(folder);
    command.output().unwrap()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn a_full_disk_leaves_the_old_file_and_is_reported() {
    let profile = fixture("tf-train");
    let commands: [&[&str]; 4] = [
        &["export", &profile, "--to", "chrome", "-o", "old"],
        &["export", &profile, "--to", "parquet", "-o", "old"],
        &["report", &profile, "--html", "old"],
        &["compare", &profile, &profile, "--html", "old"],
    ];
    for arguments in commands {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("old"), "old").unwrap();
        let output = cramped(folder.path(), arguments);
        let error = text(&output.stderr);
        assert!(matches!(output.status.code(), Some(2 | 3)), "{arguments:?}: {:?} {error}", output.status);
        assert!(
            error.starts_with("error: cannot write old;") && error.contains("free some space"),
            "{error}"
        );
        assert_eq!(fs::read(folder.path().join("old")).unwrap(), b"old", "{arguments:?}");
        assert_eq!(names(folder.path()), ["old"], "{arguments:?}");
    }
}

#[test]
fn a_run_that_could_not_be_saved_is_not_called_saved() {
    let folder = tempfile::tempdir().unwrap();
    let output = cramped(folder.path(), &["run", "--save", "kept", "--json", "run.json", "--", "true"]);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "the command's own: {error}");
    assert!(error.contains("error: cannot write run.json;"), "{error}");
    assert!(!error.contains("saved "), "{error}");
    assert_eq!(names(folder.path()), ["kept"]);
    assert_eq!(names(&folder.path().join("kept")), [""; 0], "half a run is no run");
}

#[test]
fn a_journal_keeps_its_lines_when_the_disk_is_full_and_a_retry_adds_none() {
    let folder = tempfile::tempdir().unwrap();
    let (profile, journal) = (fixture("tf-train"), folder.path().join("stepscope.journal"));
    fs::write(&journal, "\n").unwrap();
    let add = ["journal", "add", &profile, "--note", "first"];
    let output = cramped(folder.path(), &add);
    let error = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{error}");
    assert!(error.contains("cannot write stepscope.journal") && output.stdout.is_empty(), "{error}");
    assert_eq!(fs::read(&journal).unwrap(), b"\n", "no half line");
    for round in 0..2 {
        let output = support::stepscope().args(add).current_dir(folder.path()).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        assert_eq!(text(&output.stderr).contains("already"), round == 1);
    }
    assert_eq!(fs::read_to_string(&journal).unwrap().lines().filter(|line| !line.is_empty()).count(), 1);
}

#[test]
fn a_bad_byte_costs_one_line_of_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("j");
    let add = |note: &str| {
        let arguments =
            ["journal", "add", &fixture("tf-train"), "--note", note, "--file", file.to_str().unwrap()];
        assert!(support::stepscope().args(arguments).output().unwrap().status.success());
    };
    add("first");
    fs::write(&file, [&fs::read(&file).unwrap()[..], b"{\"v\": \xff}\n"].concat()).unwrap();
    add("second");
    let output =
        support::stepscope().args(["journal", "show", "--file", file.to_str().unwrap()]).output().unwrap();
    let shown = text(&output.stdout);
    assert!(shown.contains("first") && shown.contains("second") && shown.contains("line 2"), "{shown}");
}

#[test]
fn the_last_of_many_journal_lines_are_shown_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("j");
    let path = file.to_str().unwrap();
    let arguments = ["journal", "add", &fixture("tf-train"), "--note", "n", "--file", path];
    assert!(support::stepscope().args(arguments).output().unwrap().status.success());
    let first: serde_json::Value = serde_json::from_slice(fs::read(&file).unwrap().trim_ascii()).unwrap();
    let line = |number: i64| {
        let mut line = first.clone();
        line["time_ms"] = (first["time_ms"].as_i64().unwrap() + number).into();
        line["fingerprint"] = format!("{number:016x}").into();
        line["note"] = format!("run {number}").into();
        line.to_string() + "\n"
    };
    fs::write(&file, (0..20_000).map(line).collect::<String>()).unwrap();
    let output = support::stepscope().args(["journal", "show", "--file", path]).output().unwrap();
    let shown = text(&output.stdout);
    assert!(shown.contains("run 19999") && !shown.contains("run 19000 "), "{shown}");
    assert!(shown.contains("19,975 earlier runs are not shown"), "{shown}");
    // Every line compared took minutes; the time itself depends on the machine.
    let some = support::stepscope()
        .args(["journal", "show", "--file", path, "--last", "2", "--json"])
        .output()
        .unwrap();
    let rows: serde_json::Value = serde_json::from_slice(&some.stdout).unwrap();
    assert_eq!(rows["rows"].as_array().unwrap().len(), 2);
}
