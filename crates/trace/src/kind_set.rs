//! Sets of kinds, and how a track finds their events without reading all of its kinds.
//!
//! Many analyses look for a few kinds among millions of events: markers, compilations, allocations. A dozen such
//! passes over nine million events are a noticeable part of a report. A track therefore keeps 64 bits for every 4,096
//! events that say which kinds may be among them, two thousandths of the column, and most blocks are skipped.

use crate::block::Block;
use crate::ids::{KindId, TrackId};
use crate::track::Track;

/// A set of kinds.
#[derive(Clone, Debug, Default)]
pub struct KindSet {
    has: Vec<bool>,
    /// The bits of its kinds.
    bits: u64,
}

impl KindSet {
    /// The kinds among the first `kinds` for which `wanted` holds.
    pub fn of(kinds: usize, wanted: impl FnMut(KindId) -> bool) -> Self {
        let has: Vec<bool> = (0..kinds).map(KindId::from_index).map(wanted).collect();
        let own = has.iter().enumerate().filter(|(_, has)| **has);
        let bits = own.fold(0, |bits, (index, _)| bits | bit(KindId::from_index(index)));
        KindSet { has, bits }
    }

    /// Whether it contains a kind.
    #[inline]
    pub fn has(&self, kind: KindId) -> bool {
        self.has.get(kind.index()).is_some_and(|has| *has)
    }

    /// Whether it contains no kind at all.
    pub fn is_empty(&self) -> bool {
        self.bits == 0
    }

    #[inline]
    pub(crate) fn may_be_in(&self, summary: u64) -> bool {
        self.bits & summary != 0
    }
}

/// The bit of a kind in a summary. Ids are consecutive, so that up to 64 kinds share no bit.
#[inline]
pub(crate) fn bit(kind: KindId) -> u64 {
    1 << (kind.0 % 64)
}

/// Finds the first event of every kind on one track after the other. Reads only blocks in which a kind may be that the track
/// did not have before.
#[derive(Debug)]
pub struct FirstEvents {
    /// The track that last had the kind: one table for all tracks.
    last: Vec<Option<TrackId>>,
    /// Number of kinds that share a bit.
    sharing: [u32; 64],
}

impl FirstEvents {
    /// For a trace with this many kinds.
    pub fn new(kinds: usize) -> Self {
        let mut sharing = [0; 64];
        (0..kinds).for_each(|kind| sharing[kind % 64] += 1);
        FirstEvents { last: vec![None; kinds], sharing }
    }

    /// The kinds of a track with the position of the first event of each, in order.
    pub fn of(&mut self, track: &Track) -> Vec<(KindId, usize)> {
        let mut first = Vec::new();
        // Of the kinds that share a bit, how many the track did not have yet, and the bits of which there are any.
        let (mut new, mut bits) = (self.sharing, u64::MAX);
        for (number, block) in track.blocks.iter().enumerate() {
            if block.kinds & bits == 0 {
                continue;
            }
            for index in Block::events(number, track.len()) {
                let kind = track.kind_of(index);
                let Some(last) = self.last.get_mut(kind.index()).filter(|last| **last != Some(track.id))
                else {
                    continue;
                };
                *last = Some(track.id);
                first.push((kind, index));
                let left = &mut new[kind.index() % 64];
                *left -= 1;
                if *left == 0 {
                    bits &= !bit(kind);
                }
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::BLOCK;
    use crate::{Dur, Kind, ProcessKind, Time, Trace, TraceBuilder, TrackKind};

    /// A track of `events` events whose kinds follow from their numbers; two hundred kinds, so that they share bits.
    fn trace(events: usize) -> Trace {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("python");
        let process = builder.process(name, ProcessKind::Host, 0);
        let track = builder.track(process, name, TrackKind::Thread, 0, TraceBuilder::ARENA);
        let kinds: Vec<KindId> = (0..200)
            .map(|number| {
                let name = builder.strings.intern(&format!("kind {number}"));
                builder.kind(Kind::slice(name))
            })
            .collect();
        for index in 0..events {
            let kind = if index % 5_000 == 4_999 { 70 + index / 50_000 } else { index / 900 % 7 };
            builder.event(track, Time::from_ps(index as i64), Dur::ZERO, kinds[kind], None);
        }
        builder.finish()
    }

    #[test]
    fn the_events_of_some_kinds_are_those_that_a_pass_over_all_finds() {
        for events in [0, 1, BLOCK, BLOCK + 1, 100_000] {
            let trace = trace(events);
            let track = &trace.tracks()[0];
            for wanted in [vec![], vec![0], vec![70], vec![6, 71], vec![134], (0..200).collect()] {
                let set = trace.kinds_where(|kind| wanted.contains(&kind.index()));
                for piece in [0..events, 4_999..events, 10..20_000, events..events, 4..4] {
                    let slow: Vec<(usize, KindId)> = (piece.start..piece.end.min(events))
                        .map(|index| (index, track.kind_of(index)))
                        .filter(|(_, kind)| wanted.contains(&kind.index()))
                        .collect();
                    let fast: Vec<(usize, KindId)> = track.events_in(piece, &set).collect();
                    assert_eq!(fast, slow, "{events} {wanted:?}");
                }
                assert_eq!(track.has_any(&set), track.kinds().iter().any(|&kind| set.has(kind)));
            }
        }
    }

    #[test]
    fn the_first_event_of_each_kind_is_the_one_that_a_pass_over_all_finds() {
        for events in [0, 1, BLOCK, BLOCK + 1, 100_000] {
            let trace = trace(events);
            let track = &trace.tracks()[0];
            let mut slow: Vec<(KindId, usize)> = Vec::new();
            for (index, &kind) in track.kinds().iter().enumerate() {
                if slow.iter().all(|(known, _)| *known != kind) {
                    slow.push((kind, index));
                }
            }
            assert_eq!(FirstEvents::new(trace.kinds().len()).of(track), slow);
        }
    }
}
