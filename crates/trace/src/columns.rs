//! The events of one track while they are read: one column each for start, duration, kind and the place of the arguments.
//!
//! A reader that decodes in parallel knows the number of events of a track before it decodes them: it uses
//! [`EventColumns::with_len`], splits them into [`ColumnsChunk`]s and fills these in parallel, so that nothing
//! is copied or stored twice.

use std::cmp::Reverse;

use crate::block::{Block, blocks_of};
use crate::durations::DurationColumn;
use crate::ids::KindId;
use crate::near::{NearChunk, NearColumn};
use crate::time::{Dur, Time};
use crate::zeros::zeros;

/// Positions of arguments: one byte per event if they were filled in the order of the file. Otherwise four bytes while they
/// are within 4 GB of each other, eight after that.
#[derive(Clone, Debug)]
pub(crate) enum ArgColumn {
    Near(NearColumn),
    Narrow { base: u64, offsets: Vec<u32> },
    Wide(Vec<u64>),
}

const NO_ARGS: u32 = u32::MAX;
const NO_ARGS_WIDE: u64 = u64::MAX;

impl ArgColumn {
    #[inline]
    pub(crate) fn get(&self, index: usize) -> Option<u64> {
        match self {
            ArgColumn::Near(near) => near.get(index),
            ArgColumn::Narrow { base, offsets } => {
                let offset = *offsets.get(index)?;
                (offset != NO_ARGS).then(|| base + u64::from(offset))
            }
            ArgColumn::Wide(positions) => positions.get(index).copied().filter(|&at| at != NO_ARGS_WIDE),
        }
    }

    #[inline]
    fn push(&mut self, at: Option<u64>) {
        if matches!(self, ArgColumn::Near(_)) {
            self.widen();
        }
        if let ArgColumn::Narrow { base, offsets } = self {
            let Some(at) = at else { return offsets.push(NO_ARGS) };
            match at.checked_sub(*base).and_then(|offset| u32::try_from(offset).ok()) {
                Some(offset) if offset != NO_ARGS => return offsets.push(offset),
                _ => self.widen(),
            }
        }
        if let ArgColumn::Wide(positions) = self {
            positions.push(at.unwrap_or(NO_ARGS_WIDE));
        }
    }

    #[cold]
    fn widen(&mut self) {
        let all = (0..self.len()).map(|index| self.get(index).unwrap_or(NO_ARGS_WIDE));
        *self = ArgColumn::Wide(all.collect());
    }

    fn len(&self) -> usize {
        match self {
            ArgColumn::Near(near) => near.len(),
            ArgColumn::Narrow { offsets, .. } => offsets.len(),
            ArgColumn::Wide(positions) => positions.len(),
        }
    }

    fn permuted(&self, order: &[u32]) -> Self {
        match self {
            ArgColumn::Narrow { base, offsets } => ArgColumn::Narrow {
                base: *base,
                offsets: order.iter().map(|&i| offsets[i as usize]).collect(),
            },
            ArgColumn::Near(_) | ArgColumn::Wide(_) => {
                let at = |&i: &u32| self.get(i as usize).unwrap_or(NO_ARGS_WIDE);
                ArgColumn::Wide(order.iter().map(at).collect())
            }
        }
    }

    pub(crate) fn shrink(&mut self) {
        match self {
            ArgColumn::Near(near) => near.shrink(),
            ArgColumn::Narrow { offsets, .. } => offsets.shrink_to_fit(),
            ArgColumn::Wide(positions) => positions.shrink_to_fit(),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        match self {
            ArgColumn::Near(near) => near.heap_bytes(),
            ArgColumn::Narrow { offsets, .. } => offsets.capacity() * 4,
            ArgColumn::Wide(positions) => positions.capacity() * 8,
        }
    }
}

/// The events of one track, as columns of equal length.
#[derive(Clone, Debug)]
pub struct EventColumns {
    pub(crate) start: Vec<Time>,
    pub(crate) dur: DurationColumn,
    pub(crate) kind: Vec<KindId>,
    pub(crate) args: ArgColumn,
}

impl EventColumns {
    /// No events; most argument positions will be at or after `args_base`.
    pub fn new(args_base: u64) -> Self {
        EventColumns {
            start: Vec::new(),
            dur: DurationColumn::default(),
            kind: Vec::new(),
            args: ArgColumn::Narrow { base: args_base, offsets: Vec::new() },
        }
    }

    /// `len` events at the origin, to be set through [`EventColumns::chunks`].
    pub fn with_len(len: usize) -> Self {
        EventColumns {
            start: zeros(len),
            dur: DurationColumn::of_packed(zeros(len)),
            kind: zeros(len),
            args: ArgColumn::Near(NearColumn::of_zeros(zeros(len))),
        }
    }

