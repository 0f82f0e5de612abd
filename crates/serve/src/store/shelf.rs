//! The list of sessions, what is known of each, and the order of eviction. Linear in their number.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Bytes;
use rustc_hash::FxHashMap;
use serde::Serialize;
use stepscope_diagnose::compare::ComparedRun;
use stepscope_session::Problem;

use super::found::{Find, Fingerprint};
use super::limits::Limits;
use super::loading::Loading;
use super::open::Opened;
use super::timeline::Timeline;

#[derive(Debug)]
pub(super) enum State {
    Unopened,
    Loading(Arc<Loading>),
    Ready(Arc<Opened>),
    Failed(Problem, Instant),
}

#[derive(Debug)]
pub(super) struct Entry {
    pub(super) find: Find,
    pub(super) state: State,
    /// State of the files when they were read.
    pub(super) read: Option<Fingerprint>,
    /// True if it was found after the server started.
    pub(super) appeared: bool,
    /// How often it was given up to be read again, because its files were damaged and then changed.
    pub(super) revision: u32,
    /// True if it no longer exists.
    pub(super) gone: bool,
    /// When it was last requested, counted in requests.
    pub(super) used: u64,
    /// Data for comparisons; kept when the session itself is closed.
    pub(super) run: Option<Arc<ComparedRun>>,
}

impl Entry {
    pub(super) fn new(find: Find, appeared: bool) -> Self {
        Entry {
            find,
            state: State::Unopened,
            read: None,
            appeared,
            revision: 0,
            gone: false,
            used: 0,
            run: None,
        }
    }

    pub(super) fn has_changed(&self) -> bool {
        self.read.as_ref().is_some_and(|read| *read != self.find.fingerprint)
    }

    /// Takes what the search found now. A session that was damaged or unreadable, because it was still being written, is
    /// read again when its files stay the same between two searches.
    fn renew(&mut self, find: Find) {
        let settled = self.find.fingerprint == find.fingerprint;
        self.find = find;
        self.gone = false;
        let broken = match &self.state {
            State::Ready(opened) => opened.is_damaged() || opened.changed().is_some(),
            State::Failed(..) => true,
            State::Unopened | State::Loading(_) => false,
        };
        if settled && broken && self.has_changed() {
            (self.state, self.read, self.run) = (State::Unopened, None, None);
            self.revision += 1;
        }
    }

    fn listed(&self, id: usize) -> Listed<'_> {
        let state = match &self.state {
            State::Unopened => "unopened",
            State::Loading(_) => "loading",
            State::Ready(_) => "ready",
            State::Failed(..) => "failed",
        };
        Listed {
            id,
            name: &self.find.name,
            path: &self.find.path,
            hosts: &self.find.hosts,
            bytes: self.find.bytes,
            state,
            appeared: self.appeared,
            place: self.find.place,
            revision: self.revision,
        }
    }
}

/// A session as the page lists it.
#[derive(Debug, Serialize)]
pub(super) struct Listed<'e> {
    id: usize,
    name: &'e str,
    path: &'e str,
    hosts: &'e [String],
    bytes: u64,
    state: &'static str,
    appeared: bool,
    place: Option<usize>,
    revision: u32,
}

/// Evicted; freed after the lock is released.
#[derive(Debug, Default)]
pub(super) struct LetGo {
    sessions: Vec<Arc<Opened>>,
    timelines: Vec<Arc<Timeline>>,
}

#[derive(Debug, Default)]
pub(super) struct Shelf {
    /// By id.
    pub(super) entries: Vec<Entry>,
    /// Ids, in the order of the list.
    pub(super) order: Vec<usize>,
    pub(super) requests: u64,
    /// The list as it was last written; none after a change.
    pub(super) written: Option<(usize, Bytes)>,
}

impl Shelf {
    /// All sessions in the order of the list.
    pub(super) fn listed(&self) -> Vec<Listed<'_>> {
        self.order.iter().filter_map(|&id| Some(self.entries.get(id)?.listed(id))).collect()
    }

    /// Merges newly found sessions. Sessions that share a file are the same; open ones stay open.
    pub(super) fn take(&mut self, found: Vec<Find>) {
        self.written = None;
        let mut owners: FxHashMap<&Path, usize> = FxHashMap::default();
        for (id, entry) in self.entries.iter().enumerate() {
            for (path, ..) in &entry.find.fingerprint {
                owners.entry(path).or_insert(id);
            }
        }
        let mut taken = vec![false; self.entries.len()];
        let known: Vec<Option<usize>> = found
            .iter()
            .map(|find| {
                let ids =
                    find.fingerprint.iter().filter_map(|(path, ..)| owners.get(path.as_path()).copied());
                let id = ids.min().filter(|&id| !taken[id])?;
                taken[id] = true;
                Some(id)
            })
            .collect();
        let mut order = Vec::with_capacity(found.len());
        for (find, known) in found.into_iter().zip(known) {
            match known {
                Some(id) => {
                    self.entries[id].renew(find);
                    order.push(id);
                }
                None => {
                    order.push(self.entries.len());
                    self.entries.push(Entry::new(find, true));
                }
            }
        }
        for (id, entry) in self.entries.iter_mut().enumerate().take(taken.len()).filter(|(id, _)| !taken[*id])
        {
            // An open session stays available, although its files are gone.
            entry.gone = !matches!(entry.state, State::Ready(_) | State::Loading(_));
            if !entry.gone {
                order.push(id);
            }
        }
        self.order = order;
    }

    /// Closes until the limits are met: first the traces of the least recently used sessions, which keep their report,
    /// then the sessions; never the one that was just opened.
    pub(super) fn make_room(&mut self, newest: usize, limits: Limits) -> LetGo {
        self.written = None;
        let mut open: Vec<(u64, usize, Arc<Opened>)> = self
            .entries
            .iter()
            .enumerate()
            .filter_map(|(id, entry)| match &entry.state {
                State::Ready(opened) => Some((entry.used, id, opened.clone())),
                _ => None,
            })
            .collect();
        open.sort_unstable_by_key(|&(used, id, _)| (used, id));
        let mut bytes: u64 = open.iter().map(|(.., opened)| opened.bytes()).sum();
        let mut gone = LetGo::default();
        for (.., opened) in open.iter().filter(|&&(_, id, _)| id != newest) {
            if bytes <= limits.bytes {
                break;
            }
            let before = opened.bytes();
            gone.timelines.extend(opened.close_traces());
            bytes -= before.saturating_sub(opened.bytes()).min(bytes);
        }
        let mut count = open.len();
        for (_, id, opened) in open.into_iter().filter(|&(_, id, _)| id != newest) {
            if count <= limits.sessions && bytes <= limits.bytes {
                break;
            }
            self.entries[id].state = State::Unopened;
            bytes -= opened.bytes().min(bytes);
            count -= 1;
            gone.sessions.push(opened);
        }
        gone
    }
}
