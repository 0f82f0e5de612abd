//! What the rules about hardware counters share: from troubled kernels to a finding whose promise no counter
//! contradicts, and the words around what each rule says. Advice is for those who write kernels, in CUDA or Triton.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::names::kernel_short_name;
use stepscope_analyze::work::counters::{KernelCounters, PeakSource, Unit, Waste};
use stepscope_text::{decimal, duration_ms, quoted, share, short, thousands};

use super::severity;
use crate::facts::{Facts, ProfiledKernels};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::Rule;
use crate::thresholds::{EMPTY_LAUNCH, NOTABLE};

/// Kernels named.
const NAMED: usize = 3;

/// A last wave that leaves more than this empty is worth mentioning.
const LONG_TAIL: f64 = 0.2;

/// A kernel whose hardware counters show a trouble.
#[derive(Clone, Debug, PartialEq)]
pub struct TroubledKernel {
    /// Its counters.
    pub counters: KernelCounters,
    /// Milliseconds per step that it takes, or of the profiled time without a timeline; `None` where a timeline does
    /// not show it.
    pub ms: Option<f64>,
    /// The share of its time that a fix saves at most; never more than its headroom. `None` where how near
    /// it is to the device's peak was not collected.
    pub winnable: Option<f64>,
    /// What keeps its units busy and goes away with the fix.
    pub waste: Waste,
}

/// Kernels whose hardware counters show a trouble.
#[derive(Clone, Debug)]
pub struct CounterCause {
    /// The kernels whose fix saves most, the best first.
    pub kernels: Vec<TroubledKernel>,
    /// How many kernels have the trouble.
    pub count: usize,
    /// What the rule says of one.
    pub(in crate::rules) says: fn(&KernelCounters) -> Told,
}

/// What a rule says of one kernel.
#[derive(Clone, Debug)]
pub(in crate::rules) struct Told {
    /// The summary up to the kernel's name: `Kernel stalls: warps wait in`.
    pub(in crate::rules) trouble: &'static str,
    /// What the counters show.
    pub(in crate::rules) evidence: Vec<String>,
    /// What to do.
    pub(in crate::rules) advice: Vec<String>,
}

impl Cause for CounterCause {
    fn words(&self, finding: &Finding) -> Words {
        let Some(worst) = self.kernels.first() else { return Words::default() };
        let kernel = &worst.counters;
        let others = match self.count {
            0 | 1 => String::new(),
            more => format!(" and {} more", thousands((more - 1) as u64)),
        };
        let name = format!("{}{others}", quoted(&kernel_short_name(&kernel.name)));
        let verb = if self.count > 1 { "take" } else { "takes" };
        let takes = match worst.ms {
            Some(ms) if ms <= 0.0 => "whose time was not collected".to_owned(),
            Some(ms) => format!("which {verb} {}", finding.owned(ms)),
            None => "which the timeline does not show".to_owned(),
        };
        let Told { trouble, mut evidence, advice } = (self.says)(kernel);
        evidence.extend(cap(worst));
        for fact in besides(kernel) {
            if !evidence.contains(&fact) {
                evidence.push(fact);
            }
        }
        evidence.extend(self.kernels.iter().skip(1).map(|other| also(&other.counters)));
        Words { summary: format!("{trouble} {name}, {takes}."), evidence, advice }
    }

    // Kernels that were profiled one by one have no steps to compare.
    fn verify(&self) -> Option<&'static str> {
        Some("profile the kernel again and look at its counters with `stepscope kernels PATH`")
    }
}

/// What a fix saves of a kernel.
#[derive(Copy, Clone, Debug)]
pub(in crate::rules) struct Estimate {
    /// The share of its time, before any cap.
    pub(in crate::rules) share: f64,
    /// What keeps its units busy and goes away with the fix.
    pub(in crate::rules) waste: Waste,
    /// Does it hold if nobody counted how near the kernel is to the device's peak?
    pub(in crate::rules) measured: bool,
}

