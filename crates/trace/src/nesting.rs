//! How a track's events nest, and how to handle those that do not.
//!
//! Events of one thread normally form a tree. Real files break this: clock jitter, graph launches and
//! asynchronous work leave partly overlapping events. Viewers that require a tree drop them. Here each event
//! goes to the first *lane* in which it nests, so that all are kept and each lane is a tree again.

use std::ops::Range;

use crate::time::{Dur, Time};
use crate::track::Track;
use crate::zeros::zeros;

/// Number of lanes tried before an event goes to the last one, where events may overlap. Keeps the pass linear
/// even if a million events overlap each other.
const MAX_LANES: usize = 64;

/// The place of each event of a track in its tree.
#[derive(Debug, Default)]
pub struct Nesting {
    depth: Vec<u16>,
    /// Empty if every event is in lane 0.
    lane: Vec<u8>,
    /// Number of events by lane and depth.
    counts: Vec<Vec<u32>>,
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
        self.counts.len()
    }

    /// Number of events at each depth of each lane.
    pub fn counts(&self) -> &[Vec<u32>] {
        &self.counts
    }

    /// Number of events that do not nest with those before them.
    pub fn overlapping(&self) -> u64 {
        self.counts.iter().skip(1).flatten().map(|&count| u64::from(count)).sum()
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let counts: usize = self.counts.iter().map(Vec::capacity).sum();
        self.depth.capacity() * 2 + self.lane.capacity() + counts * 4
    }

    /// One pass with a stack of open ends per lane. Linear: an event is pushed once and popped once, and at
    /// most [`MAX_LANES`] lanes are checked.
    pub(crate) fn of(track: &Track) -> Nesting {
        let mut nesting = Nesting { depth: zeros(track.len()), ..Nesting::default() };
        let mut lanes: Vec<Vec<Time>> = Vec::new();
        for (index, slot) in nesting.depth.iter_mut().enumerate() {
            let (number, depth) = put(&mut lanes, track, index);
            *slot = u16::try_from(depth).unwrap_or(u16::MAX);
            if number > 0 && nesting.lane.is_empty() {
                nesting.lane.resize(index, 0);
            }
            if number > 0 || !nesting.lane.is_empty() {
                nesting.lane.push(number as u8);
            }
            count(&mut nesting.counts, number, usize::from(*slot));
        }
        nesting
    }
}

#[inline(always)]
fn count(counts: &mut Vec<Vec<u32>>, lane: usize, depth: usize) {
    if let Some(count) = counts.get_mut(lane).and_then(|depths| depths.get_mut(depth)) {
        *count += 1;
        return;
    }
    add_row(counts, lane, depth);
}

/// The first event of a lane or of a depth.
#[cold]
fn add_row(counts: &mut Vec<Vec<u32>>, lane: usize, depth: usize) {
    counts.resize_with(counts.len().max(lane + 1), Vec::new);
    let depths = &mut counts[lane];
    depths.resize(depths.len().max(depth + 1), 0);
    depths[depth] += 1;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kind, ProcessKind, TraceBuilder, TrackKind};

    #[test]
    fn counts_are_those_of_the_events_one_by_one() {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("e");
        let kind = builder.kind(Kind::slice(name));
        let process = builder.process(name, ProcessKind::Host, 0);
        let track = builder.track(process, name, TrackKind::Thread, 0, TraceBuilder::ARENA);
        // Some events nest, others overlap those before them.
        for index in 0..3_000_i64 {
            let (start, dur) = (index * 10, [100, 9, 25, 4][(index % 4) as usize]);
            builder.event(track, Time::from_ps(start), Dur::from_ps(dur), kind, None);
        }
        let trace = builder.finish();
        let track = &trace.tracks()[0];
        assert!(track.known_nesting().is_none(), "nobody asked for it yet");
        let alone = overlapping(track, 0..track.len());
        let nesting = track.nesting();
        assert!(track.known_nesting().is_some());
        assert!(alone > 0);
        assert_eq!(nesting.overlapping(), alone);
        assert_eq!(nesting.lanes(), nesting.counts().len());
        for (lane, depths) in nesting.counts().iter().enumerate() {
            for (depth, &count) in depths.iter().enumerate() {
                let here = |&index: &usize| (nesting.lane(index), nesting.depth(index)) == (lane, depth);
                assert_eq!((0..track.len()).filter(here).count(), count as usize, "{lane} {depth}");
            }
        }
        let all: u32 = nesting.counts().iter().flatten().sum();
        assert_eq!(all as usize, track.len());
    }
}
