//! Pages that are made of the source, and the format of the files that they come from.

use std::path::PathBuf;

use crate::run::{Outcome, cargo, run, the_cargo};

/// Folders whose files or folders a macro declares as modules, one idea each, with their packages.
const LISTED: [(&str, &str); 3] = [
    ("crates/diagnose/src/rules", "stepscope-diagnose"),
    ("crates/session/src/views", "stepscope-session"),
    ("crates/read/src", "stepscope-read"),
];

/// Tests that would call a page stale, and write it when they are told to.
const WRITERS: [(&str, &[&str]); 4] = [
    ("docs/findings.md", &["-p", "stepscope-render", "--test", "findings_doc"]),
    ("docs/sql.md", &["-p", "stepscope-query", "--test", "sql_doc"]),
    ("docs/cli.md", &["-p", "stepscope", "--lib", "reference"]),
    ("docs/json.md and docs/schema", &["-p", "stepscope", "--test", "schemas", "every_schema"]),
];

/// Writes the pages.
pub(crate) fn write() -> Outcome {
    for (page, args) in WRITERS {
        let mut test = the_cargo();
        run(page, test.args(["test", "--quiet"]).args(args).env("STEPSCOPE_WRITE_DOCS", "1"))?;
    }
    Ok(())
}

/// Checks the format of rules, views and readers: `cargo fmt` does not see modules that a macro declares.
pub(crate) fn format_listed() -> Outcome {
    for (folder, package) in LISTED {
        let files = std::fs::read_dir(folder).map_err(|error| format!("cannot read {folder}: {error}"))?;
        let module = |path: PathBuf| if path.is_dir() { path.join("mod.rs") } else { path };
        let mut files: Vec<PathBuf> = files.filter_map(|entry| Some(module(entry.ok()?.path()))).collect();
        files.retain(|file| file.extension().is_some_and(|extension| extension == "rs") && file.exists());
        files.sort();
        let files: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
        let mut args = vec!["fmt", "--check", "--package", package, "--"];
        args.extend(files.iter().map(String::as_str));
        cargo(&format!("format of {folder}"), &args)?;
    }
    Ok(())
}
