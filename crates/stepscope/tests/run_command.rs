//! `stepscope run` as a user sees it: the command behaves as it would on its own, and a summary follows.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use support::{code, retried, root, stepscope};

fn run(args: &[&str]) -> Output {
    stepscope().arg("run").args(args).output().unwrap()
}

fn page(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// Ends a child that a failed test left behind.
struct Reaped(std::process::Child);

impl Drop for Reaped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn every_byte_and_the_exit_code_are_the_commands_own() {
    let folder = tempfile::tempdir().unwrap();
    let copy = folder.path().join("copy");
    let script = format!("head -c 300000 /dev/urandom | tee {}; echo to stderr >&2; exit 7", copy.display());
    let output = run(&["--", "sh", "-c", &script]);
    assert_eq!(code(&output), 7);
    assert!(output.stdout == fs::read(copy).unwrap(), "not one byte more or less");
    let page = page(&output);
    assert!(page.starts_with("to stderr\n") && page.contains("with exit code 7"), "{page}");
    assert!(page.contains("no steps found"), "no steps are no steps\n{page}");
}

#[test]
fn input_reaches_the_command() {
    let mut command = stepscope();
    command.args(["run", "cat"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"hello\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((code(&output), &output.stdout[..]), (0, &b"hello\n"[..]));
}

#[test]
fn a_command_that_a_signal_ended_has_the_shells_code() {
    let output = run(&["--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(code(&output), 137);
    assert!(page(&output).contains("by signal 9"), "{}", page(&output));
}

#[test]
fn what_cannot_be_started_is_an_error_in_our_form() {
    let output = run(&["--", "no-such-program-anywhere"]);
    assert_eq!(code(&output), 127);
    assert!(
        page(&output)
            .starts_with("error: cannot start `no-such-program-anywhere`; the program does not exist; ")
    );
    assert_eq!(code(&run(&["--", "/"])), 126);
    assert_eq!(code(&run(&[])), 2);
}

/// The loop's own stopwatch stands beside what we hear of it.
const LOOP: &str = "
import json, sys, time
ends = []
for step in range(1, 61):
    time.sleep(0.05 if step <= 10 else 0.01)
    ends.append(time.perf_counter())
    print(FORMAT, flush=True)
steps = [b - a for a, b in zip(ends, ends[1:])][14:]
json.dump(1e3 * sum(steps) / len(steps), open(sys.argv[1], 'w'))
";

#[test]
fn steps_are_timed_as_a_stopwatch_in_the_command_times_them() {
    retried(|| {
        for format in [
            "f'step {step}/60 loss 0.5'",
            "f'\\r{step}/60 ━━━━━ 0s 10ms/step - loss: 0.5'",
            "f'\\r{step*100//60}%|██  | {step}/60 [00:03<00:20, 99.00it/s]'",
        ] {
            let folder = tempfile::tempdir().unwrap();
            let (watch, report) = (folder.path().join("watch.json"), folder.path().join("run.json"));
            let output = run(&[
                "--batch-size",
                "8",
                "--json",
                report.to_str().unwrap(),
                "--",
                "python3",
                "-c",
                &LOOP.replace("FORMAT", format),
                watch.to_str().unwrap(),
            ]);
            assert_eq!(code(&output), 0, "{}", page(&output));
            let (own, run) = (json(&watch).as_f64().unwrap(), json(&report));
            assert_eq!(run["schema"], "stepscope.run.v1");
            let steps = &run["steps"];
            assert_eq!(
                (steps["origin"].as_str(), steps["count"].as_u64()),
                (Some("lines"), Some(59)),
                "{format}"
            );
            let observed = steps["observed"].as_array().unwrap();
            let after: Vec<&serde_json::Value> =
                observed.iter().filter(|one| one["step"].as_u64().unwrap() > 15).collect();
            let time: f64 =
                after.iter().map(|one| one["ms"].as_f64().unwrap() * one["steps"].as_f64().unwrap()).sum();
            let count: f64 = after.iter().map(|one| one["steps"].as_f64().unwrap()).sum();
            assert!((time / count / own - 1.0).abs() < 0.05, "{format}: {} and {own}", time / count);
            let rate = run["examples_per_s"].as_f64().unwrap() / run["steps_per_s"].as_f64().unwrap();
            assert!((rate - 8.0).abs() < 1e-9);
        }
    });
}

#[test]
fn event_files_tell_steps_where_nothing_is_printed() {
    // Two tags a step, as programs write them; the reader's own tests hold the format.
    let script = "
import struct, sys, time
def masked(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8): crc = (crc >> 1) ^ (0x82f63b78 if crc & 1 else 0)
    crc ^= 0xffffffff
    return (((crc >> 15) | (crc << 17)) + 0xa282ead8) & 0xffffffff
out = open(sys.argv[1] + '/events.out.tfevents.1.host', 'wb')
for step in range(30):
    time.sleep(0.01)
    value = b'\\x0a\\x04loss\\x15' + struct.pack('<f', 0.5)
    summary = b'\\x0a' + bytes([len(value)]) + value
    event = b'\\x09' + struct.pack('<d', time.time()) + b'\\x10' + bytes([step]) + b'\\x2a' + bytes([len(summary)]) + summary
    head = struct.pack('<Q', len(event))
    out.write(head + struct.pack('<I', masked(head)) + event + struct.pack('<I', masked(event)))
";
    let folder = tempfile::tempdir().unwrap();
    let (logs, report) = (folder.path().join("logs"), folder.path().join("run.json"));
    fs::create_dir(&logs).unwrap();
    let (logs, file) = (logs.to_str().unwrap(), report.to_str().unwrap());
    let output = run(&["--logdir", logs, "--json", file, "--", "python3", "-c", script, logs]);
    let steps = json(&report)["steps"].clone();
    assert_eq!(
        (steps["origin"].as_str(), steps["tag"].as_str()),
        (Some("events"), Some("loss")),
        "{}",
        page(&output)
    );
    assert_eq!(steps["count"], 29);
    assert!(steps["median_ms"].as_f64().unwrap() >= 9.9);
}

/// Works for a while, lets a child work, and writes down what the system counted for both.
const BUSY: &str = "
import json, os, resource, subprocess, sys, time
block = bytearray(b'x') * 150_000_000
end = time.process_time() + 0.2
while time.process_time() < end: pass
subprocess.run([sys.executable, '-c', 'import time\\nwhile time.process_time() < 0.8: pass'])
own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
cpu = own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime
json.dump([cpu, own.ru_maxrss * 1024], open(sys.argv[1], 'w'))
";

#[test]
fn processor_time_and_memory_are_those_of_the_kernel() {
    retried(|| {
        let folder = tempfile::tempdir().unwrap();
        let (truth, report) = (folder.path().join("truth.json"), folder.path().join("run.json"));
        let args = ["--json", report.to_str().unwrap(), "--", "python3", "-c", BUSY, truth.to_str().unwrap()];
        assert_eq!(code(&run(&args)), 0);
        let (truth, usage) = (json(&truth), json(&report)["usage"].clone());
        let pair = |ours: &serde_json::Value, theirs: &serde_json::Value| {
            (ours.as_f64().unwrap(), theirs.as_f64().unwrap())
        };
        // The script cannot count its own end, in which the system takes back its memory: the more the busier the machine
        // is, and yet less than a child that were counted twice, or not at all.
        let (ours, theirs) = pair(&usage["cpu_seconds"], &truth[0]);
        assert!(ours > 0.98 * theirs && ours < 1.5 * theirs, "{ours} s of processor time, truly {theirs}");
        let (ours, theirs) = pair(&usage["process_peak_bytes"], &truth[1]);
        assert!((ours / theirs - 1.0).abs() < 0.05, "{ours} bytes, truly {theirs}");
        assert!(usage["rss_peak_bytes"].as_f64() >= usage["process_peak_bytes"].as_f64());
    });
}

#[test]
fn signals_reach_the_command_and_the_page_still_comes() {
    let script = "trap 'echo got it; exit 9' TERM; echo ready; while :; do sleep 0.02; done";
    let mut command = stepscope();
    command.args(["run", "--", "sh", "-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Reaped(command.spawn().unwrap());
    let mut out = BufReader::new(child.0.stdout.take().unwrap());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    assert!(Command::new("kill").args(["-TERM", &child.0.id().to_string()]).status().unwrap().success());
    line.clear();
    out.read_to_string(&mut line).unwrap();
    let status = child.0.wait().unwrap();
    assert_eq!((line.as_str(), status.code()), ("got it\n", Some(9)));
    let mut page = String::new();
    child.0.stderr.take().unwrap().read_to_string(&mut page).unwrap();
    assert!(page.contains("with exit code 9"), "{page}");
}

#[test]
fn a_reader_that_leaves_ends_the_command_as_it_would_without_us() {
    let mut command = stepscope();
    command.args(["run", "--", "yes"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Reaped(command.spawn().unwrap());
    let mut first = [0; 2];
    child.0.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"y\n");
    assert_eq!(child.0.wait().unwrap().code(), Some(141));
}

#[test]
fn a_command_that_talks_without_end_takes_no_memory() {
    let mut command = stepscope();
    let flood = "yes 'step one of many with some text behind it' | head -c 400000000; echo; echo done";
    command.args(["run", "--", "sh", "-c", flood]).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = Reaped(command.spawn().unwrap());
    let status = format!("/proc/{}/status", child.0.id());
    let (mut peak, begun) = (0, Instant::now());
    while child.0.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < Duration::from_secs(100), "400 MB must not take for ever");
        let text = fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        peak = peak.max(kilobytes.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!((1..60_000).contains(&peak), "{peak} kB");
}

#[test]
fn a_child_of_the_command_that_lives_on_does_not_hold_us_up() {
    let begun = Instant::now();
    let mut command = stepscope();
    command
        .args(["run", "--", "sh", "-c", "sleep 100 & echo out"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = Reaped(command.spawn().unwrap());
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(60));
    let mut first = [0; 4];
    child.0.stdout.take().unwrap().read_exact(&mut first).unwrap();
    assert_eq!(&first, b"out\n");
}

#[test]
fn what_a_child_prints_after_the_command_is_not_cut() {
    let script = "(sleep 4; for i in 1 2 3; do echo late $i; sleep 0.1; done; echo err >&2) & echo out";
    let mut command = stepscope();
    command.args(["run", "--", "sh", "-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = Reaped(command.spawn().unwrap());
    assert_eq!(child.0.wait().unwrap().code(), Some(0));
    let (mut out, mut err) = (String::new(), String::new());
    child.0.stdout.take().unwrap().read_to_string(&mut out).unwrap();
    child.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(out, "out\nlate 1\nlate 2\nlate 3\n");
    assert!(err.ends_with("err\n"), "{err}");
}

#[test]
fn on_a_terminal_the_command_has_a_terminal() {
    let script = "
import os, pty, sys
chunks = []
def read(fd):
    data = os.read(fd, 1024)
    chunks.append(data)
    return data
status = pty.spawn(sys.argv[1:], read)
sys.exit(os.waitstatus_to_exitcode(status))
";
    let ask = "import sys; print(sys.stdout.isatty(), sys.stderr.isatty())";
    let mut command = Command::new("python3");
    command.args(["-c", script, env!("CARGO_BIN_EXE_stepscope"), "run", "--", "python3", "-c", ask]);
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.starts_with("True True\r\n"), "{text}");
    assert!(text.contains("with exit code 0"), "{text}");
}

/// Saves a run whose steps take this long.
fn saved(folder: &Path, seconds: &str) {
    let script =
        format!("import time\nfor i in range(80):\n  time.sleep({seconds})\n  print('step', i, flush=True)");
    let output =
        run(&["--save", folder.to_str().unwrap(), "--batch-size", "4", "--", "python3", "-c", &script]);
    assert_eq!(code(&output), 0, "{}", page(&output));
}

#[test]
fn saved_runs_are_sides_of_a_comparison_and_of_a_gate() {
    retried(|| {
        let folder = tempfile::tempdir().unwrap();
        let (before, after) = (folder.path().join("before"), folder.path().join("after"));
        saved(&before, "0.012");
        saved(&after, "0.030");
        let (before, after) = (before.to_str().unwrap(), after.to_str().unwrap());
        let output = stepscope().args(["compare", before, after, "--json"]).output().unwrap();
        let comparison: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(comparison["verdict"], "slower", "{comparison}");
        assert!(comparison["ratio"]["median"].as_f64().unwrap() > 1.5);
        let gate = |base: &str, new: &str| code(&stepscope().args(["gate", base, new]).output().unwrap());
        assert_eq!((gate(before, after), gate(after, before)), (1, 0));
        let again = run(&["--save", before, "--", "true"]);
        assert_eq!(code(&again), 2, "a saved run is not written over");
        assert!(page(&again).contains("already contains a run"));
    });
}

#[test]
fn a_saved_run_without_a_profile_says_what_is_missing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    saved(&path, "0.005");
    let output = stepscope().arg("report").arg(&path).output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(told.starts_with("Samples of a run") && told.contains("record a profile"), "{told}");
}

#[test]
fn samples_and_profile_of_a_saved_run_are_one_session() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run");
    saved(&path, "0.005");
    let profile = "plugins/profile/2026_01_01_00_00_00";
    let from = root().join("fixtures/tf-train").join(profile);
    fs::create_dir_all(path.join(profile)).unwrap();
    fs::copy(from.join("trainer.xplane.pb"), path.join(profile).join("trainer.xplane.pb")).unwrap();
    let report = |path: &Path| -> serde_json::Value {
        let output = stepscope().args(["report", "--json"]).arg(path).output().unwrap();
        assert_eq!(code(&output), 0, "{}", page(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    };
    let (alone, together) = (report(&from), report(&path));
    let formats: Vec<&str> =
        together["sources"].as_array().unwrap().iter().map(|it| it["format"].as_str().unwrap()).collect();
    assert_eq!(formats, ["xplane", "stepscope-samples"]);
    for part in ["steps", "breakdown", "findings", "ops"] {
        assert_eq!(alone[part], together[part], "samples change nothing of what the profile says: {part}");
    }
    let info = stepscope().arg("info").arg(&path).output().unwrap();
    let headline = String::from_utf8_lossy(&info.stdout);
    assert!(headline.starts_with("1 host, "), "samples are no host of their own: {headline}");
    let info = stepscope().arg("info").arg(path.join("samples.csv")).output().unwrap();
    assert_eq!(code(&info), 0, "{}", page(&info));
}
