//! The web page's own checks: types, unit tests, and a new user's walk through it in a real browser.

use std::path::PathBuf;
use std::process::Command;

use crate::browser;
use crate::run::{Outcome, cargo, npm, run};

/// Everything about the page.
pub(crate) fn check() -> Outcome {
    npm("page: install", &["ci", "--no-audit", "--no-fund"])?;
    npm("page: check", &["run", "check"])?;
    npm("page: tests", &["test"])?;
    end_to_end()
}

/// The browser tests, against the binary that the other tests use.
pub(crate) fn end_to_end() -> Outcome {
    cargo("page: binary", &["build", "--quiet", "-p", "stepscope"])?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let binary = std::path::absolute(target.join("debug/stepscope")).map_err(|error| error.to_string())?;
    let mut tests = Command::new("npm");
    tests.args(["run", "e2e"]).current_dir("ui");
    run("page: end to end", tests.env("STEPSCOPE_BIN", binary).env("CHROMIUM", browser::chromium()?))
}
