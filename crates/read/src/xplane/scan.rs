//! The first pass: locates planes, lines and metadata in the file; [`super::line`] locates events. It jumps from length
//! to length and only reads names and ids, so that the second pass can decode everything in parallel into columns of
//! known size.

use std::ops::Range;

use super::schema::{entry, plane, space};
use stepscope_wire::{Broken, Payload, walk};

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
