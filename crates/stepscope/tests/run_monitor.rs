//! `stepscope monitor` as a user sees it: CSV and JSON for programs, a dashboard that restores the terminal.
#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use support::{code, stepscope};

fn monitor(args: &[&str]) -> std::process::Output {
    stepscope().arg("monitor").args(args).output().unwrap()
}

#[test]
fn samples_are_lines_of_csv() {
    let output = monitor(&["--csv", "--interval", "20ms", "--duration", "200ms"]);
    assert_eq!(code(&output), 0);
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert!(lines[0].starts_with(&["time_unix_s", "elapsed_s", "machine_cpu_percent"]), "{text}");
    assert!((3..=12).contains(&lines.len()), "{text}");
    assert!(lines.iter().all(|line| line.len() == lines[0].len()));
    let tree = lines[0].iter().position(|name| *name == "tree_rss_bytes").unwrap();
    assert_eq!(lines[1][tree], "", "no tree was asked for");
}

#[test]
fn a_command_is_watched_until_it_ends_and_its_code_is_ours() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("samples.csv");
    let output = monitor(&[
        "--json",
        "--csv",
        file.to_str().unwrap(),
        "--",
        "sh",
        "-c",
        "echo words; sleep 0.3; exit 5",
    ]);
    assert_eq!(code(&output), 5);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["schema"], "stepscope.monitor.v1");
    assert!(json["usage"]["rss_peak_bytes"].as_u64().unwrap() > 100_000, "{json}");
    assert_eq!(output.stderr, b"words\n", "standard output is for the summary");
    assert!(std::fs::read_to_string(file).unwrap().lines().count() >= 2);
}

#[test]
fn a_process_of_others_is_watched_until_it_ends() {
    let mut sleeper = Command::new("sleep").arg("0.3").spawn().unwrap();
    let pid = sleeper.id().to_string();
    let waits = std::thread::spawn(move || sleeper.wait());
    let output = monitor(&["--json", "--pid", &pid]);
    waits.join().unwrap().unwrap();
    assert_eq!(code(&output), 0);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["usage"]["processes"], 1);
}

#[test]
fn a_reader_that_leaves_ends_the_monitor_and_its_command() {
    let mut command = stepscope();
    command.args(["monitor", "--csv", "--interval", "20ms", "--", "sh", "-c", "echo $$; exec sleep 600"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pid = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut pid).unwrap();
    child.stdout.take().unwrap().read_exact(&mut [0; 20]).unwrap();
    let (begun, command) = (Instant::now(), std::path::PathBuf::from(format!("/proc/{}", pid.trim())));
    child.wait().unwrap();
    assert!(begun.elapsed() < Duration::from_secs(60));
    assert!(!command.exists(), "the command still runs");
}

#[test]
fn what_a_child_prints_after_the_watched_command_is_not_cut() {
    let script = "(sleep 1; echo late) & echo early";
    let mut command = stepscope();
    command
        .args(["monitor", "--json", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    assert!(child.wait().unwrap().success());
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "early\nlate\n");
}

#[test]
fn wrong_usage_is_told() {
    for (args, text) in [
        (&[][..], "error: the dashboard needs a terminal; "),
        (&["--csv", "--json"], "error: --csv and --json both go to standard output; "),
        (&["--json", "--pid", "4194303"], "error: there is no process 4194303; "),
        (&["--csv", "--interval", "1ms"], "error: invalid value '1ms'"),
    ] {
        let output = monitor(args);
        assert_eq!(code(&output), 2, "{args:?}");
        let words = String::from_utf8_lossy(&output.stderr);
        assert!(words.starts_with(text), "{words}");
    }
}

#[test]
fn the_dashboard_shows_and_gives_the_terminal_back() {
    let script = "
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
import fcntl, struct, termios
fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack('HHHH', 40, 120, 0, 0))
seen, sent = b'', False
while True:
    try: data = os.read(fd, 65536)
    except OSError: break
    if not data: break
    seen += data
    if b'cores' in seen and not sent:
        os.write(fd, b'q'); sent = True
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";
    let mut command = Command::new("python3");
    command.args(["-c", script, env!("CARGO_BIN_EXE_stepscope"), "monitor", "--interval", "50ms"]);
    let output = command.env("TERM", "xterm").stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(code(&output), 0, "{text}");
    let (enter, leave) = (text.find("\x1b[?1049h"), text.find("\x1b[?1049l"));
    assert!(enter.is_some() && leave > enter, "{text:?}");
    assert!(text.contains("stepscope monitor") && text.contains("watched"), "{text:?}");
}
