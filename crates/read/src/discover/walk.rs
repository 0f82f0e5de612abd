//! The walk through folders: links are followed but not in circles, and it ends where there is too much.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use super::{
    Discovery, Known, Lookalike, PROFILE_NAMES, ProfileFile, SessionFiles, add_closed, closed, file_name,
    is_within, join_runs, joined, name_parts, newest_first, runs_of, sessions_of, table_folder,
};
use crate::error::ReadError;
use crate::files::{self, FileData};
use crate::folder;

/// Maximum folder depth, so that a loop of mounts cannot stall the search.
const MAX_DEPTH: usize = 40;
/// Maximum number of entries in a search, so that `stepscope report /` does not read the whole disk.
const MAX_ENTRIES: usize = 200_000;

/// Maximum number of files that cannot be opened and may be hosts of a session.
const MOST_CLOSED: usize = 10_000;

/// Walks over all paths and keeps what it finds, in order. Without leaving the canonical `roots`, if there are any.
pub(super) fn walk(paths: &[PathBuf], known: &mut Known, roots: &[PathBuf]) -> Result<Finds, ReadError> {
    let mut search = Search { known, finds: Finds::default(), seen: HashSet::new(), roots };
    for path in paths {
        let failed = |error| ReadError::Io { path: path.clone(), error };
        let data = files::data(path).map_err(failed)?;
        files::search(path, true).map_err(failed)?;
        search.finds.starts.push(search.finds.found.len());
        match folder::meant_by_file(path) {
            _ if data.is_folder => search.folder(path, &data, 0),
            Some(folder) => search.folder(&folder, &files::data(&folder).map_err(failed)?, 0),
            None if data.is_file => search.file(path, &data),
            None => return Err(ReadError::NotAFile { path: path.clone() }),
        }
    }
    Ok(search.finds)
}

/// Identity of a folder, whatever links lead to it: numbers of the file system, else the path without links.
#[derive(Debug, PartialEq, Eq, Hash)]
enum FolderId {
    Numbers(u64, u64),
    Path(PathBuf),
}

fn folder_id(folder: &Path, data: &FileData) -> Option<FolderId> {
    match data.id {
        Some((device, number)) => Some(FolderId::Numbers(device, number)),
        None => files::canonical(folder).ok().map(FolderId::Path),
    }
}

/// What a search found.
#[derive(Debug, Default)]
pub(super) struct Finds {
    found: Vec<ProfileFile>,
    /// Where the finds of each path start.
    starts: Vec<usize>,
    others: BTreeMap<Lookalike, (u64, PathBuf)>,
    unread: Vec<PathBuf>,
    /// Files that could not be opened, or that are named like a profile and are none.
    closed: Vec<ProfileFile>,
    files: u64,
    folders: u64,
    entries: usize,
}

/// A search on its way.
struct Search<'k> {
    known: &'k mut Known,
    finds: Finds,
    seen: HashSet<FolderId>,
    roots: &'k [PathBuf],
}

impl Search<'_> {
    fn folder(&mut self, folder: &Path, data: &FileData, depth: usize) {
        // A link may lead back to a parent folder.
        let new = folder_id(folder, data).is_some_and(|id| self.seen.insert(id));
        if depth > MAX_DEPTH || !new {
            return;
        }
        self.finds.folders += 1;
        let mut paths = self.known.entries(folder, data);
        let all = paths.len();
        if !self.roots.is_empty() {
            paths = paths.iter().filter(|path| is_within(path, self.roots)).cloned().collect();
        }
        // Tables are read all together: none of them may lie elsewhere.
        let export = folder::is_export(&paths) && paths.len() == all;
        if export {
            // Its tables are not looked at one by one.
            self.known.expect_change();
            self.finds.found.push(table_folder(folder, &paths));
        }
        for path in paths.iter() {
            if export && folder::table_name(path).is_some() {
                self.finds.files += 1;
                continue;
            }
            self.finds.entries += 1;
            self.known.goes_on();
            if self.finds.entries >= MAX_ENTRIES {
                return;
            }
            match files::data(path) {
                Ok(data) if data.is_folder => self.folder(path, &data, depth + 1),
                Ok(data) if data.is_file => self.file(path, &data),
                _ => {}
            }
        }
    }

    fn file(&mut self, path: &Path, data: &FileData) {
        self.finds.files += 1;
        match self.known.file(path, data) {
            Ok(found) => self.finds.found.push(found),
            Err(other) => {
                let entry = self.finds.others.entry(other).or_insert_with(|| (0, path.to_owned()));
                entry.0 += 1;
                let lower = file_name(path).to_ascii_lowercase();
                let is_named = PROFILE_NAMES.iter().any(|part| lower.contains(part));
                if is_named {
                    self.finds.unread.push(path.to_owned());
                }
                if (is_named || other == Lookalike::Unreadable) && self.finds.closed.len() < MOST_CLOSED {
                    self.finds.closed.push(closed(path, data));
                }
            }
        }
    }
}

impl Finds {
    /// The sessions among the finds. Several paths that were recorded together are one session.
    pub(super) fn grouped(mut self, together: bool) -> Discovery {
        let mut sessions: Vec<SessionFiles> = if together {
            let mut chosen = Vec::new();
            for &start in self.starts.iter().rev() {
                let found = self.found.split_off(start);
                chosen.extend(newest_first(sessions_of(found)).into_iter().next());
            }
            chosen.reverse();
            runs_of(chosen)
        } else {
            joined(newest_first(sessions_of(self.found)))
        };
        let hosts = add_closed(&mut sessions, self.closed);
        self.unread.retain(|path| !hosts.contains(path));
        sessions.iter_mut().for_each(join_runs);
        sessions.iter_mut().for_each(name_parts);
        Discovery {
            sessions,
            others: self.others,
            unread: self.unread,
            files: self.files,
            folders: self.folders,
            gave_up: self.entries >= MAX_ENTRIES,
        }
    }
}
