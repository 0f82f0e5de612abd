//! Tests against real frameworks: training loops in TensorFlow and JAX that are captured while they run, and
//! the Python helper inside them. They need a Python with both; it is created once below `target` and reused.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Outcome, run};
use crate::skips::Skips;

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
    tests(&python)
}

/// Runs the live tests where an environment is there already, or may be made; says whether it did.
pub(crate) fn check_if_there(skips: &mut Skips, make: bool) -> Result<bool, String> {
    if make || std::env::var_os(PYTHON).is_some() || finished(&folder()?).is_some() {
        return check().map(|()| true);
    }
    let how = "`cargo xtask live` makes one below target/ (about 2 GB from the network)";
    skips.skip("live captures", &format!("there is no Python with TensorFlow and JAX ({PYTHON})"), how)?;
    Ok(false)
}

fn tests(python: &Path) -> Outcome {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let tests = ["test", "--quiet", "--package", "stepscope", "--test", "capture_live"];
    let mut captures = Command::new(cargo);
    captures.args(tests).env(PYTHON, python).env("STEPSCOPE_EXPECT", "frameworks");
    run("live: captures", &mut captures)?;
    let helper = ["-B", "-m", "unittest", "discover", "--start-directory", "python/tests"];
    run("live: Python helper", Command::new(python).args(helper))
}

fn folder() -> Result<PathBuf, String> {
    Ok(std::env::current_dir().map_err(|error| error.to_string())?.join(FOLDER))
}

fn python(folder: &Path) -> PathBuf {
    folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" })
}

/// The list of what is installed is written last: an environment without it was never finished.
fn list(folder: &Path) -> PathBuf {
    folder.join("packages.txt")
}

/// The Python of an environment that holds what is wanted.
fn finished(folder: &Path) -> Option<PathBuf> {
    let installed = fs::read_to_string(list(folder)).ok()?;
    (installed == PACKAGES.join("\n")).then(|| python(folder))
}

/// The Python of the environment; installs what is missing.
fn environment() -> Result<PathBuf, String> {
    let folder = folder()?;
    if let Some(python) = finished(&folder) {
        return Ok(python);
    }
    let python = python(&folder);
    run("live: environment", Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
    let install = ["-m", "pip", "install", "--quiet", "--no-cache-dir", "--disable-pip-version-check"];
    run("live: frameworks", Command::new(&python).args(install).args(PACKAGES))?;
    let list = list(&folder);
    fs::write(&list, PACKAGES.join("\n"))
        .map_err(|error| format!("cannot write {}: {error}", list.display()))?;
    Ok(python)
}
