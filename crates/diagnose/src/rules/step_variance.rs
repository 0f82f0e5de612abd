//! `step-variance`: steps differ so much from one another that one number does not describe them.
//!
//! Names the category that varies most.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

/// Fewer steps than this have no spread worth naming.
const STEPS: usize = 5;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let (moments, host) = (facts.summary.step_ms?, facts.summary.bound()?);
    if facts.summary.count < STEPS || moments.median <= 0.0 || moments.mean <= 0.0 {
        return None;
    }
    let (tail, spread) = (moments.p90 / moments.median, moments.stddev? / moments.mean);
    (tail >= thresholds::TAIL || spread >= thresholds::SPREAD).then(|| {
        let varies =
            Category::ALL.into_iter().max_by(|&a, &b| deviation(host, a).total_cmp(&deviation(host, b)));
        let cause = Cause::Variance { spread, tail, varies };
        Finding::new(FindingId::StepVariance, Severity::Info, cause, facts.framework()).sure(0.8)
    })
}

/// How much a category's time varies from step to step, in milliseconds.
fn deviation(host: &stepscope_analyze::summary::HostSummary, category: Category) -> f64 {
    let times = host.counted().map(|step| step.shares.get(category).ms());
    stepscope_analyze::statistics::Moments::of(times).and_then(|moments| moments.stddev).unwrap_or(0.0)
}
