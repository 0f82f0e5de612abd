//! Event files: what programs log for TensorBoard → series per run and tag. Written by TensorFlow 1 and 2, Keras, PyTorch,
//! tensorboardX and JAX's writers.
//!
//! A run is a folder with files whose names contain `tfevents`. Knows nothing of what the values mean.

mod event;
mod growth;
mod hparams;
mod keras;
mod model;
pub mod picture;
pub(crate) mod records;
mod restart;
mod run;
mod shape;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::files;

pub use model::{graph_of, run_of};
pub use run::RunReader;

/// What the names of event files contain.
const NAME: &str = "tfevents";
/// Folders below each other, at most.
const DEEPEST: usize = 64;
/// Entries that are looked at, so that a search below `/` ends.
const MOST_ENTRIES: usize = 400_000;

/// A run's name and its files, in the order in which they were written.
pub type FoundRun = (String, Vec<PathBuf>);

/// Finds the runs at or below a path, by name. A single file is a run called `.`. Links are followed, but not in circles.
pub fn find_runs(path: &Path) -> Vec<FoundRun> {
    if files::is_file(path) {
        return vec![(".".to_owned(), vec![path.to_owned()])];
    }
    // What cannot be searched has no runs.
    if files::search(path, false).is_err() {
        return Vec::new();
    }
    let mut found = Vec::new();
    let mut search = Search { seen: BTreeSet::new(), left: MOST_ENTRIES };
    search.walk(path, String::new(), DEEPEST, &mut found);
    found.sort();
    found
}

/// Is it the name of an event file?
pub fn is_event_file(name: &str) -> bool {
    name.contains(NAME)
}

struct Search {
    /// Folders as they are called without links.
    seen: BTreeSet<PathBuf>,
    /// Entries that may still be looked at.
    left: usize,
}

impl Search {
    fn walk(&mut self, folder: &Path, name: String, depth: usize, found: &mut Vec<FoundRun>) {
        if depth == 0 || !files::canonical(folder).is_ok_and(|real| self.seen.insert(real)) {
            return;
        }
        let Ok(entries) = files::entries(folder) else { return };
        let mut files = Vec::new();
        for path in entries {
            if self.left == 0 {
                break;
            }
            self.left -= 1;
            let own = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if files::is_folder(&path) {
                let below = if name.is_empty() { own } else { format!("{name}/{own}") };
                self.walk(&path, below, depth - 1, found);
            } else if is_event_file(&own) && files::is_file(&path) {
                files.push(path);
            }
        }
        if !files.is_empty() {
            files.sort();
            found.push((if name.is_empty() { ".".to_owned() } else { name }, files));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn runs_are_folders_and_links_are_followed_once() {
        let folder = tempfile::tempdir().unwrap();
        let train = folder.path().join("a/train");
        fs::create_dir_all(&train).unwrap();
        for file in
            ["a/train/events.out.tfevents.2.vm", "a/train/events.out.tfevents.1.vm", "x.tfevents.3", "other"]
        {
            fs::write(folder.path().join(file), []).unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(folder.path(), train.join("circle")).unwrap();
        let found = find_runs(folder.path());
        let names: Vec<(&str, usize)> =
            found.iter().map(|(name, files)| (name.as_str(), files.len())).collect();
        assert_eq!(names, [(".", 1), ("a/train", 2)]);
        assert!(found[1].1[0].ends_with("events.out.tfevents.1.vm"), "oldest first");
        assert_eq!(find_runs(&folder.path().join("x.tfevents.3")).len(), 1);
        assert_eq!(find_runs(&folder.path().join("nowhere")), []);
    }
}
