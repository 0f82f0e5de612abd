//! `stepscope run` records who holds device memory: at the end of its window, and when memory runs out. PyTorch is a stub with
//! an allocator in a few lines (`support/fake_cuda.py`), because there is no GPU here; JAX is real if STEPSCOPE_TEST_PYTHON
//! names a Python that has it.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use stepscope_testkit::skip::{Needs, skip};
use support::stepscope;
use tempfile::TempDir;

const MB: i64 = 1 << 20;

struct Ran {
    folder: TempDir,
    output: Output,
    page: String,
    run: Value,
}

/// Runs a script with the stub, or with another Python.
fn ran(python: Option<&str>, script: &str, options: &[&str], variables: &[(&str, &str)]) -> Ran {
    let folder = tempfile::tempdir().unwrap();
    let library = folder.path().join("site-packages");
    if python.is_none() {
        let maker = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/fake_cuda.py");
        assert!(Command::new("python3").arg("-B").arg(maker).arg(&library).status().unwrap().success());
    }
    fs::write(folder.path().join("train.py"), script).unwrap();
    let mut run = stepscope();
    run.current_dir(folder.path()).args(["run", "--save", "saved", "--json", "run.json"]).args(options);
    run.env("PYTHONDONTWRITEBYTECODE", "1").envs(variables.iter().copied());
    if python.is_none() {
        run.env("PYTHONPATH", &library);
    }
    let output = run.args(["--", python.unwrap_or("python3"), "train.py"]).output().unwrap();
    let page = String::from_utf8_lossy(&output.stderr).into_owned();
    let run = serde_json::from_slice(&fs::read(folder.path().join("run.json")).unwrap()).unwrap();
    Ran { folder, output, page, run }
}

