//! Real profiles outside the repository: a folder that tests use if it exists, and report if it does not.
//! `STEPSCOPE_CORPUS` names it; the default is `shared/corpus` beside the repository.
#![expect(clippy::print_stderr, reason = "says which folder was not there")]

use std::fs;
use std::path::{Path, PathBuf};

/// A file or folder of the corpus by its path in it (`""` is the corpus itself); `None`, with a message, if it
/// does not exist.
pub fn corpus(path: &str) -> Option<PathBuf> {
    let beside = repository().join("../shared/corpus");
    let found = std::env::var_os("STEPSCOPE_CORPUS").map_or(beside, PathBuf::from).join(path);
    if !found.exists() {
        eprintln!("{} does not exist: skipping the comparison", found.display());
        return None;
    }
    Some(found)
}

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// All files below a folder, in the order of their paths.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            let list = if path.is_dir() { &mut folders } else { &mut found };
            list.push(path);
        }
    }
    found.sort();
    found
}
