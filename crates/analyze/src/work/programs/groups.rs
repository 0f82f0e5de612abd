//! Instructions summed up by what people think in: kinds of work, scopes of the model, lines of source, phases.

use std::collections::BTreeMap;

use super::{ProgramOp, Programs};

/// What to sum up by.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// The kind of work.
    Category,
    /// The user's scopes.
    Scope,
    /// The line of source.
    Source,
    /// Forward, backward, recomputation, optimizer.
    Phase,
    /// The program.
    Module,
}

impl GroupBy {
    /// The group of an instruction; empty if it says nothing.
    pub fn key(self, op: &ProgramOp) -> &str {
        match self {
            GroupBy::Category => &op.facts.category,
            GroupBy::Scope => &op.facts.scope,
            GroupBy::Source => &op.facts.source,
            GroupBy::Phase if op.facts.known => op.facts.phase.name(),
            GroupBy::Phase => "",
            GroupBy::Module => &op.program.name,
        }
    }
}

/// One group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupRow {
    /// Empty for instructions that say nothing.
    pub name: String,
    /// Instructions in it.
    pub ops: u64,
    /// Executions of all of them.
    pub executions: u64,
    /// Time in them, in milliseconds.
    pub time_ms: f64,
    /// Operations of those whose cost is known.
    pub flops: u64,
    /// Bytes of those whose cost is known.
    pub bytes: u64,
    /// Time in those whose cost is unknown, in milliseconds.
    pub unknown_ms: f64,
    /// Time above the least possible, of those for which that is known, in milliseconds.
    pub waste_ms: Option<f64>,
}

impl Programs {
    /// Groups of instructions, the longest first. What only surrounds others has time of its own, but no cost.
    pub fn grouped(&self, by: GroupBy) -> Vec<GroupRow> {
        let mut groups: BTreeMap<&str, GroupRow> = BTreeMap::new();
        for op in &self.ops {
            let row = groups.entry(by.key(op)).or_default();
            row.ops += 1;
            row.executions += op.totals.executions;
            let time = op.totals.own.ms();
            row.time_ms += time;
            match (op.flops(), op.bytes()) {
                (Some(flops), Some(bytes)) => {
                    row.flops = row.flops.saturating_add(flops);
                    row.bytes = row.bytes.saturating_add(bytes);
                }
                _ if op.facts.container => {}
                _ => row.unknown_ms += time,
            }
            if let Some(bound) = self.peaks.as_ref().and_then(|peaks| op.bound_time(peaks)) {
                row.waste_ms = Some(row.waste_ms.unwrap_or(0.0) + bound.waste_ms);
            }
        }
        let mut rows: Vec<GroupRow> =
            groups.into_iter().map(|(name, row)| GroupRow { name: name.to_owned(), ..row }).collect();
        rows.sort_by(|a, b| b.time_ms.total_cmp(&a.time_ms).then_with(|| a.name.cmp(&b.name)));
        rows
    }
}
