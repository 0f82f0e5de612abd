//! Reading works on every system: what needs Unix is kept out of the crates that read, analyse and show profiles. Where
//! rustup has a Windows target, they are compiled for it as well.

use std::fs;
use std::process::Command;

use crate::run::{Outcome, run, rust_files, the_cargo};
use crate::skips::Skips;

/// These need Unix: one records by its means, the other is for tests.
const UNIX_CRATES: &[&str] = &["capture", "testkit"];
/// What only Unix has.
const UNIX: &[&str] =
    &["std::os::unix", "std::os::fd", "std::os::linux", "rustix::", "libc::", "tokio::signal::unix"];
/// A file that keeps what it needs of Unix behind one of these is fine.
const GUARDS: &[&str] =
    &["cfg(unix)", "cfg(all(test, unix))", "cfg(all(unix, test))", "cfg(target_os = \"linux\")"];

/// The target for which reading is compiled; any Windows target will do.
const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// Looks through the sources.
pub(crate) fn check() -> Outcome {
    let mut wrong = Vec::new();
    let crates = fs::read_dir("crates").map_err(|error| error.to_string())?.flatten();
    let everywhere = crates.filter(|entry| !UNIX_CRATES.iter().any(|name| entry.file_name() == *name));
    for folder in everywhere.map(|entry| entry.path().join("src")) {
        for file in rust_files(&folder)? {
            let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
            wrong.extend(found(&text).map(|what| format!("{} uses {what}", file.display())));
        }
    }
    if wrong.is_empty() {
        println!("==> portable\n    portable: the crates that read need no Unix");
        return Ok(());
    }
    Err(format!("crates that read must build on Windows: {}; put it behind cfg(unix)", wrong.join(", ")))
}

/// What a source uses of Unix without a guard before it.
fn found(text: &str) -> impl Iterator<Item = &'static str> {
    let guarded = GUARDS.iter().filter_map(|guard| text.find(guard)).min().unwrap_or(text.len());
    let open = text.get(..guarded).unwrap_or(text).to_owned();
    UNIX.iter().copied().filter(move |what| open.lines().any(|line| !is_comment(line) && line.contains(what)))
}

fn is_comment(line: &str) -> bool {
    line.trim_start().starts_with("//")
}

/// Compiles the program for Windows, where rustup has the target.
pub(crate) fn windows(skips: &mut Skips) -> Outcome {
    let listed = Command::new("rustup").args(["target", "list", "--installed"]).output();
    let listed =
        listed.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    if !listed.lines().any(|line| line.trim() == WINDOWS) {
        let how = format!("`rustup target add {WINDOWS}` adds it");
        skips.note("build for Windows", &format!("the target {WINDOWS} is missing"), &how);
        return Ok(());
    }
    let mut check = the_cargo();
    check.args(["check", "--quiet", "--package", "stepscope", "--target", WINDOWS]);
    // The C code of SQLite is not needed for a check: without a compiler for Windows, one that does nothing will do.
    let triple = WINDOWS.replace('-', "_");
    if Command::new("x86_64-w64-mingw32-gcc").arg("--version").output().is_err() {
        check.env(format!("CC_{triple}"), "true").env(format!("AR_{triple}"), "true");
    }
    run("build for Windows", check.env("STEPSCOPE_SKIP_UI", "1"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unix_is_found_unless_it_is_guarded() {
        let uses = |text: &str| found(text).count();
        assert_eq!(uses("use std::os::unix::fs::FileExt;"), 1);
        assert_eq!(uses("// std::os::unix is not for us"), 0);
        assert_eq!(uses("#[cfg(unix)]\nuse std::os::unix::fs::FileExt;"), 0);
        assert_eq!(uses("rustix::process::kill();\n#[cfg(unix)]\nuse std::os::unix::fs::FileExt;"), 1);
    }
}
