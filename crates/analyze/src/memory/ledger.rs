//! All blocks of one host, kept so that any moment can be asked about: what was alive then?

use stepscope_trace::Time;

use super::blocks::{self, Live};
use super::records::{self, Group};
use crate::context::Context;

/// The records of every allocator of one host, each with the one that gives its block back.
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

    /// What was in use of an allocator at a moment, and the blocks alive then, largest first. Before the first record
    /// nothing is known. `context` is that of the same trace.
    pub fn alive_at(&self, context: &Context, allocator: &str, at: Time) -> Option<(i64, Vec<Live>)> {
        let (group, freed) = self.allocators.iter().find(|(group, _)| group.name == allocator)?;
        let behind = group.records.partition_point(|record| record.time <= at);
        let last = behind.checked_sub(1)?;
        Some((group.records[last].in_use, blocks::alive(context, &group.records, freed, last)))
    }
}
