//! Recognises an XSpace. Protobuf has no magic number, so the head is parsed and everything in it must match:
//! strings must be text, and the first plane must have a name and look like a plane.

use std::ops::Range;

use super::schema::{entry, line, plane, space, stat};
use stepscope_wire::{Cursor, Payload, walk};

/// Prefixes of plane names that no other format has in this place.
const SURE_NAMES: &[&str] = &["/host:", "/device:"];

/// Whether a file that starts with `head` may be an XSpace. It need not be intact.
pub(super) fn recognises(head: &[u8]) -> bool {
    let mut cursor = Cursor::new(head, 0..head.len());
    let mut texts = 0;
    loop {
        match cursor.field() {
            Ok(Some(field)) => match (field.number, field.value) {
                (space::PLANES, Payload::Len(range)) if range.is_empty() => {}
                (space::PLANES, Payload::Len(range) | Payload::Cut(range)) => return is_plane(head, range),
                (space::HOSTNAMES, Payload::Len(range)) if is_text(&head[range.clone()]) => {
                    texts += range.len();
                }
                (space::ERRORS | space::WARNINGS, Payload::Len(range))
                    if is_message(&head[range.clone()]) =>
                {
                    texts += range.len();
                }
                _ => return false,
            },
            Ok(None) => return texts > 0,
            Err(_) => return false,
        }
    }
}

/// Whether it has a plane's name, followed by the content of a plane.
fn is_plane(head: &[u8], range: Range<usize>) -> bool {
    let cut = range.end == head.len();
    let (mut named, mut sure, mut fits) = (false, false, true);
    let ended = walk(head, range, |field| {
        if sure || !fits {
            return;
        }
        fits = match (field.number, field.value) {
            (plane::ID, Payload::Varint(_)) => true,
            (plane::NAME, Payload::Len(range)) => {
                let name = &head[range];
                named = !name.is_empty() && is_text(name);
                sure = SURE_NAMES.iter().any(|sure| name.starts_with(sure.as_bytes()));
                named
            }
            (plane::LINES, Payload::Len(range) | Payload::Cut(range)) => is_line(head, range),
            (plane::EVENT_METADATA | plane::STAT_METADATA, Payload::Len(range)) => is_entry(head, range),
            (plane::STATS, Payload::Len(range)) => is_stat(head, range),
            (plane::EVENT_METADATA..=plane::STATS, Payload::Cut(_)) => true,
            _ => false,
        };
    });
    sure || (named && fits && (ended.is_none() || cut))
}

fn is_line(head: &[u8], range: Range<usize>) -> bool {
    all_fields(head, range, |number, value| match (number, value) {
        (line::ID | line::TIMESTAMP_NS | line::DURATION_PS | line::DISPLAY_ID, Payload::Varint(_)) => true,
        (line::NAME | line::DISPLAY_NAME, Payload::Len(range)) => is_text(&head[range.clone()]),
        (line::EVENTS, Payload::Len(_)) => true,
        _ => false,
    })
}

fn is_entry(head: &[u8], range: Range<usize>) -> bool {
    all_fields(head, range, |number, value| {
        matches!((number, value), (entry::KEY, Payload::Varint(_)) | (entry::VALUE, Payload::Len(_)))
    })
}

fn is_stat(head: &[u8], range: Range<usize>) -> bool {
    all_fields(head, range, |number, value| match value {
        Payload::Varint(_) => matches!(number, stat::METADATA_ID | stat::UINT64 | stat::INT64 | stat::REF),
        Payload::Fixed64(_) => number == stat::DOUBLE,
        Payload::Len(_) => matches!(number, stat::STR | stat::BYTES),
        _ => false,
    })
}

/// Whether all fields match, as far as the head goes.
fn all_fields(head: &[u8], range: Range<usize>, fits: impl Fn(u32, &Payload) -> bool) -> bool {
    let at_end = range.end == head.len();
    let mut all = true;
    let ended = walk(head, range, |field| {
        all &= matches!(field.value, Payload::Cut(_)) || fits(field.number, &field.value);
    });
    all && (at_end || ended.is_none())
}

/// Whether it is UTF-8 without control characters.
fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok_and(|text| !text.chars().any(char::is_control))
}

/// Whether it is text of one or more lines.
fn is_message(bytes: &[u8]) -> bool {
    bytes.split(|byte| matches!(byte, b'\n' | b'\r' | b'\t')).all(is_text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiles_are_recognised_whole_cut_and_without_planes() {
        assert!(recognises(b"\x0a\x0b\x12\x09/host:CPU"));
        assert!(recognises(b"\x0a\xff\x7f\x08\x02\x12\x0d/device:TPU:0\x1a"), "cut in the first line");
        assert!(recognises(b"\x0a\x08\x12\x06Custom\x22\x02vm"));
        assert!(recognises(b"\x0a\x00\x0a\x08\x12\x06Custom"), "an empty plane before it");
        assert!(recognises(b"\x12\x0btwo\nlines..\x22\x02vm"));
    }

    #[test]
    fn other_protobufs_are_not() {
        // A graph's node: field 1 is its name. Run metadata: field 1 is a message. A map of messages.
        assert!(!recognises(b"\x0a\x0b\x0a\x01x\x12\x06MatMul"));
        assert!(!recognises(b"\x0a\x08\x0a\x06\x0a\x04/job"));
        assert!(!recognises(b"\x0a\x08\x08\x69\x12\x04\x0a\x02ab"));
        // Tools' results beside a profile: nested messages where an XSpace has texts.
        assert!(!recognises(b"\x12\x00\x1a\x00\x2a\x00"));
        assert!(!recognises(b"\x22\x06\x0a\x04\x08\x01\x12\x00"));
        // A plane that goes on with what no plane has.
        assert!(!recognises(b"\x0a\x0a\x12\x06Custom\x38\x00"));
        assert!(!recognises(b"\x0a\x0c\x12\x06Custom\x1a\x02\x2a\x00"));
        assert!(!recognises(b"") && !recognises(b"\x0a") && !recognises(b"\n\nsome text, two lines\n"));
    }
}
