//! `dispatch-bound`: the framework's overhead fills the step although ops run inside compiled functions.
//!
//! Typical of small models: the executor costs a few microseconds an op whatever the op does. Could win most of
//! it by doing more a call.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let ms = facts.own_ms(Category::Dispatch);
    let share = ms / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    let eager = facts.eager.ops as f64 / facts.eager.steps.max(1) as f64 >= thresholds::EAGER_OPS;
    if share < thresholds::INPUT || (eager && share + facts.share(Category::Python) >= thresholds::SEVERE) {
        return None;
    }
    let ops_per_step = facts.ops.iter().map(|op| op.count_per_step).sum();
    let cause = Cause::Dispatch { ms, ops_per_step };
    let finding = Finding::new(FindingId::DispatchBound, Severity::Warning, cause, facts.framework());
    Some(finding.owning(vec![(Category::Dispatch, ms)], Some(0.9)).sure(0.6))
}
