//! `sync-stall`: the host waits for a device that has nothing to do.
//!
//! A synchronisation that was not needed, or one right after a launch. Could win all of it.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.share(Category::Sync);
    (share >= thresholds::NOTABLE).then(|| {
        let cause = Cause::Sync { ms: facts.ms(Category::Sync) };
        Finding::new(FindingId::SyncStall, super::severity(share), cause, facts.framework())
            .owning(facts.claims(&[Category::Sync]), Some(1.0))
            .sure(0.8)
    })
}
