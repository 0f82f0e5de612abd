//! `device-idle`: the device has nothing to do for much of the step, for no single reason.
//!
//! Says what the host does meanwhile. Where one reason owns most of the idle time, that reason's own finding says
//! more, so this only claims what is left unexplained.

use stepscope_analyze::Category;
use stepscope_analyze::bounding::IdleCause;

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
        // The device may have worked, unrecorded.
        Category::Unknown,
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
        let cause = Cause::Idle {
            busy,
            meanwhile,
            causes: causes(facts),
            after_waits_ms: after_waits_ms(facts),
            ranges: ranges(facts),
        };
        // Idle time that nothing explains is worth looking into before anything else.
        let unexplained = facts.own_ms(Category::Idle);
        let severe = unexplained / facts.summary.length_ms().max(f64::MIN_POSITIVE) >= thresholds::SEVERE;
        let severity = if severe { Severity::Critical } else { Severity::Warning };
        let claims = if unexplained > 0.0 { vec![(Category::Idle, unexplained)] } else { Vec::new() };
        Finding::new(FindingId::DeviceIdle, severity, cause, facts.framework())
            .owning(claims, Some(1.0))
            .sure(0.8)
    })
}

/// Why, the longest first.
fn causes(facts: &Facts) -> Vec<(IdleCause, f64)> {
    let Some(detail) = &facts.detail else { return Vec::new() };
    let each = IdleCause::ALL.into_iter().map(|cause| (cause, detail.per_step(detail.idle.get(cause))));
    let mut causes: Vec<_> = each.filter(|(_, ms)| *ms > 0.0).collect();
    causes.sort_by(|a, b| b.1.total_cmp(&a.1));
    causes
}

/// The user's ranges that hold a notable part of it.
fn ranges(facts: &Facts) -> Vec<(String, f64)> {
    let Some(detail) = &facts.detail else { return Vec::new() };
    let least = thresholds::NOTABLE * facts.summary.length_ms();
    let each = detail.idle.ranges.iter().map(|(name, time)| (name.clone(), detail.per_step(*time)));
    each.filter(|(_, ms)| *ms >= least).collect()
}

fn after_waits_ms(facts: &Facts) -> f64 {
    let after = facts
        .detail
        .as_ref()
        .map(|detail| detail.per_step(detail.idle.after_waits.total() + detail.idle.after_copies.total()));
    after.unwrap_or(0.0)
}
