//! A track as rows: the row of each event, and a pyramid over each row, so that any time range can be walked at
//! any resolution without visiting invisible events.
//!
//! A track of nine million events is viewed through a window of a thousand pixels. Therefore eight consecutive
//! events of a row (four of a sparse one) are combined into a [`Piece`] (start, end, busy time, longest event), four nodes
//! into one above, and so on. A walk starts at the top: a node narrower than a pixel is used as a whole, and only wider
//! ones are expanded. This visits a few thousand nodes at any zoom level and loses nothing: each event is part
//! of exactly one piece of the walk.
//!
//! Costs four bytes per event for the order and eight to sixteen for the pyramid. Rows of a track that nests do
//! not overlap; it also works for rows that do (work that belongs to no thread).

use std::ops::Range;

use stepscope_trace::{Dur, KindId, Nesting, Track};

/// Events per node of the lowest level.
const LEAF: usize = 8;
/// A row with less than one in this many of its track's events is sparse: its events are far apart in the track's columns, so
/// that fetching many one by one would dominate.
const SPARSE: usize = 8;
/// Events per node of the lowest level of a sparse row. Nodes for single events would take most of the memory.
const SPARSE_LEAF: usize = 4;
/// Children per node of the upper levels. Few, so that the nodes of some level are just narrower than a pixel:
/// with twice as many, a view of everything takes 50 % longer.
const FAN: usize = 4;

/// The row of each event of a track: lanes below each other, each as deep as its events nest.
#[derive(Debug, Default)]
pub struct Layout {
    /// The first row of each lane.
    lanes: Vec<u16>,
    /// Where each row's events start; one more entry than rows.
    first: Vec<u32>,
}

impl Layout {
    /// From the number of events at each depth.
    pub fn of(nesting: &Nesting) -> Self {
        let mut lanes = Vec::with_capacity(nesting.lanes());
        let mut rows: Vec<u32> = Vec::new();
        for lane in nesting.counts() {
            let first = rows.len().min(ROWS - 1);
            lanes.push(u16::try_from(first).unwrap_or(u16::MAX));
            for (depth, count) in lane.iter().enumerate() {
                // Rows beyond the largest number share the last one.
                match rows.get_mut((first + depth).min(ROWS - 1)) {
                    Some(row) => *row += count,
                    None => rows.push(*count),
                }
            }
        }
        let before = rows.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        Layout { lanes, first: std::iter::once(0).chain(before).collect() }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.first.len() - 1
    }

    /// The row of an event.
    #[inline]
    pub(crate) fn row_of(&self, track: &Track, index: usize) -> usize {
        self.row_in(track.nesting(), index)
    }

    #[inline(always)]
    fn row_in(&self, nesting: &Nesting, index: usize) -> usize {
        let lane = self.lanes.get(nesting.lane(index)).map_or(0, |&row| usize::from(row));
        (lane + nesting.depth(index)).min(self.rows().saturating_sub(1))
    }

    /// Whether this row is the first of a lane, so that nothing encloses its events.
    pub(crate) fn is_outermost(&self, row: usize) -> bool {
        self.lanes.iter().any(|&first| usize::from(first) == row)
    }
}

/// Maximum number of rows: a row number has sixteen bits.
const ROWS: usize = u16::MAX as usize;

/// One event, or several consecutive events of a row: a node of the pyramid, and what a walk visits. Times are
/// the trace's, in picoseconds. Contains everything needed for drawing, so that no event has to be looked up.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Start of the first.
    pub start: i64,
    /// End of the last.
    pub end: i64,
    /// Their total duration.
    pub busy: i64,
    /// Duration of the longest.
    pub longest: i64,
    /// Its index on the track.
    pub longest_event: u32,
    /// Its kind.
    pub longest_kind: KindId,
    /// Index of the first one on the track.
    pub first: u32,
    /// Number of events.
    pub count: u32,
}

impl Piece {
    /// No event.
    const NONE: Piece = Piece {
        start: 0,
        end: 0,
        busy: 0,
        longest: 0,
        longest_event: 0,
        longest_kind: KindId(0),
        first: 0,
        count: 0,
    };

    fn of(track: &Track, event: u32) -> Self {
        let index = event as usize;
        let (start, dur) = (track.start(index).ps(), track.dur(index).ps());
        Piece {
            start,
            end: start.saturating_add(dur),
            busy: dur,
            longest: dur,
            longest_event: event,
            longest_kind: track.kind_of(index),
            first: event,
            count: 1,
        }
    }

