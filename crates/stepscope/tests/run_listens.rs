//! `stepscope run` listens to what programs and frameworks print: steps in the lines of common trainers, and warnings.
//! The last two run real frameworks if STEPSCOPE_TEST_PYTHON names a Python with them.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::fs;

use serde_json::Value;
use stepscope_testkit::skip::{Needs, skip};
use support::stepscope;

/// What `run` says about a Python program, as JSON.
fn heard(python: &str, script: &str, more: &[&str]) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let (logs, file) = (folder.path().join("logs"), folder.path().join("run.json"));
    fs::create_dir(&logs).unwrap();
    let mut command = stepscope();
    command.arg("run").arg("--no-inject").arg("--logdir").arg(&logs).arg("--json").arg(&file).args(more);
    let output = command.args(["--", python, "-c", script]).arg(&logs).output().unwrap();
    let page = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(file.exists(), "{page}");
    (serde_json::from_slice(&fs::read(&file).unwrap()).unwrap(), page)
}

fn finding<'v>(run: &'v Value, id: &str) -> Option<&'v Value> {
    run["findings"].as_array().unwrap().iter().find(|finding| finding["id"] == id)
}

#[test]
fn a_warning_is_a_finding_with_its_proof_and_equal_ones_count() {
    let script = "
for i in range(3):
    print('WARNING:tensorflow:%d out of the last 5 calls to <function train_step at 0x7f00> triggered tf.function '
          'retracing. Tracing is expensive' % (5 + i), flush=True)
print('W0101 torch._dynamo hit config.recompile_limit (8)')
print('   function: \\'forward\\' (model.py:3)')
print('all is well')
";
    let (run, page) = heard("python3", script, &[]);
    let retracing = finding(&run, "retracing").unwrap();
    assert_eq!((retracing["subject"].as_str(), retracing["count"].as_u64()), (Some("train_step"), Some(3)));
    assert!(retracing["line"].as_str().unwrap().contains("5 out of the last 5"), "{retracing}");
    assert_eq!(finding(&run, "recompilation").unwrap()["subject"], "forward");
    assert_eq!(run["findings"].as_array().unwrap().len(), 2);
    assert!(page.contains("retraces train_step repeatedly"), "{page}");
}

#[test]
fn a_warning_counts_as_often_as_the_line_that_is_shown() {
    let script = "
for i in range(2):
    print('Could not find cuda drivers on your machine, GPU will not be used.')
print('failed call to cuInit: UNKNOWN ERROR (303)')
";
    let (run, page) = heard("python3", script, &[]);
    let found = finding(&run, "gpu-not-used").unwrap();
    assert_eq!(found["count"], 2, "{page}");
}

#[test]
fn output_that_arrives_at_once_is_said_to_be_held_back() {
    // The program itself keeps its lines until the end, as Python does when its output is no terminal.
    let script = "import sys, time
time.sleep(0.3)
sys.stdout.write(''.join('step %d\\n' % i for i in range(30))); sys.stdout.flush()";
    let (run, page) = heard("python3", script, &[]);
    assert_eq!((&run["steps"], &run["output_held_back"]), (&Value::Null, &Value::Bool(true)), "{page}");
    assert!(page.contains("PYTHONUNBUFFERED=1"), "{page}");
}

#[test]
fn a_line_per_epoch_stands_for_its_steps() {
    let script = "import time
for epoch in range(3):
    time.sleep(0.05); print('120/120 - 2s - 15ms/step - loss: 0.5', flush=True)";
    let (run, page) = heard("python3", script, &[]);
    assert_eq!(run["steps"]["count"], 360, "{page}");
    assert!((run["steps"]["mean_ms"].as_f64().unwrap() - 15.0).abs() < 1e-6);
}

fn frameworks() -> Option<String> {
    let python = std::env::var("STEPSCOPE_TEST_PYTHON").ok();
    if python.is_none() {
        skip(Needs::Frameworks, "STEPSCOPE_TEST_PYTHON names no Python with TensorFlow and JAX");
    }
    python
}

#[test]
fn a_loop_that_passes_python_numbers_is_told_that_it_retraces() {
    let Some(python) = frameworks() else { return };
    let script = "
import sys, tensorflow as tf
@tf.function
def train_step(x, i):
    return tf.reduce_sum(x * x) + i
with tf.summary.create_file_writer(sys.argv[1]).as_default():
    for i in range(20):
        tf.summary.scalar('loss', train_step(tf.ones((8, 8)), float(i)), step=i)
";
    let (run, page) = heard(&python, script, &[]);
    assert!(finding(&run, "retracing").is_some(), "{page}");
    let retracing = finding(&run, "retracing").unwrap();
    assert_eq!(retracing["subject"], "train_step");
    assert_eq!(run["steps"]["origin"], "events", "{page}");
}

#[test]
fn a_keras_fit_with_its_callback_is_timed_by_its_event_files_or_its_lines() {
    let Some(python) = frameworks() else { return };
    let script = "
import sys, numpy as np, keras
model = keras.Sequential([keras.layers.Dense(4), keras.layers.Dense(1)])
model.compile('sgd', 'mse')
x, y = np.ones((640, 8), 'float32'), np.ones((640, 1), 'float32')
model.fit(x, y, batch_size=32, epochs=3, verbose=2, callbacks=[keras.callbacks.TensorBoard(sys.argv[1], update_freq=1)])
";
    let (run, page) = heard(&python, script, &[]);
    let steps = &run["steps"];
    assert!((40..=60).contains(&steps["count"].as_u64().unwrap()), "{page}");
    assert!(steps["mean_ms"].as_f64().unwrap() > 0.0);
    assert!(finding(&run, "retracing").is_none(), "{page}");
}
