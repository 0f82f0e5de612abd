//! `low-occupancy`: kernels that hold much of the time leave most of the device's threads empty.
//!
//! Occupancy from the launch configuration is an upper bound; a kernel may be fast all the same, so this is a
//! remark without a promise.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let (share, kernel, occupancy, limiter) = facts.device.as_ref()?.low_occupancy.clone()?;
    (share >= thresholds::KERNEL_SHARE).then(|| {
        let cause = Cause::Occupancy { kernel: kernel.clone(), occupancy, limiter, share };
        Finding::new(FindingId::LowOccupancy, Severity::Info, cause, facts.framework())
            .about(kernel)
            .sure(0.5)
    })
}
