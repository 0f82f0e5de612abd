//! `uncoalesced-access`: neighbouring threads touch memory far apart, so that much of each transfer is wasted.
//!
//! Needs Nsight Compute. Says so only of kernels that memory limits. Whole requests of 16 bytes a lane look half
//! wasted to the counters and are not: see [`stepscope_analyze::counters::Access::is_vectorised`].

use stepscope_analyze::counters::{KernelCounters, Waste};

use super::counters::Estimate;
use crate::facts::Facts;
use crate::finding::{Finding, FindingId};
use crate::thresholds;

/// Waits that end when memory answers, or when it takes the next request.
const ON_MEMORY: [&str; 4] = ["long_scoreboard", "lg_throttle", "drain", "membar"];

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    super::counters::finding(facts, FindingId::UncoalescedAccess, |kernel| {
        let excess = kernel.excess_sectors.filter(|excess| *excess >= thresholds::EXCESS_SECTORS)?;
        // Near a peak of memory, what the useful sectors leave of it; else time falls at most as sectors do.
        let saturated = kernel.memory.is_some_and(|memory| memory >= thresholds::LATENCY);
        let share = if saturated { 1.0 } else { excess };
        is_bound_by_memory(kernel).then_some(Estimate {
            share,
            waste: Waste::Sectors(excess),
            measured: false,
        })
    })
    .map(|finding| finding.sure(0.9))
}

fn is_bound_by_memory(kernel: &KernelCounters) -> bool {
    let busier = kernel.memory.zip(kernel.compute).is_none_or(|(memory, compute)| memory >= compute);
    busier || kernel.stall.is_some_and(|(reason, _)| ON_MEMORY.contains(&reason))
}
