//! Tests against real frameworks: training loops in TensorFlow and JAX that are captured while they run, and
//! the Python helper inside them. They need a Python with both; it is created once below `target` and reused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Outcome, run};

/// Location of the environment; cargo's own folder is already ignored by git.
const FOLDER: &str = "target/live-venv";
/// Its content: pinned, so that a new framework release only changes this line.
const PACKAGES: &[&str] = &["tensorflow-cpu==2.21.0", "keras==3.15.0", "jax[cpu]==0.10.2"];
/// Names a Python that already has the packages.
const PYTHON: &str = "STEPSCOPE_TEST_PYTHON";

/// Runs the live tests, in an environment that is created if necessary.
pub(crate) fn check() -> Outcome {
    let python = match std::env::var_os(PYTHON) {
        Some(python) => PathBuf::from(python),
        None => environment()?,
    };
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let tests = ["test", "--quiet", "--package", "stepscope", "--test", "capture_live"];
    run("live: captures", Command::new(cargo).args(tests).env(PYTHON, &python))?;
    let helper = ["-B", "-m", "unittest", "discover", "--start-directory", "python/tests"];
    run("live: Python helper", Command::new(&python).args(helper))
}

/// The Python of the environment; installs what is missing.
fn environment() -> Result<PathBuf, String> {
    let folder = std::env::current_dir().map_err(|error| error.to_string())?.join(FOLDER);
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    // Written last: an environment without it is incomplete.
    let finished = folder.join("packages.txt");
    let packages = PACKAGES.join("\n");
    if fs::read_to_string(&finished).is_ok_and(|installed| installed == packages) {
        return Ok(python);
    }
    run("live: environment", Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let install = ["-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check"];
    run("live: frameworks", Command::new(&python).args(install).args(PACKAGES))?;
    finish(&finished, &packages)?;
    Ok(python)
}

fn finish(file: &Path, packages: &str) -> Outcome {
    fs::write(file, packages).map_err(|error| format!("cannot write {}: {error}", file.display()))
}
