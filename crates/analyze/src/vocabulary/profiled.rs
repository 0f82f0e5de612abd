//! Launches that a kernel profiler ran one at a time, and whether a trace is more than those.

use stepscope_trace::{Trace, Track, TrackKind};

/// The category of events that are profiled launches.
pub(crate) const LAUNCH: &str = "ncu_kernel";

/// Whether the trace shows what ran when. Profiled launches run one at a time and repeatedly, and GPU samples are
/// only samples: neither makes a timeline. An empty trace counts as one.
pub fn has_timeline(trace: &Trace) -> bool {
    let launches: u64 = launch_tracks(trace).map(|track| track.len() as u64).sum();
    let sampled = || trace.tracks().iter().any(|track| !track.samples.values.is_empty());
    trace.events() > launches || (launches == 0 && !sampled() && trace.memory().is_none())
}

/// Tracks whose events are all profiled launches.
pub(crate) fn launch_tracks(trace: &Trace) -> impl Iterator<Item = &Track> {
    let category = trace.strings().find(LAUNCH);
    let is_launch = move |track: &&Track| {
        let first = track.kinds().first();
        category.is_some() && first.map(|&kind| trace.kind(kind).category) == category
    };
    trace.tracks().iter().filter(|track| track.kind == TrackKind::Derived).filter(is_launch)
}
