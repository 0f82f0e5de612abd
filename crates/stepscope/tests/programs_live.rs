//! Programs with a known flaw, recorded now by JAX and TensorFlow, each beside the same program without it. What they must be told
//! stands in `tools/record_programs.py`.
//!
//! They run if STEPSCOPE_TEST_PYTHON names a Python with both; `cargo xtask live` creates one.

#![allow(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::process::Command;

use serde_json::Value;
use stepscope_testkit::skip::{Needs, skip};
use support::{ids, json, root};

/// Findings about programs: a program without a flaw has none of them.
const ABOUT_PROGRAMS: [&str; 8] = [
    "layout-copies",
    "unfused-ops",
    "large-constants",
    "loop-overhead",
    "remat-cost",
    "padding-waste",
    "float32-matmul",
    "collective-not-overlapped",
];

/// Shares of a step depend on what else the machine does: what is wrong in each of so many recordings is wrong.
const ATTEMPTS: usize = 3;

#[test]
fn flaws_of_programs_are_told_and_programs_without_them_are_left_alone() {
    let Some(python) = std::env::var_os("STEPSCOPE_TEST_PYTHON") else {
        return skip(Needs::Frameworks, "STEPSCOPE_TEST_PYTHON names no Python with JAX and TensorFlow");
    };
    let mut wrong = wrong_in_a_recording(&python);
    for _ in 1..ATTEMPTS {
        if wrong.is_empty() {
            break;
        }
        let again = wrong_in_a_recording(&python);
        wrong.retain(|name, _| again.contains_key(name));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Records all programs once: those that are told something wrong, with what.
fn wrong_in_a_recording(python: &OsStr) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    let script = root().join("tools/record_programs.py");
    let recorded = Command::new(python).arg(script).arg(folder.path()).output().unwrap();
    assert!(recorded.status.success(), "{}", String::from_utf8_lossy(&recorded.stderr));
    let truth: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.path().join("truth.json")).unwrap()).unwrap();
    let mut wrong = BTreeMap::new();
    for (name, wanted) in truth["findings"].as_object().unwrap() {
        let report = json("report", &folder.path().join(name));
        let found = ids(&report);
        let wanted: Vec<&str> = wanted.as_array().unwrap().iter().map(|id| id.as_str().unwrap()).collect();
        let missing = wanted.iter().any(|id| !found.contains(id));
        let alarm = wanted.is_empty() && found.iter().any(|id| ABOUT_PROGRAMS.contains(id));
        if missing || alarm {
            wrong.insert(name.clone(), format!("{found:?} instead of {wanted:?}"));
        }
    }
    wrong
}
