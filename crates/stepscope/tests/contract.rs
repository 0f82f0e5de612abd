//! The contract with scripts: exit codes, where words go, what is never touched.

mod support;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use support::{code, root, run, stepscope};

fn fixture() -> std::path::PathBuf {
    root().join("fixtures/tf-train/plugins/profile/2026_01_01_00_00_00/trainer.xplane.pb")
}

/// A run's words with the folder that differs from run to run made neutral.
fn run_in(folder: &Path, args: &[&str]) -> String {
    run(args).replace(&folder.display().to_string(), "FOLDER")
}

#[test]
fn a_missing_path_is_nothing_readable() {
    insta::assert_snapshot!(run(&["info", "nowhere/to/be/found"]));
}

#[test]
fn an_empty_folder_is_nothing_readable() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(run_in(folder.path(), &["health", folder.path().to_str().unwrap()]));
}

#[test]
fn event_files_alone_are_named_and_explained() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("train")).unwrap();
    let name = "train/events.out.tfevents.1700000000.trainer.1.0.v2";
    fs::write(folder.path().join(name), b"\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22\x09").unwrap();
    insta::assert_snapshot!(run_in(folder.path(), &["info", folder.path().to_str().unwrap()]));
}

#[test]
fn a_truncated_profile_gives_a_partial_answer_and_exit_code_4() {
    let folder = tempfile::tempdir().unwrap();
    let bytes = fs::read(fixture()).unwrap();
    let file = folder.path().join("cut.xplane.pb");
    fs::write(&file, &bytes[..bytes.len() * 3 / 4]).unwrap();
    let told = run_in(folder.path(), &["health", file.to_str().unwrap()]);
    insta::assert_snapshot!(told);
    for args in [&["info"][..], &["info", "--json"], &["export", "--to", "csv"]] {
        let output = stepscope().args(args).arg(&file).output().unwrap();
        assert_eq!(code(&output), 4, "{args:?}");
        assert!(output.stdout.len() > 500, "{args:?}: what was read before the damage is shown");
        assert!(String::from_utf8_lossy(&output.stderr).contains("is damaged at byte"), "{args:?}");
    }
}

#[test]
fn a_finding_is_explained_in_the_terminal() {
    insta::assert_snapshot!(run(&["explain", "eager-dispatch"]));
    let all = stepscope().arg("explain").output().unwrap();
    let (all, report) =
        (String::from_utf8(all.stdout).unwrap(), ["input-bound", "no-steps", "step-variance"]);
    assert!(report.iter().all(|id| all.lines().any(|line| line.starts_with(id))), "{all}");
    let json = stepscope().args(["explain", "no-steps", "--json"]).output().unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!(
        (json["schema"].as_str(), json["rows"].as_array().map(Vec::len)),
        (Some("stepscope.explain.v1"), Some(1))
    );
    assert_eq!(json["rows"][0]["about_trust"], true);
}

#[test]
fn an_unknown_finding_is_wrong_usage() {
    insta::assert_snapshot!(run(&["explain", "retrace"]));
    insta::assert_snapshot!(run(&["explain", "zzz"]));
}

#[test]
fn an_unknown_option_is_wrong_usage() {
    for args in
        [&["info", "--nonsense", "x"][..], &["info"], &["nonsense"], &[], &["health", ".", "--json", "--csv"]]
    {
        let output = stepscope().args(args).output().unwrap();
        assert_eq!(code(&output), 2, "{args:?}");
        assert!(output.stdout.is_empty() && !output.stderr.is_empty(), "{args:?}");
    }
}

#[test]
fn an_unknown_column_is_wrong_usage_and_lists_the_known() {
    insta::assert_snapshot!(run(&["health", "fixtures/tf-train", "--sort", "size"]));
}

#[test]
fn the_newest_session_is_taken_and_another_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new) = ("2026_01_01_00_00_00", "2026_02_01_00_00_00");
    for session in [old, new] {
        let path = folder.path().join("plugins/profile").join(session);
        fs::create_dir_all(&path).unwrap();
        fs::copy(fixture(), path.join("trainer.xplane.pb")).unwrap();
    }
    let path = folder.path().to_str().unwrap();
    let newest = run_in(folder.path(), &["info", path]);
    assert!(newest.contains("2 sessions found, took the newest, 2026_02_01_00_00_00"), "{newest}");
    let other = run_in(folder.path(), &["info", path, "--session", "2026_01"]);
    assert!(other.contains("session     2026_01_01_00_00_00") && !other.contains("stderr"), "{other}");
    insta::assert_snapshot!(run_in(folder.path(), &["info", path, "--session", "2025"]));
    insta::assert_snapshot!(run_in(folder.path(), &["info", path, "--session", old, "--host", "worker"]));
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let mut child = stepscope()
        .args(["export", "fixtures/tf-train", "--to", "csv"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut head = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut head).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), &output.stderr[..]), (0, &b""[..]));
}

#[test]
fn colour_is_for_terminals_unless_asked_for() {
    let told = |color: &str| run(&["info", "fixtures/torch-train", "--color", color]);
    assert!(!told("auto").contains('\x1b') && !told("never").contains('\x1b'));
    assert!(told("always").contains('\x1b'));
}

#[test]
fn reading_leaves_the_folder_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let session = folder.path().join("plugins/profile/2026_01_01_00_00_00");
    fs::create_dir_all(&session).unwrap();
    fs::copy(fixture(), session.join("trainer.xplane.pb")).unwrap();
    for command in ["info", "health"] {
        run(&[command, folder.path().to_str().unwrap()]);
    }
    let left: Vec<_> = fs::read_dir(&session).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["trainer.xplane.pb"]);
}

#[test]
fn an_export_never_overwrites_the_profile() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trainer.xplane.pb");
    fs::copy(fixture(), &file).unwrap();
    let path = file.to_str().unwrap();
    insta::assert_snapshot!(run_in(folder.path(), &["export", path, "--to", "chrome", "-o", path]));
    assert_eq!(fs::read(&file).unwrap(), fs::read(fixture()).unwrap());
}

#[test]
fn an_export_to_a_file_says_nothing_and_opens_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("trace.json");
    let path = file.to_str().unwrap();
    assert_eq!(run(&["export", "fixtures/jax-train", "--to", "chrome", "-o", path]), "exit code: 0\n");
    let count = |path: &str| -> serde_json::Value {
        let output = stepscope().args(["info", path, "--json"]).output().unwrap();
        let info: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let markers = info["hosts"][0]["step_markers"].clone();
        serde_json::json!([info["events"], info["hosts"][0]["began_unix_ns"], markers])
    };
    assert_eq!(count(path), count("fixtures/jax-train"));
}
