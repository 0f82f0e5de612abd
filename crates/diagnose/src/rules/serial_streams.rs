//! `serial-streams`: streams take turns that could run side by side.
//!
//! Only where there is something to win: kernels on two streams or more whose grids leave room for one another, and
//! which nearly never overlap. What recorded waits put one after the other is no chance and not counted. Where the
//! host asks for such waits but the recording does not say between which streams, nothing is promised; whether one
//! needs the other's results never shows in full, so this is a remark.

use stepscope_analyze::Category;
use stepscope_analyze::bounding::Waits;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let detail = facts.detail.as_ref()?;
    let streams = &detail.streams;
    let shorter = streams.computing.iter().map(|stream| stream.kernels).min()?;
    let serial = streams.computing.len() >= 2 && streams.overlap.fraction_of(shorter) < thresholds::OVERLAP;
    let winnable_ms = detail.per_step(streams.winnable).min(facts.ms(Category::Compute));
    let share = winnable_ms / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    (serial && share >= thresholds::FUSABLE).then(|| {
        let cause = Cause::Serial {
            streams: streams
                .computing
                .iter()
                .map(|stream| (stream.number, detail.per_step(stream.kernels)))
                .collect(),
            overlap_ms: detail.per_step(streams.overlap),
            winnable_ms,
            waits: streams.waits,
        };
        let finding = Finding::new(FindingId::SerialStreams, Severity::Info, cause, facts.framework());
        let claims = vec![(Category::Compute, winnable_ms)];
        match streams.waits {
            Waits::Recorded => finding.owning(claims, Some(1.0)).sure(0.6),
            Waits::Unrecorded => finding.owning(claims, Some(1.0)).sure(0.4),
            Waits::CallsOnly => finding.sure(0.3),
        }
    })
}
