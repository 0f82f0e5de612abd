//! A track: one row of the timeline, its events in columns sorted by start time.

use std::ops::Range;
use std::sync::OnceLock;

use rayon::prelude::*;

use crate::args::ArgRef;
use crate::block::{BLOCK, Block};
use crate::columns::EventColumns;
use crate::ids::{ArgSourceId, EventId, KindId, ProcessId, StrId, TrackId};
use crate::kind_set::KindSet;
use crate::nesting::Nesting;
use crate::time::{Dur, Span, Time};

/// The kind of a track's events.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrackKind {
    /// Work of a host thread.
    Thread,
    /// Work of a device queue.
    Stream,
    /// Operations that belong to no single thread and may overlap freely.
    Async,
    /// A value over time.
    Counter,
    /// Computed by the profiler from other tracks (steps, modules, name scopes). Never counted as work.
    Derived,
}

/// The samples of a counter, in time order.
#[derive(Clone, Debug, Default)]
pub struct CounterSamples {
    /// When each sample was taken.
    pub times: Vec<Time>,
    /// The values.
    pub values: Vec<f64>,
}

/// One row of the timeline.
#[derive(Debug)]
pub struct Track {
    /// Its id.
    pub id: TrackId,
    /// Its process.
    pub process: ProcessId,
    /// Its name as recorded, e.g. the thread's.
    pub name: StrId,
    /// The kind of its events.
    pub kind: TrackKind,
    /// The profiler's own number: thread id, stream id, line id.
    pub number: i64,
    /// The samples, if it is a counter.
    pub samples: CounterSamples,
    pub(crate) arg_source: ArgSourceId,
    pub(crate) columns: EventColumns,
    pub(crate) blocks: Vec<Block>,
    pub(crate) resolution: Dur,
    pub(crate) span: Option<Span>,
    pub(crate) nesting: OnceLock<Nesting>,
}

impl Track {
    /// Number of events.
    #[inline]
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Whether it has no events.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Start of the `index`th event.
    #[inline]
    pub fn start(&self, index: usize) -> Time {
        self.columns.start[index]
    }

    /// Duration of the `index`th event.
    #[inline]
    pub fn dur(&self, index: usize) -> Dur {
        self.columns.dur.get(index)
    }

    /// End of the `index`th event.
    #[inline]
    pub fn end(&self, index: usize) -> Time {
        self.start(index) + self.dur(index)
    }

    /// From start to end of the `index`th event.
    #[inline]
    pub fn span_of(&self, index: usize) -> Span {
        Span::new(self.start(index), self.end(index))
    }

    /// The kind of the `index`th event.
    #[inline]
    pub fn kind_of(&self, index: usize) -> KindId {
        self.columns.kind[index]
    }

    /// All starts, ascending.
    #[inline]
    pub fn starts(&self) -> &[Time] {
        &self.columns.start
    }

    /// All kinds, in time order.
    #[inline]
    pub fn kinds(&self) -> &[KindId] {
        &self.columns.kind
    }

    /// The events of some kinds, in time order, as position and kind. Reads only the parts of the track in which such
    /// events may be.
    pub fn events_of<'a>(&'a self, wanted: &'a KindSet) -> impl Iterator<Item = (usize, KindId)> + 'a {
        self.events_in(0..self.len(), wanted)
    }

    /// The same within a piece of the track.
    pub fn events_in<'a>(
        &'a self,
        piece: Range<usize>,
        wanted: &'a KindSet,
    ) -> impl Iterator<Item = (usize, KindId)> + 'a {
        let end = piece.end.min(self.len());
        let blocks = piece.start / BLOCK..end.div_ceil(BLOCK);
        let worth =
            blocks.filter(|&block| self.blocks.get(block).is_some_and(|block| wanted.may_be_in(block.kinds)));
        worth.flat_map(move |block| {
            let from = (block * BLOCK).max(piece.start);
            let kinds = self.columns.kind.get(from..end.min((block + 1) * BLOCK)).unwrap_or_default();
            let own = kinds.iter().enumerate().filter(|(_, kind)| wanted.has(**kind));
            own.map(move |(index, &kind)| (from + index, kind))
        })
    }

    /// Its blocks, each with its events.
    pub fn blocks(&self) -> impl IndexedParallelIterator<Item = (Range<usize>, Block)> {
        self.blocks.par_iter().enumerate().map(|(number, block)| (Block::events(number, self.len()), *block))
    }

    /// When the last of some events ends; before everything if there are none. Looks only at the events of blocks
    /// that are not wholly among them.
    pub fn latest_end(&self, events: Range<usize>) -> Time {
        let inner = events.start.div_ceil(BLOCK)..events.end / BLOCK;
        let one_by_one = |events: Range<usize>| events.map(|index| self.end(index)).max();
        let latest = if inner.is_empty() {
            one_by_one(events)
        } else {
            let (head, tail) = (events.start..inner.start * BLOCK, inner.end * BLOCK..events.end);
            let inner = self.blocks[inner].iter().map(|block| block.latest_end).max();
            one_by_one(head).max(inner).max(one_by_one(tail))
        };
        latest.unwrap_or(Time::MIN)
    }

    /// The first of some events at whose start nothing is open, neither of what came before them, which ends by `open_until`,
    /// nor of themselves. Looks only at the events of blocks in which that may be.
    pub fn first_quiet(&self, events: Range<usize>, mut open_until: Time) -> Option<usize> {
        let mut index = events.start;
        while index < events.end {
            let block = Block::events(index / BLOCK, events.end);
            let last = block.end.saturating_sub(1);
            if index == block.start && self.start(last) < open_until && block.len() == BLOCK {
                open_until = open_until.max(self.blocks[index / BLOCK].latest_end);
                index = block.end;
                continue;
            }
            if self.start(index) >= open_until {
                return Some(index);
            }
            open_until = open_until.max(self.end(index));
            index += 1;
        }
        None
    }

    /// Whether it has any event of some kinds.
    pub fn has_any(&self, wanted: &KindSet) -> bool {
        self.events_of(wanted).next().is_some()
    }

    /// Location of the `index`th event's own arguments.
    #[inline]
    pub(crate) fn args_of(&self, index: usize) -> Option<ArgRef> {
        self.columns.args.get(index).map(|at| ArgRef { source: self.arg_source, at })
    }

    /// The id of the `index`th event.
    pub fn event_id(&self, index: usize) -> EventId {
        EventId { track: self.id, index: u32::try_from(index).unwrap_or(u32::MAX) }
    }

    /// From the first start to the last end; `None` without events and samples.
    pub fn span(&self) -> Option<Span> {
        self.span
    }

    /// The position of the first event that starts at or after `at`.
    pub fn first_from(&self, at: Time) -> usize {
        self.columns.start.partition_point(|&start| start < at)
    }

    /// How the events nest. Computed on first use, then kept.
    pub fn nesting(&self) -> &Nesting {
        self.nesting.get_or_init(|| Nesting::of(self))
    }

    /// The same if it was already computed: some questions cost less without it, and nothing with it.
    pub fn known_nesting(&self) -> Option<&Nesting> {
        self.nesting.get()
    }

    /// Heap memory in bytes.
    pub fn heap_bytes(&self) -> usize {
        self.columns.heap_bytes()
            + self.blocks.capacity() * size_of::<Block>()
            + self.samples.times.capacity() * 8
            + self.samples.values.capacity() * 8
            + self.nesting.get().map_or(0, Nesting::heap_bytes)
    }
}
