//! Two recordings beside each other: what grew, by line, and what fits.

use std::collections::BTreeMap;

use serde_json::json;
use stepscope_analyze::memory::fit::Fit;
use stepscope_analyze::memory::{Allocator, Memory};

use super::member;
use super::rows::{BEFORE, reserved_label};
use crate::format::{bytes, percent};
use crate::table::{Cell, Column, Format, Table};

/// Bytes and blocks per side.
type Sides = [(i64, u64); 2];

/// The table of what changed between two recordings, at the peak of each.
pub fn table(base: &Memory, new: &Memory) -> Table {
    let mut table = Table::new(
        "memory-change",
        vec![
            Column::new("allocator", "allocator", Format::Text),
            Column::new("line", "line", Format::Name),
            Column::new("change_bytes", "change", Format::Bytes),
            Column::new("base_bytes", "base", Format::Bytes),
            Column::new("new_bytes", "new", Format::Bytes),
            Column::new("base_blocks", "blocks", Format::Count),
            Column::new("new_blocks", "blocks new", Format::Count),
        ],
    );
    table.top = Some(20);
    let mut rows: BTreeMap<(String, String), Sides> = BTreeMap::new();
    for (memory, side) in [(base, 0), (new, 1)] {
        for allocator in &memory.allocators {
            for (name, bytes, blocks) in holders(allocator) {
                let row = &mut rows.entry((allocator.name.clone(), name)).or_default()[side];
                *row = (row.0.saturating_add(bytes), row.1 + blocks);
            }
        }
    }
    let mut rows: Vec<_> = rows.into_iter().collect();
    let change = |sides: &Sides| sides[1].0.saturating_sub(sides[0].0);
    rows.sort_by(|a, b| {
        change(&b.1).unsigned_abs().cmp(&change(&a.1).unsigned_abs()).then_with(|| a.0.cmp(&b.0))
    });
    for ((allocator, line), sides) in rows {
        let [(before, blocks_before), (after, blocks_after)] = sides;
        table.push([
            Cell::from(allocator),
            line.into(),
            change(&sides).into(),
            before.into(),
            after.into(),
            blocks_before.into(),
            blocks_after.into(),
        ]);
    }
    table.headline = Some(headline(base, new));
    table.member("base", base.allocators.iter().map(member).collect::<Vec<_>>());
    table.member("allocators", new.allocators.iter().map(member).collect::<Vec<_>>());
    table
}

/// Names, bytes and blocks of what an allocator held at its peak.
fn holders(allocator: &Allocator) -> Vec<(String, i64, u64)> {
    let mut rows: Vec<(String, i64, u64)> = allocator
        .at_peak
        .iter()
        .map(|live| {
            let op = Some(live.op.clone()).filter(|op| !op.is_empty());
            let role = || live.role.map(|role| role.key().to_owned());
            let name = live.line.clone().or(op).or_else(role).unwrap_or_else(|| "unknown".to_owned());
            (name, live.bytes, live.blocks)
        })
        .collect();
    if allocator.before_capture > 0 {
        rows.push((BEFORE.to_owned(), allocator.before_capture, 0));
    }
    if allocator.reserved_by_programs > 0 {
        rows.push((reserved_label(allocator.program.as_deref()), allocator.reserved_by_programs, 0));
    }
    rows
}

fn headline(base: &Memory, new: &Memory) -> String {
    let sum = |memory: &Memory| {
        memory.allocators.iter().map(|allocator| allocator.peak).fold(0, i64::saturating_add)
    };
    let (before, after) = (sum(base), sum(new));
    let word = match after.cmp(&before) {
        std::cmp::Ordering::Greater => "grew",
        std::cmp::Ordering::Less => "shrank",
        std::cmp::Ordering::Equal => return format!("The peak is the same: {}", bytes(after as f64)),
    };
    let by = bytes(after.abs_diff(before) as f64);
    format!("The peak {word} by {by}: {} → {}", bytes(before as f64), bytes(after as f64))
}

/// Adds what fits.
pub fn add_fit(table: &mut Table, fit: &Result<Fit, &'static str>) {
    let fit = match fit {
        Ok(fit) => fit,
        Err(why) => {
            table.note(format!("What fits is unknown: {why}."));
            table.member("fit", serde_json::Value::Null);
            return;
        }
    };
    let capacity = fit.capacity.map(|capacity| bytes(capacity as f64));
    let largest = match (fit.largest_batch, capacity) {
        (Some(batch), Some(capacity)) => format!(
            "The largest batch that fits in {} of {capacity} is {batch}",
            percent(stepscope_analyze::memory::fit::USABLE)
        ),
        _ => "Give the capacity to learn the largest batch that fits: `--fit 24GB`".to_owned(),
    };
    table.note(format!(
        "{}: {} are fixed, and each example takes {} ({} at batch {}, {} at batch {}). {largest}.",
        fit.allocator,
        bytes(fit.fixed),
        bytes(fit.per_example),
        bytes(fit.peaks[0] as f64),
        fit.batches[0],
        bytes(fit.peaks[1] as f64),
        fit.batches[1],
    ));
    table.member(
        "fit",
        json!({
            "allocator": fit.allocator, "fixed_bytes": fit.fixed, "bytes_per_example": fit.per_example,
            "batches": fit.batches, "peak_bytes": fit.peaks, "capacity_bytes": fit.capacity,
            "largest_batch": fit.largest_batch,
        }),
    );
}

/// Says how much more an allocator could hold, for one recording.
pub(crate) fn add_room(table: &mut Table, memory: &Memory, capacity: Option<u64>) {
    let Some(allocator) = memory.allocators.first() else { return };
    let Some(capacity) = capacity.or(allocator.capacity) else {
        table.note("What fits is unknown: the recording does not say how much memory there is. Give it: `--fit 24GB`.");
        return;
    };
    let left = i128::from(capacity) - i128::from(allocator.peak);
    let room = if left >= 0 { "left" } else { "missing" };
    table.note(format!(
        "{}: {} {room} of {} at the peak. The largest batch that fits needs two recordings with different batch sizes: \
         `stepscope memory SMALL LARGE --batch 16,32 --fit`.",
        allocator.name,
        bytes(left.unsigned_abs() as f64),
        bytes(capacity as f64),
    ));
}
