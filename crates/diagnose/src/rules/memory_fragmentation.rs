//! `memory-fragmentation`: much of an allocator's free memory is in pieces too small for large requests, while
//! it is under pressure.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

/// Fragments matter only where memory is short.
const SHORT: f64 = 0.70;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    facts.memory.iter().find_map(|memory| {
        let (peak, capacity, share) = (memory.peak_bytes?, memory.capacity_bytes?, memory.fragmentation?);
        (capacity > 0.0 && peak / capacity >= SHORT && share >= thresholds::FRAGMENTATION).then(|| {
            let cause = Cause::Fragmentation { allocator: memory.allocator.clone(), share };
            Finding::new(FindingId::MemoryFragmentation, Severity::Warning, cause, facts.framework())
                .about(memory.allocator.clone())
                .sure(0.7)
        })
    })
}
