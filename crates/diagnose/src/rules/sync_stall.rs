//! `sync-stall`: the host waits for a device that has nothing to do, or that has nothing to do afterwards.
//!
//! A synchronisation that was not needed, or one right after a launch. It costs while it lasts, and again when it is
//! over: the host could not prepare anything meanwhile. Could win all of it.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let after = facts.detail.as_ref().map(|detail| facts.owned_of(&detail.idle.after_waits));
    // Where launching is too slow anyway, the device would run dry without any wait.
    let launching = super::kernel_launch_bound::check(facts).is_some();
    let after = after.filter(|_| !launching).unwrap_or_default();
    let after_ms: f64 = after.iter().map(|(_, ms)| ms).sum();
    // What copies hold up is theirs.
    let in_copies = facts
        .detail
        .as_ref()
        .map_or(0.0, |detail| detail.per_step(detail.idle.in_copies.get(Category::Sync)));
    let ms = (facts.ms(Category::Sync) - in_copies).max(0.0);
    let share = (ms + after_ms) / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    (share >= thresholds::NOTABLE).then(|| {
        let claims = std::iter::once((Category::Sync, ms)).chain(after).collect();
        let cause = Cause::Sync { ms, after_ms };
        Finding::new(FindingId::SyncStall, super::severity(share), cause, facts.framework())
            .owning(claims, Some(1.0))
            .sure(0.8)
    })
}
