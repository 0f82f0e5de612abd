//! `device-idle`: the device has nothing to do for much of the step, for no single reason.
//!
//! Says what the host does meanwhile. Where one reason owns most of the idle time, that reason's own finding says
//! more, so this only claims what is left unexplained.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let busy = facts.busy()?;
    let working = [
        Category::Compute,
        Category::Communication,
        Category::TransferIn,
        Category::TransferOut,
        Category::TransferDevice,
    ];
    let mut meanwhile: Vec<(Category, f64)> = facts
        .summary
        .breakdown_ms
        .iter()
        .copied()
        .filter(|(category, _)| !working.contains(category))
        .collect();
    meanwhile.sort_by(|a, b| b.1.total_cmp(&a.1));
    let idle: f64 = meanwhile.iter().map(|(_, ms)| ms).sum();
    let share = idle / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    (share >= thresholds::SEVERE).then(|| {
        let cause = Cause::Idle { busy, meanwhile };
        Finding::new(FindingId::DeviceIdle, Severity::Warning, cause, facts.framework())
            .owning(facts.claims(&[Category::Idle]), Some(1.0))
            .sure(0.8)
    })
}