    /// Merges a piece that starts later.
    pub fn merge(&mut self, later: &Piece) {
        self.end = self.end.max(later.end);
        self.busy = self.busy.saturating_add(later.busy);
        self.count = self.count.saturating_add(later.count);
        if later.longest > self.longest {
            self.longest = later.longest;
            self.longest_event = later.longest_event;
            self.longest_kind = later.longest_kind;
        }
    }

    /// All of them as one; `None` if there are none.
    fn together(parts: &[Piece]) -> Option<Piece> {
        let (first, later) = parts.split_first()?;
        let mut all = *first;
        later.iter().for_each(|part| all.merge(part));
        Some(all)
    }
}

/// The range to walk: events that run at any time from `from` up to `to`, or start there.
#[derive(Copy, Clone, Debug)]
pub struct Stretch {
    /// Start, in picoseconds of the trace.
    pub from: i64,
    /// End.
    pub to: i64,
    /// Events that together are narrower than this may come as one piece, if they lie inside.
    pub narrow: i64,
}

impl Stretch {
    /// Whether an event that does not start after the range runs or starts inside it.
    fn holds(&self, event: &Piece) -> bool {
        event.end > self.from || event.start >= self.from
    }
}

/// The rows of a track.
#[derive(Debug)]
pub struct Rows {
    /// Events by row, then by time.
    events: Vec<u32>,
    rows: Vec<Pyramid>,
    /// Time in which anything ran.
    pub busy: Dur,
}

impl Rows {
    /// Sorts the events into rows and builds the pyramids, in one pass over the track.
    pub fn of(track: &Track, layout: &Layout) -> Self {
        let nesting = track.nesting();
        let mut rows: Vec<Growing> =
            layout.first.windows(2).map(|edge| Growing::new(edge[0]..edge[1], track.len())).collect();
        let mut events: Vec<u32> = vec![0; track.len()];
        let (mut busy, mut open_until) = (0_i64, i64::MIN);
        for index in 0..track.len() {
            let (start, dur) = (track.start(index).ps(), track.dur(index).ps());
            let end = start.saturating_add(dur);
            busy = busy.saturating_add(end.saturating_sub(start.max(open_until)).max(0));
            open_until = open_until.max(end);
            let Some(row) = rows.get_mut(layout.row_in(nesting, index)) else { continue };
            let event = u32::try_from(index).unwrap_or(u32::MAX);
            if let Some(slot) = events.get_mut(row.add(track, event, start, dur)) {
                *slot = event;
            }
        }
        Rows {
            rows: rows.into_iter().map(|row| row.finish(track)).collect(),
            events,
            busy: Dur::from_ps(busy),
        }
    }

    /// One row; empty if there is none with that number.
    pub fn row<'a>(&'a self, track: &'a Track, number: usize) -> Row<'a> {
        match self.rows.get(number) {
            Some(Pyramid { events, leaf, levels }) => {
                Row { track, events: &self.events[events.clone()], leaf: *leaf, levels }
            }
            None => Row { track, events: &[], leaf: LEAF, levels: &[] },
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        let nodes: usize = self.rows.iter().flat_map(|row| &row.levels).map(Vec::len).sum();
        self.events.len() * 4 + nodes * size_of::<Piece>() + self.rows.len() * size_of::<Pyramid>()
    }
}

/// The pyramid over one row.
#[derive(Debug)]
struct Pyramid {
    /// Where its events are.
    events: Range<usize>,
    /// Events per node of the lowest level.
    leaf: usize,
    levels: Vec<Vec<Piece>>,
}

/// A row while its events come in, by time.
struct Growing {
    events: Range<usize>,
    /// Number of events that came.
    came: usize,
    leaf: u32,
    lowest: Vec<Piece>,
    /// The node that is not full yet; its kind is looked up once it is.
    open: Piece,
}

impl Growing {
    fn new(events: Range<u32>, of_track: usize) -> Self {
        let events = events.start as usize..events.end as usize;
        let leaf = if events.len() * SPARSE < of_track { SPARSE_LEAF } else { LEAF };
        // A row that fits a leaf needs no node.
        let nodes = if events.len() > LEAF { events.len().div_ceil(leaf) } else { 0 };
        Growing { events, came: 0, leaf: leaf as u32, lowest: Vec::with_capacity(nodes), open: Piece::NONE }
    }

