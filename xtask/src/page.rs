//! The web page's own checks: layout of code, lint, types, unit tests, and a new user's walk through it in a real browser.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::browser;
use crate::run::{Outcome, built_with_tests, npm, run};
use crate::skips::Skips;

const HOW: &str = "install it, then run `cargo xtask page`";

/// Everything about the page that this machine can check.
pub(crate) fn check(skips: &mut Skips) -> Outcome {
    if !has_npm() {
        return skips.skip("page", "npm is missing", HOW);
    }
    if !is_installed(Path::new("ui")) {
        let offline = npm("page: install", &["ci", "--no-audit", "--no-fund"]);
        if let Err(why) = offline {
            return skips.skip("page", &why, "connect to the network, then run `cargo xtask page`");
        }
    }
    npm("page: format", &["run", "format:check"])?;
    npm("page: lint", &["run", "lint"])?;
    npm("page: check", &["run", "check"])?;
    npm("page: tests", &["test"])?;
    match browser::chromium() {
        Some(chromium) => end_to_end(&chromium),
        None => skips.skip(
            "page in a browser",
            "Chromium is missing",
            "install it or set CHROMIUM to its path, then run `cargo xtask page`",
        ),
    }
}

fn has_npm() -> bool {
    let quiet = Stdio::null;
    let asked = Command::new("npm").arg("--version").stdout(quiet()).stderr(quiet()).status();
    asked.is_ok_and(|status| status.success())
}

/// Is what the lock file names there already? npm writes down what it installed when it is done; a build installs only
/// what it needs, so the test runner must be there, too.
fn is_installed(ui: &Path) -> bool {
    let changed = |path: &str| fs::metadata(ui.join(path)).and_then(|file| file.modified());
    let (lock, installed) = (changed("package-lock.json"), changed("node_modules/.package-lock.json"));
    ui.join("node_modules/vitest").exists()
        && matches!((lock, installed), (Ok(lock), Ok(installed)) if installed >= lock)
}

/// The tests in a browser, against the binary that the other tests use.
fn end_to_end(chromium: &Path) -> Outcome {
    let binary = built_with_tests("stepscope")?;
    let mut tests = Command::new("npm");
    tests.args(["run", "e2e"]).current_dir("ui");
    run("page: end to end", tests.env("STEPSCOPE_BIN", binary).env("CHROMIUM", chromium))
}
