//! Arguments of an event: debug annotations → keys and values. Lists and objects become JSON text.

use std::ops::Range;

use stepscope_trace::{Datum, StrId, TraceBuilder};
use stepscope_wire::{Payload, walk};

use super::sequence::{Sequence, Table};

/// Levels of nested values that are written out.
const DEPTH: usize = 8;
/// Longest text of a nested value.
const LONGEST: usize = 1 << 20;

/// A value as it stands in the file.
enum Found {
    Number(Datum),
    Text(Range<usize>),
    Interned(u64),
    Json(String),
}

/// One annotation. `None` without a name.
pub(super) fn read(
    builder: &mut TraceBuilder,
    sequence: &Sequence,
    file: &[u8],
    range: Range<usize>,
) -> Option<(StrId, Datum)> {
    let (name, value) = parts(builder, sequence, file, range, 0);
    let datum = match value? {
        Found::Number(datum) => datum,
        Found::Text(range) => Datum::Str(builder.strings.intern_bytes(file.get(range).unwrap_or_default())),
        Found::Interned(number) => sequence.text(Table::Texts, number).map_or(Datum::Null, Datum::Str),
        Found::Json(text) => Datum::Json(builder.strings.intern(&text)),
    };
    Some((name?, datum))
}

fn parts(
    builder: &mut TraceBuilder,
    sequence: &Sequence,
    file: &[u8],
    range: Range<usize>,
    depth: usize,
) -> (Option<StrId>, Option<Found>) {
    let (mut name, mut value) = (None, None);
    let (mut entries, mut items) = (Vec::new(), Vec::new());
    walk(file, range, |field| match (field.number, field.value) {
        (1, Payload::Varint(number)) => name = sequence.text(Table::Keys, number),
        (10, Payload::Len(range)) => {
            name = Some(builder.strings.intern_bytes(file.get(range).unwrap_or_default()));
        }
        (2, Payload::Varint(flag)) => value = Some(Found::Number(Datum::Bool(flag != 0))),
        (3 | 7, Payload::Varint(number)) => value = Some(Found::Number(Datum::UInt(number))),
        (4, Payload::Varint(number)) => value = Some(Found::Number(Datum::Int(number as i64))),
        (5, Payload::Fixed64(bits)) => value = Some(Found::Number(Datum::Float(f64::from_bits(bits)))),
        (6, Payload::Len(range)) => value = Some(Found::Text(range)),
        (9, Payload::Len(range)) => value = Some(Found::Json(lossy(file, range))),
        (17, Payload::Varint(number)) => value = Some(Found::Interned(number)),
        (11, Payload::Len(range)) => entries.push(range),
        (12, Payload::Len(range)) => items.push(range),
        _ => {}
    });
    if depth < DEPTH && !(entries.is_empty() && items.is_empty()) {
        value = Some(Found::Json(nested(builder, sequence, file, &entries, &items, depth)));
    }
    (name, value)
}

fn nested(
    builder: &mut TraceBuilder,
    sequence: &Sequence,
    file: &[u8],
    entries: &[Range<usize>],
    items: &[Range<usize>],
    depth: usize,
) -> String {
    let is_list = entries.is_empty();
    let mut text = String::from(if is_list { "[" } else { "{" });
    for range in if is_list { items } else { entries } {
        if text.len() > LONGEST {
            break;
        }
        let (name, value) = parts(builder, sequence, file, range.clone(), depth + 1);
        if text.len() > 1 {
            text.push(',');
        }
        if !is_list {
            quote(name.map_or("", |name| builder.strings.get(name)), &mut text);
            text.push(':');
        }
        match value {
            Some(Found::Number(Datum::Int(number))) => text.push_str(&number.to_string()),
            Some(Found::Number(Datum::UInt(number))) => text.push_str(&number.to_string()),
            Some(Found::Number(Datum::Bool(flag))) => text.push_str(if flag { "true" } else { "false" }),
            Some(Found::Number(Datum::Float(number))) if number.is_finite() => {
                text.push_str(&number.to_string());
            }
            Some(Found::Text(range)) => quote(&lossy(file, range), &mut text),
            Some(Found::Interned(number)) => {
                quote(
                    sequence.text(Table::Texts, number).map_or("", |id| builder.strings.get(id)),
                    &mut text,
                );
            }
            Some(Found::Json(json)) => text.push_str(&json),
            Some(Found::Number(_)) | None => text.push_str("null"),
        }
    }
    text.push(if is_list { ']' } else { '}' });
    text
}

fn lossy(file: &[u8], range: Range<usize>) -> String {
    String::from_utf8_lossy(file.get(range).unwrap_or_default()).into_owned()
}

fn quote(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
}
