//! A partial in memory: entries by the id of their input, joined by union.
//!
//! Union needs no arithmetic, so it is associative, commutative and idempotent by construction. A recording whose hosts
//! are all there is replaced by its record, which depends on those hosts alone. A host that could not be read keeps its
//! recording open: another attempt may still bring it.

use std::collections::{BTreeMap, BTreeSet};

use crate::error::FleetError;
use crate::frame::{Frame, Header, Kind, MAGIC, frames};
use crate::record::record_of;
use crate::shard::{Shard, Shards};

/// What is known of one recording.
#[derive(Clone, Debug, Default)]
pub(crate) struct Slot {
    /// Its record, once all hosts were there.
    pub(crate) finished: Option<Frame>,
    /// Its hosts until then, by the id of their input.
    pub(crate) hosts: BTreeMap<String, Frame>,
}

/// A partial in memory.
#[derive(Clone, Debug, Default)]
pub struct Set {
    pub(crate) slots: BTreeMap<String, Slot>,
    pub(crate) shards: Shards,
}

impl Set {
    /// Nothing.
    pub fn new() -> Self {
        Set::default()
    }

    /// Reads a partial.
    pub fn read(bytes: &[u8]) -> Result<Self, FleetError> {
        let mut set = Set::new();
        set.add(bytes)?;
        Ok(set)
    }

    /// Adds a partial; nothing of it is added if it cannot be read.
    pub fn add(&mut self, bytes: &[u8]) -> Result<(), FleetError> {
        let all = frames(bytes)?;
        let mut expected = 0;
        let entries = all.iter().filter(|frame| frame.header.kind != Kind::Set).count() as u64;
        for header in all.iter().map(|frame| &frame.header).filter(|header| header.kind == Kind::Set) {
            expected += header.entries;
            self.shards.merge(&header.shards);
        }
        if entries != expected {
            return Err(FleetError::Missing { found: entries, expected });
        }
        all.into_iter().filter(|frame| frame.header.kind != Kind::Set).for_each(|frame| self.insert(frame));
        Ok(())
    }

    /// Notes that it holds all of a shard.
    pub fn note_shard(&mut self, plan: &str, shard: Shard) {
        self.shards.add(plan, shard);
    }

    /// Adds an entry; of two for one input the better one stays.
    pub(crate) fn insert(&mut self, frame: Frame) {
        let Some(recording) = &frame.header.recording else { return };
        let slot = self.slots.entry(recording.id.clone()).or_default();
        if frame.header.kind == Kind::Recording {
            let best = slot.finished.take().into_iter().chain([frame]).max_by(better);
            slot.finished = best;
        } else {
            let id = frame.header.id.clone();
            let best = slot.hosts.remove(&id).into_iter().chain([frame]).max_by(better);
            slot.hosts.extend(best.map(|best| (id, best)));
        }
    }

    /// Adds all entries of another set.
    pub fn join(&mut self, other: Set) {
        self.shards.merge(&other.shards);
        for slot in other.slots.into_values() {
            slot.finished.into_iter().chain(slot.hosts.into_values()).for_each(|frame| self.insert(frame));
        }
    }

    /// Finishes the recordings whose hosts are all there.
    pub fn settle(&mut self) {
        for slot in self.slots.values_mut() {
            if slot.finished.is_none() && slot.is_complete() {
                // What cannot be decoded stays as it is, and is named in the end.
                slot.finished = record_of(slot.hosts.values()).ok().and_then(|record| record.frame().ok());
            }
            if slot.finished.is_some() {
                slot.hosts.clear();
            }
        }
    }

    /// Takes a recording out, if all its hosts are there.
    pub(crate) fn take_if_complete(&mut self, recording: &str) -> Option<Set> {
        let complete = self.slots.get(recording).is_some_and(Slot::is_complete);
        let slot = if complete { self.slots.remove(recording) } else { None };
        slot.map(|slot| Set {
            slots: BTreeMap::from([(recording.to_owned(), slot)]),
            shards: Shards::default(),
        })
    }

