//! `stepscope capture` against real training loops in TensorFlow and JAX, in separate processes.
//!
//! They run if STEPSCOPE_TEST_PYTHON names a Python with both; `cargo xtask live` creates one.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use stepscope_testkit::skip::{Needs, skip};
use support::{code, retried, stepscope};

/// A framework takes its time to come up, more so where many tests run at once.
const PATIENCE: Duration = Duration::from_secs(180);

const TENSORFLOW: &str = "
import sys, tensorflow as tf
tf.profiler.experimental.server.start(int(sys.argv[1]))
step = tf.function(lambda x: tf.reduce_sum(x @ x))
batches = tf.data.Dataset.range(10**9).map(lambda i: tf.random.normal([64, 64])).prefetch(2)
for i, x in enumerate(batches):
    with tf.profiler.experimental.Trace('train', step_num=i, _r=1):
        step(x)
    if i == 2: print('ready', flush=True)
";

const JAX: &str = "
import sys, jax, jax.numpy as jnp
server = jax.profiler.start_server(int(sys.argv[1]))
step = jax.jit(lambda w, x: w - 1e-3 * jax.grad(lambda w: jnp.mean((x @ w) ** 2))(w))
w, x, i = jnp.ones((128, 128)), jnp.ones((64, 128)), 0
while True:
    with jax.profiler.StepTraceAnnotation('train', step_num=i):
        w = step(w, x)
        w.block_until_ready()
    if i == 2: print('ready', flush=True)
    i += 1
";

/// Sits in a call to C that keeps Python's lock for most of each step.
const BUSY_IN_C: &str = "
import ctypes, sys, tensorflow as tf
tf.profiler.experimental.server.start(int(sys.argv[1]))
step, x, libc, i = tf.function(lambda x: tf.reduce_sum(x @ x)), tf.ones([8, 8]), ctypes.PyDLL(None), 0
while True:
    with tf.profiler.experimental.Trace('train', step_num=i, _r=1):
        step(x)
        libc.usleep(400000)
    if i == 2: print('ready', flush=True)
    i += 1
";

/// A server in a process that does nothing.
const ASLEEP: &str = "
import sys, time, tensorflow as tf
tf.profiler.experimental.server.start(int(sys.argv[1]))
print('ready', flush=True)
while True: time.sleep(1000)
";

/// A training loop in a process of its own; ended when dropped.
struct Program {
    process: Child,
    port: u16,
}

