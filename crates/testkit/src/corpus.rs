//! Real profiles that are not part of the repository. Tests use them where they are at hand, and are skipped elsewhere.
//! `STEPSCOPE_CORPUS` names the folder; without it, `shared/corpus` beside the repository is taken.

use std::fs;
use std::path::{Path, PathBuf};

use crate::skip::{Needs, skip};

/// A file or folder of the corpus by its path in it (`""` is the corpus itself). Where it is missing, the running test is
/// skipped: `None`, said aloud.
pub fn corpus(path: &str) -> Option<PathBuf> {
    let beside = repository().join("../shared/corpus");
    let found = std::env::var_os("STEPSCOPE_CORPUS").map_or(beside, PathBuf::from).join(path);
    if !found.exists() {
        skip(Needs::Corpus, &format!("{} is missing", found.display()));
        return None;
    }
    Some(found)
}

/// The repository's root.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The names of everything directly in a folder, sorted.
pub fn names_in(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
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
