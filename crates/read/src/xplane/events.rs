//! The second pass: decodes events into columns, in parallel on all cores. Nothing is copied or stored twice.
//!
//! An event with duration 0 stays a slice without length. The format calls it an instant, but profilers also
//! write 0 for work shorter than their clock resolution, and the file does not distinguish the two.

use std::ops::Range;

use rayon::prelude::*;
use rustc_hash::FxHashSet;
use stepscope_trace::{ColumnsChunk, Dur, EventColumns, KindId, Time};

use super::id_map::IdMap;
use super::line::Piece;
use super::schema::{event, event_tag as tag, line};
use super::wire::{Broken, Cursor, Payload};
use crate::{Bytes, Progress};

/// The kind of an event, by its metadata id.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    pub slices: IdMap,
    /// Filled once such events are known to exist.
    pub aggregates: IdMap,
    /// For events whose metadata is missing in the file.
    pub unknown: KindId,
}

/// A piece with the start of its line's time, in picoseconds after the trace's origin. It may be beyond what
/// the trace can represent.
#[derive(Clone, Debug)]
pub(super) struct Placed {
    pub piece: Piece,
    pub base_ps: i128,
    /// The index of its line in the plane.
    pub line: usize,
}

impl Placed {
    /// The base, if the trace can represent it.
    fn near(&self) -> Option<i64> {
        i64::try_from(self.base_ps).ok()
    }
}

/// Oddities of some events.
#[derive(Debug, Default)]
pub(super) struct Oddities {
    pub negative_durations: u64,
    pub out_of_range: u64,
    pub dangling: u64,
    /// Metadata ids of aggregated events that do not have a kind yet.
    pub aggregates: FxHashSet<u64>,
    /// Damaged events, and the first of them as (line, event, why).
    pub broken: u64,
    pub first_broken: Option<(usize, usize, Broken)>,
}

impl Oddities {
    pub fn add(&mut self, other: Oddities) {
        self.negative_durations += other.negative_durations;
        self.out_of_range += other.out_of_range;
        self.dangling += other.dangling;
        self.aggregates.extend(other.aggregates);
        self.broken += other.broken;
        self.first_broken = self.first_broken.or(other.first_broken);
    }
}

/// Decodes all events of a track.
pub(super) fn decode(
    file: &Bytes,
    pieces: &[Placed],
    kinds: &Kinds,
    progress: &Progress,
) -> (EventColumns, Oddities) {
    let lens: Vec<usize> = pieces.iter().map(|placed| placed.piece.events).collect();
    let from = pieces.iter().map(|placed| placed.piece.range.start).min().unwrap_or(0);
    let to = pieces.iter().map(|placed| placed.piece.range.end).max().unwrap_or(0);
    let mut columns = EventColumns::with_len(lens.iter().sum(), from as u64, to as u64);
    let parts: Vec<_> = columns
        .chunks(&lens)
        .into_par_iter()
        .zip(pieces)
        .map(|(mut chunk, placed)| {
            let oddities = decode_piece(file, placed, kinds, &mut chunk);
            // The columns grow as the file leaves: the peak is the larger of the two instead of their sum.
            file.release(placed.piece.range.clone());
            progress.advance(placed.piece.range.len() as u64, placed.piece.events as u64);
            (chunk.finish(), oddities)
        })
        .collect();
    let mut oddities = Oddities::default();
    for (long, odd) in parts {
        columns.set_long_durations(long);
        oddities.add(odd);
    }
    (columns, oddities)
}

fn decode_piece(file: &[u8], placed: &Placed, kinds: &Kinds, chunk: &mut ColumnsChunk<'_>) -> Oddities {
    let mut odd = Oddities::default();
    let mut index = 0;
    let near = placed.near();
    for_each_event(file, placed, |at, event, broken| {
        if let Some(broken) = broken {
            odd.broken += 1;
            odd.first_broken.get_or_insert((placed.line, placed.piece.first + index, broken));
        }
        let start = match near.and_then(|base| base.checked_add(event.offset_ps)) {
            Some(ps) => Time::from_ps(ps),
            None => clamped(placed, &event, &mut odd),
        };
        let kind = event.kind(kinds, &mut odd);
        odd.negative_durations += u64::from(event.duration_ps < 0);
        let args = (event.has_stats || event.aggregate).then_some(at as u64);
        chunk.set(index, start, Dur::from_ps(event.duration_ps), kind, args);
        index += 1;
    });
    odd
}

/// Visits each event of a piece with the position of its tag.
#[inline(always)]
pub(super) fn for_each_event(
    file: &[u8],
    placed: &Placed,
    mut visit: impl FnMut(usize, Event, Option<Broken>),
) {
    let mut cursor = Cursor::new(file, placed.piece.range.clone());
    for _ in 0..placed.piece.events {
        // The first pass already went this way: a piece ends with an intact event.
        let Some((at, body)) = next_event(&mut cursor) else { return };
        let (event, broken) = Event::decode(file, body);
        visit(at, event, broken);
    }
}

#[cold]
fn clamped(placed: &Placed, event: &Event, odd: &mut Oddities) -> Time {
    let ps = placed.base_ps + i128::from(event.offset_ps);
    Time::from_ps(i64::try_from(ps).unwrap_or_else(|_| {
        odd.out_of_range += 1;
        if ps < 0 { i64::MIN } else { i64::MAX }
    }))
}

