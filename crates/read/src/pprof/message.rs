//! pprof's `Profile` message: the fields that a memory profile has, by number.

use std::borrow::Cow;
use std::ops::Range;

use rustc_hash::FxHashMap;
use stepscope_wire::{Cursor, Field, Payload, walk};

/// Strings of the head that are looked at: those of the value types and labels come first.
const FIRST_STRINGS: usize = 16;

/// Live buffers of one place.
#[derive(Clone, Debug, Default)]
pub(super) struct Sample {
    /// Innermost first.
    pub(super) locations: Vec<u64>,
    pub(super) values: Vec<i64>,
    /// Numbers of strings: key and value.
    labels: Vec<(i64, i64)>,
}

/// Numbers of strings.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Function {
    pub(super) name: i64,
    pub(super) file: i64,
}

/// The whole message.
#[derive(Debug, Default)]
pub(super) struct Profile<'a> {
    file: &'a [u8],
    types: Vec<(i64, i64)>,
    pub(super) samples: Vec<Sample>,
    /// Functions and lines of each place; several if calls were inlined, the innermost first.
    pub(super) locations: FxHashMap<u64, Vec<(u64, i64)>>,
    pub(super) functions: FxHashMap<u64, Function>,
    strings: Vec<Range<usize>>,
    pub(super) broken: Option<(&'static str, usize)>,
}

impl Profile<'_> {
    pub(super) fn text(&self, number: i64) -> Cow<'_, str> {
        let range =
            usize::try_from(number).ok().and_then(|at| self.strings.get(at)).cloned().unwrap_or_default();
        String::from_utf8_lossy(self.file.get(range).unwrap_or_default())
    }

    fn is(&self, number: i64, text: &str) -> bool {
        let range =
            usize::try_from(number).ok().and_then(|at| self.strings.get(at)).cloned().unwrap_or_default();
        self.file.get(range) == Some(text.as_bytes())
    }

    /// The text of a sample's label.
    pub(super) fn label(&self, sample: &Sample, key: &str) -> Option<&str> {
        let &(_, value) = sample.labels.iter().find(|(name, _)| self.is(*name, key))?;
        let range = usize::try_from(value).ok().and_then(|at| self.strings.get(at)).cloned()?;
        std::str::from_utf8(self.file.get(range)?).ok()
    }

    /// Whether its samples are live memory: counts and bytes of buffers.
    pub(super) fn is_memory(&self) -> bool {
        let bytes =
            matches!(self.types[..], [_, (kind, unit)] if self.is(kind, "space") && self.is(unit, "bytes"));
        bytes
            && (self.samples.is_empty()
                || self.samples.iter().any(|sample| self.label(sample, "kind").is_some()))
    }
}

/// Whether a file that starts like this may be one: two types of values, then samples or strings.
pub(super) fn recognises(head: &[u8]) -> bool {
    let mut cursor = Cursor::new(head, 0..head.len());
    let (mut types, mut strings) = (0, Vec::new());
    while let Ok(Some(field)) = cursor.field() {
        match (field.number, &field.value) {
            (1, Payload::Len(range)) if types < 2 && is_value_type(head, range.clone()) => types += 1,
            (2..=5, Payload::Len(_) | Payload::Cut(_)) if types == 2 => {}
            (6, Payload::Len(range)) if types == 2 && strings.len() < FIRST_STRINGS => {
                strings.push(head.get(range.clone()).unwrap_or_default());
            }
            (6.., _) if types == 2 => {}
            _ => return false,
        }
    }
    // The strings of large files lie behind the head.
    let has = |text: &str| strings.contains(&text.as_bytes());
    types == 2 && (strings.is_empty() || (has("space") && has("bytes") && (has("kind") || strings.len() < 6)))
}

fn is_value_type(head: &[u8], range: Range<usize>) -> bool {
    let mut fields = 0;
    let broken = walk(head, range, |field| {
        fields += if matches!((field.number, field.value), (1 | 2, Payload::Varint(_))) { 1 } else { 3 };
    });
    broken.is_none() && fields == 2
}

/// Reads the whole message.
pub(super) fn read(file: &[u8]) -> Profile<'_> {
    let mut profile = Profile { file, ..Profile::default() };
    let broken = walk(file, 0..file.len(), |field| {
        let (Payload::Len(range) | Payload::Cut(range)) = field.value else { return };
        match field.number {
            1 => profile.types.push(pair(file, range)),
            2 => profile.samples.push(sample(file, range)),
            4 => {
                let (id, lines) = location(file, range);
                profile.locations.insert(id, lines);
            }
            5 => {
                let (id, function) = function(file, range);
                profile.functions.insert(id, function);
            }
            6 => profile.strings.push(range),
            _ => {}
        }
    });
    profile.broken = broken.map(|broken| (broken.what, broken.at));
    profile
}

fn number(field: &Field) -> Option<i64> {
    match field.value {
        Payload::Varint(value) => Some(value as i64),
        _ => None,
    }
}

/// The fields 1 and 2 of a message.
fn pair(file: &[u8], range: Range<usize>) -> (i64, i64) {
    let mut found = (0, 0);
    walk(file, range, |field| match (field.number, number(&field)) {
        (1, Some(value)) => found.0 = value,
        (2, Some(value)) => found.1 = value,
        _ => {}
    });
    found
}

fn sample(file: &[u8], range: Range<usize>) -> Sample {
    let mut found = Sample::default();
    walk(file, range, |field| match (field.number, field.value) {
        (1, value) => numbers(file, value, |number| found.locations.push(number)),
        (2, value) => numbers(file, value, |number| found.values.push(number as i64)),
        (3, Payload::Len(range)) => found.labels.push(pair(file, range)),
        _ => {}
    });
    found
}

/// Repeated numbers, packed or not.
fn numbers(file: &[u8], value: Payload, mut add: impl FnMut(u64)) {
    match value {
        Payload::Varint(number) => add(number),
        Payload::Len(range) | Payload::Cut(range) => {
            let mut cursor = Cursor::new(file, range);
            while !cursor.is_done() {
                let Ok(number) = cursor.varint() else { break };
                add(number);
            }
        }
        Payload::Fixed64(_) | Payload::Fixed32(_) => {}
    }
}

fn location(file: &[u8], range: Range<usize>) -> (u64, Vec<(u64, i64)>) {
    let (mut id, mut lines) = (0, Vec::new());
    walk(file, range, |field| match (field.number, field.value) {
        (1, Payload::Varint(number)) => id = number,
        (4, Payload::Len(range)) => {
            let (function, line) = pair(file, range);
            lines.push((function as u64, line));
        }
        _ => {}
    });
    (id, lines)
}

fn function(file: &[u8], range: Range<usize>) -> (u64, Function) {
    let (mut id, mut found) = (0, Function::default());
    walk(file, range, |field| match (field.number, number(&field)) {
        (1, Some(number)) => id = number as u64,
        (2, Some(number)) => found.name = number,
        (4, Some(number)) => found.file = number,
        _ => {}
    });
    (id, found)
}
