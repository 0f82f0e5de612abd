//! What an attacker, a full disk or a missing permission does to a command: it ends soon, says what happened and leaves
//! nothing behind.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use stepscope_testkit::tfevents;
use support::{code, stepscope};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(name)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn entries(folder: &Path) -> Vec<String> {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// A user without rights of their own; root may read everything.
fn as_somebody(command: &mut Command) -> &mut Command {
    const NOBODY: u32 = 65_534;
    let is_root =
        fs::metadata("/proc/self").is_ok_and(|data| std::os::unix::fs::MetadataExt::uid(&data) == 0);
    if is_root { command.uid(NOBODY).gid(NOBODY).env("HOME", "/nonexistent") } else { command }
}

/// A session of two hosts, of which the second cannot be read: without permission, empty, or nonsense.
fn session(folder: &Path, spoil: impl Fn(&Path)) -> PathBuf {
    let session = folder.join("plugins/profile/2026_01_02_03_04_05");
    fs::create_dir_all(&session).unwrap();
    let from = fixture("tf-train/plugins/profile");
    let recorded = fs::read_dir(&from).unwrap().next().unwrap().unwrap().path();
    let file = fs::read_dir(recorded).unwrap().map(|entry| entry.unwrap().path());
    let file = file.into_iter().find(|path| path.to_string_lossy().ends_with(".xplane.pb")).unwrap();
    for host in ["alpha", "beta"] {
        fs::copy(&file, session.join(format!("{host}.xplane.pb"))).unwrap();
    }
    spoil(&session.join("beta.xplane.pb"));
    fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    folder.to_owned()
}

#[test]
fn a_host_that_cannot_be_read_is_named() {
    for what in ["permission", "empty", "nonsense"] {
        let folder = tempfile::tempdir().unwrap();
        let logs = session(folder.path(), |path| match what {
            "permission" => fs::set_permissions(path, Permissions::from_mode(0o000)).unwrap(),
            "empty" => fs::write(path, "").unwrap(),
            _ => fs::write(path, "this is no profile").unwrap(),
        });
        for command in ["report", "info", "health", "ops"] {
            let output = as_somebody(stepscope().arg(command).arg(&logs)).output().unwrap();
            let said = text(&output.stderr);
            assert_eq!(code(&output), 4, "{what}: {command}: {said}");
            assert!(said.contains("beta.xplane.pb"), "{what}: {command}: {said}");
        }
        let health = as_somebody(stepscope().arg("health").arg(&logs)).output().unwrap();
        let shown = text(&health.stdout);
        assert!(shown.starts_with("not healthy") && shown.contains("beta"), "{what}: {shown}");
        let report = as_somebody(stepscope().args(["report", "--json"]).arg(&logs)).output().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
        assert_eq!(report["health"][0]["id"], "unread", "{what}");
    }
}

#[test]
fn devices_and_pipes_are_refused_wherever_a_file_is_taken() {
    let folder = tempfile::tempdir().unwrap();
    let profile = fixture("tf-train");
    let (zero, pipe) = (folder.path().join("zero"), folder.path().join("pipe"));
    symlink("/dev/zero", &zero).unwrap();
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for device in [&zero, &pipe] {
        let (profile, device) = (profile.to_str().unwrap(), device.to_str().unwrap());
        let commands: [&[&str]; 6] = [
            &["sql", profile, "--file", device],
            &["journal", "show", "--file", device],
            &["journal", "add", profile, "--note", "x", "--file", device],
            &["report", device],
            &["scalars", device],
            &["fleet", "report", profile, "--no-cache", "--devices", device],
        ];
        for command in commands {
            let output = limited(command, Duration::from_secs(60));
            assert!(matches!(code(&output), 2 | 3), "{command:?}: {}", text(&output.stderr));
            assert!(!output.stderr.is_empty(), "{command:?}");
        }
    }
}

/// Runs a command, which must end by itself within a time.
fn limited(arguments: &[&str], time: Duration) -> Output {
    let mut command = stepscope();
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let began = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if began.elapsed() > time {
            child.kill().unwrap();
        }
        assert!(began.elapsed() <= time, "{arguments:?} does not end");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().unwrap()
}

#[test]
fn tags_without_numbers_cannot_steer_a_terminal_behind_a_pipe() {
    const NASTY: &str = "\u{1b}[2J\u{1b}]0;title\u{7}\u{9b}31m\u{202e}evil";
    let folder = tempfile::tempdir().unwrap();
    let tag = format!("note{NASTY}");
    // A picture: the tag, and an empty message.
    let picture = [&[0x0a, u8::try_from(tag.len()).unwrap()], tag.as_bytes(), &[0x22, 0x00]].concat();
    let events = [tfevents::scalar(1.0, 1, "loss", 0.5), tfevents::with_value(2.0, 2, &picture)];
    let records = events.map(|event| tfevents::record(&event)).concat();
    fs::write(folder.path().join("events.out.tfevents.1.host"), records).unwrap();
    let output = stepscope().arg("scalars").arg(folder.path()).output().unwrap();
    let shown = text(&output.stdout) + &text(&output.stderr);
    assert!(shown.contains("evil"), "{shown}");
    let steers = |c: char| (c.is_control() && c != '\n') || ('\u{202a}'..='\u{202e}').contains(&c);
    assert_eq!(shown.chars().find(|c| steers(*c)), None, "{shown:?}");
}

#[test]
fn help_that_cannot_be_written_is_an_error() {
    for arguments in [&["--help"][..], &["--version"], &["report", "--help"]] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let output = stepscope().args(arguments).stdout(full).output().unwrap();
        assert_eq!(code(&output), 3, "{arguments:?}");
        assert!(text(&output.stderr).contains("cannot write the output"), "{}", text(&output.stderr));
    }
}

#[test]
fn a_file_that_may_not_grow_further_is_an_error_and_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("trace.json");
    let export =
        ["export", fixture("tf-train").to_str().unwrap(), "--to", "chrome", "-o", out.to_str().unwrap()]
            .map(str::to_owned);
    // Blocks of 512 or 1,024 bytes, depending on the shell.
    let limited = format!("ulimit -f 8; exec {} \"$@\"", env!("CARGO_BIN_EXE_stepscope"));
    let output = Command::new("sh").args(["-c", &limited, "sh"]).args(&export).output().unwrap();
    assert_eq!(output.status.signal(), None, "{output:?}");
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert_eq!(entries(folder.path()), [""; 0]);
}

#[test]
fn a_command_that_is_killed_while_it_writes_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("trace.json");
    let mut left = Vec::new();
    for wait in [20, 40, 60, 80, 120, 160, 240, 400] {
        let mut child = stepscope()
            .args(["export", fixture("tf-input-bound").to_str().unwrap(), "--to", "chrome", "-o"])
            .arg(&out)
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(wait));
        // SIGTERM; what it would do after SIGKILL is the same.
        assert!(Command::new("kill").arg(child.id().to_string()).status().is_ok());
        child.wait().unwrap();
        left.extend(entries(folder.path()).into_iter().filter(|name| name != "trace.json"));
    }
    assert_eq!(left, [""; 0]);
}
