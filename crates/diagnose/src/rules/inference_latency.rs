//! `inference-latency`: the steps are predictions, so their latency is the answer.
//!
//! Percentiles of a call, and what owns most of it besides the model's own work.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

use stepscope_analyze::steps::StepKind;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let (moments, host) = (facts.summary.step_ms?, facts.summary.bound()?);
    // One call has no percentiles.
    if host.kind != StepKind::Inference || facts.summary.count < 2 {
        return None;
    }
    let mostly = facts
        .summary
        .breakdown_ms
        .iter()
        .copied()
        .filter(|(category, _)| *category != Category::Compute)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(category, _)| (category, facts.share(category)))
        .filter(|(_, share)| *share >= thresholds::NOTABLE);
    let overhead = 1.0 - facts.share(Category::Compute);
    let severity = if overhead >= thresholds::COMPUTE { Severity::Warning } else { Severity::Info };
    let cause = Cause::Latency {
        count: facts.summary.count,
        p50_ms: moments.median,
        p90_ms: moments.p90,
        p99_ms: moments.p99,
        mostly,
    };
    Some(Finding::new(FindingId::InferenceLatency, severity, cause, facts.framework()).sure(0.9))
}