impl Estimate {
    /// An estimate of what is saved without less work.
    pub(in crate::rules) fn of(share: f64) -> Self {
        Estimate { share, waste: Waste::None, measured: false }
    }

    /// The share that no counter contradicts: useful work keeps units busy, and a launch that does nothing takes its
    /// time too. `None` if the counters do not say how near the kernel is to a peak.
    fn capped(self, kernel: &KernelCounters) -> Option<f64> {
        let unknown = self.measured.then_some(1.0);
        let headroom = kernel.headroom(self.waste).or(unknown)?;
        Some(self.share.min(headroom).min(beyond_a_launch(kernel)))
    }

    /// Can a fix save a notable share of the kernel's time?
    pub(in crate::rules) fn is_worthwhile(self, kernel: &KernelCounters) -> bool {
        self.capped(kernel).unwrap_or(self.share) >= NOTABLE
    }
}

/// The share of a kernel's time beyond what a launch takes that does nothing.
fn beyond_a_launch(kernel: &KernelCounters) -> f64 {
    let us = kernel.mean_ms() * 1e3;
    if us > 0.0 { (1.0 - EMPTY_LAUNCH / us).max(0.0) } else { 1.0 }
}

/// The finding about all profiled kernels for which there is an estimate.
pub(in crate::rules) fn finding(
    facts: &Facts,
    rule: &'static Rule,
    says: fn(&KernelCounters) -> Told,
    estimate: impl Fn(&KernelCounters) -> Option<Estimate>,
) -> Option<Finding> {
    let mut kernels: Vec<TroubledKernel> = facts
        .get::<ProfiledKernels>()
        .0
        .iter()
        .filter_map(|kernel| {
            let estimate = estimate(&kernel.counters)?;
            let winnable = estimate.capped(&kernel.counters);
            let waste = estimate.waste;
            Some(TroubledKernel { counters: kernel.counters.clone(), ms: kernel.ms, winnable, waste })
        })
        .collect();
    let gain = |kernel: &TroubledKernel| kernel.ms.unwrap_or(0.0) * kernel.winnable.unwrap_or(0.0);
    kernels.sort_by(|a, b| {
        gain(b).total_cmp(&gain(a)).then(b.ms.unwrap_or(0.0).total_cmp(&a.ms.unwrap_or(0.0)))
    });
    let subject = kernels.first()?.counters.name.clone();
    let owned: f64 = kernels.iter().filter_map(|kernel| kernel.ms).sum();
    let won: f64 = kernels.iter().map(gain).sum();
    let promised = owned > 0.0 && kernels.iter().any(|kernel| kernel.winnable.is_some());
    let step = facts.summary.length_ms();
    let severity = if step > 0.0 { severity(won / step) } else { Severity::Info };
    let count = kernels.len();
    kernels.truncate(NAMED);
    let claims = if owned > 0.0 { vec![(Category::Compute, owned)] } else { Vec::new() };
    let finding = Finding::new(rule, severity, CounterCause { kernels, count, says }, facts.framework())
        .about(subject)
        .owning(claims, promised.then(|| won / owned));
    Some(finding)
}

/// Another kernel with the same trouble, in one line.
fn also(kernel: &KernelCounters) -> String {
    let near = kernel
        .speed_of_light()
        .map_or(String::new(), |figure| format!("; its busiest unit reaches {} of its peak", share(figure)));
    let name = kernel_short_name(&kernel.name);
    format!("{} too: {} per launch{near}.", quoted(&name), duration_ms(kernel.mean_ms()))
}