impl Program {
    /// Starts one and waits until its loop runs; `None`, with a word about it, where no Python is named.
    fn start(source: &str) -> Option<Self> {
        let Some(python) = std::env::var_os("STEPSCOPE_TEST_PYTHON") else {
            skip(Needs::Frameworks, "STEPSCOPE_TEST_PYTHON names no Python with TensorFlow and JAX");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut process = Command::new(python)
            .args(["-c", source, &port.to_string()])
            .envs([("TF_CPP_MIN_LOG_LEVEL", "3"), ("CUDA_VISIBLE_DEVICES", ""), ("JAX_PLATFORMS", "cpu")])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = lines_of(&mut process);
        let program = Program { process, port };
        let ready = lines.recv_timeout(PATIENCE);
        assert_eq!(ready.as_deref(), Ok("ready"), "the training loop did not come up");
        Some(program)
    }

    fn address(&self) -> String {
        format!("localhost:{}", self.port)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn lines_of(process: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    let out = process.stdout.take().unwrap();
    thread::spawn(move || {
        for line in BufReader::new(out).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

fn capture(logdir: &Path, args: &[&str]) -> Output {
    stepscope().arg("capture").args(args).arg("--logdir").arg(logdir).output().unwrap()
}

/// A capture that has to succeed, as JSON.
#[track_caller]
fn captured(args: &[&str]) -> Value {
    let logs = tempfile::tempdir().unwrap();
    let output = capture(logs.path(), &[args, &["--json"]].concat());
    assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn has_marked_steps(report: &Value, least: u64) {
    assert_eq!(report["steps"]["origin"], "marker", "{}", report["steps"]);
    assert!(report["steps"]["count"].as_u64().unwrap() >= least, "{}", report["steps"]["count"]);
    assert!(report["steps"]["how"].as_str().unwrap().contains("train"));
}

#[test]
fn a_tensorflow_loop_is_recorded_with_its_steps() {
    let Some(program) = Program::start(TENSORFLOW) else { return };
    let report = captured(&[&program.address(), "--duration", "1s"]);
    has_marked_steps(&report, 5);
    assert!(
        report["ops"].as_array().unwrap().iter().any(|op| op["type"].as_str().unwrap().contains("MatMul"))
    );
    let input = report["breakdown"].as_array().unwrap().iter().any(|row| row["category"] == "input");
    assert!(input, "tf.data is part of the step: {}", report["breakdown"]);
}

#[test]
fn a_jax_loop_is_recorded_with_its_steps() {
    let Some(program) = Program::start(JAX) else { return };
    has_marked_steps(&captured(&[&program.address(), "--duration", "1s"]), 5);
}

#[test]
fn two_processes_are_recorded_over_the_same_window() {
    retried(|| {
        let (Some(first), Some(second)) = (Program::start(TENSORFLOW), Program::start(JAX)) else { return };
        let logs = tempfile::tempdir().unwrap();
        let args = [&first.address(), &second.address(), "--duration", "1s", "--no-report"];
        let output = capture(logs.path(), &args.map(|arg| arg as &str));
        assert_eq!(code(&output), 0, "{}", String::from_utf8_lossy(&output.stderr));
        let info = stepscope().arg("info").arg(logs.path()).arg("--json").output().unwrap();
        let info: Value = serde_json::from_slice(&info.stdout).unwrap();
        let began: Vec<i64> = info["hosts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|host| host["began_unix_ns"].as_i64().unwrap())
            .collect();
        assert_eq!(began.len(), 2);
        let apart = Duration::from_nanos(began[0].abs_diff(began[1]));
        assert!(apart < Duration::from_millis(500), "windows of one second begin {apart:?} apart");
    });
}

#[test]
fn a_process_that_sits_in_a_call_to_c_is_recorded_on_time() {
    retried(|| {
        let Some(program) = Program::start(BUSY_IN_C) else { return };
        let began = Instant::now();
        let report = captured(&[&program.address(), "--duration", "2s"]);
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
        has_marked_steps(&report, 3);
        assert_eq!(report["findings"][0]["id"], "host-python", "{}", report["findings"][0]["summary"]);
    });
}

#[test]
fn a_process_that_does_nothing_yields_an_empty_trace() {
    let Some(program) = Program::start(ASLEEP) else { return };
    let logs = tempfile::tempdir().unwrap();
    let output = capture(logs.path(), &[&program.address(), "--duration", "300ms"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(code(&output), 3, "{said}");
    assert!(said.contains("recorded nothing; the trace of 300 ms is empty"), "{said}");
    assert_eq!(fs::read_dir(logs.path()).unwrap().count(), 0);
}

#[test]
fn a_loop_is_recorded_once_it_is_steady() {
    let Some(program) = Program::start(JAX) else { return };
    let report = captured(&[&program.address(), "--until-steady", "--duration", "1s"]);
    has_marked_steps(&report, 5);
    let ids: Vec<&str> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["id"].as_str().unwrap())
        .collect();
    assert!(!ids.contains(&"startup-profiled"), "{ids:?}");
}

#[test]
fn a_second_capture_is_told_that_the_process_is_busy_and_a_killed_process_that_it_went_away() {
    let Some(mut program) = Program::start(TENSORFLOW) else { return };
    let logs = tempfile::tempdir().unwrap();
    let long = stepscope()
        .args(["capture", &program.address(), "--duration", "120s", "--logdir"])
        .arg(logs.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Whoever is told that it is busy knows that the long capture is under way.
    let until = Instant::now() + PATIENCE;
    loop {
        let others = tempfile::tempdir().unwrap();
        let args = [&program.address(), "--duration", "10ms", "--wait", "0s", "--no-report"];
        let output = capture(others.path(), &args.map(|arg| arg as &str));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if said.contains("another profile is being recorded") {
            assert_eq!(code(&output), 3);
            break;
        }
        assert!(Instant::now() < until, "{said}");
    }
    program.process.kill().unwrap();
    let output = long.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    // It may itself have been busy with one of the short ones, and be trying again when the process ends.
    assert!(
        said.contains("disappeared during the capture") || said.contains("nothing is listening at"),
        "{said}"
    );
    assert_eq!(code(&output), 3);
    assert_eq!(fs::read_dir(logs.path()).unwrap().count(), 0);
}
