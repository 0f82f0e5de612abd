//! Runs the binary as a user would, from the root of the repository, and records the result.
#![allow(dead_code, reason = "each test binary uses its own part")]
#![expect(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

pub mod fleet;
pub mod generated;
pub mod notation;
pub mod schema;

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

/// The binary in the repository's root, with an environment that changes nothing.
pub fn stepscope() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepscope"));
    command.current_dir(root()).env_remove("NO_COLOR").env_remove("COLUMNS").stdin(Stdio::null());
    command
}

/// The repository's root.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// What a run left: exit code, standard error, standard output.
pub fn run<S: AsRef<OsStr>>(args: &[S]) -> String {
    let output = stepscope().args(args).output().unwrap();
    let mut told = format!("exit code: {}\n", code(&output));
    for (name, bytes) in [("stderr", &output.stderr), ("stdout", &output.stdout)] {
        let text = String::from_utf8(bytes.clone()).unwrap();
        if !text.is_empty() {
            let _ = write!(told, "----- {name} -----\n{text}");
        }
    }
    told
}

/// What a command says of a path with `--json`.
pub fn json(command: &str, path: &Path) -> Value {
    json_of(command, &[path])
}

/// The same of several paths.
pub fn json_of(command: &str, paths: &[impl AsRef<OsStr>]) -> Value {
    let output = stepscope().arg(command).args(paths).arg("--json").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{command}: {error}: {text:.200}"))
}

/// The ids of a report's findings, in its order.
pub fn ids(report: &Value) -> Vec<&str> {
    report["findings"].as_array().unwrap().iter().map(|finding| finding["id"].as_str().unwrap()).collect()
}

/// The exit code; a run that a signal ended has none.
pub fn code(output: &Output) -> i32 {
    output.status.code().unwrap()
}

/// Runs a test that measures time again where a busy machine got in its way, a few times at most: a figure that is wrong
/// is wrong each time.
pub fn retried(test: impl Fn()) {
    for _ in 0..4 {
        if std::panic::catch_unwind(std::panic::AssertUnwindSafe(&test)).is_ok() {
            return;
        }
        // What disturbed it may be over in a moment.
        std::thread::sleep(std::time::Duration::from_secs(1));
    }
    test();
}
