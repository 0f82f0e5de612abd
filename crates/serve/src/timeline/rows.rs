//! A track as rows: the row of each event, and a pyramid over each row, so that any time range can be walked at
//! any resolution without visiting invisible events.
//!
//! A track of nine million events is viewed through a window of a thousand pixels. Therefore eight consecutive
//! events of a row are combined into a [`Piece`] (start, end, busy time, longest event), four nodes into one
//! above, and so on. A walk starts at the top: a node narrower than a pixel is used as a whole, and only wider
//! ones are expanded. This visits a few thousand nodes at any zoom level and loses nothing: each event is part
//! of exactly one piece of the walk.
//!
//! Costs four bytes per event for the order and eight to sixteen for the pyramid. Rows of a track that nests do
//! not overlap; it also works for rows that do (work that belongs to no thread).

use std::ops::Range;

use stepscope_trace::{Dur, KindId, Track};

/// Events per node of the lowest level.
const LEAF: usize = 8;
/// A row with less than one in this many of its track's events has a node for each event: its events are far
/// apart in the track's columns, and fetching them one by one would dominate.
const SPARSE: usize = 8;
/// Children per node of the upper levels. Few, so that the nodes of some level are just narrower than a pixel:
/// with twice as many, a view of everything takes 50 % longer.
const FAN: usize = 4;

/// The row of each event of a track: lanes below each other, each as deep as its events nest.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// The first row of each lane.
    lanes: Vec<u16>,
    /// Where each row's events start; one more entry than rows.
    first: Vec<u32>,
    /// Time in which anything ran.
    pub(crate) busy: Dur,
}

impl Layout {
    /// One pass over the nesting.
    pub(crate) fn of(track: &Track) -> Self {
        let nesting = track.nesting();
        let mut counts: Vec<Vec<u32>> = vec![Vec::new(); nesting.lanes()];
        let (mut busy, mut open_until) = (Dur::ZERO, i64::MIN);
        for index in 0..track.len() {
            let Some(lane) = counts.get_mut(nesting.lane(index)) else { continue };
            let depth = nesting.depth(index);
            if lane.len() <= depth {
                lane.resize(depth + 1, 0);
            }
            lane[depth] += 1;
            let (start, end) = (track.start(index).ps(), track.end(index).ps());
            busy += Dur::from_ps(end.saturating_sub(start.max(open_until)).max(0));
            open_until = open_until.max(end);
        }
        let mut lanes = Vec::with_capacity(counts.len());
        let mut rows: Vec<u32> = Vec::new();
        for lane in counts {
            let first = rows.len().min(ROWS - 1);
            lanes.push(u16::try_from(first).unwrap_or(u16::MAX));
            for (depth, count) in lane.into_iter().enumerate() {
                // Rows beyond the largest number share the last one.
                match rows.get_mut((first + depth).min(ROWS - 1)) {
                    Some(row) => *row += count,
                    None => rows.push(count),
                }
            }
        }
        let before = rows.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        Layout { lanes, first: std::iter::once(0).chain(before).collect(), busy }
    }

    /// Number of rows.
    pub(crate) fn rows(&self) -> usize {
        self.first.len() - 1
    }

    /// The row of an event.
    #[inline]
    pub(crate) fn row_of(&self, track: &Track, index: usize) -> usize {
        let nesting = track.nesting();
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
pub(crate) struct Piece {
    /// Start of the first.
    pub(crate) start: i64,
    /// End of the last.
    pub(crate) end: i64,
    /// Their total duration.
    pub(crate) busy: i64,
    /// Duration of the longest.
    pub(crate) longest: i64,
    /// Its index on the track.
    pub(crate) longest_event: u32,
    /// Its kind.
    pub(crate) longest_kind: KindId,
    /// Index of the first one on the track.
    pub(crate) first: u32,
    /// Number of events.
    pub(crate) count: u32,
}

impl Piece {
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
    pub(crate) fn merge(&mut self, later: &Piece) {
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
    fn together(parts: impl Iterator<Item = Piece>) -> Option<Piece> {
        parts.reduce(|mut all, part| {
            all.merge(&part);
            all
        })
    }
}

/// The range to walk: events that run at any time from `from` up to `to`, or start there.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Stretch {
    /// Start, in picoseconds of the trace.
    pub(crate) from: i64,
    /// End.
    pub(crate) to: i64,
    /// Events that together are narrower than this may come as one piece, if they lie inside.
    pub(crate) narrow: i64,
}

impl Stretch {
    /// Whether an event that does not start after the range runs or starts inside it.
    fn holds(&self, event: &Piece) -> bool {
        event.end > self.from || event.start >= self.from
    }
}

/// The rows of a track.
#[derive(Debug)]
pub(crate) struct Rows {
    /// Events by row, then by time.
    events: Vec<u32>,
    rows: Vec<(Range<usize>, Vec<Vec<Piece>>)>,
}

impl Rows {
    /// Sorts the events into rows and builds the pyramids in linear time.
    pub(crate) fn of(track: &Track, layout: &Layout) -> Self {
        let mut next: Vec<u32> = layout.first.clone();
        let mut events = vec![0; track.len()];
        for index in 0..track.len() {
            let at = &mut next[layout.row_of(track, index)];
            if let Some(slot) = events.get_mut(*at as usize) {
                *slot = u32::try_from(index).unwrap_or(u32::MAX);
            }
            *at += 1;
        }
        let rows = layout.first.windows(2).map(|edge| edge[0] as usize..edge[1] as usize);
        let built = rows.map(|range| {
            let leaf = if range.len() * SPARSE < track.len() { 1 } else { LEAF };
            (range.clone(), pyramid(track, &events[range], leaf))
        });
        Rows { rows: built.collect(), events }
    }

    /// One row; empty if there is none with that number.
    pub(crate) fn row<'a>(&'a self, track: &'a Track, number: usize) -> Row<'a> {
        match self.rows.get(number) {
            Some((range, levels)) => Row { track, events: &self.events[range.clone()], levels },
            None => Row { track, events: &[], levels: &[] },
        }
    }

    /// Number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Heap memory in bytes.
    pub(crate) fn heap_bytes(&self) -> usize {
        let nodes: usize = self.rows.iter().flat_map(|(_, levels)| levels).map(Vec::len).sum();
        self.events.len() * 4 + nodes * size_of::<Piece>() + self.rows.len() * 48
    }
}

fn pyramid(track: &Track, events: &[u32], leaf: usize) -> Vec<Vec<Piece>> {
    if events.len() <= LEAF {
        return Vec::new();
    }
    let lowest = |events: &[u32]| Piece::together(events.iter().map(|&event| Piece::of(track, event)));
    let mut levels = vec![events.chunks(leaf).filter_map(lowest).collect::<Vec<Piece>>()];
    while let Some(below) = levels.last().filter(|below| below.len() > FAN) {
        let above = below.chunks(FAN).filter_map(|parts| Piece::together(parts.iter().copied())).collect();
        levels.push(above);
    }
    levels
}

/// One row of a track.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Row<'a> {
    track: &'a Track,
    events: &'a [u32],
    levels: &'a [Vec<Piece>],
}

impl Row<'_> {
    /// Its events, in time order.
    pub(crate) fn events(&self) -> &[u32] {
        self.events
    }

    /// Calls `visit` with every piece of a range, by start.
    pub(crate) fn walk(&self, stretch: Stretch, visit: &mut impl FnMut(Piece)) {
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
    pub(crate) fn longest(&self, from: i64, to: i64) -> Option<u32> {
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
                None => self.leaf(place * LEAF..(place * LEAF + LEAF).min(self.events.len()), stretch, visit),
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
