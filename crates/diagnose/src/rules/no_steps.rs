//! `no-steps`: nothing was marked and nothing repeats.
//!
//! The breakdown then describes the whole capture. Counters of single kernels have no steps, and lack none.

use stepscope_analyze::steps::Origin;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let none = facts.timeline
        && facts.summary.bound().is_none_or(|host| host.whole_capture && host.origin == Origin::None);
    none.then(|| {
        Finding::new(FindingId::NoSteps, Severity::Warning, Cause::NothingRepeats, facts.framework())
    })
}