/// Why a fix cannot save more.
fn cap(kernel: &TroubledKernel) -> Option<String> {
    let (winnable, counters) = (kernel.winnable?, &kernel.counters);
    let most = format!("A fix saves at most {} of the kernel's time", share(winnable));
    let limit = counters.limit(kernel.waste).filter(|(_, figure)| (1.0 - figure - winnable).abs() < 0.005);
    let Some((unit, figure)) = limit else { return Some(format!("{most}.")) };
    let from_sheet = unit == Unit::Dram && counters.dram_peak == Some(PeakSource::DataSheet);
    let peak = if from_sheet { "the peak on its data sheet" } else { "its peak" };
    let name = match unit {
        Unit::Compute => "compute",
        Unit::Memory => "memory",
        Unit::Dram => "device memory",
        Unit::L1 => "the L1 cache",
        Unit::L2 => "the L2 cache",
    };
    let figure = share(figure);
    Some(match kernel.waste {
        Waste::None => format!("{most}: {name} already reaches {figure} of {peak}."),
        Waste::Sectors(_) => {
            format!("{most}: the needed sectors alone keep {name} at {figure} of {peak}.")
        }
        Waste::Conflicts(_) => format!("{most}: without the conflicts, {name} reaches {figure} of {peak}."),
        Waste::Requests => format!("{most}: {} needs {figure} of {peak} anyway.", needed(unit)),
        Waste::Lanes(_) => format!("{most}: with full warps, {name} reaches {figure} of {peak}."),
    })
}

/// What remains if data is loaded once.
fn needed(unit: Unit) -> &'static str {
    if unit == Unit::Dram { "device memory" } else { "arithmetic" }
}

/// What else the counters show.
fn besides(kernel: &KernelCounters) -> Vec<String> {
    let mut facts: Vec<String> = waits(kernel).into_iter().chain(small_grid(kernel)).collect();
    if let Some(tail) = kernel.tail().filter(|tail| *tail >= LONG_TAIL && kernel.waves.unwrap_or(0.0) > 1.0) {
        let waves = short(kernel.waves.unwrap_or(0.0));
        facts.push(format!(
            "Its {waves} waves of blocks leave {} of the slots empty at the end.",
            share(tail)
        ));
    }
    if let Some(spills) = kernel.spills.filter(|spills| *spills > 0.0) {
        facts.push(format!("Registers spill to memory: {} requests per launch.", short(spills)));
    }
    facts
}

/// What warps wait for.
pub(in crate::rules) fn waits(kernel: &KernelCounters) -> Option<String> {
    let (reason, part) = kernel.stall?;
    let what = crate::rules::kernel_stalls::meaning(reason).0;
    Some(format!("Warps wait {what} for {} of their time ({}).", share(part), quoted(reason)))
}

/// Too few blocks for the device.
pub(in crate::rules) fn small_grid(kernel: &KernelCounters) -> Option<String> {
    let (blocks, count) = kernel.blocks.zip(kernel.multiprocessors)?;
    let verb = if blocks == 1.0 { "block leaves" } else { "blocks leave" };
    (blocks < count).then(|| {
        let empty = decimal(count - blocks, 0);
        format!("Its {} {verb} {empty} of {} multiprocessors empty.", decimal(blocks, 0), decimal(count, 0))
    })
}

/// A kernel with every trouble that counters can show.
#[cfg(test)]
pub(in crate::rules) fn sample(says: fn(&KernelCounters) -> Told) -> CounterCause {
    let mut counters = KernelCounters {
        name: "void gemm<float>(float*)".into(),
        launches: 2,
        total_ms: 4.0,
        compute: Some(0.2),
        memory: Some(0.4),
        achieved: Some(0.2),
        theoretical: Some(0.25),
        limiter: Some(stepscope_analyze::work::kernels::Limiter::SharedMemory),
        blocks: Some(10.0),
        multiprocessors: Some(108.0),
        waves: Some(1.1),
        excess_sectors: Some(0.5),
        bank_conflicts: Some(0.3),
        spills: Some(12.0),
        stall: Some(("long_scoreboard", 0.8)),
        issue: Some(0.1),
        ..KernelCounters::default()
    };
    counters.loads.sectors_per_request = Some(32.0);
    counters.loads.bytes_per_sector = Some(4.0);
    let kernel = TroubledKernel { counters, ms: Some(2.0), winnable: Some(0.25), waste: Waste::None };
    CounterCause { kernels: vec![kernel.clone(), kernel], count: 2, says }
}
