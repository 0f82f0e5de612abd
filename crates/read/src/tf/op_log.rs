//! OpLogProto: FLOPs, types and call stacks of nodes.

use std::ops::Range;

use stepscope_tfgraph::{Frame, OpLog, OpLogEntry};

use super::Found;
use super::message::{Damages, Walk};

/// Reads an op log.
pub(super) fn op_log(file: &[u8], damage: Damages) -> Found<OpLog> {
    let mut walk = Walk::new(file, damage);
    let mut log = OpLog::default();
    walk.message(0..file.len(), "OpLogProto", |walk, field| match field.number {
        1 => field.range().map(|range| log.entries.push(entry(walk, range))),
        2 => field.range().map(|range| {
            let (id, text) = text_of_id(walk, range);
            log.strings.entry(id).or_insert(text);
        }),
        _ => None,
    });
    Found { value: log, damage: walk.damage }
}

/// An entry of the string table.
pub(super) fn text_of_id(walk: &mut Walk<'_>, range: Range<usize>) -> (i64, String) {
    let (id, value) = walk.entry(range, "text table");
    let range = value.and_then(|value| value.range()).unwrap_or_default();
    (id, walk.text(range, "text table").into_owned())
}

fn entry(walk: &mut Walk<'_>, range: Range<usize>) -> OpLogEntry {
    let mut entry = OpLogEntry::default();
    walk.message(range, "OpLogEntry", |walk, field| match field.number {
        1 => field.range().map(|range| entry.name = walk.text(range, "node name").into_owned()),
        2 => field.int().map(|value| entry.float_ops = value),
        3 => field.range().map(|range| entry.types.push(walk.text(range, "type").into_owned())),
        4 => field.range().map(|range| entry.stack = Some(stack(walk, range))),
        _ => None,
    });
    entry
}

/// A CodeDef.
pub(super) fn stack(walk: &mut Walk<'_>, range: Range<usize>) -> Vec<Frame> {
    let mut frames = Vec::new();
    walk.message(range, "CodeDef", |walk, field| match field.number {
        1 => field.range().map(|range| frames.push(frame(walk, range))),
        _ => None,
    });
    frames
}

fn frame(walk: &mut Walk<'_>, range: Range<usize>) -> Frame {
    let mut frame = Frame::default();
    walk.message(range, "Trace", |walk, field| match field.number {
        2 => field.int().map(|value| frame.line = value as i32),
        5 => field.int().map(|value| frame.function_line = value as i32),
        6 => field.int().map(|value| frame.file = value),
        7 => field.int().map(|value| frame.function = value),
        8 => field.int().map(|value| frame.text = value),
        // Texts that very old logs store inline.
        1 | 3 | 4 => field.range().map(|range| drop(walk.text(range, "frame"))),
        _ => None,
    });
    frame
}
