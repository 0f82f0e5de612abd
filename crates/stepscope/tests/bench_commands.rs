//! `stepscope bench command` and `stepscope bench input` on programs whose times are known.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::process::{Command, Output, Stdio};

use serde_json::Value;
use support::{code, retried, stepscope};

fn bench(args: &[&str]) -> Output {
    stepscope().arg("bench").args(args).output().unwrap()
}

fn json(args: &[&str]) -> Value {
    let output = bench(args);
    assert_eq!(code(&output), 0, "{}", told(&output));
    let result = serde_json::from_slice(&output.stdout).unwrap();
    support::schema::fits(&result);
    result
}

fn told(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn text(args: &[&str]) -> String {
    String::from_utf8(bench(args).stdout).unwrap()
}

#[test]
fn a_slower_command_stops_a_build_and_a_faster_one_does_not() {
    let exit = |old: &str, new: &str, limit: &str| {
        let against = format!("sleep {new}");
        let args =
            ["command", "--runs", "8", "--max-regression", limit, "--against", &against, "--", "sleep", old];
        code(&bench(&args))
    };
    assert_eq!(exit("0.01", "0.3", "5%"), 1);
    assert_eq!(exit("0.3", "0.01", "5%"), 0);
    assert_eq!(exit("0.01", "0.3", "100000%"), 0);
    assert_eq!(
        code(&bench(&["command", "--max-regression", "5%", "--", "true"])),
        2,
        "nothing to compare with"
    );
}

#[test]
fn a_command_takes_as_long_as_it_does() {
    let result = json(&["command", "--runs", "5", "--json", "--", "sleep", "0.1"]);
    let row = &result["rows"][0];
    assert_eq!(result["schema"], "stepscope.bench.v1");
    assert_eq!(result["measurements"][0].as_array().unwrap().len(), 5);
    let (min, median) = (row["min_ms"].as_f64().unwrap(), row["median_ms"].as_f64().unwrap());
    assert!(min >= 100.0 && median >= min, "{row}");
    assert!(row["user_ms"].as_f64().unwrap() < min, "it sleeps: {row}");
}

#[test]
fn two_commands_in_turns_tell_which_is_faster() {
    retried(|| {
        let slow_and_fast =
            ["command", "--runs", "10", "--against", "sleep 0.01", "--json", "--", "sleep", "0.3"];
        let result = json(&slow_and_fast);
        assert_eq!(result["verdict"], "faster", "{result}");
        let ratio = &result["ratio"];
        let (low, high) = (ratio["low"].as_f64().unwrap(), ratio["high"].as_f64().unwrap());
        let medians = |row: usize| result["rows"][row]["median_ms"].as_f64().unwrap();
        let truth = medians(1) / medians(0);
        assert!(low <= truth && truth <= high && high < 0.9, "{ratio}");
        let words = text(&slow_and_fast.map(|arg| if arg == "--json" { "--warmup=0" } else { arg }));
        assert!(words.starts_with("B is faster: it takes "), "{words}");
    });
}

#[test]
fn the_same_command_is_never_faster_than_itself_by_much() {
    retried(|| {
        let result =
            json(&["command", "--runs", "15", "--against", "sleep 0.02", "--json", "--", "sleep", "0.02"]);
        assert!(result["verdict"] == "same" || result["verdict"] == "unclear", "{result}");
    });
}

#[test]
fn failures_are_named() {
    // Fails every other time.
    let folder = tempfile::tempdir().unwrap();
    let flag = folder.path().join("flag");
    let script = format!("if [ -e {0} ]; then rm {0}; exit 9; else touch {0}; fi", flag.display());
    let words = text(&["command", "--runs", "4", "--warmup", "0", "--", "sh", "-c", &script]);
    assert!(words.lines().next().unwrap().ends_with("2 of 4 runs failed (exit code 9)"), "{words}");

    let output = bench(&["command", "--runs", "2", "--", "sh", "-c", "echo broken pipe dream >&2; exit 9"]);
    assert_eq!(code(&output), 3);
    assert!(told(&output).contains("exit code 9: broken pipe dream"), "{}", told(&output));
    let output = bench(&["command", "--", "/no/such/program"]);
    assert_eq!(code(&output), 3);
    assert!(told(&output).contains("cannot start"), "{}", told(&output));
    assert_eq!(code(&bench(&["command"])), 2);
    assert_eq!(code(&bench(&["command", "--against", "'open", "--", "true"])), 2);
}

/// 150 batches of 32 with 4 ms between them, after 300 ms; the 75th takes 200 ms longer.
const PIPELINE: &str = "sleep 0.3; i=0; while [ $i -lt 150 ]; do echo 32; sleep 0.004; \
                        if [ $i -eq 75 ]; then sleep 0.2; fi; i=$((i+1)); done";

#[test]
fn a_pipeline_is_as_fast_as_its_batches_come() {
    retried(|| {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("times");
        // The program's own log of when it said a line.
        let script = PIPELINE.replace("echo 32;", &format!("echo 32; date +%s%N >> {};", log.display()));
        let result = json(&["input", "--json", "--", "sh", "-c", &script]);
        let row = &result["rows"][0];
        let times: Vec<f64> = std::fs::read_to_string(log)
            .unwrap()
            .lines()
            .map(|line| line.parse::<f64>().unwrap() / 1e6)
            .collect();
        let warmup = row["warmup_batches"].as_u64().unwrap() as usize;
        let truth = (times.len() - 1 - warmup) as f64 / (times[times.len() - 1] - times[warmup]) * 1e3;
        let measured = row["batches_per_s"].as_f64().unwrap();
        assert!((measured / truth - 1.0).abs() < 0.05, "{measured} batches/s, truly {truth}");
        assert!((row["examples_per_s"].as_f64().unwrap() / measured - 32.0).abs() < 1e-6);
        assert_eq!((&row["batches"], &row["examples"]), (&150.into(), &4800.into()));
        assert!(row["first_batch_ms"].as_f64().unwrap() >= 300.0, "{row}");
        assert!(row["gap_max_ms"].as_f64().unwrap() >= 200.0, "{row}");
        assert!(row["stalls"].as_u64().unwrap() >= 1, "{row}");
    });
}

#[test]
fn lines_can_be_told_apart_and_the_step_be_judged() {
    retried(|| {
        let script = "for i in 1 2 3 4 5 6 7 8 9 10; do echo loading; echo batch of 8; sleep 0.02; done";
        let args = ["input", "--line", r"batch of (\d+)", "--step", "1s", "--", "sh", "-c", script];
        let words = text(&args);
        assert!(words.contains("fast enough for a 1.00 s step"), "{words}");
        assert!(words.contains("10 batches, 80 examples"), "{words}");
        let words = text(&args.map(|arg| if arg == "1s" { "1ms" } else { arg }));
        assert!(words.contains("too slow for a 1.00 ms step"), "{words}");
        let sized = json(&["input", "--batch-size", "16", "--json", "--", "sh", "-c", "echo a; echo b"]);
        assert_eq!(sized["rows"][0]["examples"], 32);
        assert_eq!(sized["rows"][0]["batches_per_s"], Value::Null, "two batches have no pace");
    });
}

#[test]
fn a_pipeline_without_batches_is_an_error_with_advice() {
    let output = bench(&["input", "--", "sh", "-c", "exit 4"]);
    assert_eq!(code(&output), 3);
    assert!(told(&output).contains("exit code 4, it printed no lines"), "{}", told(&output));
    let output = bench(&["input", "--line", "batch", "--", "echo", "hello"]);
    assert_eq!(code(&output), 3);
    assert!(told(&output).contains("1 line did not match"), "{}", told(&output));
    assert_eq!(code(&bench(&["input", "--line", "(", "--", "true"])), 2);
}

#[test]
fn an_interrupt_shows_the_runs_so_far() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // The third run tells that it has begun, and then never ends.
    let count = folder.path().join("count");
    let script = format!(
        "echo x >> {0}; if [ $(wc -l < {0}) -eq 3 ]; then echo begun > {1}; exec sleep 600; fi",
        count.display(),
        pipe.display()
    );
    let mut command = stepscope();
    command.args(["bench", "command", "--warmup", "0", "--json", "--", "sh", "-c", &script]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(std::fs::read_to_string(&pipe).unwrap(), "begun\n");
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(code(&output), 0, "{}", told(&output));
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["stopped_early"], true);
    assert_eq!(result["measurements"][0].as_array().unwrap().len(), 2);
}
