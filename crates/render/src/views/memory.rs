//! Memory: what was live at each allocator's peak, memory use over time, and whether it grows.

use serde_json::json;
use stepscope_analyze::memory::{Allocator, Live, Memory};

use crate::format::{bytes, duration_ms, percent, plural};
use crate::{Cell, Column, Format, Table};

/// Width of the small chart in text.
const CHART: usize = 48;
/// Number of allocators described below the table.
const DESCRIBED: usize = 4;
/// Steady growth below this share of the peak over the capture does not appear in the headline.
const WORTH_TELLING: f64 = 0.001;

/// Without addresses, nobody can tell which block is freed when.
const NO_ADDRESSES: &str = "What was live at the peak is unknown: the profiler recorded no addresses of blocks. Newer versions of \
                            PyTorch record them.";

/// The table.
pub fn table(memory: &Memory) -> Table {
    let mut table = Table::new(
        "memory",
        vec![
            Column::new("host", "host", Format::Text).hidden(),
            Column::new("allocator", "allocator", Format::Text),
            Column::new("op", "live at peak", Format::Name),
            Column::new("bytes", "size", Format::Bytes),
            Column::new("fraction", "share", Format::Percent),
            Column::new("blocks", "blocks", Format::Count),
            Column::new("shape", "shape", Format::Text).optional(),
            Column::new("data_type", "type", Format::Text).optional(),
            Column::new("region", "region", Format::Text).optional(),
            Column::new("requested_bytes", "requested", Format::Bytes).hidden(),
            Column::new("before_capture", "before the capture", Format::Text).hidden(),
        ],
    );
    table.top = Some(20);
    table.headline = Some(headline(memory));
    table.member("allocators", memory.allocators.iter().map(member).collect::<Vec<_>>());
    for allocator in &memory.allocators {
        push_allocator(&mut table, allocator);
    }
    for allocator in memory.allocators.iter().take(DESCRIBED) {
        describe(&mut table, allocator);
    }
    table
}

fn headline(memory: &Memory) -> String {
    let Some(first) = memory.allocators.first() else {
        return "No allocations were recorded; memory is unknown".to_owned();
    };
    let of = first.capacity.zip(first.pressure()).map_or(String::new(), |(capacity, pressure)| {
        format!(" of {} ({})", bytes(capacity as f64), percent(pressure))
    });
    let peak = format!("{} peaks at {}{of}", first.name, bytes(first.peak as f64));
    match memory.allocators.iter().find(|allocator| grows(allocator)) {
        Some(growing) => {
            let rate = growing.growth.map_or(0.0, |growth| growth.bytes_per_step);
            let which = if growing.name == first.name { "and it" } else { &growing.name };
            format!("{peak}, {which} grows by {} per step", bytes(rate))
        }
        None => peak,
    }
}

fn grows(allocator: &Allocator) -> bool {
    allocator.growth.is_some_and(|growth| {
        growth.grows && growth.bytes_per_step * growth.steps as f64 >= WORTH_TELLING * allocator.peak as f64
    })
}

fn push_allocator(table: &mut Table, allocator: &Allocator) {
    if allocator.before_capture > 0 {
        let older = Live {
            op: "allocated before the capture".to_owned(),
            shape: None,
            data_type: None,
            region: None,
            blocks: 0,
            bytes: allocator.before_capture,
            requested: None,
        };
        table.push(row(allocator, &older, true));
    }
    for live in &allocator.at_peak {
        table.push(row(allocator, live, false));
    }
}

fn row(allocator: &Allocator, live: &Live, older: bool) -> Vec<Cell> {
    let op = if live.op.is_empty() { "unknown" } else { &live.op };
    vec![
        allocator.host.as_str().into(),
        allocator.name.as_str().into(),
        op.into(),
        live.bytes.into(),
        (live.bytes as f64 / allocator.peak as f64).into(),
        if older { Cell::Null } else { live.blocks.into() },
        live.shape.clone().into(),
        live.data_type.clone().into(),
        live.region.clone().into(),
        live.requested.into(),
        older.into(),
    ]
}

