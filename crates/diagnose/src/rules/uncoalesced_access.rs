//! Neighbouring threads access memory far apart, so that much of each transfer is wasted.
//!
//! # What it means
//! Memory moves in sectors of 32 bytes. If the threads of a warp access addresses far apart, most bytes of a sector go
//! unused.
//!
//! # How it is detected
//! With Nsight Compute: at least {EXCESS_SECTORS} of global memory's sectors are not needed, and memory limits the kernel
//! (it is busier than compute, or it is what warps wait for). Full requests of 16 bytes per thread look half wasted to the
//! counters and do not count. If sectors were not counted: the first cache reaches {LATENCY} of its peak, the kernel uses no
//! shared memory, and a load or store takes at least {PASSES} passes through this cache. Where the needed bytes alone keep
//! device memory at {STREAMING} of its peak, nothing is left to save. A promise never exceeds what
//! useful work leaves of the device's peaks.
//!
//! # How to fix it
//! Let neighbouring threads access neighbouring addresses: in CUDA, `threadIdx.x` along the contiguous dimension; in
//! Triton, the last dimension of the block of pointers. Change the layout, or go through shared memory. Then load 16 bytes
//! per thread.
//!
//! # How to check
//! `excess_sectors` drops: `stepscope kernels PATH --csv`.

use stepscope_analyze::work::counters::{Access, KernelCounters, Waste};
use stepscope_text::{decimal, share};

use super::shared::counters::{self, Estimate, Told};
use crate::facts::Facts;
use crate::finding::Finding;
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::{LATENCY, STREAMING};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "uncoalesced-access",
    about: About::Cause,
    view: "kernels",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("uncoalesced_access.rs"),
};

thresholds! {
    /// Contiguous lanes that are not aligned take five sectors instead of four, a fifth too many. More is a stride.
    EXCESS_SECTORS: Share = 0.25;
    /// Contiguous lanes need one pass, or four with 16 bytes each. A fourth more is neither.
    PASSES: Number = 5.0;
}

/// Waits that end when memory answers, or when it takes the next request.
const ON_MEMORY: [&str; 4] = ["long_scoreboard", "lg_throttle", "drain", "membar"];

fn check(facts: &Facts) -> Option<Finding> {
    let estimate = |kernel: &KernelCounters| {
        let excess = excess(kernel).filter(|excess| *excess >= EXCESS_SECTORS)?;
        // Near a peak of memory, what the useful sectors leave of it; else time falls at most as sectors do.
        let saturated = kernel.memory.is_some_and(|memory| memory >= LATENCY);
        let share = if saturated { 1.0 } else { excess };
        let waste = Waste::Sectors(excess);
        let streams =
            kernel.dram.zip(kernel.dram_useful).is_some_and(|(dram, useful)| dram * useful >= STREAMING);
        let bound = is_bound_by_memory(kernel) && !streams;
        bound.then_some(Estimate { share, waste, measured: false })
    };
    counters::finding(facts, &RULE, told, estimate).map(|finding| finding.sure(0.9))
}

/// The share of sectors that are not needed. Full requests of 16 bytes per lane are not excess: see
/// `Access::is_vectorised`. If sectors were not counted, all passes but one per instruction may go.
fn excess(kernel: &KernelCounters) -> Option<f64> {
    kernel.excess_sectors.or_else(|| repeated(kernel).map(|passes| 1.0 - 1.0 / passes))
}

/// How often an instruction passes through the first cache, if this keeps it busy.
fn repeated(kernel: &KernelCounters) -> Option<f64> {
    let busy = kernel.l1.is_some_and(|l1| l1 >= LATENCY);
    kernel.passes.filter(|passes| busy && kernel.excess_sectors.is_none() && *passes >= PASSES)
}

fn is_bound_by_memory(kernel: &KernelCounters) -> bool {
    let busier = kernel.memory.zip(kernel.compute).is_none_or(|(memory, compute)| memory >= compute);
    busier || kernel.stall.is_some_and(|(reason, _)| ON_MEMORY.contains(&reason))
}

fn told(kernel: &KernelCounters) -> Told {
    let mut evidence: Vec<String> = kernel
        .excess_sectors
        .map(|excess| format!("{} of the sectors that it moves are not needed.", share(excess)))
        .into_iter()
        .collect();
    evidence.extend(repeated(kernel).map(|passes| {
        format!(
            "A load or store takes {} or more passes through the L1 cache; neighbouring addresses need 1, or 4 with 16 \
             bytes per thread.",
            decimal(passes, 0)
        )
    }));
    let sides = [("load", &kernel.loads), ("store", &kernel.stores)];
    evidence.extend(sides.into_iter().filter_map(|(what, access)| accessed(what, access)));
    let advice = lines([
        "Let neighbouring threads access neighbouring addresses: in CUDA, `threadIdx.x` should run along the \
         dimension that is contiguous in memory; in Triton, the last dimension of the block of pointers.",
        "If the layout forbids it, load a contiguous tile into shared memory and read it from there in any order, or \
         keep the tensor in the other layout.",
        "Then load 16 bytes per thread (`float4`): fewer requests for the same bytes.",
    ]);
    Told { trouble: "Uncoalesced access: much of each memory transfer is wasted in", evidence, advice }
}

fn accessed(what: &str, access: &Access) -> Option<String> {
    let sectors = access.sectors_per_request?;
    let used = access.bytes_per_sector.map_or(String::new(), |bytes| {
        format!(", and uses {} of the 32 bytes per sector", decimal(bytes, 1))
    });
    Some(format!(
        "A {what} takes {} sectors (4 are enough for 4 bytes per thread){used}.",
        decimal(sectors, 1)
    ))
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::vocabulary::Framework;

    use super::*;
    use crate::rules::testing::{speaks, words};

    #[test]
    fn it_speaks() {
        speaks(&RULE, counters::sample(told));
    }

    #[test]
    fn passes_show_scattered_addresses_that_no_sector_counter_saw() {
        let column_per_thread = KernelCounters {
            compute: Some(0.12),
            memory: Some(0.97),
            l1: Some(0.99),
            l2: Some(0.02),
            dram: Some(0.005),
            passes: Some(8.25),
            ..KernelCounters::default()
        };
        assert!(excess(&column_per_thread).is_some_and(|excess| (excess - 0.879).abs() < 0.001));
        assert!(told(&column_per_thread).evidence[0].contains("8 or more passes"));
        let vectors = KernelCounters { passes: Some(4.2), ..column_per_thread.clone() };
        assert_eq!(excess(&vectors), None, "16 bytes per lane need four");
        let counted = KernelCounters { excess_sectors: Some(0.0), ..column_per_thread.clone() };
        assert_eq!(excess(&counted), Some(0.0), "counted sectors decide");
        let idle = KernelCounters { l1: Some(0.3), ..column_per_thread };
        assert_eq!(excess(&idle), None, "the cache is not what it waits for");
    }

    #[test]
    fn a_kernels_promise_says_what_bounds_it() {
        let text = words(&RULE, counters::sample(told), Framework::Unknown);
        assert!(
            text.summary.starts_with("Uncoalesced access:") && text.summary.contains("`gemm` and 1 more"),
            "{text:?}"
        );
        assert!(text.evidence.iter().any(|fact| fact.contains("at most 25 %")), "{text:?}");
        assert!(text.advice.iter().any(|advice| advice.contains("threadIdx.x")), "{text:?}");
    }
}
