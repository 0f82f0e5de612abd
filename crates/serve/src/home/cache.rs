//! Verdicts kept between runs of the server, in one file outside the log directory: `$XDG_CACHE_HOME/stepscope/verdicts.jsonl`,
//! one line per run. The file may be deleted at any time.
//!
//! A line counts only for files of the same size and time and for this very program: another build may judge differently. Lines
//! are appended, so that two servers do not disturb each other. A file that grew beyond [`LARGEST`] keeps its newer half.

use std::collections::HashMap;
use std::env;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stepscope_read::files;
use stepscope_storage::{append_cached, cache_folder, write_cached};

use super::summary::Summary;
use crate::store::Fingerprint;

/// The size of the file, in bytes; about 15,000 runs.
const LARGEST: u64 = 16 << 20;
/// Servers that run at the same time may let it grow to this many times that size.
const MOST_TIMES: u64 = 8;
/// A longer line was not written here.
const LONGEST_LINE: usize = 64 << 10;

#[derive(Serialize, Deserialize)]
struct Line {
    key: u64,
    summary: Summary,
}

/// The kept verdicts.
#[derive(Debug)]
pub(super) struct Cache {
    file: Option<PathBuf>,
    /// Identity of this program.
    program: u64,
    kept: HashMap<u64, Summary>,
    is_read: bool,
    largest: u64,
}

impl Cache {
    /// That of the user; nothing is kept if there is no place for it.
    pub(super) fn of_user() -> Self {
        Cache::at(cache_folder().map(|folder| folder.join("verdicts.jsonl")), LARGEST)
    }

    pub(super) fn at(file: Option<PathBuf>, largest: u64) -> Self {
        Cache { file, program: program(), kept: HashMap::new(), is_read: false, largest }
    }

    /// The key of a run whose files have this state.
    pub(super) fn key(&self, files: &Fingerprint) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.program.hash(&mut hasher);
        for (path, bytes, modified) in files {
            // A relative path means another file elsewhere.
            std::path::absolute(path).as_ref().unwrap_or(path).hash(&mut hasher);
            (bytes, modified).hash(&mut hasher);
        }
        hasher.finish()
    }

    /// What is kept of a run.
    pub(super) fn get(&mut self, key: u64) -> Option<Summary> {
        if !self.is_read {
            self.is_read = true;
            self.read();
        }
        self.kept.get(&key).cloned()
    }

    /// Keeps a run. A file that cannot be written costs time at the next start, nothing else.
    pub(super) fn keep(&mut self, key: u64, summary: &Summary) {
        let Some(file) = &self.file else { return };
        let _ = append(file, &Line { key, summary: summary.clone() });
    }

    /// A file that cannot be read, such as a link to a device or one that grew beyond all measure, is replaced.
    fn read(&mut self) {
        let Some(path) = &self.file else { return };
        let text = match files::read_at_most(path, self.largest.saturating_mul(MOST_TIMES)) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return,
            Err(_) => {
                let _ = fs::remove_file(path);
                return;
            }
        };
        let lines = text.split(|&byte| byte == b'\n').filter(|line| line.len() <= LONGEST_LINE);
        let read: Vec<Line> = lines.filter_map(|line| serde_json::from_slice(line).ok()).collect();
        if text.len() as u64 > self.largest {
            let newer = read.get(read.len() / 2..).unwrap_or(&[]);
            let _ = rewrite(path, newer);
        }
        self.kept = read.into_iter().map(|line| (line.key, line.summary)).collect();
    }
}

fn append(path: &Path, line: &Line) -> std::io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    append_cached(path, &text)
}

fn rewrite(path: &Path, lines: &[Line]) -> std::io::Result<()> {
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    write_cached(path, &text)
}

/// Changes with every build of this program.
fn program() -> u64 {
    let mut hasher = DefaultHasher::new();
    env!("CARGO_PKG_VERSION").hash(&mut hasher);
    let data = env::current_exe().and_then(fs::metadata).ok();
    data.map(|data| (data.len(), data.modified().ok())).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::fs::OpenOptions;
    use std::io::Write;

    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_cache_that_is_no_file_or_too_large_is_ignored_and_replaced() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("verdicts.jsonl");
        for broken in ["/dev/zero", "/dev/full", "/dev/random"] {
            symlink(broken, &place).unwrap();
            let mut cache = Cache::at(Some(place.clone()), 4_000);
            assert_eq!(cache.get(7), None);
            cache.keep(7, &Summary::default());
            let mut cache = Cache::at(Some(place.clone()), 4_000);
            assert_eq!(cache.get(7), Some(Summary::default()), "{broken}");
            fs::remove_file(&place).unwrap();
        }
        fs::File::create(&place).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(Cache::at(Some(place.clone()), 4_000).get(7), None);
        assert!(!place.exists());
    }

    #[test]
    fn what_was_kept_is_there_after_a_restart_and_the_file_stays_small() {
        let folder = tempfile::tempdir().unwrap();
        let place = || Some(folder.path().join("deep").join("verdicts.jsonl"));
        let mut cache = Cache::at(place(), 4_000);
        assert_eq!(cache.get(7), None);
        for key in 0..40 {
            cache.keep(key, &Summary::gone());
        }
        OpenOptions::new().append(true).open(place().unwrap()).unwrap().write_all(b"{half\n").unwrap();
        let mut again = Cache::at(place(), 4_000);
        assert_eq!(again.get(7), Some(Summary::gone()));
        assert!(fs::metadata(place().unwrap()).unwrap().len() < 6_000, "the older half is gone");
        let mut third = Cache::at(place(), 4_000);
        assert_eq!((third.get(7), third.get(39)), (None, Some(Summary::gone())));
    }

    #[test]
    fn a_changed_file_is_another_run() {
        let cache = Cache::at(None, LARGEST);
        let file = |bytes| vec![(PathBuf::from("a"), bytes, None)];
        assert_eq!(cache.key(&file(1)), cache.key(&file(1)));
        assert_ne!(cache.key(&file(1)), cache.key(&file(2)));
    }
}
