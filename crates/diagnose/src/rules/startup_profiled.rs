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
    if host.whole_capture && !facts.recording.device_missing {
        return runtime_startup(facts);
    }
    let (warm_up, rest) = (length(true), length(false));
    let share = if warm_up > 0.0 { warm_up / (warm_up + rest) } else { 0.0 };
    (share > thresholds::STARTUP).then(|| {
        let steps = host.steps.iter().filter(|step| step.set_apart == Some(SetApart::Startup)).count();
        let cause = Cause::Startup { steps, steady: facts.summary.count, share };
        Finding::new(FindingId::StartupProfiled, Severity::Warning, cause, facts.framework())
    })
}

/// Without steps it shows in the device's runtime, which is set up once.
fn runtime_startup(facts: &Facts) -> Option<Finding> {
    let detail = facts.detail.as_ref()?;
    let ms = detail.idle.get(IdleCause::Startup).ms();
    let share = ms / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    (share > thresholds::STARTUP).then(|| {
        let cause = Cause::RuntimeStartup { ms, share };
        Finding::new(FindingId::StartupProfiled, Severity::Warning, cause, facts.framework())
    })
}
