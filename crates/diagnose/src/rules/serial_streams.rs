//! `serial-streams`: streams take turns that could run side by side.
//!
//! Only where there is something to win: kernels on two streams or more whose grids leave room for one another, and
//! which nearly never overlap. Whether one needs the other's results does not show, so this is a remark.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId, Severity};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let detail = facts.detail.as_ref()?;
    let streams = &detail.streams;
    let shorter = streams.computing.iter().map(|stream| stream.kernels).min()?;
    let serial = streams.computing.len() >= 2 && streams.overlap.fraction_of(shorter) < thresholds::OVERLAP;
    let winnable_ms = detail.per_step(streams.winnable()).min(facts.ms(Category::Compute));
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
        };
        Finding::new(FindingId::SerialStreams, Severity::Info, cause, facts.framework())
            .owning(vec![(Category::Compute, winnable_ms)], Some(1.0))
            .sure(0.5)
    })
}
