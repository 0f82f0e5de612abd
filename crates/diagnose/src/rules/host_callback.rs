//! `host-callback`: a compiled step leaves its program for Python on the host.
//!
//! The program stops until the interpreter has answered, data is copied there and back, and the compiler can neither fuse
//! across the call nor move it. Claims the calls, and on the host the executor's work around them in proportion.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let callbacks = &facts.callbacks;
    let mut claims = facts.owned_over(&callbacks.shares, callbacks.steps);
    let ms: f64 = claims.iter().map(|(_, ms)| ms).sum();
    let step = facts.summary.length_ms();
    if step <= 0.0 || ms / step < thresholds::NOTABLE || !callbacks.recurrence.recurs() {
        return None;
    }
    let compute = facts.ms(Category::Compute);
    if !facts.on_device()
        && compute > 0.0
        && !claims.iter().any(|(category, _)| *category == Category::Dispatch)
    {
        claims.push((Category::Dispatch, facts.ms(Category::Dispatch) * (ms / compute).min(1.0)));
    }
    let op = callbacks.op().unwrap_or_default().to_owned();
    let function = callbacks.function().map(str::to_owned);
    let calls_per_step = callbacks.calls as f64 / callbacks.steps.max(1) as f64;
    let subject = function.clone().or_else(|| Some(op.clone()));
    let cause = Cause::Callback { op, function, calls_per_step, ms };
    let finding = Finding::new(FindingId::HostCallback, super::severity(ms / step), cause, facts.framework())
        .owning(claims, Some(1.0))
        .in_steps(callbacks.recurrence)
        .sure(0.9);
    Some(finding.about(subject))
}
