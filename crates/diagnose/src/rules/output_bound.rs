//! `output-bound`: checkpoints, summaries or results fill the step.
//!
//! Claims the writing ops and what surrounds them: the Python and the small ops that prepare a checkpoint go away
//! with it. Could win all of it by writing less often or beside the loop.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let step = facts.summary.length_ms();
    if facts.share(Category::Output) < thresholds::OUTPUT || step <= 0.0 {
        return None;
    }
    let written = facts.ms(Category::Output);
    let python = facts.around_output_ms.min(facts.ms(Category::Python));
    let dispatch = (facts.around_output_ms - python).min(facts.ms(Category::Dispatch));
    let ops: Vec<_> = facts.output_ops.iter().take(3).cloned().collect();
    let subject = ops.first().map(|op| op.op_type.clone());
    let severity = super::severity((written + python + dispatch) / step);
    let claims =
        vec![(Category::Output, written), (Category::Python, python), (Category::Dispatch, dispatch)];
    let finding = Finding::new(FindingId::OutputBound, severity, Cause::Output { ops }, facts.framework())
        .owning(claims, Some(1.0))
        .sure(0.9);
    Some(finding.about(subject))
}
