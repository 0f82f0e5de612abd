//! The layout of all Rust files: `cargo fmt`, and the files that it does not see because a macro declares their modules.

use std::path::PathBuf;

use crate::run::{Outcome, cargo};

/// Folders whose files or folders a macro declares as modules, one idea each, with their packages.
const LISTED: [(&str, &str); 3] = [
    ("crates/diagnose/src/rules", "stepscope-diagnose"),
    ("crates/results/src/views", "stepscope-results"),
    ("crates/read/src", "stepscope-read"),
];

/// Fails if a file is laid out in another way than rustfmt's.
pub(crate) fn check() -> Outcome {
    each(&["--check"])
}

/// Lays out all files.
pub(crate) fn write() -> Outcome {
    each(&[])
}

fn each(flags: &[&str]) -> Outcome {
    cargo("format", &[&["fmt", "--all"], flags].concat())?;
    for (folder, package) in LISTED {
        let files = modules(folder)?;
        let mut args = [&["fmt", "--package", package], flags, &["--"]].concat();
        args.extend(files.iter().map(String::as_str));
        cargo(&format!("format of {folder}"), &args)?;
    }
    Ok(())
}

/// The files of the modules in a folder; rustfmt follows them to what they declare themselves.
fn modules(folder: &str) -> Result<Vec<String>, String> {
    let entries = std::fs::read_dir(folder).map_err(|error| format!("cannot read {folder}: {error}"))?;
    let module = |path: PathBuf| if path.is_dir() { path.join("mod.rs") } else { path };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(module(entry.ok()?.path()))).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs") && file.exists());
    files.sort();
    Ok(files.iter().map(|file| file.display().to_string()).collect())
}
