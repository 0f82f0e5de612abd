//! `small-kernels`: kernels are so short that starting each costs about as much as running it.
//!
//! Fusing them, larger batches or captured graphs help. What that wins is part of `kernel-launch-bound` where the
//! device idles for it, so nothing more is claimed here.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let (work, busy) = (facts.device.as_ref()?, facts.busy()?);
    // A handful of short kernels is nothing; a thousand are a habit.
    let many = work.kernels_per_step >= 100.0 && work.kernel_us <= thresholds::SMALL_KERNEL_US;
    many.then(|| {
        let cause = Cause::Kernels {
            per_step: work.kernels_per_step,
            mean_us: work.kernel_us,
            launch_us: work.launch_us,
            replays: work.graph_share >= thresholds::REPLAYED,
            busy,
        };
        Finding::new(FindingId::SmallKernels, Severity::Info, cause, facts.framework()).sure(0.7)
    })
}
