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
use crate::{Bytes, Progress};
use stepscope_wire::{Broken, Cursor, Payload, unpack, unpack_any};

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
    let mut columns = EventColumns::with_len(lens.iter().sum());
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
    for (rest, odd) in parts {
        columns.add_rest(rest);
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
        // Also of an event without stats: a branch on that would often be guessed wrong, and there is nothing to find there.
        chunk.set(index, start, Dur::from_ps(event.duration_ps), kind, Some(at as u64));
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
    let Range { start: mut at, end } = placed.piece.range;
    for _ in 0..placed.piece.events {
        // The first pass already went this way: a piece ends with an intact event.
        let Some(found) = Event::usual(file, at, end).or_else(|| any_event(file, at..end)) else { return };
        at = found.end;
        visit(found.at, found.event, found.broken);
    }
}

/// An event of a line.
struct Found {
    event: Event,
    /// Position of its tag.
    at: usize,
    /// Where the next one may begin.
    end: usize,
    broken: Option<Broken>,
}

#[cold]
fn clamped(placed: &Placed, event: &Event, odd: &mut Oddities) -> Time {
    let ps = placed.base_ps + i128::from(event.offset_ps);
    Time::from_ps(i64::try_from(ps).unwrap_or_else(|_| {
        odd.out_of_range += 1;
        if ps < 0 { i64::MIN } else { i64::MAX }
    }))
}

