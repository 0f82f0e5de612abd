//! What is kept from step to step, by line or op.

use stepscope_analyze::memory::{Allocator, Memory};

use super::member;
use crate::format::{bytes, plural};
use crate::table::{Cell, Column, Format, Table};

/// The table of what grows.
pub(super) fn table(memory: &Memory) -> Table {
    let mut table = Table::new(
        "memory-kept",
        vec![
            Column::new("host", "host", Format::Text).hidden(),
            Column::new("allocator", "allocator", Format::Text),
            Column::new("line", "kept from step to step", Format::Name),
            Column::new("bytes_per_step", "per step", Format::Bytes),
            Column::new("bytes", "size", Format::Bytes),
            Column::new("blocks", "blocks", Format::Count),
            Column::new("steps", "steps", Format::Count),
        ],
    );
    table.top = Some(20);
    table.headline = Some(headline(memory));
    table.member("allocators", memory.allocators.iter().map(member).collect::<Vec<_>>());
    for allocator in &memory.allocators {
        for leak in &allocator.leaks {
            let per_step = leak.per_step.or((leak.steps > 0).then(|| leak.bytes as f64 / leak.steps as f64));
            table.push([
                Cell::from(allocator.host.as_str()),
                allocator.name.as_str().into(),
                if leak.op.is_empty() { "unknown".into() } else { leak.op.as_str().into() },
                per_step.into(),
                leak.bytes.into(),
                leak.blocks.into(),
                leak.steps.into(),
            ]);
        }
    }
    table.note(
        "Kept: allocated in a step after warm-up and not freed for several steps. Memory that appears once, such as the \
         optimizer's state, does not count.",
    );
    table
}

fn headline(memory: &Memory) -> String {
    let grows = |allocator: &&Allocator| allocator.growth.is_some_and(|growth| growth.grows);
    if let Some((allocator, growth)) =
        memory.allocators.iter().find(grows).and_then(|allocator| Some((allocator, allocator.growth?)))
    {
        return format!(
            "{} grows by {} per step over {}",
            allocator.name,
            bytes(growth.bytes_per_step),
            plural(growth.steps as u64, "step", "steps")
        );
    }
    let known = memory.allocators.iter().any(|allocator| allocator.growth.is_some());
    if known { "No growth from step to step" } else { "Too few steps to tell whether memory grows" }
        .to_owned()
}
