//! `overhead-distorts`: the recorder wrote so many events that it slowed the program down itself.
//!
//! A Python tracer costs about a microsecond an event. Where most events are its frames, Python looks slower than
//! it is.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let host = facts.summary.bound()?;
    let recorded: f64 = host.steps.iter().map(|step| step.span.dur().ms()).sum();
    let events_per_ms = if recorded > 0.0 { host.events as f64 / recorded } else { 0.0 };
    let python_frames = facts.recording.python_frames;
    let frames_per_ms = events_per_ms * python_frames;
    (frames_per_ms > thresholds::EVENTS_PER_MS).then(|| {
        let cause = Cause::Overhead { events_per_ms, python_frames };
        Finding::new(FindingId::OverheadDistorts, Severity::Info, cause, facts.framework()).sure(0.7)
    })
}
