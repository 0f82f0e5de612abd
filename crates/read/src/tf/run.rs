//! RunMetadata: the recorded nodes of a run, device by device. Records are passed on one by one, because a loop
//! can produce millions of them.

use std::borrow::Cow;
use std::ops::Range;

use stepscope_tfgraph::{AllocatorUse, NodeRecord, OutputUse};

use super::message::{Damages, Walk};
use super::{Found, RunSummary, graph};

/// Reads RunMetadata; `visit` receives each record with its device.
pub(super) fn run(
    file: &[u8],
    damage: Damages,
    visit: &mut dyn FnMut(&str, &NodeRecord<'_>),
) -> Found<RunSummary> {
    let mut walk = Walk::new(file, damage);
    let mut summary = RunSummary::default();
    walk.message(0..file.len(), "RunMetadata", |walk, field| match field.number {
        1 => field.range().map(|range| step_stats(walk, range, &mut summary, visit)),
        2 | 5 => field.range().map(|_| ()),
        3 | 4 => field.range().map(|_| summary.graphs += 1),
        _ => None,
    });
    Found { value: summary, damage: walk.damage }
}

fn step_stats(
    walk: &mut Walk<'_>,
    range: Range<usize>,
    summary: &mut RunSummary,
    visit: &mut dyn FnMut(&str, &NodeRecord<'_>),
) {
    walk.message(range, "StepStats", |walk, field| match field.number {
        1 => field.range().map(|range| device(walk, range, summary, visit)),
        _ => None,
    });
}

fn device(
    walk: &mut Walk<'_>,
    range: Range<usize>,
    summary: &mut RunSummary,
    visit: &mut dyn FnMut(&str, &NodeRecord<'_>),
) {
    let mut name = Cow::Borrowed("");
    walk.message(range, "DeviceStepStats", |walk, field| match field.number {
        1 => field.range().map(|range| name = walk.text(range, "device")),
        2 => field.range().map(|range| {
            let record = record(walk, range);
            summary.records += 1;
            visit(&name, &record);
        }),
        3 => field.range().map(|_| ()),
        _ => None,
    });
    summary.devices.push(name.into_owned());
}

fn record<'a>(walk: &mut Walk<'a>, range: Range<usize>) -> NodeRecord<'a> {
    let mut record = NodeRecord::default();
    walk.message(range, "NodeExecStats", |walk, field| match field.number {
        1 => field.range().map(|range| record.name = walk.text(range, "node name")),
        2 => field.int().map(|value| record.start_micros = value),
        3 => field.int().map(|value| record.op_start_micros = value),
        4 => field.int().map(|value| record.op_end_micros = value),
        5 => field.int().map(|value| record.end_micros = value),
        6 => field.range().map(|range| record.memory.push(allocator(walk, range))),
        7 => field.range().map(|range| record.outputs.push(output(walk, range))),
        8 => field.range().map(|range| record.label = walk.text(range, "timeline label")),
        9 => field.int().map(|value| record.scheduled_micros = value),
        10 => field.int().map(|value| record.thread = value as u32),
        11 => field.range().map(|_| ()),
        12 => field.range().map(|range| memory_stats(walk, range, &mut record)),
        13 => field.int().map(|value| record.start_nanos = value),
        14 => field.int().map(|value| record.op_start_nanos = value),
        15 => field.int().map(|value| record.op_end_nanos = value),
        16 => field.int().map(|value| record.end_nanos = value),
        17 => field.int().map(|value| record.scheduled_nanos = value),
        _ => None,
    });
    record
}

fn allocator<'a>(walk: &mut Walk<'a>, range: Range<usize>) -> AllocatorUse<'a> {
    let mut used = AllocatorUse::default();
    walk.message(range, "AllocatorMemoryUsed", |walk, field| match field.number {
        1 => field.range().map(|range| used.allocator = walk.text(range, "allocator")),
        2 => field.int().map(|value| used.total_bytes = value),
        3 => field.int().map(|value| used.peak_bytes = value),
        4 => field.int().map(|value| used.live_bytes = value),
        5 => field.int().map(|value| used.in_use_bytes = value),
        6 => field.range().map(|range| used.changes.push(change(walk, range))),
        _ => None,
    });
    used
}

/// An AllocationRecord: when, and by how many bytes.
pub(super) fn change(walk: &mut Walk<'_>, range: Range<usize>) -> (i64, i64) {
    let mut change = (0, 0);
    walk.message(range, "AllocationRecord", |_, field| match field.number {
        1 => field.int().map(|value| change.0 = value),
        2 => field.int().map(|value| change.1 = value),
        _ => None,
    });
    change
}

fn memory_stats(walk: &mut Walk<'_>, range: Range<usize>, record: &mut NodeRecord<'_>) {
    record.has_memory_stats = true;
    let mut ids = Vec::new();
    walk.message(range, "MemoryStats", |walk, field| match field.number {
        1 => field.int().map(|value| record.temp_bytes = value),
        3 => field.int().map(|value| record.persistent_bytes = value),
        2 | 4 => field.int().map(|_| ()),
        5 | 6 => walk.ints(&field, &mut ids),
        _ => None,
    });
}

fn output<'a>(walk: &mut Walk<'a>, range: Range<usize>) -> OutputUse<'a> {
    let mut output = OutputUse::default();
    walk.message(range, "NodeOutput", |walk, field| match field.number {
        1 => field.int().map(|value| output.slot = value),
        3 => field.range().map(|range| description(walk, range, &mut output)),
        _ => None,
    });
    output
}

fn description<'a>(walk: &mut Walk<'a>, range: Range<usize>, output: &mut OutputUse<'a>) {
    walk.message(range, "TensorDescription", |walk, field| match field.number {
        1 => field.int().map(|value| output.data_type = value),
        2 => field.range().map(|range| {
            let shape = graph::shape(walk, range);
            output.shape = (!shape.unknown_rank).then_some(shape.dims);
        }),
        4 => {
            let (mut requested, mut allocated) = (0, 0);
            walk.message(field.range()?, "AllocationDescription", |walk, field| match field.number {
                1 => field.int().map(|value| requested = value),
                2 => field.int().map(|value| allocated = value),
                3 => field.range().map(|range| output.allocator = walk.text(range, "allocator")),
                4 | 5 => field.int().map(|_| ()),
                6 => field.int().map(|value| output.address = value as u64),
                _ => None,
            });
            output.bytes = Some((requested, allocated));
            Some(())
        }
        _ => None,
    });
}