/// The next event of a line, whatever it looks like; skips other fields.
#[cold]
fn any_event(file: &[u8], range: Range<usize>) -> Option<Found> {
    let mut cursor = Cursor::new(file, range);
    loop {
        let at = cursor.at();
        let field = cursor.field().ok().flatten()?;
        if let (line::EVENTS, Payload::Len(body)) = (field.number, field.value) {
            let end = body.end;
            let (event, broken) = Event::decode_any(file, body);
            return Some(Found { event, at, end, broken });
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
    /// The usual event at `at`: metadata, offset, duration and short stats, in this order, all of it shorter than 128 bytes
    /// and before `end`. Straight-line code with predictable branches is much faster than dispatching by tag, and one look at
    /// the window instead of one before every number takes a quarter off the whole pass: 107 instead of 142 ms of processor
    /// time for nine million events.
    #[inline(always)]
    fn usual(file: &[u8], at: usize, end: usize) -> Option<Found> {
        let window: &[u8; WINDOW] = file.get(at..)?.first_chunk()?;
        let len = usize::from(window[1]);
        let next = at + 2 + len;
        if window[0] != line::EVENTS_TAG || len >= 0x80 || next > end {
            return None;
        }
        let mut place = 2;
        let metadata_id = varint_at(window, &mut place, tag::METADATA_ID)?;
        let offset_ps = long_varint_at(window, &mut place, tag::OFFSET_PS)? as i64;
        let duration_ps = match window[place] {
            tag::DURATION_PS if place < len + 2 => {
                long_varint_at(window, &mut place, tag::DURATION_PS)? as i64
            }
            _ => 0,
        };
        let mut rest = at + place;
        if rest > next {
            return None;
        }
        let has_stats = rest < next;
        while rest < next {
            let [first, len] = *file.get(rest..)?.first_chunk()?;
            rest += 2 + usize::from(len);
            if first != tag::STATS || len >= 0x80 || rest > next {
                return None;
            }
        }
        let event = Event { metadata_id, offset_ps, duration_ps, aggregate: false, has_stats };
        Some(Found { event, at, end: next, broken: None })
    }

    /// Decodes any event without its stats. On damage, keeps what came before.
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

/// Bytes that hold the numbers of every usual event: a length, and three tags with numbers of up to seven bytes, each read
/// with eight.
const WINDOW: usize = 2 + 8 + 8 + 8;

/// The number after `tag` at a place of the window, if that is the next tag and the number has up to seven bytes.
#[inline(always)]
fn varint_at(window: &[u8; WINDOW], place: &mut usize, tag: u8) -> Option<u64> {
    let word = u64::from_le_bytes(*window[*place..].first_chunk()?);
    if word as u8 != tag {
        return None;
    }
    // The bits that move in from above must not end the number.
    let (value, len) = unpack(word >> 8 | 0x80 << 56)?;
    *place += 1 + len;
    Some(value)
}

/// The same for numbers of any length in no order, where a guess at the length would often be wrong.
#[inline(always)]
fn long_varint_at(window: &[u8; WINDOW], place: &mut usize, tag: u8) -> Option<u64> {
    let word = u64::from_le_bytes(*window[*place..].first_chunk()?);
    if word as u8 != tag {
        return None;
    }
    let (value, len) = unpack_any(word >> 8 | 0x80 << 56)?;
    *place += 1 + len;
    Some(value)
}

#[inline(always)]
fn next(cursor: &mut Cursor<'_>) -> Result<u64, Broken> {
    cursor.step();
    cursor.varint()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Fields of an event, mostly in the usual order; the numbers are of every length.
    fn body() -> impl Strategy<Value = Vec<u8>> {
        let tags =
            [tag::METADATA_ID, tag::OFFSET_PS, tag::DURATION_PS, tag::STATS, tag::NUM_OCCURRENCES, 0x38];
        let field = (prop::sample::select(tags.to_vec()), 0u32..64, any::<u64>(), 0u8..20);
        let others = prop::collection::vec(field, 0..3);
        ((0u32..64, any::<u64>()), (0u32..64, any::<u64>()), others).prop_map(|(id, offset, others)| {
            let mut bytes = vec![tag::METADATA_ID];
            put(id.1 >> id.0, &mut bytes);
            bytes.push(tag::OFFSET_PS);
            put(offset.1 >> offset.0, &mut bytes);
            for (tag, shift, value, len) in others {
                bytes.push(tag);
                match tag {
                    tag::STATS => {
                        bytes.extend(std::iter::once(len).chain(std::iter::repeat_n(7, len.into())));
                    }
                    _ => put(value >> shift, &mut bytes),
                }
            }
            bytes
        })
    }

    fn put(mut value: u64, bytes: &mut Vec<u8>) {
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
    }

    fn numbers(event: &Event) -> (u64, i64, i64, bool, bool) {
        (event.metadata_id, event.offset_ps, event.duration_ps, event.aggregate, event.has_stats)
    }

    proptest! {
        #[test]
        fn the_short_way_finds_what_the_long_way_finds(body in body(), cut in 0usize..30, padding in 0usize..40) {
            let len = body.len().saturating_sub(cut);
            prop_assume!(len < 0x80);
            let mut file = vec![line::EVENTS_TAG, len as u8];
            file.extend(&body);
            let end = 2 + len;
            file.resize(end.max(file.len()) + padding, 0x18);
            if let Some(found) = Event::usual(&file, 0, end) {
                let (slow, broken) = Event::decode_any(&file, 2..end);
                prop_assert_eq!(broken, None);
                prop_assert_eq!((numbers(&found.event), found.end), (numbers(&slow), end));
            }
            prop_assert!(Event::usual(&file, 0, end - 1).is_none(), "past the end of its piece");
        }
    }

    #[test]
    fn the_usual_event_goes_the_short_way() {
        let mut file = vec![line::EVENTS_TAG, 0, tag::METADATA_ID, 0x85, 0x01, tag::OFFSET_PS];
        put((1 << 49) - 1, &mut file);
        file.push(tag::DURATION_PS);
        put(123_000, &mut file);
        file.extend([tag::STATS, 2, 8, 1, tag::STATS, 2, 8, 1]);
        file[1] = (file.len() - 2) as u8;
        let end = file.len();
        file.resize(end + WINDOW, 0);
        let found = Event::usual(&file, 0, end).unwrap();
        assert_eq!((numbers(&found.event), found.end), ((133, (1 << 49) - 1, 123_000, false, true), end));
    }
}
