//! `memory-pressure`: an allocator is nearly full at its peak.
//!
//! The next larger batch or a longer sequence will not fit.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    facts.memory.iter().find_map(|memory| {
        let (peak_bytes, capacity_bytes) = (memory.peak_bytes?, memory.capacity_bytes?);
        (capacity_bytes > 0.0 && peak_bytes / capacity_bytes >= thresholds::PRESSURE).then(|| {
            let cause = Cause::Pressure { allocator: memory.allocator.clone(), peak_bytes, capacity_bytes };
            Finding::new(FindingId::MemoryPressure, Severity::Warning, cause, facts.framework())
                .about(memory.allocator.clone())
                .sure(0.8)
        })
    })
}
