//! Kernels that take much of the time leave most of the device's threads empty.
//!
//! # What it means
//! Too few threads are at work to use the device, or to hide the latency of memory and instructions.
//!
//! # How it is detected
//! With Nsight Compute: few warps are resident (achieved occupancy, times the share of multiprocessors that have a block
//! at all, is below {OCCUPANCY}), and no unit reaches {LATENCY} of its peak. Or, by the launch configuration alone, blocks
//! leave lanes of their warps idle: blocks of one thread, or more blocks than multiprocessors that fill at most
//! {SPARSE} of their lanes.
//!
//! In a timeline: for at least {NOTABLE} of the step or {KERNEL_SHARE} of kernel time, the kernels that run at the same
//! time together occupy less than {NEARLY_EMPTY} of the device's threads, by their grids and blocks. A kernel of one block
//! is an example. Kernels of {SMALL_KERNEL} or less do not count: more threads would not make them shorter. A fix saves at
//! most the part of this time that the empty threads could take over. If `serial-streams` fires, it
//! says what to do about small grids.
//!
//! Otherwise: kernels whose occupancy, by launch configuration and device properties, is below {OCCUPANCY} take at least
//! {KERNEL_SHARE} of kernel time. This is a remark without a promise.
//!
//! # How to fix it
//! Use larger batches or fused ops. In your own kernels, start more threads (one per element instead of a loop in one
//! thread), use fewer registers or less shared memory per block, or other block sizes.
//!
//! # How to check
//! `stepscope kernels PATH` shows a higher occupancy.

use stepscope_analyze::Category;
use stepscope_analyze::devices::bottleneck::EmptyKernel;
use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::counters::{KernelCounters, Waste};
use stepscope_analyze::work::kernels::Limiter;
use stepscope_text::{plural, quoted, share, short};

use super::serial_streams;
use super::shared::counters::{self, Estimate, Told, small_grid};
use super::shared::{of_step, severity};
use super::unified_memory_faults;
use crate::facts::{DeviceWork, Facts, LowOccupancy};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::{KERNEL_SHARE, LATENCY, NOTABLE, OCCUPANCY};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "low-occupancy",
    about: About::Cause,
    view: "kernels",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("low_occupancy.rs"),
};

thresholds! {
    /// Of the device's threads. One block of 128 threads per multiprocessor, as persistent kernels have, is more.
    NEARLY_EMPTY: Share = stepscope_analyze::devices::bottleneck::NEARLY_EMPTY;
    /// Blocks of half a warp or less do the work of half as many warps.
    SPARSE: Share = 0.50;
}

fn check(facts: &Facts) -> Option<Finding> {
    // Small grids that streams could run side by side are a finding of its own.
    let by_grids = || nearly_empty(facts).or_else(|| possible(facts));
    measured(facts).or_else(|| Some(by_grids()?.yielding_to(&serial_streams::RULE)))
}

/// Do kernels run that leave nearly all of the device empty?
fn nearly_empty(facts: &Facts) -> Option<Finding> {
    let detail = facts.detail.as_ref()?;
    let fill = &detail.fill;
    let ms = detail.per_step(fill.nearly_empty).min(facts.ms(Category::Compute));
    let (step, kernels) = (of_step(facts, ms), fill.nearly_empty.fraction_of(fill.kernels));
    if step < NOTABLE && kernels < KERNEL_SHARE {
        return None;
    }
    let cause = Empty { kernel: fill.kernel.clone()?, filled: fill.filled, ms, share: kernels };
    let subject = cause.kernel.name.clone();
    let finding = Finding::new(&RULE, severity(step), cause, facts.framework()).about(subject).sure(0.75);
    Some(match step >= NOTABLE {
        true => finding.owning(vec![(Category::Compute, ms)], Some(1.0 - fill.filled)),
        false => finding,
    })
}

/// Do few warps, or blocks for only some multiprocessors, leave the device waiting?
pub(super) fn is_empty(kernel: &KernelCounters) -> bool {
    let latency_bound = kernel.speed_of_light().is_some_and(|figure| figure < LATENCY);
    latency_bound && kernel.device_occupancy().is_some_and(|occupancy| occupancy < OCCUPANCY)
}

