//! `pageable-copies`: copies go from or to memory that the system may move.
//!
//! Such a copy is staged through a buffer of the driver's, at half the bus's speed or less, and the call waits for it.
//! Where copies fill the step, `transfer-bound` says so and names the memory; this is for the share below that.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

/// What pinned memory wins on these copies at the least.
const WON: f64 = 0.5;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let copies = facts.copies()?;
    let pageable = copies.pageable?;
    if facts.shares(&super::transfer_bound::COPIES) >= thresholds::TRANSFER {
        return None;
    }
    let owned = |category| (category, facts.ms(category) * pageable);
    let claims = vec![owned(Category::TransferIn), owned(Category::TransferOut)];
    let ms: f64 = claims.iter().map(|(_, ms)| ms).sum();
    let share = ms / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    (share >= thresholds::NOTABLE).then(|| {
        let cause = Cause::Copies { copies, in_ms: 0.0, after_ms: 0.0 };
        Finding::new(FindingId::PageableCopies, super::severity(share * WON), cause, facts.framework())
            .owning(claims, Some(WON))
            .sure(0.85)
    })
}
