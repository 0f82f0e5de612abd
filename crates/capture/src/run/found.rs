//! What a run wrote: event files and profiles below its log directory that are newer than its start.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The files found.
#[derive(Clone, Debug, Default)]
pub(super) struct Found {
    pub(super) event_files: Vec<PathBuf>,
    pub(super) profiles: Vec<PathBuf>,
}

/// Limit of a search, which must not take longer than the run.
const MOST_ENTRIES: usize = 50_000;
const MOST_DEPTH: usize = 12;
/// Large folders that are never log directories.
const PASSED_OVER: &[&str] =
    &["node_modules", "site-packages", "__pycache__", "target", "proc", "sys", "dev"];

/// Searches `folder` for files written since `since`.
pub(super) fn newer(folder: &Path, since: SystemTime) -> Found {
    let mut found = Found::default();
    let mut entries = 0;
    let mut todo = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = todo.pop() {
        let Ok(children) = std::fs::read_dir(&folder) else { continue };
        for child in children.flatten() {
            entries += 1;
            if entries > MOST_ENTRIES {
                return found;
            }
            let name = child.file_name();
            let name = name.to_string_lossy();
            let Ok(kind) = child.file_type() else { continue };
            if kind.is_dir() {
                if depth < MOST_DEPTH && !name.starts_with('.') && !PASSED_OVER.contains(&&*name) {
                    todo.push((child.path(), depth + 1));
                }
                continue;
            }
            let event_file = name.contains("tfevents");
            let profile = name.ends_with(".xplane.pb")
                || name.ends_with(".pt.trace.json")
                || name.ends_with(".pt.trace.json.gz");
            let new = || child.metadata().and_then(|data| data.modified()).is_ok_and(|time| time >= since);
            if event_file && new() {
                found.event_files.push(child.path());
            } else if profile && new() {
                found.profiles.push(child.path());
            }
        }
    }
    found.event_files.sort();
    found.profiles.sort();
    found
}
