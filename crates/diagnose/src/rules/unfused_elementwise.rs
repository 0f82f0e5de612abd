//! `unfused-elementwise`: elementwise kernels follow one another that could be one.
//!
//! Each reads and writes whole tensors for one operation an element. A compiler makes one kernel of a chain, which
//! reads and writes once: all but the longest of each chain is the most that this can win. A warning at the most: that
//! one reads what the one before wrote is likely, and does not show.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let detail = facts.detail.as_ref()?;
    let chains = &detail.chains;
    let (share, winnable) = (chains.time.fraction_of(chains.all), chains.winnable.fraction_of(chains.all));
    let step = facts.summary.length_ms().max(f64::MIN_POSITIVE);
    let compute = facts.ms(Category::Compute);
    let won = compute * winnable / step;
    (won >= thresholds::FUSABLE).then(|| {
        let cause = Cause::Unfused {
            kernels_per_step: chains.kernels as f64 / detail.steps.max(1) as f64,
            length: chains.kernels as f64 / chains.chains.max(1) as f64,
            share,
            winnable,
            example: chains.example.clone(),
        };
        Finding::new(FindingId::UnfusedElementwise, Severity::Warning, cause, facts.framework())
            .owning(vec![(Category::Compute, compute * share)], Some(winnable / share))
            .sure(0.75)
    })
}
