//! Distinguishes TensorFlow's files. Protobuf has no magic number, so the fields of the first records are
//! examined.

use std::ops::Range;

use super::{events, sstable, text};
use stepscope_wire::{Cursor, Payload};

/// Number of records examined, because the first may be damaged.
const LOOKED_AT: usize = 24;

/// The kind of a file.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A graph, binary.
    Graph,
    /// A graph as text.
    GraphText,
    /// Recorded data of a run.
    Run,
    /// An op log.
    OpLog,
    /// A saved tfprof profile.
    Saved,
    /// The index of a checkpoint.
    CheckpointIndex,
    /// An event file.
    Events,
    /// A profile from the newer profiler.
    XSpace,
}

impl Kind {
    /// Its name in a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Graph => "a graph (GraphDef)",
            Kind::GraphText => "a graph as text (GraphDef)",
            Kind::Run => "run metadata (RunMetadata)",
            Kind::OpLog => "an op log (OpLogProto)",
            Kind::Saved => "a saved profile (ProfileProto)",
            Kind::CheckpointIndex => "the index of a checkpoint",
            Kind::Events => "an event file",
            Kind::XSpace => "an XPlane profile",
        }
    }
}

/// The kind of the bytes; `None` if they are not from TensorFlow.
pub fn kind_of(bytes: &[u8]) -> Option<Kind> {
    if sstable::is_table(bytes) {
        return Some(Kind::CheckpointIndex);
    }
    if events::is_event_file(bytes) {
        return Some(Kind::Events);
    }
    if text::recognises(bytes) {
        return Some(Kind::GraphText);
    }
    let mut seen: Vec<(Kind, usize)> = Vec::new();
    for (number, range) in records(bytes, 0..bytes.len()).into_iter().take(LOOKED_AT) {
        if let Some(kind) = kind_of_record(bytes, number, range) {
            match seen.iter_mut().find(|(known, _)| *known == kind) {
                Some((_, count)) => *count += 1,
                None => seen.push((kind, 1)),
            }
        }
    }
    // The first of equals wins, because a file starts with its main content.
    seen.into_iter().rev().max_by_key(|(_, count)| *count).map(|(kind, _)| kind)
}

/// The length-delimited fields of a message, as far as it is intact.
fn records(bytes: &[u8], range: Range<usize>) -> Vec<(u32, Range<usize>)> {
    fields(bytes, range)
        .into_iter()
        .filter_map(|(number, value)| match value {
            Payload::Len(range) | Payload::Cut(range) => Some((number, range)),
            _ => None,
        })
        .collect()
}

/// The first fields of a message, as far as it is intact.
fn fields(bytes: &[u8], range: Range<usize>) -> Vec<(u32, Payload)> {
    let mut cursor = Cursor::new(bytes, range);
    let mut fields = Vec::new();
    while fields.len() < LOOKED_AT {
        match cursor.field() {
            Ok(Some(field)) => fields.push((field.number, field.value)),
            _ => break,
        }
    }
    fields
}

fn kind_of_record(bytes: &[u8], number: u32, range: Range<usize>) -> Option<Kind> {
    match number {
        1 => kind_of_first(bytes, range),
        3 => is_graph(bytes, range).then_some(Kind::Run),
        4 => {
            let graphs = records(bytes, range);
            let found = graphs.into_iter().any(|(_, inner)| is_graph(bytes, inner));
            found.then_some(Kind::Run)
        }
        _ => None,
    }
}

/// All five messages start with a repeated field 1; its content differs.
fn kind_of_first(bytes: &[u8], range: Range<usize>) -> Option<Kind> {
    let fields = fields(bytes, range);
    let value = |wanted: u32| fields.iter().find(|(number, _)| *number == wanted).map(|(_, value)| value);
    let text = |value: &Payload| match value {
        Payload::Len(range) | Payload::Cut(range) => text_at(bytes, range),
        _ => None,
    };
    match (value(1), value(2)) {
        (Some(Payload::Varint(_)) | None, Some(name)) if text(name).is_some_and(is_plane) => {
            Some(Kind::XSpace)
        }
        (Some(Payload::Varint(_)), Some(Payload::Len(node) | Payload::Cut(node))) => {
            let name = self::fields(bytes, node.clone()).into_iter().find(|(number, _)| *number == 1);
            name.and_then(|(_, name)| text(&name).map(|_| Kind::Saved))
        }
        (Some(Payload::Len(device) | Payload::Cut(device)), _) if is_device(bytes, device.clone()) => {
            Some(Kind::Run)
        }
        (Some(name), Some(op @ (Payload::Len(_) | Payload::Cut(_)))) => {
            (text(name).is_some() && text(op).is_some_and(is_op)).then_some(Kind::Graph)
        }
        (Some(name), op) => {
            let rest = fields.iter().all(|(number, value)| match number {
                1 | 3 | 4 => matches!(value, Payload::Len(_) | Payload::Cut(_)),
                2 => matches!(value, Payload::Varint(_)),
                _ => false,
            });
            let more = op.is_some() || value(3).is_some() || value(4).is_some();
            (text(name).is_some() && rest && more).then_some(Kind::OpLog)
        }
        _ => None,
    }
}

fn is_graph(bytes: &[u8], range: Range<usize>) -> bool {
    let first = records(bytes, range).into_iter().find(|(number, _)| *number == 1);
    first.and_then(|(_, node)| kind_of_first(bytes, node)) == Some(Kind::Graph)
}

/// A device of a step: its name, then node records.
fn is_device(bytes: &[u8], range: Range<usize>) -> bool {
    let fields = records(bytes, range);
    let [(1, name), rest @ ..] = &fields[..] else { return false };
    // Most of them must match; one may be damaged.
    let fits = |(number, record): &&(u32, Range<usize>)| match number {
        2 => fields_begin_with_name(bytes, record.clone()),
        3 => true,
        _ => false,
    };
    let fitting = rest.iter().filter(fits).count();
    let named = text_at(bytes, name).is_some_and(|name| name.contains('/') || name.contains(':'));
    named && 2 * fitting >= rest.len()
}

fn fields_begin_with_name(bytes: &[u8], range: Range<usize>) -> bool {
    let named =
        |(number, value): &(u32, Payload)| *number == 1 && matches!(value, Payload::Len(_) | Payload::Cut(_));
    range.len() < 2 || fields(bytes, range).first().is_some_and(named)
}

fn text_at<'a>(bytes: &'a [u8], range: &Range<usize>) -> Option<&'a str> {
    let text = std::str::from_utf8(bytes.get(range.clone())?).ok()?;
    (!text.is_empty() && !text.chars().any(char::is_control)).then_some(text)
}

fn is_plane(name: &str) -> bool {
    name.starts_with("/host:") || name.starts_with("/device:") || name == "Task Environment"
}

fn is_op(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '>' | '.' | '-'))
}