/// Position and body of the next event of a line; skips other fields.
#[inline(always)]
fn next_event(cursor: &mut Cursor<'_>) -> Option<(usize, Range<usize>)> {
    loop {
        let at = cursor.at();
        if let Some(body) = cursor.short_after(line::EVENTS_TAG) {
            return Some((at, body));
        }
        let field = cursor.field().ok().flatten()?;
        if let (line::EVENTS, Payload::Len(body)) = (field.number, field.value) {
            return Some((at, body));
        }
    }
}

/// An event's own numbers.
#[derive(Debug, Default)]
pub(super) struct Event {
    pub metadata_id: u64,
    offset_ps: i64,
    duration_ps: i64,
    aggregate: bool,
    has_stats: bool,
}

impl Event {
    /// Decodes an event without its stats. On damage, keeps what came before.
    #[inline(always)]
    fn decode(file: &[u8], body: Range<usize>) -> (Self, Option<Broken>) {
        match Self::decode_usual(file, body.clone()) {
            Some(event) => (event, None),
            None => Self::decode_any(file, body),
        }
    }

    /// The usual event: metadata, offset, duration and short stats, in this order. Straight-line code with
    /// predictable branches is much faster than dispatching by tag.
    #[inline(always)]
    fn decode_usual(file: &[u8], body: Range<usize>) -> Option<Self> {
        let mut cursor = Cursor::new(file, body);
        let metadata_id = cursor.varint_after(tag::METADATA_ID)?;
        let offset_ps = cursor.varint_after(tag::OFFSET_PS)? as i64;
        let duration_ps = match cursor.peek() {
            Some(tag::DURATION_PS) => cursor.varint_after(tag::DURATION_PS)? as i64,
            _ => 0,
        };
        let has_stats = !cursor.is_done();
        while !cursor.is_done() {
            cursor.short_after(tag::STATS)?;
        }
        Some(Event { metadata_id, offset_ps, duration_ps, aggregate: false, has_stats })
    }

    #[cold]
    fn decode_any(file: &[u8], body: Range<usize>) -> (Self, Option<Broken>) {
        let mut found = Event::default();
        let mut cursor = Cursor::new(file, body);
        let broken = loop {
            let Some(next_tag) = cursor.peek() else { break None };
            let done = match next_tag {
                tag::METADATA_ID => next(&mut cursor).map(|id| found.metadata_id = id),
                tag::OFFSET_PS => next(&mut cursor).map(|ps| found.place(ps)),
                tag::DURATION_PS => next(&mut cursor).map(|ps| found.duration_ps = ps as i64),
                tag::STATS => {
                    found.has_stats = true;
                    cursor.step();
                    cursor.skip_len().map(|_| ())
                }
                tag::NUM_OCCURRENCES => next(&mut cursor).map(|_| found.aggregate()),
                _ => found.take_unusual(&mut cursor),
            };
            if let Err(broken) = done {
                break Some(broken);
            }
        };
        (found, broken)
    }

    /// Its start, clamped to what the trace can represent.
    pub fn start(&self, placed: &Placed) -> Time {
        clamped(placed, self, &mut Oddities::default())
    }

    /// An event has either an offset or a number of occurrences: the one written last.
    #[inline(always)]
    fn place(&mut self, ps: u64) {
        (self.offset_ps, self.aggregate) = (ps as i64, false);
    }

    fn aggregate(&mut self) {
        (self.offset_ps, self.aggregate) = (0, true);
    }

    /// Any other field: unknown ones, and known ones whose tag uses more bytes than needed.
    #[cold]
    fn take_unusual(&mut self, cursor: &mut Cursor<'_>) -> Result<(), Broken> {
        let Some(field) = cursor.field()? else { return Ok(()) };
        match (field.number, field.value) {
            (event::METADATA_ID, Payload::Varint(id)) => self.metadata_id = id,
            (event::OFFSET_PS, Payload::Varint(ps)) => self.place(ps),
            (event::DURATION_PS, Payload::Varint(ps)) => self.duration_ps = ps as i64,
            (event::STATS, Payload::Len(_)) => self.has_stats = true,
            (event::NUM_OCCURRENCES, Payload::Varint(_)) => self.aggregate(),
            (_, Payload::Cut(_)) => return Err(Broken { what: Broken::OVERRUN, at: field.at }),
            _ => {}
        }
        Ok(())
    }

    #[inline(always)]
    fn kind(&self, kinds: &Kinds, odd: &mut Oddities) -> KindId {
        if self.aggregate {
            return self.aggregate_kind(kinds, odd);
        }
        match kinds.slices.get(self.metadata_id) {
            Some(kind) => KindId(kind),
            None => {
                odd.dangling += 1;
                kinds.unknown
            }
        }
    }

    #[cold]
    fn aggregate_kind(&self, kinds: &Kinds, odd: &mut Oddities) -> KindId {
        kinds.aggregates.get(self.metadata_id).map_or_else(
            || {
                odd.aggregates.insert(self.metadata_id);
                kinds.unknown
            },
            KindId,
        )
    }
}

#[inline(always)]
fn next(cursor: &mut Cursor<'_>) -> Result<u64, Broken> {
    cursor.step();
    cursor.varint()
}
