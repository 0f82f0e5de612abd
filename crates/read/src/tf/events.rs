//! TensorBoard event files that contain a graph or run metadata (`add_graph`, `add_run_metadata`). Their framing is read
//! by `tfevents`.

use std::ops::Range;
use std::path::Path;

use super::crc32c::masked;
use super::message::{Damages, Walk};
use super::{Found, inflated, unless_nothing};
use crate::tfevents::records::{HEADER, Piece, Records, TRAILER};
use crate::{Bytes, ReadError};
use stepscope_wire::{Cursor, Payload};

/// Run metadata of an event file.
#[derive(Clone, Debug)]
pub struct TaggedRun {
    /// The tag set by the program.
    pub tag: String,
    /// The global step.
    pub step: i64,
    /// When it was written, in seconds since 1970.
    pub wall_time: f64,
    /// Location of the RunMetadata in the file.
    pub place: Range<usize>,
}

/// What an event file contains besides scalars.
#[derive(Clone, Debug)]
pub struct TensorFlowEvents {
    /// The file's bytes, inflated.
    pub bytes: Bytes,
    /// Location of its graphs (GraphDef).
    pub graphs: Vec<Range<usize>>,
    /// Its runs, in file order.
    pub runs: Vec<TaggedRun>,
    /// Number of events.
    pub events: u64,
}

/// Whether it is a file of records with a valid first checksum.
pub(crate) fn is_event_file(bytes: &[u8]) -> bool {
    let (Some(len), Some(stored)) = (bytes.get(..8), bytes.get(8..HEADER).and_then(<[u8]>::first_chunk))
    else {
        return false;
    };
    masked(len) == u32::from_le_bytes(*stored)
}

/// Reads an event file.
pub fn read_events(path: &Path) -> Result<Found<TensorFlowEvents>, ReadError> {
    let (bytes, damage) = inflated(path)?;
    let found = events_of(bytes, damage);
    unless_nothing(path, found.value.events == 0, found)
}

/// Reads the bytes of an event file.
pub fn events_of(bytes: Bytes, mut damage: Damages) -> Found<TensorFlowEvents> {
    let mut events =
        TensorFlowEvents { bytes: bytes.clone(), graphs: Vec::new(), runs: Vec::new(), events: 0 };
    for (at, piece) in Records::new(&bytes, 0) {
        let payload = match piece {
            Piece::Record(payload) => payload,
            Piece::OddLength(payload) => {
                damage.add(at, || "the checksum of a record's length does not match".to_owned());
                payload
            }
            Piece::Damaged(payload) => {
                damage.add(at + HEADER, || "the checksum of a record does not match".to_owned());
                payload
            }
            Piece::Gap(length) => {
                damage.add(at, || format!("{length} bytes are not records"));
                continue;
            }
            Piece::Cut => {
                damage.add(at, || "a record is truncated".to_owned());
                continue;
            }
        };
        let mut walk = Walk::new(&bytes, damage);
        event(&mut walk, at + HEADER..at + HEADER + payload.len(), &mut events);
        damage = walk.damage;
        events.events += 1;
    }
    Found { value: events, damage }
}

/// A recorded run of fewer bytes names a device and no node: PyTorch writes such a one behind every graph.
const LEAST_RUN: usize = 40;

/// Whether there is run metadata among the records. Only checks fields, not checksums.
pub(crate) fn carries_runs(bytes: &[u8]) -> bool {
    let mut at = 0usize;
    while let Some(len) = bytes.get(at..).and_then(<[u8]>::first_chunk).map(|len| u64::from_le_bytes(*len)) {
        let start = at + HEADER;
        let Some(end) = usize::try_from(len).ok().and_then(|len| start.checked_add(len)) else {
            return false;
        };
        let mut cursor = Cursor::new(bytes, start..end);
        while let Ok(Some(field)) = cursor.field() {
            if let (8, Payload::Len(range)) = (field.number, field.value)
                && range.len() >= LEAST_RUN
            {
                return true;
            }
        }
        at = end.saturating_add(TRAILER);
    }
    false
}

/// Number of bytes at the start of a record that show what its event holds: the header, time, step, the next key.
pub(crate) const RECORD_START: usize = HEADER + 32;

/// From the start of a record: its whole length, and whether its event is a recorded run. `None` at the end.
pub(crate) fn record_start(bytes: &[u8]) -> Option<(u64, bool)> {
    let length = u64::from_le_bytes(*bytes.first_chunk()?);
    let end = length.checked_add((HEADER + TRAILER) as u64)?;
    let mut rest = bytes.get(HEADER..)?;
    // Events are written in the order of their fields: 1 is the time, 2 the step, the next one is the content.
    while let Some((&key, after)) = rest.split_first() {
        if key == (8 << 3 | 2) {
            let length = Cursor::new(after, 0..after.len()).varint().unwrap_or(0);
            return Some((end, length >= LEAST_RUN as u64));
        }
        rest = match key & 7 {
            0 => after.iter().position(|byte| byte & 0x80 == 0).and_then(|last| after.get(last + 1..)),
            1 => after.get(8..),
            5 => after.get(4..),
            _ => None,
        }
        .unwrap_or_default();
    }
    Some((end, false))
}

fn event(walk: &mut Walk<'_>, range: Range<usize>, into: &mut TensorFlowEvents) {
    let (mut step, mut wall_time) = (0, 0.0);
    let mut run = None;
    walk.message(range, "Event", |walk, field| match field.number {
        1 => {
            if let super::message::Value::Fixed(bits) = field.value {
                wall_time = f64::from_bits(bits);
            }
            Some(())
        }
        2 => field.int().map(|value| step = value),
        4 => field.range().map(|range| into.graphs.push(range)),
        8 => field.range().map(|range| run = tagged(walk, range)),
        // Versions, summaries, logs, metadata of the source.
        _ => Some(()),
    });
    if let Some((tag, place)) = run {
        into.runs.push(TaggedRun { tag, step, wall_time, place });
    }
}

/// A TaggedRunMetadata: tag, serialized run metadata.
fn tagged(walk: &mut Walk<'_>, range: Range<usize>) -> Option<(String, Range<usize>)> {
    let (mut tag, mut place) = (String::new(), None);
    walk.message(range, "TaggedRunMetadata", |walk, field| match field.number {
        1 => field.range().map(|range| tag = walk.text(range, "tag").into_owned()),
        2 => field.range().map(|range| place = Some(range)),
        _ => None,
    });
    place.map(|place| (tag, place))
}