    /// Adds an event. A negative duration counts as zero.
    #[inline]
    pub fn push(&mut self, start: Time, dur: Dur, kind: KindId, args: Option<u64>) {
        self.start.push(start);
        self.dur.push(dur);
        self.kind.push(kind);
        self.args.push(args);
    }

    /// Number of events.
    #[inline]
    pub fn len(&self) -> usize {
        self.start.len()
    }

    /// Whether there are no events.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.start.is_empty()
    }

    /// Splits the columns into pieces of these lengths, which can be filled in parallel. Pass the result of
    /// [`ColumnsChunk::finish`] to [`EventColumns::add_rest`].
    pub fn chunks(&mut self, lens: &[usize]) -> Vec<ColumnsChunk<'_>> {
        let (mut start, mut dur, mut kind) = (&mut self.start[..], self.dur.packed_mut(), &mut self.kind[..]);
        let ArgColumn::Near(args) = &mut self.args else { return Vec::new() };
        let mut chunks = Vec::with_capacity(lens.len());
        let mut first = 0;
        for (&len, args) in lens.iter().zip(args.chunks(lens)) {
            chunks.push(ColumnsChunk {
                first,
                start: take(&mut start, len),
                dur: take(&mut dur, len),
                kind: take(&mut kind, len),
                args,
                long: Vec::new(),
            });
            first += len;
        }
        chunks
    }

    /// Adds what did not fit a piece; to be called for all pieces in their order.
    pub fn add_rest(&mut self, rest: ChunkRest) {
        for (index, dur) in rest.long {
            self.dur.set(index, dur);
        }
        if let ArgColumn::Near(args) = &mut self.args {
            args.add_far(rest.far);
        }
    }

    /// Appends all events of `other`.
    pub fn append(&mut self, other: EventColumns) {
        if self.is_empty() {
            *self = other;
            return;
        }
        self.start.extend_from_slice(&other.start);
        self.dur.append(&other.dur);
        self.kind.extend_from_slice(&other.kind);
        (0..other.args.len()).for_each(|i| self.args.push(other.args.get(i)));
    }

    /// Sorts by start, longer events first, so that parents precede their children, and returns what is known about
    /// each block. Costs one pass on all cores if the events are already sorted, which is nearly always the case.
    pub(crate) fn sort(&mut self) -> Vec<Block> {
        let (blocks, sorted) = blocks_of(self);
        if sorted {
            return blocks;
        }
        let before = |i: usize| (self.start[i], Reverse(self.dur.get(i)));
        let mut order: Vec<u32> = (0..u32::try_from(self.len()).unwrap_or(u32::MAX)).collect();
        order.sort_by_key(|&i| before(i as usize));
        self.start = order.iter().map(|&i| self.start[i as usize]).collect();
        self.kind = order.iter().map(|&i| self.kind[i as usize]).collect();
        self.dur = self.dur.permuted(&order);
        self.args = self.args.permuted(&order);
        blocks_of(self).0
    }

    pub(crate) fn shrink(&mut self) {
        self.start.shrink_to_fit();
        self.dur.shrink();
        self.kind.shrink_to_fit();
        self.args.shrink();
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.start.capacity() * 8 + self.dur.heap_bytes() + self.kind.capacity() * 4 + self.args.heap_bytes()
    }
}

pub(crate) fn take<'a, T>(from: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let len = len.min(from.len());
    let (head, rest) = std::mem::take(from).split_at_mut(len);
    *from = rest;
    head
}

/// A piece of a track's columns, to be filled on a separate core.
#[derive(Debug)]
pub struct ColumnsChunk<'a> {
    first: usize,
    start: &'a mut [Time],
    dur: &'a mut [u32],
    kind: &'a mut [KindId],
    args: NearChunk<'a>,
    long: Vec<(usize, Dur)>,
}

/// What did not fit a piece.
#[derive(Debug)]
pub struct ChunkRest {
    /// Long durations, by position in the track.
    long: Vec<(usize, Dur)>,
    /// Positions of arguments far from those before them, by position in the track.
    far: Vec<(u32, u64)>,
}

impl ColumnsChunk<'_> {
    /// Sets the `index`th event of this piece; to be called for every one, in order. A negative duration counts as zero.
    #[inline]
    pub fn set(&mut self, index: usize, start: Time, dur: Dur, kind: KindId, args: Option<u64>) {
        self.start[index] = start;
        self.kind[index] = kind;
        match DurationColumn::pack_short(dur) {
            Some(packed) => self.dur[index] = packed,
            None => self.long.push((self.first + index, dur)),
        }
        self.args.set(index, args);
    }

    /// Ends the filling and returns what did not fit.
    pub fn finish(self) -> ChunkRest {
        ChunkRest { long: self.long, far: self.args.finish() }
    }
}
