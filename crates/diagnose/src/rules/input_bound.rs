//! `input-bound`: the step waits for its next batch.
//!
//! Measured as the time in which the loop is inside its loader and the device, or the host's ops, have run dry.
//! Time that input threads are busy beside the step is not waiting. Could win all of the wait.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.share(Category::Input);
    (share >= thresholds::INPUT).then(|| {
        let cause = Cause::Input { loader: facts.loader.clone(), wait_ms: facts.ms(Category::Input) };
        Finding::new(FindingId::InputBound, super::severity(share), cause, facts.framework())
            .owning(facts.claims(&[Category::Input]), Some(1.0))
            .sure(0.95)
    })
}
