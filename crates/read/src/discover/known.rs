//! What earlier searches learned, so that a server can search every few seconds: a folder that did not change is not
//! listed again, a file that did not change is not opened again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustc_hash::FxHashMap;

use super::recognise::recognise;
use super::{Lookalike, ProfileFile};
use crate::Progress;
use crate::files::{self, FileData};

/// A folder that changed this shortly before it was listed may change again within the same tick of its clock.
const TICK: Duration = Duration::from_secs(2);

/// What earlier searches learned about files and folders.
#[derive(Debug, Default)]
pub struct Known {
    files: FxHashMap<PathBuf, KnownFile>,
    folders: FxHashMap<PathBuf, KnownFolder>,
    /// Counts searches; entries that a search does not meet are forgotten after it.
    search: u32,
    /// Whether the current search met anything new.
    changed: bool,
    /// Whether folders are listed again, although they seem unchanged: some file systems do not date them.
    thorough: bool,
    /// Shows that a search is not stuck, and may end it.
    progress: Option<Arc<Progress>>,
}

#[derive(Debug)]
struct KnownFile {
    bytes: u64,
    modified: Option<SystemTime>,
    found: Result<ProfileFile, Lookalike>,
    search: u32,
}

#[derive(Debug)]
struct KnownFolder {
    modified: Option<SystemTime>,
    entries: Arc<[PathBuf]>,
    search: u32,
}

impl Known {
    /// Lists every folder again in the next search, however old it seems.
    pub fn be_thorough(&mut self, thorough: bool) {
        self.thorough = thorough;
    }

    /// One whose searches show that they are not stuck, and end when they are stopped.
    pub(super) fn watched(progress: Arc<Progress>) -> Self {
        Known { progress: Some(progress), ..Known::default() }
    }

    /// Notes that a search goes on.
    pub(super) fn goes_on(&self) {
        self.progress.iter().for_each(|progress| progress.check());
    }

    /// Notes that something may have changed that this does not see.
    pub(super) fn expect_change(&mut self) {
        self.changed = true;
    }

    pub(super) fn begin(&mut self) {
        self.search = self.search.wrapping_add(1);
        self.changed = false;
    }

    /// Ends a search, forgets what it did not meet, and returns whether anything differs from the search before.
    pub(super) fn end(&mut self) -> bool {
        let (search, before) = (self.search, self.files.len() + self.folders.len());
        self.files.retain(|_, known| known.search == search);
        self.folders.retain(|_, known| known.search == search);
        self.changed |= self.files.len() + self.folders.len() != before;
        self.changed
    }

    /// Whether the last search met anything new, or missed something.
    pub fn has_changed(&self) -> bool {
        self.changed
    }

    /// The profile in a file, or what it is instead.
    pub(super) fn file(&mut self, path: &Path, data: &FileData) -> Result<ProfileFile, Lookalike> {
        let (bytes, modified, search) = (data.bytes, data.modified, self.search);
        if let Some(known) = self.files.get_mut(path)
            && (known.bytes, known.modified) == (bytes, modified)
            // Permissions change without a trace.
            && !matches!(known.found, Err(Lookalike::Unreadable))
        {
            known.search = search;
            return known.found.clone();
        }
        let found = recognise(path, data);
        let known = KnownFile { bytes, modified, found: found.clone(), search };
        let before = self.files.insert(path.to_owned(), known);
        let still_unreadable = before
            .is_some_and(|before| matches!(before.found, Err(Lookalike::Unreadable)))
            && matches!(found, Err(Lookalike::Unreadable));
        self.changed |= !still_unreadable;
        found
    }

    /// The entries of a folder, in order.
    pub(super) fn entries(&mut self, folder: &Path, data: &FileData) -> Arc<[PathBuf]> {
        let (modified, search) = (data.modified, self.search);
        // Other systems do not date folders reliably.
        let dated = cfg!(unix) && !self.thorough && modified.is_some();
        if let Some(known) = self.folders.get_mut(folder)
            && dated
            && known.modified == modified
        {
            known.search = search;
            return known.entries.clone();
        }
        let settled = modified
            .and_then(|modified| SystemTime::now().duration_since(modified).ok())
            .is_some_and(|age| age > TICK);
        let mut entries = files::entries(folder).unwrap_or_default();
        entries.sort_unstable();
        let mut entries: Arc<[PathBuf]> = entries.into();
        let before = self.folders.remove(folder).map(|known| known.entries);
        match before.filter(|before| *before == entries) {
            Some(same) => entries = same,
            None => self.changed = true,
        }
        let modified = modified.filter(|_| settled);
        self.folders.insert(folder.to_owned(), KnownFolder { modified, entries: entries.clone(), search });
        entries
    }
}
