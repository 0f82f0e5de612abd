//! What the rules about hardware counters share: from troubled kernels to a finding whose promise no counter
//! contradicts.

use stepscope_analyze::Category;
use stepscope_analyze::counters::KernelCounters;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity, TroubledKernel};

/// Kernels named.
const NAMED: usize = 3;

/// The finding about all profiled kernels for which `estimate` gives a share of their time. An estimate is capped
/// by what the kernel's highest speed-of-light figure leaves: units that are busy cannot be won.
pub(super) fn finding(
    facts: &Facts,
    id: FindingId,
    estimate: impl Fn(&KernelCounters) -> Option<f64>,
) -> Option<Finding> {
    let mut kernels: Vec<TroubledKernel> = facts
        .counters
        .iter()
        .filter_map(|kernel| {
            let estimate = estimate(&kernel.counters)?;
            let winnable = kernel.counters.headroom().map(|headroom| estimate.min(headroom));
            Some(TroubledKernel { counters: kernel.counters.clone(), ms: kernel.ms, winnable })
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

/// Is there a tenth of the kernel's time to be won? Less is not worth a warning about a means to an end.
pub(super) fn worthwhile(kernel: &KernelCounters, estimate: f64) -> bool {
    let most = kernel.headroom().map_or(estimate, |headroom| estimate.min(headroom));
    most >= crate::thresholds::NOTABLE
}
