//! `blocking-copies`: copies hold up the host, so that the device runs dry after them.
//!
//! A call that waits for its copy (a synchronous one, or one from memory that the system may move) keeps the host from
//! queueing the next work. When the copy is done the device has nothing to do until the host has launched again.
//! Claims the idle time that follows such copies, not the copies themselves.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let copies = facts.copies().filter(|copies| copies.blocking > 0.0)?;
    let claims = facts.owned_of(&facts.detail.as_ref()?.idle.after_copies);
    let after_ms: f64 = claims.iter().map(|(_, ms)| ms).sum();
    let share = after_ms / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    // Where launching is too slow anyway, the device would run dry without any copy.
    let launching = super::kernel_launch_bound::check(facts).is_some();
    (share >= thresholds::NOTABLE && !launching).then(|| {
        let cause = Cause::Copies { copies, after_ms };
        Finding::new(FindingId::BlockingCopies, super::severity(share), cause, facts.framework())
            .owning(claims, Some(1.0))
            .sure(0.7)
    })
}
