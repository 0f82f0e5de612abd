//! Real profiles from elsewhere, which are no part of the repository: tests that want them run where they are there.

use std::path::{Path, PathBuf};

/// A file or folder of the corpus (`STEPSCOPE_CORPUS`, or `shared/corpus` beside the repository); `None`, said aloud,
/// where it is not there.
#[expect(clippy::print_stderr, reason = "a test that is skipped says so")]
pub fn corpus(path: &str) -> Option<PathBuf> {
    let named = std::env::var_os("STEPSCOPE_CORPUS").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    let found = named.unwrap_or(beside).join(path);
    if !found.exists() {
        eprintln!("skipped: {} is not there", found.display());
        return None;
    }
    Some(found)
}