/// Do blocks leave most lanes of their warps without a thread? In a grid of few blocks this is hardly lost time, except
/// where one thread does all the work of a block.
pub(super) fn is_sparse(kernel: &KernelCounters) -> bool {
    let one_thread = kernel.launch.threads() == Some(1);
    let many_blocks = kernel.blocks.zip(kernel.multiprocessors).is_some_and(|(blocks, count)| blocks > count);
    one_thread || (many_blocks && kernel.lanes().is_some_and(|lanes| lanes <= SPARSE))
}

fn measured(facts: &Facts) -> Option<Finding> {
    let estimate = |kernel: &KernelCounters| {
        if let Some(lanes) = kernel.lanes().filter(|_| is_sparse(kernel)) {
            let idle = 1.0 - lanes;
            return Some(Estimate { share: idle, waste: Waste::Lanes(idle), measured: true });
        }
        let occupancy = kernel.device_occupancy().filter(|_| is_empty(kernel))?;
        Some(Estimate::of(1.0 - occupancy))
    };
    counters::finding(facts, &RULE, told, estimate).map(|finding| finding.sure(0.6))
}

fn possible(facts: &Facts) -> Option<Finding> {
    let low = facts.get::<Option<DeviceWork>>().as_ref().as_ref()?.low_occupancy.clone()?;
    (low.share >= KERNEL_SHARE).then(|| {
        let kernel = low.kernel.clone();
        let finding = Finding::new(&RULE, Severity::Info, low, facts.framework()).about(kernel).sure(0.5);
        // Kernels that wait for pages are long for another reason.
        finding.yielding_to(&unified_memory_faults::RULE)
    })
}

/// Kernels that leave nearly all of the device empty.
#[derive(Clone, Debug)]
pub struct Empty {
    /// The kernel that takes most of the time.
    pub kernel: EmptyKernel,
    /// The mean share of the device's threads that are occupied meanwhile, 0 to 1.
    pub filled: f64,
    /// Milliseconds per step.
    pub ms: f64,
    /// The share of the time in which kernels run.
    pub share: f64,
}

impl Cause for Empty {
    fn words(&self, finding: &Finding) -> Words {
        let EmptyKernel { name, blocks, threads, multiprocessors, .. } = &self.kernel;
        Words {
            summary: format!(
                "Low occupancy: the device is nearly empty for {}, mostly in {}.",
                if finding.claims.is_empty() {
                    format!("{} of the kernel time", share(self.share))
                } else {
                    finding.owned(self.ms)
                },
                quoted(name)
            ),
            evidence: vec![
                format!(
                    "{} runs {} on {}.",
                    quoted(name),
                    grid(*blocks, *threads),
                    plural(u64::from(*multiprocessors), "multiprocessor", "multiprocessors")
                ),
                format!(
                    "During {} of the kernel time, all kernels together occupy at most {} of the device's threads.",
                    share(self.share),
                    few(self.filled)
                ),
            ],
            advice: more_threads(finding.framework, *multiprocessors),
        }
    }
}

/// `1 block of 1 thread`.
fn grid(blocks: u64, threads: u32) -> String {
    format!("{} of {}", plural(blocks, "block", "blocks"), plural(u64::from(threads), "thread", "threads"))
}

/// A share that may be far below one percent.
fn few(part: f64) -> String {
    if part < 0.001 { "0.1 %".to_owned() } else { format!("{} %", short(part * 100.0)) }
}

fn more_threads(framework: Framework, multiprocessors: u32) -> Vec<String> {
    let many = plural(u64::from(multiprocessors), "block", "blocks");
    match framework {
        Framework::Unknown => vec![
            format!(
                "Spread the work over many threads: at least {many} of 128 threads or more, for example one thread per \
                 element in a grid-stride loop."
            ),
            "If the work cannot be split, run several such kernels at the same time on different streams, or do it on the \
             host."
                .to_owned(),
        ],
        _ => vec![
            format!(
                "Give the op that launches it more to do at once: a larger batch, or several small problems in one call. \
                 The device needs at least {many}."
            ),
            "`stepscope kernels PATH` names the op. Sequential ops (scans, loops over time, sorts of one row) are often \
             faster in another formulation."
                .to_owned(),
        ],
    }
}

