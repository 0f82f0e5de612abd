//! Runs other programs, and reports what failed.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use serde_json::Value;

/// Success, or what went wrong.
pub(crate) type Outcome = Result<(), String>;

/// Everything that a check builds has the same features, those of the Python package, so that nothing is built twice.
pub(crate) const FEATURES: [&str; 3] = ["--workspace", "--features", "stepscope/remote"];

/// The same cargo that runs this program.
pub(crate) fn the_cargo() -> Command {
    Command::new(std::env::var_os("CARGO").as_deref().unwrap_or(OsStr::new("cargo")))
}

/// Runs cargo.
pub(crate) fn cargo(what: &str, args: &[&str]) -> Outcome {
    run(what, the_cargo().args(args))
}

/// Tests of the workspace, as all of them together are built.
pub(crate) fn tests() -> Command {
    let mut tests = the_cargo();
    tests.args(["test", "--quiet"]).args(FEATURES);
    tests
}

/// Builds a program of the workspace as all tests together are built. Anything else would choose other features of some
/// dependencies, and build most of the workspace a second time.
pub(crate) fn built_with_tests(program: &str) -> Result<PathBuf, String> {
    run("programs", the_cargo().args(["build", "--quiet", "--bins", "--tests"]).args(FEATURES))?;
    std::path::absolute(target().join("debug").join(program)).map_err(|error| error.to_string())
}

/// The crates of the workspace, as cargo describes them.
pub(crate) fn metadata() -> Result<Value, String> {
    let output = the_cargo().args(["metadata", "--no-deps", "--format-version", "1"]).output();
    let output = output.map_err(|error| format!("cannot run cargo metadata: {error}"))?;
    serde_json::from_slice(&output.stdout)
        .map_err(|error| format!("cargo metadata does not answer in JSON: {error}"))
}

/// All Rust files below a folder, sorted.
pub(crate) fn rust_files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from)
}

/// Runs npm in the page's folder.
pub(crate) fn npm(what: &str, args: &[&str]) -> Outcome {
    run(what, Command::new("npm").args(args).current_dir("ui"))
}

/// Runs any other program.
pub(crate) fn run(what: &str, command: &mut Command) -> Outcome {
    println!("==> {what}");
    let began = Instant::now();
    let status = command.status().map_err(|error| format!("{what}: cannot start {command:?}: {error}"))?;
    if !status.success() {
        return Err(format!("{what} failed: {command:?}"));
    }
    println!("    {what}: passed after {:.0} s", began.elapsed().as_secs_f64());
    Ok(())
}

/// Runs several programs at the same time; waits for all of them.
pub(crate) fn together(what: &str, commands: impl Iterator<Item = Command>) -> Outcome {
    println!("==> {what}");
    let began = Instant::now();
    let started: Vec<_> = commands.map(|mut command| (command.spawn(), command)).collect();
    let mut outcome = Ok(());
    for (child, command) in started {
        let status = child.and_then(|mut child| child.wait());
        if !status.is_ok_and(|status| status.success()) {
            outcome = Err(format!("{what} failed: {command:?}"));
        }
    }
    if outcome.is_ok() {
        println!("    {what}: passed after {:.0} s", began.elapsed().as_secs_f64());
    }
    outcome
}
