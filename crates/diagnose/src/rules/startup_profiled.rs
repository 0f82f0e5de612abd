//! `startup-profiled`: the capture holds the program's warm-up rather than its steady state.
//!
//! Tracing, compilation and first allocations happen once. A profile of the first steps says nothing about the
//! thousands that follow.

use stepscope_analyze::bounding::IdleCause;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    use stepscope_analyze::steps::SetApart;
    let host = facts.summary.bound()?;
    let length = |startup: bool| -> f64 {
        let wanted = host.steps.iter().filter(|step| (step.set_apart == Some(SetApart::Startup)) == startup);
        wanted.map(|step| step.span.dur().ms()).sum()
    };
    let few = host.whole_capture || facts.summary.count < thresholds::FEW_STEPS;
    let (warm_up, rest) = (length(true), length(false));
    let share = if warm_up > 0.0 && !host.whole_capture { warm_up / (warm_up + rest) } else { 0.0 };
    if share > thresholds::STARTUP {
        let steps = host.steps.iter().filter(|step| step.set_apart == Some(SetApart::Startup)).count();
        let cause = Cause::Startup { steps, steady: facts.summary.count, share };
        let finding = Finding::new(FindingId::StartupProfiled, Severity::Warning, cause, facts.framework());
        return Some(finding);
    }
    let captures = facts.detail.as_ref().is_some_and(|detail| !detail.idle.captured.is_zero());
    setting_up(facts).filter(|_| (few || captures) && !facts.recording.device_missing)
}

/// Without steps that could be compared, it shows in single calls that take most of the time.
fn setting_up(facts: &Facts) -> Option<Finding> {
    let detail = facts.detail.as_ref()?;
    let ms = detail.per_step(detail.idle.get(IdleCause::Startup));
    let share = ms / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    // What is captured is replayed later: a recording that holds the capture is not of the loop.
    let captured = detail.per_step(detail.idle.captured) / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    (share > thresholds::STARTUP || captured > thresholds::SEVERE).then(|| {
        let calls = detail.idle.startup_calls.iter();
        let calls = calls.map(|(name, time)| (name.clone(), detail.per_step(*time))).collect();
        let cause = Cause::SettingUp { ms, share, calls };
        Finding::new(FindingId::StartupProfiled, Severity::Warning, cause, facts.framework())
    })
}
