//! Runs other programs, and reports what failed.

use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// Success, or what went wrong.
pub(crate) type Outcome = Result<(), String>;

/// Runs the same cargo that runs this program.
pub(crate) fn cargo(what: &str, args: &[&str]) -> Outcome {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    run(what, Command::new(cargo).args(args))
}

/// Builds a program of the workspace as all tests together are built. Anything else would choose other features of some
/// dependencies, and build most of the workspace a second time.
pub(crate) fn built_with_tests(program: &str) -> Result<PathBuf, String> {
    cargo("programs", &["build", "--workspace", "--quiet", "--bins", "--tests"])?;
    std::path::absolute(target().join("debug").join(program)).map_err(|error| error.to_string())
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
