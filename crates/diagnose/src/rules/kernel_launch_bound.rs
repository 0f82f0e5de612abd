//! `kernel-launch-bound`: the device waits for the host to launch its kernels.
//!
//! Its kernels are shorter than the calls that start them, so one thread cannot keep it busy. Claims the idle time
//! that launching and dispatching own, without what setting up the device's runtime, allocating its memory or waiting
//! for it takes: other launches would not make those shorter.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

const FEEDING: [Category; 2] = [Category::Launch, Category::Dispatch];

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let (work, busy) = (facts.device.as_ref()?, facts.busy()?);
    let claims = FEEDING.map(|category| (category, facts.own_ms(category))).to_vec();
    let share =
        claims.iter().map(|(_, ms)| ms).sum::<f64>() / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    let short = work.launch_us.is_some_and(|launch| work.kernel_us < launch * thresholds::LAUNCH_RATIO)
        || work.kernel_us <= thresholds::SMALL_KERNEL_US;
    // A program that replays graphs already starts most of its kernels at once.
    let replays = work.graph_share >= thresholds::REPLAYED;
    if busy >= thresholds::BUSY || share < thresholds::INPUT || !short || replays {
        return None;
    }
    let cause = Cause::Kernels {
        per_step: work.kernels_per_step,
        mean_us: work.kernel_us,
        launch_us: work.launch_us,
        replays,
        busy,
    };
    let finding =
        Finding::new(FindingId::KernelLaunchBound, super::severity(share), cause, facts.framework());
    Some(finding.owning(claims, Some(0.9)).sure(0.85))
}
