//! `allocation-stall`: device memory is allocated or freed in the steps while the device waits.
//!
//! Frameworks keep the memory that they once had, so steady steps allocate nothing. Calls in every step mean that the
//! cache is full and emptied again and again, or that somebody allocates by hand; each waits for the device.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let detail = facts.detail.as_ref()?;
    let claims = facts.owned_of(&detail.idle.allocation);
    let ms: f64 = claims.iter().map(|(_, ms)| ms).sum();
    let share = ms / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    let whole = facts.summary.bound().is_none_or(|host| host.whole_capture);
    // Without steps nobody can tell whether it happens once or again and again.
    (share >= thresholds::NOTABLE && !whole).then(|| {
        let cause =
            Cause::Allocation { per_step: detail.idle.allocations as f64 / detail.steps.max(1) as f64, ms };
        Finding::new(FindingId::AllocationStall, super::severity(share), cause, facts.framework())
            .owning(claims, Some(1.0))
            .sure(0.85)
    })
}
