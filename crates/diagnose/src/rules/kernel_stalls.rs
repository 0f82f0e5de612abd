//! Warps wait for one thing most of the time, and schedulers have no other warp to run.
//!
//! # What it means
//! The finding says what warps wait for: global memory, the queue of loads, shared memory, barriers, arithmetic units.
//!
//! # How it is detected
//! With Nsight Compute: one reason takes at least {STALL} of the time between two instructions of a warp, schedulers issue
//! in less than {ISSUING} of cycles, and a fix can save {NOTABLE} of the kernel's time. If few warps are resident,
//! `low-occupancy` reports that instead.
//!
//! # How to fix it
//! Depending on the reason: reuse tiles in shared memory or registers, load 16 bytes per thread, prefetch, balance work
//! between barriers, give each thread more independent work.
//!
//! # How to check
//! The reason's share drops: `stepscope kernels PATH`, column `waits for`.

use stepscope_analyze::work::counters::KernelCounters;
use stepscope_text::share;

use super::shared::counters::{self, Estimate, Told, waits};
use crate::facts::Facts;
use crate::finding::Finding;
use crate::rule::{About, Rule, doc_of, thresholds};

/// The rule.
pub static RULE: Rule = Rule {
    id: "kernel-stalls",
    about: About::Cause,
    view: "kernels",
    check,
    thresholds: THRESHOLDS,
    source: doc_of!("kernel_stalls.rs"),
};

thresholds! {
    /// Waiting for one thing must take this share of a warp's time to be worth naming (Nsight Compute's own limit).
    STALL: Share = 0.30;
    /// Schedulers that issue more often have enough warps that do not wait.
    ISSUING: Share = 0.80;
}

fn check(facts: &Facts) -> Option<Finding> {
    let estimate = |kernel: &KernelCounters| {
        let (_, share) = kernel.stall.filter(|(_, share)| *share >= STALL)?;
        let issuing = kernel.issue.filter(|issuing| *issuing < ISSUING)?;
        let empty = super::low_occupancy::is_empty(kernel);
        let estimate = Estimate::of(share.min(1.0 - issuing));
        (!empty && estimate.is_worthwhile(kernel)).then_some(estimate)
    };
    counters::finding(facts, &RULE, told, estimate).map(|finding| finding.sure(0.7))
}

fn told(kernel: &KernelCounters) -> Told {
    let mut evidence: Vec<String> = waits(kernel).into_iter().collect();
    evidence.extend(
        kernel.issue.map(|issue| format!("Schedulers issue an instruction in {} of cycles.", share(issue))),
    );
    Told {
        trouble: "Kernel stalls: warps wait for one thing most of the time in",
        evidence,
        advice: kernel.stall.map(|(reason, _)| meaning(reason).1.to_owned()).into_iter().collect(),
    }
}

/// What a stall means, and what helps.
pub(super) fn meaning(reason: &str) -> (&'static str, &'static str) {
    match reason {
        "long_scoreboard" => (
            "for data from global memory",
            "Request data earlier and less of it: reuse tiles in shared memory or registers, prefetch \
             (`cp.async`, `num_stages` in Triton), run more warps per multiprocessor.",
        ),
        "lg_throttle" => (
            "for the queue of global loads and stores",
            "Issue fewer global loads: reuse tiles in shared memory or registers (several results per thread), and load \
             16 bytes per thread (`float4`).",
        ),
        "short_scoreboard" | "mio_throttle" => (
            "for shared memory or special functions",
            "Access shared memory less: wider accesses, values kept in registers, fewer bank conflicts.",
        ),
        "barrier" => (
            "at barriers for other warps",
            "Balance the work between `__syncthreads()`, use smaller blocks, or synchronise warps only.",
        ),
        "math_pipe_throttle" => (
            "for the arithmetic units",
            "The units are saturated: use the matrix units, a lower precision or fewer operations.",
        ),
        "gmma" => ("for the matrix units", "Keep more products in flight: larger tiles, more stages."),
        "wait" | "dispatch_stall" => (
            "for fixed latencies between instructions",
            "Give each thread more independent work: unroll loops, compute several results per thread.",
        ),
        "drain" => {
            ("for stores to finish at its end", "Store wider, contiguous pieces, and let each block do more.")
        }
        "membar" => ("at memory fences", "Use fewer or narrower fences (`__threadfence_block()`)."),
        "tex_throttle" => ("for the texture queue", "Use fewer texture fetches, or plain loads."),
        "no_instruction" | "imc_miss" | "branch_resolving" => (
            "for their next instruction or constants",
            "Shorten the kernel's code or reduce branches; let the threads of a warp take the same path.",
        ),
        _ => ("for one reason", "See where it waits in the kernel's source view in Nsight Compute."),
    }
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
