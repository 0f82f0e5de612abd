//! `too-few-steps`: so few steps that nothing can be said about how they vary.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let host = facts.summary.bound()?;
    let few = !host.whole_capture && facts.summary.count < thresholds::FEW_STEPS;
    few.then(|| {
        let cause = Cause::FewSteps { count: facts.summary.count, how: host.how.clone() };
        Finding::new(FindingId::TooFewSteps, Severity::Warning, cause, facts.framework())
    })
}
