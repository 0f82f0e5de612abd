//! `blocking-copies`: copies hold up the host while the device has nothing to do, or so that it runs dry after them.
//!
//! A call that waits for its copy (a synchronous one, or one from memory that the system may move) keeps the host from
//! queueing the next work. When the copy is done the device has nothing to do until the host has launched again.
//! Claims the idle time inside such calls and after them, not the copies themselves.

use stepscope_analyze::Shares;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let idle = &facts.detail.as_ref()?.idle;
    let copies = facts.copies().unwrap_or_default();
    // Where launching is too slow anyway, the device would run dry without any copy.
    let launching = super::kernel_launch_bound::check(facts).is_some();
    let mut owned = Shares::default();
    owned.add_all(&idle.in_copies);
    if !launching {
        owned.add_all(&idle.after_copies);
    }
    let ms = |shares: &Shares| facts.owned_of(shares).iter().map(|(_, ms)| ms).sum::<f64>();
    let (in_ms, all_ms) = (ms(&idle.in_copies), ms(&owned));
    let share = all_ms / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    (share >= thresholds::NOTABLE).then(|| {
        let cause = Cause::Copies { copies, in_ms, after_ms: all_ms - in_ms };
        Finding::new(FindingId::BlockingCopies, super::severity(share), cause, facts.framework())
            .owning(facts.owned_of(&owned), Some(1.0))
            .sure(0.7)
    })
}
