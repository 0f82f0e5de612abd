//! Real distributed jobs on this machine, recorded by their own processes and judged: a MultiWorkerMirrored pair with a planted
//! slow worker, and a worker that waits for a parameter server.
//!
//! They run if STEPSCOPE_TEST_PYTHON names a Python with TensorFlow; `cargo xtask live` creates one.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test may fail")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use stepscope_testkit::skip::{Needs, skip};
use support::{code, stepscope};

/// TensorFlow sometimes crashes in its profiler: a job whose files are not all there is recorded again.
const TRIES: usize = 3;

/// Records a scene; `None` without a Python that could.
fn recorded(scene: &str, files: usize, folder: &Path) -> Option<()> {
    let Some(python) = std::env::var_os("STEPSCOPE_TEST_PYTHON") else {
        skip(Needs::Frameworks, "STEPSCOPE_TEST_PYTHON is not set");
        return None;
    };
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/record_distributed.py");
    for _ in 0..TRIES {
        let _ = std::fs::remove_dir_all(folder);
        let status = Command::new(&python).arg(&script).arg(scene).arg(folder).status().unwrap();
        let run = folder.join("plugins/profile/run");
        let found = std::fs::read_dir(run).map_or(0, Iterator::count);
        if status.success() && found == files {
            return Some(());
        }
    }
    panic!("{scene} could not be recorded in {TRIES} tries");
}

fn report(folder: &Path) -> Value {
    let output = stepscope().arg("report").arg(folder).arg("--json").output().unwrap();
    assert!(matches!(code(&output), 0 | 4), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_planted_slow_worker_is_named_and_its_python_is_blamed() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("job");
    if recorded("mwms-slow-python", 2, &place).is_none() {
        return;
    }
    let report = report(&place);
    let first = &report["findings"][0];
    assert_eq!(
        (&first["id"], &first["subject"]),
        (&Value::from("straggler"), &Value::from("worker1")),
        "{first}"
    );
    assert!(first["summary"].as_str().unwrap().contains("`python`"), "{first}");
    let gain = first["gain_ms_per_step"].as_f64().unwrap();
    assert!(gain > 100.0, "150 ms were planted in each step: {gain}");
}

#[test]
fn a_worker_that_waits_for_its_server_is_not_called_busy() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("job");
    if recorded("servers-bound", 2, &place).is_none() {
        return;
    }
    let report = report(&place);
    assert_eq!(report["findings"][0]["id"], "parameter-server-bound", "{}", report["findings"][0]);
    let hosts: Vec<&str> =
        report["sources"].as_array().unwrap().iter().filter_map(|source| source["host"].as_str()).collect();
    assert!(hosts.contains(&"worker/0"), "{hosts:?}");
}
