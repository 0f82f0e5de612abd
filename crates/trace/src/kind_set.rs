//! Sets of kinds, and how a track finds their events without reading all of its kinds.
//!
//! Many analyses look for a few kinds among millions of events: markers, compilations, allocations. A dozen such
//! passes over nine million events are a noticeable part of a report. A track therefore keeps 64 bits for every 4,096
//! events that tell which kinds may be among them, two thousandths of the column, and most blocks are skipped.

use crate::ids::KindId;

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
}
