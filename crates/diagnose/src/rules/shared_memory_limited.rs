//! `shared-memory-limited`: shared memory's banks conflict, or a block takes so much of it that few fit.
//!
//! Needs Nsight Compute.

use stepscope_analyze::counters::{KernelCounters, Waste};
use stepscope_analyze::kernels::Limiter;

use super::counters::Estimate;
use crate::facts::Facts;
use crate::finding::{Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    super::counters::finding(facts, FindingId::SharedMemoryLimited, |kernel| {
        let estimates = conflicts(kernel).into_iter().chain(few_blocks(kernel));
        let worthwhile = estimates.filter(|estimate| estimate.is_worthwhile(kernel));
        worthwhile.reduce(|a, b| if b.share > a.share { b } else { a })
    })
    .map(|finding| finding.sure(0.7))
}

/// Of the time that shared memory's path is busy, what conflicts take.
fn conflicts(kernel: &KernelCounters) -> Option<Estimate> {
    let share = kernel.bank_conflicts.filter(|share| *share >= thresholds::BANK_CONFLICTS)?;
    let busy = kernel.shared_busy_where_used();
    Some(Estimate {
        share: share * busy.unwrap_or(1.0),
        waste: Waste::Conflicts(share),
        measured: busy.is_some(),
    })
}

/// Shared memory keeps the device from holding enough warps, and they do not hide latency.
fn few_blocks(kernel: &KernelCounters) -> Option<Estimate> {
    let latency_bound = kernel.speed_of_light().is_none_or(|figure| figure < thresholds::LATENCY);
    let limited = kernel.limiter == Some(Limiter::SharedMemory) && latency_bound;
    let occupancy = kernel.theoretical.filter(|occupancy| *occupancy < 2.0 * thresholds::OCCUPANCY)?;
    limited.then_some(Estimate::of(1.0 - occupancy))
}
