//! What the rules about hardware counters share: from troubled kernels to a finding whose promise no counter
//! contradicts.

use stepscope_analyze::Category;
use stepscope_analyze::counters::{KernelCounters, Waste};

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity, TroubledKernel};
use crate::thresholds;

/// Kernels named.
const NAMED: usize = 3;

/// What a fix could win of a kernel.
#[derive(Copy, Clone, Debug)]
pub(super) struct Estimate {
    /// The share of its time, before any cap.
    pub(super) share: f64,
    /// What keeps its units busy and goes away with the fix.
    pub(super) waste: Waste,
    /// Does it hold where nobody counted how near the kernel is to the device's peak?
    pub(super) measured: bool,
}

impl Estimate {
    /// An estimate of what is won without less work.
    pub(super) fn of(share: f64) -> Self {
        Estimate { share, waste: Waste::None, measured: false }
    }

    /// The share that no counter contradicts: useful work keeps units busy, and a launch that does nothing takes its
    /// time too. `None` where the counters do not say how near the kernel is to a peak.
    fn capped(self, kernel: &KernelCounters) -> Option<f64> {
        let unknown = self.measured.then_some(1.0);
        let headroom = kernel.headroom(self.waste).or(unknown)?;
        Some(self.share.min(headroom).min(beyond_a_launch(kernel)))
    }

    /// Is there a tenth of the kernel's time to be won? Less is not worth a warning about a means to an end.
    pub(super) fn is_worthwhile(self, kernel: &KernelCounters) -> bool {
        self.capped(kernel).unwrap_or(self.share) >= thresholds::NOTABLE
    }
}

/// The share of a kernel's time that is more than a launch which does nothing takes.
fn beyond_a_launch(kernel: &KernelCounters) -> f64 {
    let us = kernel.mean_ms() * 1e3;
    if us > 0.0 { (1.0 - thresholds::EMPTY_LAUNCH_US / us).max(0.0) } else { 1.0 }
}

/// The finding about all profiled kernels for which there is an estimate.
pub(super) fn finding(
    facts: &Facts,
    id: FindingId,
    estimate: impl Fn(&KernelCounters) -> Option<Estimate>,
) -> Option<Finding> {
    let mut kernels: Vec<TroubledKernel> = facts
        .counters
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
    let severity = if step > 0.0 { super::severity(won / step) } else { Severity::Info };
    let count = kernels.len();
    kernels.truncate(NAMED);
    let claims = if owned > 0.0 { vec![(Category::Compute, owned)] } else { Vec::new() };
    let finding = Finding::new(id, severity, Cause::Counters { kernels, count }, facts.framework())
        .about(subject)
        .owning(claims, promised.then(|| won / owned));
    Some(finding)
}
