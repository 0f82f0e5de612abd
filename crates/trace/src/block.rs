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