impl Cause for LowOccupancy {
    fn words(&self, _: &Finding) -> Words {
        let limited = match (&self.limiter, self.grid) {
            (Some(limiter), _) => format!(", limited by {}", quoted(limiter)),
            (None, Some((blocks, threads))) => format!(", with {}", grid(blocks, threads)),
            (None, None) => String::new(),
        };
        Words {
            summary: format!(
                "Low occupancy: kernels with {} of kernel time leave most of the device's threads empty.",
                share(self.share)
            ),
            evidence: vec![format!(
                "{} occupies at most {} of the device's threads{limited}.",
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
    let (mut evidence, mut advice) = (Vec::new(), Vec::new());
    let sparse = kernel.launch.threads().filter(|_| is_sparse(kernel));
    if let Some((threads, lanes)) = sparse.zip(kernel.lanes()) {
        let blocks = plural(u64::from(threads), "thread", "threads");
        evidence
            .push(format!("Its blocks of {blocks} leave {} of their warps' lanes idle.", share(1.0 - lanes)));
        advice.push(
            "Start blocks of 128 threads or more, with one element per thread: a warp runs 32 threads at once."
                .to_owned(),
        );
    }
    if let Some(occupancy) = kernel.device_occupancy() {
        evidence.push(format!("{} of the device's warp slots are in use.", share(occupancy)));
    }
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
        advice.extend(lines([
            "Give each launch more to do at once: a larger problem or batch, or fused kernels.",
        ]));
    }
    let trouble = match sparse {
        Some(_) => "Low occupancy: most lanes of each warp are idle in",
        None => "Low occupancy: too few resident threads to hide latency in",
    };
    Told { trouble, evidence, advice }
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
    use stepscope_analyze::work::kernels::LaunchConfig;
    use stepscope_trace::Dur;

    use crate::rules::testing::{speaks, words};

    #[test]
    fn it_speaks() {
        speaks(&RULE, counters::sample(told));
        let (kernel, limiter) = ("attn".into(), Some("registers".into()));
        speaks(&RULE, LowOccupancy { kernel, occupancy: 0.12, limiter, share: 0.4, grid: None });
        let low = LowOccupancy {
            kernel: "k".into(),
            occupancy: 0.1,
            limiter: None,
            share: 0.4,
            grid: Some((10, 512)),
        };
        speaks(&RULE, low);
        speaks(&RULE, Empty { kernel: one_thread(), filled: 1e-6, ms: 900.0, share: 0.9 });
    }

    #[test]
    fn blocks_of_one_thread_are_named_by_their_launch_alone() {
        let launched = |block, blocks| KernelCounters {
            launch: LaunchConfig { block: Some([block, 1, 1]), ..LaunchConfig::default() },
            blocks: Some(blocks),
            multiprocessors: Some(80.0),
            ..KernelCounters::default()
        };
        assert!(is_sparse(&launched(1, 100_000.0)) && is_sparse(&launched(1, 1.0)));
        assert!(is_sparse(&launched(16, 100_000.0)));
        assert!(!is_sparse(&launched(6, 6.0)), "too few warps to gain from packing them");
        assert!(!is_sparse(&launched(32, 100_000.0)) && !is_sparse(&launched(48, 100_000.0)));
        let said = told(&launched(1, 100_000.0));
        assert!(said.evidence[0].contains("blocks of 1 thread leave 97 %"), "{said:?}");
        assert!(said.trouble.contains("lanes"));
    }

    fn one_thread() -> EmptyKernel {
        let (name, time) = ("add".to_owned(), Dur::from_us(900_000));
        EmptyKernel { name, time, blocks: 1, threads: 1, multiprocessors: 108 }
    }

    #[test]
    fn a_program_without_a_framework_is_told_about_threads_and_blocks() {
        let said = |framework| {
            words(&RULE, Empty { kernel: one_thread(), filled: 1e-6, ms: 9.0, share: 0.9 }, framework)
        };
        let plain = said(Framework::Unknown);
        assert!(plain.evidence[0].contains("1 block of 1 thread on 108 multiprocessors"), "{plain:?}");
        assert!(plain.advice[0].contains("at least 108 blocks of 128 threads"), "{plain:?}");
        assert!(said(Framework::PyTorch).advice[0].contains("larger batch"));
    }
}
