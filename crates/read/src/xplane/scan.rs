//! The first pass: locates planes, lines, metadata and events in the file. It jumps from length to length and
//! only reads names and ids, so that the second pass can decode everything in parallel into columns of known
//! size.

use std::ops::Range;

use super::schema::{entry, line, plane, space};
use super::wire::{Broken, Cursor, Field, Payload, walk};

/// Number of events of a line that are decoded together: large enough to outweigh the overhead of parallel
/// work, small enough that all cores finish at about the same time.
const EVENTS_PER_PIECE: usize = 1 << 16;

/// The parts of the whole file.
#[derive(Debug, Default)]
pub(super) struct Space {
    pub planes: Vec<Range<usize>>,
    pub errors: Vec<Range<usize>>,
    pub warnings: Vec<Range<usize>>,
    pub hostnames: Vec<Range<usize>>,
    pub broken: Option<Broken>,
}

impl Space {
    pub fn scan(file: &[u8]) -> Self {
        let mut found = Space::default();
        found.broken = walk(file, 0..file.len(), |field| match (field.number, field.value) {
            (space::PLANES, Payload::Len(range) | Payload::Cut(range)) => found.planes.push(range),
            (space::ERRORS, Payload::Len(range)) => found.errors.push(range),
            (space::WARNINGS, Payload::Len(range)) => found.warnings.push(range),
            (space::HOSTNAMES, Payload::Len(range)) => found.hostnames.push(range),
            _ => {}
        });
        found
    }
}

/// An entry of one of a plane's maps.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub id: u64,
    /// Position of the tag of its value.
    pub at: usize,
    pub value: Range<usize>,
}

/// The parts of a plane.
#[derive(Debug, Default)]
pub(super) struct Plane {
    pub id: i64,
    pub name: Range<usize>,
    pub lines: Vec<Range<usize>>,
    pub event_metadata: Vec<Entry>,
    pub stat_metadata: Vec<Entry>,
    pub stats: Vec<Range<usize>>,
    pub broken: Option<Broken>,
}

impl Plane {
    pub fn scan(file: &[u8], range: Range<usize>) -> Self {
        let mut found = Plane::default();
        let mut inside = None;
        found.broken = walk(file, range, |field| match (field.number, field.value) {
            (plane::ID, Payload::Varint(id)) => found.id = id as i64,
            (plane::NAME, Payload::Len(range)) => found.name = range,
            (plane::LINES, Payload::Len(range) | Payload::Cut(range)) => found.lines.push(range),
            (plane::EVENT_METADATA, Payload::Len(range)) => {
                found.event_metadata.extend(map_entry(file, range, &mut inside));
            }
            (plane::STAT_METADATA, Payload::Len(range)) => {
                found.stat_metadata.extend(map_entry(file, range, &mut inside));
            }
            (plane::STATS, Payload::Len(range)) => found.stats.push(range),
            _ => {}
        });
        found.broken = found.broken.or(inside);
        found
    }
}

fn map_entry(file: &[u8], range: Range<usize>, broken: &mut Option<Broken>) -> Option<Entry> {
    let mut id = 0;
    let mut found = None;
    let ended = walk(file, range, |field| match (field.number, field.value) {
        (entry::KEY, Payload::Varint(key)) => id = key,
        (entry::VALUE, Payload::Len(value)) => found = Some((field.at, value)),
        _ => {}
    });
    *broken = broken.or(ended);
    found.map(|(at, value)| Entry { id, at, value })
}

/// Some consecutive events of a line.
#[derive(Clone, Debug)]
pub(super) struct Piece {
    pub range: Range<usize>,
    /// The number of its first event in the line.
    pub first: usize,
    pub events: usize,
}

/// The parts of a line.
#[derive(Debug, Default)]
pub(super) struct Line {
    pub id: i64,
    pub name: Range<usize>,
    pub display_name: Range<usize>,
    pub timestamp_ns: i64,
    pub pieces: Vec<Piece>,
    pub events: usize,
    pub broken: Option<Broken>,
}

impl Line {
    pub fn scan(file: &[u8], range: Range<usize>) -> Self {
        let mut found = Line::default();
        let mut cursor = Cursor::new(file, range);
        let mut piece = Piece { range: cursor.at()..cursor.at(), first: 0, events: 0 };
        found.broken = loop {
            if cursor.short_after(line::EVENTS_TAG).is_none() {
                match cursor.field().map(|field| field.map(|field| found.take(field))) {
                    Ok(Some(Ok(true))) => {}
                    Ok(Some(Ok(false))) => continue,
                    Ok(None) => break None,
                    Ok(Some(Err(broken))) | Err(broken) => break Some(broken),
                }
            }
            piece.events += 1;
            piece.range.end = cursor.at();
            if piece.events == EVENTS_PER_PIECE {
                found.close(&mut piece);
            }
        };
        if piece.events > 0 {
            found.close(&mut piece);
        }
        found
    }

    /// Handles a field that is not an event in its usual form; returns whether it was an event after all.
    fn take(&mut self, field: Field) -> Result<bool, Broken> {
        match (field.number, field.value) {
            (line::ID, Payload::Varint(id)) => self.id = id as i64,
            (line::NAME, Payload::Len(range)) => self.name = range,
            (line::DISPLAY_NAME, Payload::Len(range)) => self.display_name = range,
            (line::TIMESTAMP_NS, Payload::Varint(ns)) => self.timestamp_ns = ns as i64,
            (line::EVENTS, Payload::Len(_)) => return Ok(true),
            (_, Payload::Cut(_)) => return Err(Broken { what: Broken::OVERRUN, at: field.at }),
            _ => {}
        }
        Ok(false)
    }

    fn close(&mut self, piece: &mut Piece) {
        self.events += piece.events;
        let next = Piece { range: piece.range.end..piece.range.end, first: self.events, events: 0 };
        self.pieces.push(std::mem::replace(piece, next));
    }
}
