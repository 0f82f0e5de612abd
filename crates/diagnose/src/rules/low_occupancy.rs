//! `low-occupancy`: kernels that hold much of the time leave most of the device's threads empty.
//!
//! Counters show how many warps were resident, and whether the kernel is bound by latency that more of them would
//! hide. Without counters, occupancy from the launch configuration is an upper bound; a kernel may be fast all the
//! same, so it is a remark without a promise then.

use stepscope_analyze::counters::KernelCounters;

use super::counters::Estimate;
use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    measured(facts).or_else(|| possible(facts))
}

/// Do few warps, or blocks for only some multiprocessors, leave the device waiting?
pub(super) fn is_empty(kernel: &KernelCounters) -> bool {
    let latency_bound = kernel.speed_of_light().is_some_and(|figure| figure < thresholds::LATENCY);
    latency_bound && kernel.device_occupancy().is_some_and(|occupancy| occupancy < thresholds::OCCUPANCY)
}

fn measured(facts: &Facts) -> Option<Finding> {
    super::counters::finding(facts, FindingId::LowOccupancy, |kernel| {
        let occupancy = kernel.device_occupancy().filter(|_| is_empty(kernel))?;
        Some(Estimate::of(1.0 - occupancy))
    })
    .map(|finding| finding.sure(0.6))
}

fn possible(facts: &Facts) -> Option<Finding> {
    let (share, kernel, occupancy, limiter) = facts.device.as_ref()?.low_occupancy.clone()?;
    (share >= thresholds::KERNEL_SHARE).then(|| {
        let cause = Cause::Occupancy { kernel: kernel.clone(), occupancy, limiter, share };
        Finding::new(FindingId::LowOccupancy, Severity::Info, cause, facts.framework())
            .about(kernel)
            .sure(0.5)
    })
}
