//! Starts that wait for their ends: `B`/`E` of a thread, `b`/`e` and `S`/`F` of asynchronous operations.

use std::hash::Hash;

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, KindId, StrId, Time, TrackId};

/// An open event.
#[derive(Debug)]
pub(super) struct OpenSlice {
    pub(super) track: TrackId,
    pub(super) start: Time,
    pub(super) kind: KindId,
    pub(super) name: StrId,
    pub(super) args: Vec<(StrId, Datum)>,
}

/// OpenSlice events by key.
#[derive(Debug)]
pub(super) struct Pairs<K> {
    open: FxHashMap<K, Vec<OpenSlice>>,
}

impl<K> Default for Pairs<K> {
    fn default() -> Self {
        Pairs { open: FxHashMap::default() }
    }
}

impl<K: Eq + Hash> Pairs<K> {
    /// Opens an event.
    pub(super) fn begin(&mut self, key: K, open: OpenSlice) {
        self.open.entry(key).or_default().push(open);
    }

    /// Ends the event that started last, or last with this name if one is given. Events that started after it
    /// never ended, and become `orphans`, innermost first.
    pub(super) fn end(&mut self, key: &K, name: StrId, orphans: &mut Vec<OpenSlice>) -> Option<OpenSlice> {
        /// Search depth for a misplaced start; keeps the cost of a damaged file linear.
        const DEPTH: usize = 64;
        let stack = self.open.get_mut(key)?;
        let named = |open: &OpenSlice| name == StrId::default() || open.name == name;
        let back = stack.iter().rev().take(DEPTH).position(named)?;
        let inside = stack.len() - back;
        orphans.extend(stack.drain(inside..).rev());
        let found = stack.pop();
        if stack.is_empty() {
            self.open.remove(key);
        }
        found
    }

    /// All events that never ended, in a stable order.
    pub(super) fn drain(self) -> Vec<OpenSlice> {
        let mut left: Vec<OpenSlice> = self.open.into_values().flatten().collect();
        left.sort_by_key(|open| (open.track, open.start, open.kind));
        left
    }
}
