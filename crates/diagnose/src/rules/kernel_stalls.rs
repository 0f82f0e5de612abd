//! Warps wait for one thing most of the time, and schedulers have no other warp to run.
//!
//! # What it means
//! The finding says what warps wait for: global memory, the queue of loads, shared memory, barriers, arithmetic units.
//!
//! # How it is detected
//! With Nsight Compute: one reason takes at least {STALL} of the time between two instructions of a warp, schedulers issue
//! in less than {ISSUING} of cycles, and a fix can save {NOTABLE} of the kernel's time. If few warps are resident,
//! `low-occupancy` reports that instead. A kernel that keeps device memory at {STREAMING} of its peak waits for what it
//! needs, and is not reported.
//!
//! Or load and store units accept instructions at {SATURATED} of their peak ({LATENCY} if warps wait for their queue), and
//! arithmetic is not half as busy: the kernel loads the same data repeatedly. Tiles in shared memory or registers
//! remove these loads, so that only arithmetic and device memory limit what a fix saves.
//!
//! # How to fix it
//! Depending on the reason: reuse tiles in shared memory or registers, load 16 bytes per thread, prefetch, balance work
//! between barriers, give each thread more independent work.
//!
//! # How to check
//! The reason's share drops: `stepscope kernels PATH`, column `waits for`.

use stepscope_analyze::work::counters::{KernelCounters, Waste};
use stepscope_text::share;

use super::shared::counters::{self, Estimate, Told, waits};
use crate::facts::Facts;
use crate::finding::Finding;
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::{LATENCY, STREAMING};

/// The rule.
pub static RULE: Rule = Rule {
    id: "kernel-stalls",
    about: About::Cause,
    view: "kernels",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("kernel_stalls.rs"),
};

thresholds! {
    /// Waiting for one thing must take this share of a warp's time to be worth naming (Nsight Compute's own limit).
    STALL: Share = 0.30;
    /// Schedulers that issue more often have enough warps that do not wait.
    ISSUING: Share = 0.80;
    /// No pipe gets much closer to its peak.
    SATURATED: Share = 0.80;
}

/// Waits for the queues in front of load and store units.
const QUEUES: [&str; 2] = ["lg_throttle", "mio_throttle"];

fn check(facts: &Facts) -> Option<Finding> {
    let estimate = |kernel: &KernelCounters| {
        let few_threads = super::low_occupancy::is_empty(kernel) || super::low_occupancy::is_sparse(kernel);
        let estimate = if is_bound_by_requests(kernel) {
            Estimate { share: 1.0, waste: Waste::Requests, measured: false }
        } else {
            stalled(kernel)?
        };
        (!few_threads && estimate.is_worthwhile(kernel)).then_some(estimate)
    };
    counters::finding(facts, &RULE, told, estimate).map(|finding| finding.sure(0.7))
}

fn stalled(kernel: &KernelCounters) -> Option<Estimate> {
    let (_, share) = kernel.stall.filter(|(_, share)| *share >= STALL)?;
    let issuing = kernel.issue.filter(|issuing| *issuing < ISSUING)?;
    let streams = kernel.dram.is_some_and(|dram| dram >= STREAMING);
    (!streams).then(|| Estimate::of(share.min(1.0 - issuing)))
}

/// Does the kernel mostly issue loads and stores, far more than its arithmetic needs?
fn is_bound_by_requests(kernel: &KernelCounters) -> bool {
    let queue = kernel.stall.is_some_and(|(reason, share)| QUEUES.contains(&reason) && share >= STALL);
    let enough = if queue { LATENCY } else { SATURATED };
    let busy = kernel.requests.or(kernel.l1.filter(|_| queue)).filter(|busy| *busy >= enough);
    busy.zip(kernel.arithmetic).is_some_and(|(busy, arithmetic)| arithmetic < busy / 2.0)
}

fn told(kernel: &KernelCounters) -> Told {
    let mut evidence: Vec<String> = waits(kernel).into_iter().collect();
    evidence.extend(
        kernel.issue.map(|issue| format!("Schedulers issue an instruction in {} of cycles.", share(issue))),
    );
    let by_requests = is_bound_by_requests(kernel);
    if let Some((requests, arithmetic)) = kernel.requests.zip(kernel.arithmetic).filter(|_| by_requests) {
        evidence.push(format!(
            "Load and store units work at {} of their peak, arithmetic at {}.",
            share(requests),
            share(arithmetic)
        ));
    }
    let reason = match kernel.stall {
        Some((reason, _)) if !by_requests || QUEUES.contains(&reason) => Some(reason),
        _ => by_requests.then_some("lg_throttle"),
    };
    Told {
        trouble: match kernel.stall {
            Some(_) => "Kernel stalls: warps wait for one thing most of the time in",
            None => "Kernel stalls: loads and stores take most of the time in",
        },
        evidence,
        advice: reason.map(|reason| meaning(reason).1.to_owned()).into_iter().collect(),
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

    /// A product of matrices without tiles: each result loads its row and its column again.
    fn untiled() -> KernelCounters {
        KernelCounters {
            compute: Some(0.83),
            memory: Some(0.83),
            l1: Some(0.84),
            l2: Some(0.10),
            dram: Some(0.09),
            requests: Some(0.83),
            arithmetic: Some(0.09),
            ..KernelCounters::default()
        }
    }

    #[test]
    fn repeated_loads_do_not_cap_what_tiles_save() {
        let kernel = untiled();
        assert!(is_bound_by_requests(&kernel), "also without stall reasons");
        let left = kernel.headroom(Waste::Requests).unwrap_or(0.0);
        assert!((left - 0.91).abs() < 1e-9, "{left}: arithmetic and device memory need 9 %");
        assert!(told(&kernel).advice[0].contains("tiles"));
        let waiting = KernelCounters { requests: Some(0.7), stall: Some(("lg_throttle", 0.7)), ..untiled() };
        assert!(is_bound_by_requests(&waiting));
        let tiled = KernelCounters { arithmetic: Some(0.6), ..untiled() };
        assert!(!is_bound_by_requests(&tiled), "arithmetic is busy too");
        let unknown = KernelCounters { arithmetic: None, ..untiled() };
        assert!(!is_bound_by_requests(&unknown), "nobody knows what would remain");
    }

    #[test]
    fn a_kernel_that_streams_at_the_speed_of_memory_waits_for_what_it_needs() {
        let copy = |dram| KernelCounters {
            dram: Some(dram),
            stall: Some(("long_scoreboard", 0.8)),
            issue: Some(0.15),
            ..KernelCounters::default()
        };
        assert!(stalled(&copy(0.88)).is_none());
        assert!(stalled(&copy(0.5)).is_some());
    }
}
