//! How a track's events nest, and how to handle those that do not.
//!
//! Events of one thread normally form a tree. Real files break this: clock jitter, graph launches and
//! asynchronous work leave partly overlapping events. Viewers that require a tree drop them. Here each event
//! goes to the first *lane* in which it nests, so that all are kept and each lane is a tree again.

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

/// Tells event by event whether it nests with earlier ones, and keeps nothing: who only counts needs no place for every
/// event. May start anywhere; if nothing earlier reaches into what follows, the answers are the same.
#[derive(Debug)]
pub struct Overlaps<'t> {
    track: &'t Track,
    lanes: Vec<Vec<Time>>,
}

impl<'t> Overlaps<'t> {
    /// Before the first event that is looked at.
    pub fn of(track: &'t Track) -> Self {
        Overlaps { track, lanes: Vec::new() }
    }

    /// Whether the `index`th event does not nest with those before it. To be asked in order.
    #[inline]
    pub fn at(&mut self, index: usize) -> bool {
        put(&mut self.lanes, self.track, index).0 > 0
    }
}

/// Opens an event in the first lane in which it nests. Returns the lane and the number of events open there before it.
#[inline]
fn put(lanes: &mut Vec<Vec<Time>>, track: &Track, index: usize) -> (usize, usize) {
    let (start, end) = (track.start(index), track.end(index));
    let number = lane_for(lanes, start, end, track.resolution);
    let open = &mut lanes[number];
    let depth = open.len();
    // Tolerated jitter must not stretch the parent: children end with it at the latest.
    let within = open.last().map_or(end, |&outer| end.min(outer));
    open.push(within);
    (number, depth)
}

/// The first lane in which an event from `start` to `end` nests, added if necessary.
fn lane_for(lanes: &mut Vec<Vec<Time>>, start: Time, end: Time, resolution: Dur) -> usize {
    for (number, open) in lanes.iter_mut().enumerate() {
        // A slice that ends within the clock resolution of this start has ended, unless this one ends inside
        // it.
        while open.last().is_some_and(|&outer| outer <= start || (outer <= start + resolution && end > outer))
        {
            open.pop();
        }
        let nests = open.last().is_none_or(|&outer| end <= outer + resolution);
        if nests || number == MAX_LANES - 1 {
            return number;
        }
    }
    lanes.push(Vec::new());
    lanes.len() - 1
}
