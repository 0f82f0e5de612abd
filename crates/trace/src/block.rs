//! What a track knows about each run of 4,096 events, so that most questions about millions of events are answered
//! without looking at all of them: where nothing is open, where some kinds may be, where events without length are.

use std::ops::Range;

use rayon::prelude::*;

use crate::columns::EventColumns;
use crate::kind_set::bit;
use crate::time::{Dur, Time};

/// Number of events in a block.
pub(crate) const BLOCK: usize = 1 << 12;
/// Number of blocks that are worth the way to another core.
const BLOCKS_AT_ONCE: usize = 16;

/// Some consecutive events of a track.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The end of the event that ends last.
    pub latest_end: Time,
    /// The longest duration.
    pub longest: Dur,
    /// The shortest duration.
    pub shortest: Dur,
    /// The bits of its kinds.
    pub(crate) kinds: u64,
}

impl Block {
    /// Number of events in a block; the last one of a track may have fewer.
    pub const EVENTS: usize = BLOCK;

    /// The events of the `number`th block of a track with `len` events.
    #[inline]
    pub(crate) fn events(number: usize, len: usize) -> Range<usize> {
        number * BLOCK..len.min((number + 1) * BLOCK)
    }
}

/// The blocks of a track, and whether its events are in order. One pass on all cores.
pub(crate) fn blocks_of(columns: &EventColumns) -> (Vec<Block>, bool) {
    let looked: Vec<(Block, bool)> = (0..columns.len().div_ceil(BLOCK))
        .into_par_iter()
        .with_min_len(BLOCKS_AT_ONCE)
        .map(|number| block(columns, Block::events(number, columns.len())))
        .collect();
    let sorted = looked.iter().all(|(_, sorted)| *sorted);
    (looked.into_iter().map(|(block, _)| block).collect(), sorted)
}

/// One block, and whether it is in order, also with the event before it.
fn block(columns: &EventColumns, events: Range<usize>) -> (Block, bool) {
    let at = |index: usize| (columns.start[index], columns.dur.get(index));
    let mut before = at(events.start.saturating_sub(1));
    let mut sorted = true;
    let mut block =
        Block { latest_end: Time::MIN, longest: Dur::ZERO, shortest: Dur::from_ps(i64::MAX), kinds: 0 };
    for index in events {
        let (start, dur) = at(index);
        sorted &= before.0 < start || (before.0 == start && before.1 >= dur);
        before = (start, dur);
        block.latest_end = block.latest_end.max(start + dur);
        block.longest = block.longest.max(dur);
        block.shortest = block.shortest.min(dur);
        block.kinds |= bit(columns.kind[index]);
    }
    (block, sorted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, ProcessKind, TraceBuilder, TrackKind};

    #[test]
    fn blocks_know_what_a_pass_over_their_events_finds() {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("e");
        let kind = builder.kind(Kind::slice(name));
        let process = builder.process(name, ProcessKind::Host, 0);
        let track = builder.track(process, name, TrackKind::Thread, 0, TraceBuilder::ARENA);
        // Out of order, and one event that reaches far beyond its block.
        for index in (0..20_000_i64).rev() {
            let dur = if index == 5_000 { 1 << 40 } else { index % 97 };
            builder.event(track, Time::from_ps(index * 10), Dur::from_ps(dur), kind, None);
        }
        let trace = builder.finish();
        let track = &trace.tracks()[0];
        let latest = |events: Range<usize>| events.map(|index| track.end(index)).max().unwrap_or(Time::MIN);
        for events in
            [0..0, 0..1, 0..20_000, 4_096..8_192, 4_095..8_193, 100..200, 4_990..5_010, 9_000..19_999]
        {
            assert_eq!(track.latest_end(events.clone()), latest(events.clone()), "{events:?}");
        }
        let quiet = |events: Range<usize>, mut open_until: Time| {
            events.into_iter().find(|&index| {
                let quiet = track.start(index) >= open_until;
                open_until = open_until.max(track.end(index));
                quiet
            })
        };
        for from in [0, 1, 4_096, 5_001, 8_192, 12_000] {
            for until in [0, 50, 41_000, 90_000, 150_001, 199_990, 1 << 50].map(Time::from_ps) {
                let events = from..20_000;
                assert_eq!(
                    track.first_quiet(events.clone(), until),
                    quiet(events, until),
                    "{from} {until:?}"
                );
            }
        }
        let blocks: Vec<(Range<usize>, Block)> = track.blocks().collect();
        assert_eq!(blocks.len(), 5);
        assert_eq!(blocks[4].0, 16_384..20_000);
        for (events, block) in blocks {
            let durations = || events.clone().map(|index| track.dur(index));
            assert_eq!(block.latest_end, latest(events.clone()));
            assert_eq!(Some(block.longest), durations().max());
            assert_eq!(Some(block.shortest), durations().min());
        }
    }
}