impl Ran {
    /// Files about memory in the recording.
    fn files(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        let mut todo = vec![self.folder.path().join("saved")];
        while let Some(folder) = todo.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if path.is_dir() {
                    todo.push(path);
                } else if path.to_string_lossy().contains(".memory.") {
                    found.push(path);
                }
            }
        }
        found
    }

    /// What a command says about the recording.
    fn asked(&self, args: &[&str]) -> Value {
        let output =
            stepscope().args(args).arg(self.folder.path().join("saved")).arg("--json").output().unwrap();
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

/// Weights of 64 MB, temporaries of 16 MB in each step, and 2 MB that each step keeps.
const LOOP: &str = "
import torch
from torch.cuda.memory import allocate, free
def build():
    return allocate(64 << 20)
def step(kept):
    temporary = allocate(16 << 20)
    torch.work(0.004)
    kept.append(allocate(2 << 20))
    free(temporary)
weights, kept = build(), []
optimizer = torch.optim.SGD()
for number in range(120):
    step(kept)
    optimizer.step()
print('trained')
";

#[test]
fn the_window_ends_with_a_snapshot_and_its_lines() {
    let ran = ran(None, LOOP, &[], &[]);
    assert_eq!(String::from_utf8_lossy(&ran.output.stdout), "trained\n", "{}", ran.page);
    assert_eq!(ran.files().len(), 1, "the first window's snapshot is replaced: {}", ran.page);
    let memory = ran.asked(&["memory", "--by", "line"]);
    let rows = memory["rows"].as_array().unwrap();
    let held = |line: &str| {
        let row = rows.iter().find(|row| row["line"].as_str().unwrap().ends_with(line));
        row.unwrap_or(&Value::Null)["bytes"].as_i64()
    };
    assert_eq!(held("train.py:5 build"), Some(64 * MB), "built before any window: {memory}");
    assert_eq!(held("train.py:7 step"), Some(16 * MB), "{memory}");
    let report = ran.asked(&["report"]);
    let findings = report["findings"].as_array().unwrap();
    let growth = findings.iter().find(|finding| finding["id"] == "memory-growth").unwrap();
    assert!(growth["summary"].as_str().unwrap().contains("train.py:9 step"), "{growth}");
    let said = ran.run["verdict"]["memory"].as_str().unwrap();
    assert!(said.contains("train.py:9 step") && ran.page.contains("\nallocated "), "{}", ran.page);
}

#[test]
fn running_out_of_memory_in_the_first_step_leaves_a_snapshot_with_the_line() {
    let script = LOOP.replace("allocate(16 << 20)", "allocate(1 << 30)");
    let ran = ran(None, &script, &[], &[]);
    assert_eq!(ran.output.status.code(), Some(1));
    assert!(ran.page.contains("OutOfMemoryError: CUDA out of memory."), "{}", ran.page);
    assert_eq!(ran.files().len(), 1, "{}", ran.page);
    assert_eq!(ran.run["verdict"]["id"], "oom-risk", "{}", ran.page);
    let memory = ran.asked(&["memory", "--at", "oom", "--by", "line"]);
    let failure = &memory["allocators"][0]["out_of_memory"];
    assert_eq!(failure["requested_bytes"], 1 << 30, "{memory}");
    assert!(failure["line"].as_str().unwrap().ends_with("train.py:7 step"), "{memory}");
    assert!(memory["rows"][0]["line"].as_str().unwrap().ends_with("train.py:5 build"), "{memory}");
}

#[test]
fn running_out_of_memory_after_the_windows_leaves_what_was_held_then() {
    let script = LOOP.replace("range(120)", "range(2000)").replace("allocate(2 << 20)", "allocate(5 << 20)");
    let ran = ran(None, &script, &[], &[]);
    assert_eq!(ran.output.status.code(), Some(1), "{}", ran.page);
    assert_eq!(ran.files().len(), 1, "{}", ran.page);
    let memory = ran.asked(&["memory", "--at", "oom", "--by", "line"]);
    let in_use = memory["held"][0]["in_use_bytes"].as_i64().unwrap();
    assert!(in_use > 1_000 * MB, "{memory}");
    assert!(memory["rows"][0]["line"].as_str().unwrap().ends_with("train.py:9 step"), "{memory}");
}

#[test]
fn a_program_that_recovers_keeps_the_snapshot_of_its_window() {
    let script = LOOP.replace(
        "weights, kept = build(), []",
        "weights, kept = build(), []\ntry:\n    allocate(2 << 30)\nexcept torch.OutOfMemoryError:\n    pass",
    );
    let ran = ran(None, &script, &[], &[]);
    assert_eq!((ran.output.status.code(), ran.files().len()), (Some(0), 1), "{}", ran.page);
    let memory = ran.asked(&["memory"]);
    assert!(memory["allocators"][0]["peak_bytes"].as_i64().unwrap() > 100 * MB, "{memory}");
}

#[test]
fn it_can_be_switched_off_and_its_problems_stay_its_own() {
    for (options, variables) in [(&["--no-memory"][..], &[][..]), (&[][..], &[("STEPSCOPE_MEMORY", "0")][..])]
    {
        let ran = ran(None, LOOP, options, variables);
        assert_eq!((ran.files().len(), ran.output.status.code()), (0, Some(0)), "{}", ran.page);
        assert!(ran.run["verdict"]["memory"].is_null() && !ran.page.contains("\nallocated "), "{}", ran.page);
    }
    let ran = ran(None, LOOP, &[], &[("HISTORY_FAILS", "1")]);
    assert_eq!(String::from_utf8_lossy(&ran.output.stdout), "trained\n", "{}", ran.page);
    assert!(!ran.page.contains("no history"), "{}", ran.page);
}

#[test]
fn a_jax_window_ends_with_a_profile_of_live_arrays() {
    let Ok(python) = std::env::var("STEPSCOPE_TEST_PYTHON") else {
        return skip(Needs::Frameworks, "STEPSCOPE_TEST_PYTHON names no Python with JAX");
    };
    let script = "
import jax, jax.numpy as jnp
def build():
    return jnp.ones((1024, 1024)).block_until_ready()
@jax.jit
def step(w, x):
    return w - 0.01 * (x @ w)
weights, x = build(), jnp.ones((1024, 1024))
kept = []
for number in range(60):
    weights = step(weights, x)
    kept.append(weights[:256] * 2.0)
    weights.block_until_ready()
";
    let ran = ran(Some(&python), script, &[], &[]);
    assert_eq!(ran.files().len(), 1, "{}", ran.page);
    let memory = ran.asked(&["memory", "--by", "line"]);
    let rows = memory["rows"].as_array().unwrap();
    let kept = rows.iter().find(|row| row["line"].as_str().unwrap().contains("train.py:12")).unwrap();
    let (bytes, blocks) = (kept["bytes"].as_i64().unwrap(), kept["blocks"].as_i64().unwrap());
    assert!(blocks > 3 && bytes >= (blocks - 1) * MB, "{memory}");
    assert!(ran.run["verdict"]["memory"].as_str().unwrap().contains("cpu:0 holds"), "{}", ran.page);
}

#[test]
fn a_jax_program_that_runs_out_of_memory_leaves_what_was_live() {
    let Ok(python) = std::env::var("STEPSCOPE_TEST_PYTHON") else {
        return skip(Needs::Frameworks, "STEPSCOPE_TEST_PYTHON names no Python with JAX");
    };
    let script = "
import jax, jax.numpy as jnp
@jax.jit
def step(w):
    return w * 0.99
weights = jnp.ones((1024, 1024))
for number in range(3):
    weights = step(weights).block_until_ready()
huge = jnp.zeros((1 << 42,), jnp.float32)
";
    let ran = ran(Some(&python), script, &[], &[]);
    assert_eq!((ran.output.status.code(), ran.files().len()), (Some(1), 1), "{}", ran.page);
    let memory = ran.asked(&["memory", "--by", "line"]);
    let first = &memory["rows"][0];
    assert!(first["line"].as_str().unwrap().ends_with("train.py:8 <module>"), "not the recorder's: {memory}");
    assert!(ran.run["verdict"]["summary"].as_str().unwrap().starts_with("Out of memory"), "{}", ran.page);
}
