//! Stacks of calls, each stored once. Millions of allocations come from a few thousand places.

use hashbrown::HashTable;
use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::BuildHasher as _;

use crate::ids::StrId;

/// A call.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frame {
    /// The file; empty if unknown.
    pub file: StrId,
    /// The function.
    pub function: StrId,
    /// The line; 0 if unknown.
    pub line: u32,
}

/// A stack of calls.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StackId(pub u32);

impl StackId {
    /// The file does not say.
    pub const UNKNOWN: StackId = StackId(0);

    /// Whether the file says it.
    pub fn is_known(self) -> bool {
        self != StackId::UNKNOWN
    }
}

/// All stacks.
#[derive(Clone, Debug, Default)]
pub struct StackTable {
    frames: Vec<Frame>,
    /// The frames of all stacks, innermost first, one stack after the other.
    places: Vec<u32>,
    /// Where each stack ends in `places`; the first one is empty and means unknown.
    ends: Vec<u32>,
}

impl StackTable {
    /// The frames of a stack, innermost first.
    pub fn frames(&self, stack: StackId) -> impl Iterator<Item = Frame> + '_ {
        self.places_of(stack).iter().filter_map(|&place| self.frames.get(place as usize).copied())
    }

    fn places_of(&self, stack: StackId) -> &[u32] {
        let at = stack.0 as usize;
        let begin = at.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or(0);
        let end = self.ends.get(at).copied().unwrap_or(begin);
        self.places.get(begin as usize..end as usize).unwrap_or_default()
    }

    /// All calls, in no particular order.
    pub fn all_frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Number of stacks, with the unknown one.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.len() <= 1
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.frames.capacity() * size_of::<Frame>() + (self.places.capacity() + self.ends.capacity()) * 4
    }
}

/// Stacks under construction.
#[derive(Debug)]
pub struct StackTableBuilder {
    table: StackTable,
    known_frames: FxHashMap<Frame, u32>,
    known: HashTable<u32>,
}

impl Default for StackTableBuilder {
    fn default() -> Self {
        Self::new()
    }
}

impl StackTableBuilder {
    /// No stacks.
    pub fn new() -> Self {
        StackTableBuilder {
            table: StackTable { ends: vec![0], ..StackTable::default() },
            known_frames: FxHashMap::default(),
            known: HashTable::new(),
        }
    }

    /// The number of a frame, new or known.
    pub fn frame(&mut self, frame: Frame) -> u32 {
        *self.known_frames.entry(frame).or_insert_with(|| {
            self.table.frames.push(frame);
            u32::try_from(self.table.frames.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// The stack of these frames, innermost first.
    pub fn stack(&mut self, frames: &[u32]) -> StackId {
        if frames.is_empty() {
            return StackId::UNKNOWN;
        }
        let hash = FxBuildHasher.hash_one(frames);
        let table = &self.table;
        if let Some(&found) = self.known.find(hash, |&at| table.places_of(StackId(at)) == frames) {
            return StackId(found);
        }
        let Ok(end) = u32::try_from(self.table.places.len() + frames.len()) else { return StackId::UNKNOWN };
        let Ok(new) = u32::try_from(self.table.ends.len()) else { return StackId::UNKNOWN };
        self.table.places.extend_from_slice(frames);
        self.table.ends.push(end);
        let table = &self.table;
        self.known.insert_unique(hash, new, |&at| FxBuildHasher.hash_one(table.places_of(StackId(at))));
        StackId(new)
    }

    /// The frames of a stack so far, by number.
    pub fn places_of(&self, stack: StackId) -> &[u32] {
        self.table.places_of(stack)
    }

    /// All stacks, for a reader that numbered the frames itself.
    pub fn finish_with(mut self, frames: Vec<Frame>) -> StackTable {
        self.table.frames = frames;
        self.finish()
    }

    /// All stacks.
    pub fn finish(mut self) -> StackTable {
        self.table.frames.shrink_to_fit();
        self.table.places.shrink_to_fit();
        self.table.ends.shrink_to_fit();
        self.table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_are_stored_once_and_an_empty_one_is_unknown() {
        let mut builder = StackTableBuilder::new();
        let frame = |line| Frame { file: StrId(1), function: StrId(2), line };
        let (a, b) = (builder.frame(frame(1)), builder.frame(frame(2)));
        assert_eq!(builder.frame(frame(1)), a);
        let (ab, ba) = (builder.stack(&[a, b]), builder.stack(&[b, a]));
        assert_ne!(ab, ba);
        assert_eq!(builder.stack(&[a, b]), ab);
        assert_eq!(builder.stack(&[]), StackId::UNKNOWN);
        let table = builder.finish();
        assert_eq!(table.frames(ba).map(|frame| frame.line).collect::<Vec<_>>(), [2, 1]);
        assert_eq!(table.frames(StackId::UNKNOWN).count(), 0);
        assert_eq!(table.frames(StackId(99)).count(), 0);
        assert_eq!(table.len(), 3);
    }
}
