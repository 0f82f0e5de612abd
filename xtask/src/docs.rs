//! Pages that are made of the source, and the format of the files that they come from.

use std::path::PathBuf;
use std::process::Command;

use crate::run::{Outcome, cargo, run};

/// Where the findings are, one per file.
const RULES: &str = "crates/diagnose/src/rules";

/// Writes `docs/findings.md`; the test that would call it stale does so when it is told to.
pub(crate) fn write() -> Outcome {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let args = ["test", "--quiet", "-p", "stepscope-render", "--test", "findings_doc"];
    run("docs/findings.md", Command::new(cargo).args(args).env("STEPSCOPE_WRITE_DOCS", "1"))
}

/// Checks the format of the rules: `cargo fmt` does not see modules that a macro declares.
pub(crate) fn format_rules() -> Outcome {
    let files = std::fs::read_dir(RULES).map_err(|error| format!("cannot read {RULES}: {error}"))?;
    let mut files: Vec<PathBuf> = files.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    files.sort();
    let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    let mut args = vec!["fmt", "--check", "--package", "stepscope-diagnose", "--"];
    args.extend(files.iter().map(String::as_str));
    cargo("format of the rules", &args)
}
