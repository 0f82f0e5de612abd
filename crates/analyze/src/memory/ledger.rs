//! All blocks of one host, to answer what was live at any moment.

use stepscope_trace::Time;

use super::blocks::{self, Live};
use super::records::{self, Group};
use crate::context::Context;

/// The records of every allocator of one host, each with the one that frees its block.
#[derive(Debug, Default)]
pub struct Ledger {
    allocators: Vec<(Group, Vec<u32>)>,
}

impl Ledger {
    /// One pass over the tracks, then one over each allocator's records.
    pub fn of(context: &Context) -> Self {
        let groups = records::collect(context).into_iter();
        let paired = groups.map(|group| {
            let freed = blocks::pair(&group.records);
            (group, freed)
        });
        Ledger { allocators: paired.collect() }
    }

    /// The memory in use of an allocator at a moment, and the live blocks, largest first. Unknown before the
    /// first record. `context` belongs to the same trace.
    pub fn alive_at(&self, context: &Context, allocator: &str, at: Time) -> Option<(i64, Vec<Live>)> {
        let (group, freed) = self.allocators.iter().find(|(group, _)| group.name == allocator)?;
        let behind = group.records.partition_point(|record| record.time <= at);
        let last = behind.checked_sub(1)?;
        Some((group.records[last].in_use, blocks::alive(context, &group.records, freed, last)))
    }
}