    /// Its bytes: the same for equal content.
    pub fn write(&self) -> Result<Vec<u8>, FleetError> {
        let entries = || self.slots.values().flat_map(|slot| slot.finished.iter().chain(slot.hosts.values()));
        let header = Header {
            entries: entries().count() as u64,
            shards: self.shards.clone(),
            // The first frame says nothing about who wrote the entries.
            ..Header::new(Kind::Set)
        };
        let mut bytes = Frame::new(header, &[])?.raw().to_vec();
        entries().for_each(|frame| bytes.extend_from_slice(frame.raw()));
        Ok(bytes)
    }

    /// Is there nothing in it?
    pub fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    /// Is this recording finished in it?
    pub fn has_finished(&self, recording: &str) -> bool {
        self.slots.get(recording).is_some_and(|slot| slot.finished.is_some())
    }

    /// The folders that its recordings were read from.
    pub fn folders(&self) -> BTreeSet<&str> {
        let frames = self.slots.values().flat_map(|slot| slot.finished.iter().chain(slot.hosts.values()));
        frames.filter_map(|frame| Some(frame.header.recording.as_ref()?.folder.as_str())).collect()
    }

    /// Does it hold all of this shard?
    pub fn has_shard(&self, plan: &str, shard: Shard) -> bool {
        self.shards.has(plan, shard)
    }

    /// Is there a file in it that could not be read?
    pub fn has_failures(&self) -> bool {
        self.slots
            .values()
            .flat_map(|slot| slot.hosts.values())
            .any(|frame| frame.header.kind == Kind::Failed)
    }

    /// Do bytes start like a partial?
    pub fn recognises(head: &[u8]) -> bool {
        head.starts_with(MAGIC)
    }
}

impl Slot {
    fn is_complete(&self) -> bool {
        let expected =
            self.hosts.values().find_map(|frame| frame.header.recording.as_ref()).map(|it| it.hosts);
        expected.is_some_and(|expected| self.hosts.len() >= expected as usize)
            && self.hosts.values().all(|frame| frame.header.kind == Kind::Host)
    }
}

/// Results before failures, newer versions before older ones; what is left is decided by the bytes.
fn better(a: &Frame, b: &Frame) -> std::cmp::Ordering {
    let version = |header: &Header| -> Vec<u64> {
        header.tool.split(['.', '-', '+']).map(|part| part.parse().unwrap_or(0)).collect()
    };
    let key = |frame: &Frame| (frame.header.kind, version(&frame.header));
    key(a).cmp(&key(b)).then_with(|| a.raw().cmp(b.raw()))
}

/// Unites partials. Takes none and one; the result does not depend on order, grouping or repetition.
pub fn merge<B: AsRef<[u8]>>(parts: &[B]) -> Result<Vec<u8>, FleetError> {
    let mut set = Set::new();
    parts.iter().try_for_each(|part| set.add(part.as_ref()))?;
    set.settle();
    set.write()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Recording;

    fn entry(tool: &str, kind: Kind, reason: &str) -> Vec<u8> {
        let recording = Recording {
            id: "r".to_owned(),
            job: "job".to_owned(),
            session: "s".to_owned(),
            folder: String::new(),
            hosts: 2,
            at: 0,
            dated: false,
            labels: BTreeMap::new(),
        };
        let header = Header {
            tool: tool.to_owned(),
            id: "input".to_owned(),
            recording: Some(recording),
            reason: reason.to_owned(),
            ..Header::new(kind)
        };
        let mut set = Set::new();
        set.insert(Frame::new(header, &[]).unwrap());
        set.write().unwrap()
    }

    #[test]
    fn of_one_input_the_result_of_the_newest_version_stays_in_any_order() {
        let entries = [
            entry("0.9.0", Kind::Host, "old"),
            entry("0.10.0", Kind::Host, "new"),
            entry("1.0.0", Kind::Failed, "broken"),
        ];
        for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2], [0, 2, 1], [2, 0, 1]] {
            let all: Vec<&Vec<u8>> = order.iter().map(|&at| &entries[at]).collect();
            let merged = Set::read(&merge(&all).unwrap()).unwrap();
            let kept = &merged.slots["r"].hosts["input"].header;
            assert_eq!((kept.tool.as_str(), kept.reason.as_str()), ("0.10.0", "new"), "{order:?}");
        }
    }
}
