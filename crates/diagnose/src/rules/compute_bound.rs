//! `compute-bound`: the model's own ops fill the step.
//!
//! The healthy end of tuning everything else. How much a better algorithm, a lower precision or faster hardware
//! would win cannot be read off a profile, so no gain is promised.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

/// Op types named.
const NAMED: usize = 5;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.share(Category::Compute);
    // Profiled kernels are nothing but compute.
    let bound = facts.timeline && share >= thresholds::COMPUTE && !facts.summary.bound()?.device_unseen;
    bound.then(|| {
        let top = facts.ops.iter().take(NAMED).cloned().collect::<Vec<_>>();
        let subject = top.first().map(|op| op.op_type.clone());
        let cause = Cause::Compute { top, on_device: facts.on_device() };
        let finding = Finding::new(FindingId::ComputeBound, Severity::Info, cause, facts.framework())
            .owning(facts.claims(&[Category::Compute]), None)
            .sure(0.9);
        finding.about(subject)
    })
}
