//! `memory-growth`: memory in use grows from step to step.
//!
//! Something keeps every step's tensors alive: a list of outputs, a loss that still holds its graph.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let memory = facts
        .memory
        .iter()
        .filter(|memory| memory.growth_per_step.is_some_and(|bytes| bytes > 0.0))
        .max_by(|a, b| a.growth_per_step.unwrap_or(0.0).total_cmp(&b.growth_per_step.unwrap_or(0.0)))?;
    let cause = Cause::Growth {
        allocator: memory.allocator.clone(),
        bytes_per_step: memory.growth_per_step?,
        kept: memory.kept.iter().take(3).cloned().collect(),
    };
    let finding = Finding::new(FindingId::MemoryGrowth, Severity::Warning, cause, facts.framework());
    Some(finding.about(memory.allocator.clone()).sure(0.8))
}