    /// Adds the next event and returns its place among the events of all rows.
    #[inline(always)]
    fn add(&mut self, track: &Track, event: u32, start: i64, dur: i64) -> usize {
        let end = start.saturating_add(dur);
        let open = &mut self.open;
        if open.count == 0 {
            *open = Piece {
                start,
                end,
                busy: dur,
                longest: dur,
                longest_event: event,
                first: event,
                count: 1,
                ..*open
            };
        } else {
            open.end = open.end.max(end);
            open.busy = open.busy.saturating_add(dur);
            open.count += 1;
            if dur > open.longest {
                (open.longest, open.longest_event) = (dur, event);
            }
        }
        if open.count == self.leaf {
            self.close(track);
        }
        self.came += 1;
        self.events.start + self.came - 1
    }

    #[inline]
    fn close(&mut self, track: &Track) {
        if self.lowest.capacity() > 0 && self.open.count > 0 {
            let longest_kind = track.kind_of(self.open.longest_event as usize);
            self.lowest.push(Piece { longest_kind, ..self.open });
        }
        self.open.count = 0;
    }

    fn finish(mut self, track: &Track) -> Pyramid {
        self.close(track);
        let mut levels = Vec::new();
        if !self.lowest.is_empty() {
            levels.push(self.lowest);
        }
        while let Some(below) = levels.last().filter(|below| below.len() > FAN) {
            let above = below.chunks(FAN).filter_map(Piece::together).collect();
            levels.push(above);
        }
        Pyramid { events: self.events, leaf: self.leaf as usize, levels }
    }
}

/// One row of a track.
#[derive(Copy, Clone, Debug)]
pub struct Row<'a> {
    track: &'a Track,
    events: &'a [u32],
    leaf: usize,
    levels: &'a [Vec<Piece>],
}

impl Row<'_> {
    /// Its events, in time order.
    pub fn events(&self) -> &[u32] {
        self.events
    }

    /// Calls `visit` with every piece of a range, by start.
    pub fn walk(&self, stretch: Stretch, visit: &mut impl FnMut(Piece)) {
        match self.levels.last() {
            Some(top) => {
                self.descend(self.levels.len() - 1, 0..top.len(), &stretch, visit);
            }
            None => {
                self.leaf(0..self.events.len(), &stretch, visit);
            }
        }
    }

    /// The longest event of a range, wholly or partly inside.
    pub fn longest(&self, from: i64, to: i64) -> Option<u32> {
        let mut best: Option<Piece> = None;
        self.walk(Stretch { from, to, narrow: i64::MAX }, &mut |piece| {
            if best.is_none_or(|best| piece.longest > best.longest) {
                best = Some(piece);
            }
        });
        best.map(|best| best.longest_event)
    }

    /// Continues until a node starts after the range; returns whether none did.
    fn descend(
        &self,
        level: usize,
        nodes: Range<usize>,
        stretch: &Stretch,
        visit: &mut impl FnMut(Piece),
    ) -> bool {
        let all = &self.levels[level];
        for (node, place) in all[nodes.clone()].iter().zip(nodes) {
            if node.start >= stretch.to {
                return false;
            }
            if node.end < stretch.from {
                continue;
            }
            let inside = node.start >= stretch.from && node.end < stretch.to;
            if inside && node.end.saturating_sub(node.start) < stretch.narrow {
                visit(*node);
                continue;
            }
            if node.count == 1 {
                if stretch.holds(node) {
                    visit(*node);
                }
                continue;
            }
            let goes_on = match level.checked_sub(1) {
                None => {
                    let first = place * self.leaf;
                    self.leaf(first..(first + self.leaf).min(self.events.len()), stretch, visit)
                }
                Some(below) => {
                    let end = (place * FAN + FAN).min(self.levels[below].len());
                    self.descend(below, place * FAN..end, stretch, visit)
                }
            };
            if !goes_on {
                return false;
            }
        }
        true
    }

    fn leaf(&self, range: Range<usize>, stretch: &Stretch, visit: &mut impl FnMut(Piece)) -> bool {
        for &event in &self.events[range] {
            let start = self.track.start(event as usize).ps();
            if start >= stretch.to {
                return false;
            }
            let piece = Piece::of(self.track, event);
            if stretch.holds(&piece) {
                visit(piece);
            }
        }
        true
    }
}
