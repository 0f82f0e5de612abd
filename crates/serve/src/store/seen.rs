//! What the list of runs needs of the store: the state of each session's files, without opening any.

use std::time::SystemTime;

use super::found::{Find, Fingerprint};
use super::{State, Store};
use crate::fleet::links::Place;

/// A session that exists, and the state of its files.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Its number.
    pub(crate) id: usize,
    /// The size of its files.
    pub(crate) bytes: u64,
    /// When the newest of them changed.
    pub(crate) modified: Option<SystemTime>,
    pub(crate) fingerprint: Fingerprint,
}

impl Store {
    /// All sessions, in the order of the list.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        let shelf = self.shelf();
        let one = |&id: &usize| {
            let find = &shelf.entries.get(id)?.find;
            let modified = find.fingerprint.iter().filter_map(|(_, _, modified)| *modified).max();
            Some(Seen { id, bytes: find.bytes, modified, fingerprint: find.fingerprint.clone() })
        };
        shelf.order.iter().filter_map(one).collect()
    }

    /// Where the files of each session are.
    pub(crate) fn places(&self) -> Vec<Place> {
        let shelf = self.shelf();
        let one = |&id: &usize| {
            let find = &shelf.entries.get(id)?.find;
            let folder = find.fingerprint.first()?.0.parent()?;
            Some((id, find.name.clone(), folder.to_owned()))
        };
        shelf.order.iter().filter_map(one).collect()
    }

    /// The files of a session; `None` if they no longer exist.
    pub(crate) fn find_of(&self, id: usize) -> Option<Find> {
        self.shelf().entries.get(id).filter(|entry| !entry.gone).map(|entry| entry.find.clone())
    }

    /// Whether a session is being opened for somebody.
    pub(crate) fn is_reading(&self) -> bool {
        self.shelf().entries.iter().any(|entry| matches!(entry.state, State::Loading(_)))
    }
}
