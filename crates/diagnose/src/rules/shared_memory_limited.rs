//! `shared-memory-limited`: shared memory's banks conflict, or a block takes so much of it that few fit.
//!
//! Needs Nsight Compute.

use stepscope_analyze::counters::KernelCounters;
use stepscope_analyze::kernels::Limiter;

use crate::facts::Facts;
use crate::finding::{Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    super::counters::finding(facts, FindingId::SharedMemoryLimited, |kernel| {
        let estimate = conflicts(kernel).into_iter().chain(few_blocks(kernel)).reduce(f64::max)?;
        super::counters::worthwhile(kernel, estimate).then_some(estimate)
    })
    .map(|finding| finding.sure(0.7))
}

/// Of the time that shared memory's path is busy, what conflicts take.
fn conflicts(kernel: &KernelCounters) -> Option<f64> {
    let share = kernel.bank_conflicts.filter(|share| *share >= thresholds::BANK_CONFLICTS)?;
    Some(share * kernel.shared_busy.or(kernel.l1).unwrap_or(1.0))
}

/// Shared memory keeps the device from holding enough warps, and they do not hide latency.
fn few_blocks(kernel: &KernelCounters) -> Option<f64> {
    let latency_bound = kernel.speed_of_light().is_none_or(|figure| figure < thresholds::LATENCY);
    let limited = kernel.limiter == Some(Limiter::SharedMemory) && latency_bound;
    let occupancy = kernel.theoretical.filter(|occupancy| *occupancy < 2.0 * thresholds::OCCUPANCY)?;
    limited.then_some(1.0 - occupancy)
}
