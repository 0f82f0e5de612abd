//! `communication-bound`: collectives that do not hide under compute fill the step.
//!
//! Could win all of them by overlapping, fewer bytes, or balance between the devices.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.share(Category::Communication);
    (share >= thresholds::TRANSFER).then(|| {
        let steps = facts.summary.count.max(1) as f64;
        let hidden_ms = facts.summary.bound().map_or(0.0, |host| host.hidden_communication_ms) / steps;
        let cause = Cause::Communication {
            ms: facts.ms(Category::Communication),
            hidden_ms,
            waiting: facts.waiting.clone(),
        };
        Finding::new(FindingId::CommunicationBound, super::severity(share), cause, facts.framework())
            .owning(facts.claims(&[Category::Communication]), Some(1.0))
            .sure(0.85)
    })
}
