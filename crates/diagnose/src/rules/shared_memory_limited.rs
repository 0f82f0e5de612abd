//! Shared memory limits how many blocks run at once, or its banks conflict.
//!
//! # What it means
//! Bank conflicts repeat accesses. A block that takes much shared memory leaves room for few others.
//!
//! # How it is detected
//! With Nsight Compute: bank conflicts repeat at least {BANK_CONFLICTS} of shared memory's accesses; or shared memory
//! allows the fewest blocks, occupancy cannot reach twice {OCCUPANCY}, and no unit reaches {LATENCY} of its peak. The
//! finding fires only if a fix can save {NOTABLE} of the kernel's time.
//!
//! # How to fix it
//! Use smaller tiles or fewer stages. Against bank conflicts, pad (`tile[32][33]`) or swizzle. Use registers instead.
//!
//! # How to check
//! Occupancy rises and conflicts drop: `stepscope kernels PATH --csv`.

use stepscope_analyze::work::counters::{KernelCounters, Waste};
use stepscope_analyze::work::kernels::Limiter;
use stepscope_text::{bytes, share};

use super::shared::counters::{self, Estimate, Told};
use crate::facts::Facts;
use crate::finding::Finding;
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::{LATENCY, OCCUPANCY};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "shared-memory-limited",
    about: About::Cause,
    view: "kernels",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("shared_memory_limited.rs"),
};

thresholds! {
    /// Nsight Compute's own limit.
    BANK_CONFLICTS: Share = 0.10;
}

fn check(facts: &Facts) -> Option<Finding> {
    let estimate = |kernel: &KernelCounters| {
        let estimates = conflicts(kernel).into_iter().chain(few_blocks(kernel));
        let worthwhile = estimates.filter(|estimate| estimate.is_worthwhile(kernel));
        worthwhile.reduce(|a, b| if b.share > a.share { b } else { a })
    };
    counters::finding(facts, &RULE, told, estimate).map(|finding| finding.sure(0.7))
}

/// Of the time that shared memory's path is busy, what conflicts take.
fn conflicts(kernel: &KernelCounters) -> Option<Estimate> {
    let share = kernel.bank_conflicts.filter(|share| *share >= BANK_CONFLICTS)?;
    let busy = kernel.shared_busy_where_used();
    Some(Estimate {
        share: share * busy.unwrap_or(1.0),
        waste: Waste::Conflicts(share),
        measured: busy.is_some(),
    })
}

/// Shared memory keeps the device from holding enough warps, and they do not hide latency.
fn few_blocks(kernel: &KernelCounters) -> Option<Estimate> {
    let latency_bound = kernel.speed_of_light().is_none_or(|figure| figure < LATENCY);
    let limited = kernel.limiter == Some(Limiter::SharedMemory) && latency_bound;
    let occupancy = kernel.theoretical.filter(|occupancy| *occupancy < 2.0 * OCCUPANCY)?;
    limited.then_some(Estimate::of(1.0 - occupancy))
}

fn told(kernel: &KernelCounters) -> Told {
    let (mut evidence, mut advice) = (Vec::new(), Vec::new());
    if let Some(conflicts) = kernel.bank_conflicts.filter(|share| *share > 0.0) {
        evidence.push(format!("Bank conflicts repeat {} of shared memory's accesses.", share(conflicts)));
        advice.extend(lines([
            "Give the threads of a warp different banks: pad the tile (`__shared__ float tile[32][33]`) or swizzle its \
             index; in Triton, try another block shape or `num_warps`.",
        ]));
    }
    if kernel.limiter == Some(Limiter::SharedMemory) {
        let of = kernel
            .launch
            .shared_bytes
            .map_or(String::new(), |size| format!(" ({} per block)", bytes(size as f64)));
        let theoretical = kernel
            .theoretical
            .map_or(String::new(), |most| format!(": at most {} of the warp slots are in use", share(most)));
        evidence.push(format!("Shared memory{of} limits how many blocks are resident{theoretical}."));
        advice.extend(lines([
            "Use less shared memory per block: smaller tiles, 16-bit elements, or fewer stages (`num_stages` in Triton).",
        ]));
    }
    Told { trouble: "Shared memory limited: its banks or its size limit", evidence, advice }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, counters::sample(told));
    }
}
