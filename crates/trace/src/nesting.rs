//! How a track's events nest, and how to handle those that do not.
//!
//! Events of one thread normally form a tree. Real files break this: clock jitter, graph launches and
//! asynchronous work leave partly overlapping events. Viewers that require a tree drop them. Here each event
//! goes to the first *lane* in which it nests, so that all are kept and each lane is a tree again.

use std::ops::Range;

use crate::time::{Dur, Time};
use crate::track::Track;

/// Number of lanes tried before an event goes to the last one, where events may overlap. Keeps the pass linear
/// even if a million events overlap each other.
const MAX_LANES: usize = 64;

/// The place of each event of a track in its tree.
#[derive(Debug, Default)]
pub struct Nesting {
    depth: Vec<u16>,
    /// Empty if every event is in lane 0.
    lane: Vec<u8>,
    lanes: u8,
}

impl Nesting {
    /// Number of enclosing events of the `index`th in its lane; saturates at 65,535.
    #[inline]
    pub fn depth(&self, index: usize) -> usize {
        usize::from(self.depth[index])
    }

    /// The lane of the `index`th event.
    #[inline]
    pub fn lane(&self, index: usize) -> usize {
        self.lane.get(index).map_or(0, |&lane| usize::from(lane))
    }

    /// Number of lanes: 1 for a track whose events nest, 0 for an empty one.
    pub fn lanes(&self) -> usize {
        usize::from(self.lanes)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.depth.capacity() * 2 + self.lane.capacity()
    }

    /// One pass with a stack of open ends per lane. Linear: an event is pushed once and popped once, and at
    /// most [`MAX_LANES`] lanes are checked.
    pub(crate) fn of(track: &Track) -> Nesting {
        let events = track.len();
        let mut nesting = Nesting { depth: Vec::with_capacity(events), lane: Vec::new(), lanes: 0 };
        let mut lanes: Vec<Vec<Time>> = Vec::new();
        for index in 0..events {
            let (number, depth) = put(&mut lanes, track, index);
            nesting.depth.push(u16::try_from(depth).unwrap_or(u16::MAX));
            if number > 0 && nesting.lane.is_empty() {
                nesting.lane.resize(index, 0);
            }
            if number > 0 || !nesting.lane.is_empty() {
                nesting.lane.push(number as u8);
            }
        }
        nesting.lanes = lanes.len() as u8;
        nesting
    }
}

/// Number of events of a piece of a track that do not nest with those before them. Keeps no place for every event. If
/// nothing earlier reaches into the piece, it counts what a pass over the whole track would.
pub fn overlapping(track: &Track, piece: Range<usize>) -> u64 {
    let mut lanes = Vec::new();
    piece.map(|index| u64::from(put(&mut lanes, track, index).0 > 0)).sum()
}

/// Opens an event in the first lane in which it nests. Returns the lane and the number of events open there before it.
#[inline(always)]
fn put(lanes: &mut Vec<Vec<Time>>, track: &Track, index: usize) -> (usize, usize) {
    let (start, end) = (track.start(index), track.end(index));
    // Nearly all events nest in the first lane.
    let in_first = lanes.first_mut().is_some_and(|first| nests(first, start, end, track.resolution));
    let number = if in_first { 0 } else { other_lane(lanes, start, end, track.resolution) };
    let open = &mut lanes[number];
    let depth = open.len();
    // Tolerated jitter must not stretch the parent: children end with it at the latest.
    let within = open.last().map_or(end, |&outer| end.min(outer));
    open.push(within);
    (number, depth)
}

/// Whether an event from `start` to `end` nests in a lane, after closing what has ended there.
#[inline(always)]
fn nests(open: &mut Vec<Time>, start: Time, end: Time, resolution: Dur) -> bool {
    while let Some(&outer) = open.last() {
        // A slice that ends within the clock resolution of this start has ended, unless this one ends inside it.
        if outer <= start || (outer <= start + resolution && end > outer) {
            open.pop();
        } else {
            return end <= outer + resolution;
        }
    }
    true
}

/// The first lane after lane 0 in which an event nests, added if necessary.
#[cold]
fn other_lane(lanes: &mut Vec<Vec<Time>>, start: Time, end: Time, resolution: Dur) -> usize {
    for (number, open) in lanes.iter_mut().enumerate().skip(1) {
        if nests(open, start, end, resolution) || number == MAX_LANES - 1 {
            return number;
        }
    }
    lanes.push(Vec::new());
    lanes.len() - 1
}
