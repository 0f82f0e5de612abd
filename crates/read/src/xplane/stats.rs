//! Stats, which are XPlane's arguments, decoded from the file on demand only.
//!
//! The position of a record is that of the tag of its message: an event within its line, or an event metadata
//! within its map entry.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use stepscope_trace::{ArgSource, Datum, StrId, StringTable, StringTableBuilder, Value};

use super::id_map::IdMap;
use super::scan::Entry;
use super::schema::{event, event_metadata, stat, stat_metadata};
use crate::Bytes;
use stepscope_wire::{Cursor, Payload, walk};

/// The names of a plane's stats, which are also the strings that its stats refer to.
#[derive(Debug, Default)]
pub(super) struct StatNames(IdMap);

impl StatNames {
    pub fn new(file: &[u8], entries: &[Entry], strings: &mut StringTableBuilder) -> Self {
        let mut named = Vec::with_capacity(entries.len());
        for entry in entries {
            let mut name = StrId::default();
            walk(file, entry.value.clone(), |field| {
                if let (stat_metadata::NAME, Payload::Len(range)) = (field.number, field.value) {
                    name = strings.intern_bytes(&file[range]);
                }
            });
            named.push((entry.id, name.0));
        }
        StatNames(IdMap::new(&named))
    }

    fn get(&self, id: u64) -> Option<StrId> {
        self.0.get(id).map(StrId)
    }
}

/// The value of a stat, with its text not yet decoded.
#[derive(Clone, Debug)]
pub(super) enum Raw {
    Int(i64),
    UInt(u64),
    Float(f64),
    Str(Range<usize>),
    Bytes(Range<usize>),
    Ref(Option<StrId>),
    Null,
}

/// Decodes the stat in `range`. The key is the empty string if the file does not name it.
pub(super) fn read_stat(file: &[u8], range: Range<usize>, names: &StatNames) -> (StrId, Raw) {
    let (mut key, mut value) = (0, Raw::Null);
    walk(file, range, |field| match (field.number, field.value) {
        (stat::METADATA_ID, Payload::Varint(id)) => key = id,
        (stat::DOUBLE, Payload::Fixed64(bits)) => value = Raw::Float(f64::from_bits(bits)),
        (stat::UINT64, Payload::Varint(v)) => value = Raw::UInt(v),
        (stat::INT64, Payload::Varint(v)) => value = Raw::Int(v as i64),
        (stat::STR, Payload::Len(range)) => value = Raw::Str(range),
        (stat::BYTES, Payload::Len(range)) => value = Raw::Bytes(range),
        (stat::REF, Payload::Varint(id)) => value = Raw::Ref(names.get(id)),
        _ => {}
    });
    (names.get(key).unwrap_or_default(), value)
}

impl Raw {
    fn resolve<'a>(self, file: &'a [u8], strings: &'a StringTable) -> Value<'a> {
        match self {
            Raw::Int(v) => Value::Int(v),
            Raw::UInt(v) => Value::UInt(v),
            Raw::Float(v) => Value::Float(v),
            Raw::Str(range) => Value::Str(String::from_utf8_lossy(&file[range])),
            Raw::Bytes(range) => Value::Bytes(&file[range]),
            Raw::Ref(Some(id)) => Value::Str(Cow::Borrowed(strings.get(id))),
            Raw::Ref(None) | Raw::Null => Value::Null,
        }
    }

    /// The value for a property list, which cannot contain bytes.
    pub fn datum(&self, file: &[u8], strings: &mut StringTableBuilder) -> Option<Datum> {
        Some(match self {
            Raw::Int(v) => Datum::Int(*v),
            Raw::UInt(v) => Datum::UInt(*v),
            Raw::Float(v) => Datum::Float(*v),
            Raw::Str(range) => Datum::Str(strings.intern_bytes(&file[range.clone()])),
            Raw::Ref(Some(id)) => Datum::Str(*id),
            Raw::Bytes(_) | Raw::Ref(None) | Raw::Null => return None,
        })
    }
}

/// Arguments of events. The number of occurrences of an aggregated event appears as an additional argument.
#[derive(Debug)]
pub(super) struct EventStats {
    pub file: Bytes,
    pub names: Arc<StatNames>,
    /// The key `num_occurrences`.
    pub occurrences: StrId,
}

impl ArgSource for EventStats {
    fn visit<'a>(&'a self, at: u64, strings: &'a StringTable, visit: &mut dyn FnMut(StrId, Value<'a>)) {
        let file: &'a [u8] = &self.file;
        let Some(body) = message_at(file, at) else { return };
        let mut occurrences = None;
        walk(file, body, |field| match (field.number, field.value) {
            (event::STATS, Payload::Len(range)) => {
                let (key, value) = read_stat(file, range, &self.names);
                visit(key, value.resolve(file, strings));
            }
            (event::OFFSET_PS, Payload::Varint(_)) => occurrences = None,
            (event::NUM_OCCURRENCES, Payload::Varint(count)) => occurrences = Some(count as i64),
            _ => {}
        });
        if let Some(count) = occurrences {
            visit(self.occurrences, Value::Int(count));
        }
    }

    fn rest(&self) {
        self.file.release(0..self.file.len());
    }

    fn heap_bytes(&self) -> usize {
        self.names.0.heap_bytes()
    }
}

/// Arguments shared by all events of one metadata, and those of metadata without events.
#[derive(Debug)]
pub(super) struct MetadataStats {
    pub file: Bytes,
    pub names: Arc<StatNames>,
    /// The key `metadata`, for the message that old profilers put beside the stats.
    pub metadata: StrId,
}

impl ArgSource for MetadataStats {
    fn visit<'a>(&'a self, at: u64, strings: &'a StringTable, visit: &mut dyn FnMut(StrId, Value<'a>)) {
        let file: &'a [u8] = &self.file;
        let Some(body) = message_at(file, at) else { return };
        walk(file, body, |field| match (field.number, field.value) {
            (event_metadata::STATS, Payload::Len(range)) => {
                let (key, value) = read_stat(file, range, &self.names);
                visit(key, value.resolve(file, strings));
            }
            (event_metadata::METADATA, Payload::Len(range)) if !range.is_empty() => {
                visit(self.metadata, Value::Bytes(&file[range]));
            }
            _ => {}
        });
    }

    /// The names are counted together with the events' stats.
    fn heap_bytes(&self) -> usize {
        0
    }
}

/// Counts the file's bytes in the memory statistics, once for all planes.
#[derive(Debug)]
pub(super) struct FileBytes(pub Bytes);

impl ArgSource for FileBytes {
    fn visit<'a>(&'a self, _: u64, _: &'a StringTable, _: &mut dyn FnMut(StrId, Value<'a>)) {}

    fn heap_bytes(&self) -> usize {
        self.0.heap_bytes()
    }

    fn is_intact(&self) -> bool {
        !self.0.has_changed()
    }
}

/// The message whose tag is at `at`.
pub(super) fn message_at(file: &[u8], at: u64) -> Option<Range<usize>> {
    let at = usize::try_from(at).ok()?;
    match Cursor::new(file, at..file.len()).field().ok()??.value {
        Payload::Len(body) => Some(body),
        _ => None,
    }
}
