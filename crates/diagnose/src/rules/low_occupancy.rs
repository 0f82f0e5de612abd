//! Kernels that take much of the time leave most of the device's threads empty.
//!
//! # What it means
//! Too few warps are resident to hide the latency of memory and instructions. Without counters the kernels may still be
//! fast, so the finding is then a remark without a promise.
//!
//! # How it is detected
//! With Nsight Compute: few warps are resident (achieved occupancy, times the share of multiprocessors that have a block
//! at all, is below {OCCUPANCY}), and no unit reaches {LATENCY} of its peak.
//!
//! Otherwise: kernels whose occupancy, by launch configuration and device properties, is below {OCCUPANCY} take at least
//! {KERNEL_SHARE} of kernel time.
//!
//! # How to fix it
//! Use larger batches or fused ops. In your own kernels, use fewer registers or less shared memory per block, or other
//! block sizes.
//!
//! # How to check
//! `stepscope kernels PATH` shows a higher occupancy.

use stepscope_analyze::work::counters::KernelCounters;
use stepscope_analyze::work::kernels::Limiter;
use stepscope_text::{quoted, share};

use super::shared::counters::{self, Estimate, Told, small_grid};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Rule, doc_of};
use crate::thresholds::{KERNEL_SHARE, LATENCY, OCCUPANCY};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "low-occupancy",
    about: About::Cause,
    view: "kernels",
    check,
    thresholds: &[],
    source: doc_of!("low_occupancy.rs"),
};

fn check(facts: &Facts) -> Option<Finding> {
    measured(facts).or_else(|| possible(facts))
}

/// Do few warps, or blocks for only some multiprocessors, leave the device waiting?
pub(super) fn is_empty(kernel: &KernelCounters) -> bool {
    let latency_bound = kernel.speed_of_light().is_some_and(|figure| figure < LATENCY);
    latency_bound && kernel.device_occupancy().is_some_and(|occupancy| occupancy < OCCUPANCY)
}

fn measured(facts: &Facts) -> Option<Finding> {
    let estimate = |kernel: &KernelCounters| {
        let occupancy = kernel.device_occupancy().filter(|_| is_empty(kernel))?;
        Some(Estimate::of(1.0 - occupancy))
    };
    counters::finding(facts, &RULE, told, estimate).map(|finding| finding.sure(0.6))
}

fn possible(facts: &Facts) -> Option<Finding> {
    let (share, kernel, occupancy, limiter) = facts.device.as_ref()?.low_occupancy.clone()?;
    (share >= KERNEL_SHARE).then(|| {
        let cause = Occupancy { kernel: kernel.clone(), occupancy, limiter, share };
        Finding::new(&RULE, Severity::Info, cause, facts.framework()).about(kernel).sure(0.5)
    })
}

/// Kernels that leave the device empty, by their launch configuration.
#[derive(Clone, Debug)]
pub struct Occupancy {
    /// The kernel that costs most.
    pub kernel: String,
    /// Its occupancy, 0 to 1.
    pub occupancy: f64,
    /// What limits it.
    pub limiter: Option<String>,
    /// The share of kernel time of all such kernels.
    pub share: f64,
}

impl Cause for Occupancy {
    fn words(&self, _: &Finding) -> Words {
        let limited = self
            .limiter
            .as_deref()
            .map_or(String::new(), |limiter| format!(", limited by {}", quoted(limiter)));
        Words {
            summary: format!(
                "Low occupancy: kernels with {} of kernel time leave most of the device's threads empty.",
                share(self.share)
            ),
            evidence: vec![format!(
                "{} reaches at most {}{limited}.",
                quoted(&self.kernel),
                share(self.occupancy)
            )],
            advice: lines([
                "Give such kernels more to do at once: a larger batch, or fused ops.",
                "In your own kernels, use fewer registers or less shared memory per block, or other block sizes; \
                 `stepscope kernels PATH` shows the limits.",
            ]),
        }
    }
}

/// What counters show of one kernel.
fn told(kernel: &KernelCounters) -> Told {
    let mut evidence = Vec::new();
    if let Some(occupancy) = kernel.device_occupancy() {
        evidence.push(format!("{} of the device's warp slots are in use.", share(occupancy)));
    }
    let mut advice = Vec::new();
    if let Some(fact) = small_grid(kernel) {
        evidence.push(fact);
        advice.extend(lines([
            "Create more blocks: smaller tiles, a split along the reduction (split-K), or a larger batch.",
        ]));
    }
    let limited = kernel.limiter.zip(kernel.theoretical);
    if let Some((limiter, most)) = limited.filter(|(limiter, _)| *limiter != Limiter::Warps) {
        evidence.push(format!("{} at most {}.", limit(limiter), share(most)));
        advice.push(fewer(limiter).to_owned());
    }
    if advice.is_empty() {
        advice.extend(lines(["Give each launch more to do at once: a larger batch, or fused ops."]));
    }
    Told { trouble: "Low occupancy: too few resident threads to hide latency in", evidence, advice }
}

fn limit(limiter: Limiter) -> &'static str {
    match limiter {
        Limiter::Warps => "Warp slots allow",
        Limiter::Blocks => "Block slots (the blocks are small) allow",
        Limiter::Registers => "Registers allow",
        Limiter::SharedMemory => "Shared memory per block allows",
    }
}

fn fewer(limiter: Limiter) -> &'static str {
    match limiter {
        Limiter::Warps | Limiter::Blocks => "Use blocks of 128 threads or more (`num_warps=4` in Triton).",
        Limiter::Registers => {
            "Use fewer registers per thread: `__launch_bounds__`, smaller tiles per thread; in Triton more `num_warps`."
        }
        Limiter::SharedMemory => "Use less shared memory per block: smaller tiles or fewer stages.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, counters::sample(told));
        let (kernel, limiter) = ("attn".into(), Some("registers".into()));
        speaks(&RULE, Occupancy { kernel, occupancy: 0.12, limiter, share: 0.4 });
    }
}
