//! `output-bound`: checkpoints, summaries or results fill the step.
//!
//! Could win nearly all of it by writing less often or beside the loop.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.share(Category::Output);
    (share >= thresholds::OUTPUT).then(|| {
        let ops: Vec<_> = facts.output_ops.iter().take(3).cloned().collect();
        let subject = ops.first().map(|op| op.op_type.clone());
        let finding = Finding::new(
            FindingId::OutputBound,
            super::severity(share),
            Cause::Output { ops },
            facts.framework(),
        )
        .owning(facts.claims(&[Category::Output]), Some(1.0))
        .sure(0.9);
        match subject {
            Some(subject) => finding.about(subject),
            None => finding,
        }
    })
}
