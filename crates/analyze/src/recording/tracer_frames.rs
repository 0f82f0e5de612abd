//! How much of a recording are frames of a Python tracer: many of them slow the loop down.

use stepscope_trace::KindId;

use crate::analysis::Analysis;
use crate::context::Context;
use crate::vocabulary::is_python_frame;

/// Counted events.
#[derive(Copy, Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct TracerFrames {
    frames: u64,
    events: u64,
}

impl Analysis for TracerFrames {
    /// The share of events that are frames.
    type Output = f64;

    fn of(context: &Context) -> Self {
        let trace = context.trace;
        let is_frame =
            |kind: &KindId| is_python_frame(trace.kind_name(*kind), trace.str(trace.kind(*kind).category));
        let frames = (0..trace.kinds().len()).map(KindId::from_index).filter(is_frame);
        let frames = frames.map(|kind| context.vocabulary().signatures.events(kind)).sum();
        TracerFrames { frames, events: trace.events() }
    }

    fn merge(&mut self, other: TracerFrames) {
        self.frames += other.frames;
        self.events += other.events;
    }

    fn finish(self) -> f64 {
        self.frames as f64 / self.events.max(1) as f64
    }
}
