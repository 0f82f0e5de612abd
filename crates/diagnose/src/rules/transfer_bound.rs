//! `transfer-bound`: copies between host and device, or between devices, fill the step.
//!
//! Only copies that do not hide under compute count. Could win all of them by overlapping.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) const COPIES: [Category; 3] =
    [Category::TransferIn, Category::TransferOut, Category::TransferDevice];

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.shares(&COPIES);
    (share >= thresholds::TRANSFER).then(|| {
        let mut directions = facts.claims(&COPIES);
        directions.sort_by(|a, b| b.1.total_cmp(&a.1));
        let steps = facts.summary.count.max(1) as f64;
        let hidden_ms = facts.summary.bound().map_or(0.0, |host| host.hidden_copies_ms) / steps;
        let cause = Cause::Transfer { directions, hidden_ms, copies: facts.copies() };
        Finding::new(FindingId::TransferBound, super::severity(share), cause, facts.framework())
            .owning(facts.claims(&COPIES), Some(1.0))
            .sure(0.9)
    })
}