fn member(allocator: &Allocator) -> serde_json::Value {
    let growth = allocator.growth.map(|growth| {
        json!({"bytes_per_step": growth.bytes_per_step, "rising_fraction": growth.rising, "steps": growth.steps,
               "grows": growth.grows})
    });
    let timeline: Vec<_> = allocator.timeline.iter().map(|(at, in_use)| json!([at.ms(), in_use])).collect();
    let steps: Vec<_> = allocator
        .steps
        .iter()
        .map(|step| {
            json!({"index": step.number, "allocations": step.allocations, "frees": step.frees,
                   "end_bytes": step.end, "peak_bytes": step.peak})
        })
        .collect();
    let leaks: Vec<_> = allocator
        .leaks
        .iter()
        .map(|leak| {
            json!({"op": leak.op, "shape": leak.shape, "blocks": leak.blocks, "bytes": leak.bytes,
                   "steps": leak.steps})
        })
        .collect();
    json!({
        "host": allocator.host, "name": allocator.name,
        "allocations": allocator.allocations, "frees": allocator.frees,
        "peak_bytes": allocator.peak, "peak_ms": allocator.peak_at.ms(), "peak_step": allocator.peak_step,
        "capacity_bytes": allocator.capacity, "reserved_bytes_at_peak": allocator.reserved_at_peak,
        "lifetime_peak_bytes": allocator.lifetime_peak,
        "fragmentation_at_peak": allocator.fragmentation_at_peak, "pressure": allocator.pressure(),
        "before_capture_bytes": allocator.before_capture,
        "growth": growth, "kept": leaks, "steps": steps, "timeline": timeline,
    })
}

fn describe(table: &mut Table, allocator: &Allocator) {
    let (taken, given) = (
        plural(allocator.allocations, "allocation", "allocations"),
        plural(allocator.frees, "free", "frees"),
    );
    let within = allocator.peak_step.map_or(String::new(), |step| format!(", in step {step}"));
    let fragmented = allocator
        .fragmentation_at_peak
        .map_or(String::new(), |share| format!(", {} of free memory fragmented at the peak", percent(share)));
    table.note(format!(
        "{}: {taken}, {given}; peak {} at {}{within}{fragmented}.",
        allocator.name,
        bytes(allocator.peak as f64),
        duration_ms(allocator.peak_at.ms()),
    ));
    if let Some(chart) = chart(allocator) {
        table.note(format!("  in use  {chart}"));
    }
    if allocator.peak > 0 && allocator.at_peak.is_empty() && allocator.before_capture == 0 {
        table.note(format!("  {NO_ADDRESSES}"));
    }
    if let Some(growth) = allocator.growth.filter(|growth| growth.grows) {
        let kept = allocator.leaks.first().map_or(String::new(), |leak| {
            let shape = leak.shape.as_ref().map_or(String::new(), |shape| format!(" {shape}"));
            format!(
                "; never freed: {} of {}{shape} from {}",
                plural(leak.blocks, "block", "blocks"),
                if leak.op.is_empty() { "an unknown op" } else { &leak.op },
                plural(leak.steps, "step", "steps"),
            )
        });
        table.note(format!(
            "  grows by {} per step, in {} of the steps{kept}.",
            bytes(growth.bytes_per_step),
            percent(growth.rising),
        ));
    }
}

/// Memory use over time as a small chart.
fn chart(allocator: &Allocator) -> Option<String> {
    const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let (first, last) = (allocator.timeline.first()?.0, allocator.timeline.last()?.0);
    let whole = (last - first).ps();
    if whole <= 0 || allocator.peak <= 0 {
        return None;
    }
    let mut most: Vec<Option<i64>> = vec![None; CHART];
    for &(at, in_use) in &allocator.timeline {
        let place = ((at - first).ps() as f64 / whole as f64 * (CHART - 1) as f64) as usize;
        let slot = &mut most[place.min(CHART - 1)];
        *slot = (*slot).max(Some(in_use));
    }
    let mut current = 0;
    let chart = most.into_iter().map(|level| {
        current = level.unwrap_or(current);
        let height = (current.max(0) as f64 / allocator.peak as f64 * 7.0).round() as usize;
        LEVELS[height.min(7)]
    });
    Some(chart.collect())
}
