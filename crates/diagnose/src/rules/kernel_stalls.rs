//! `kernel-stalls`: warps wait for one thing most of the time, and schedulers have no other to run.
//!
//! Needs Nsight Compute. Where few warps are resident, that is the cause and `low-occupancy` says so.

use super::counters::Estimate;
use crate::facts::Facts;
use crate::finding::{Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    super::counters::finding(facts, FindingId::KernelStalls, |kernel| {
        let (_, share) = kernel.stall.filter(|(_, share)| *share >= thresholds::STALL)?;
        let issuing = kernel.issue.filter(|issuing| *issuing < thresholds::ISSUING)?;
        let empty = super::low_occupancy::is_empty(kernel);
        let estimate = Estimate::of(share.min(1.0 - issuing));
        (!empty && estimate.is_worthwhile(kernel)).then_some(estimate)
    })
    .map(|finding| finding.sure(0.7))
}
