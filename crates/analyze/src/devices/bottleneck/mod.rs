//! The bottleneck device in more detail than the breakdown: why it idles, how data reaches it, what its streams
//! do concurrently, and which of its kernels could be fused.
//!
//! One [`DeviceDetail`] per host. Only that of the host that limits the session is ever used, so there is
//! nothing to merge: the caller keeps all hosts and uses the one that [`crate::time::summary::Summary`] names.

mod chains;
mod copies;
mod fill;
mod idle;
mod setup;
mod streams;
mod unified;
mod waits;

use stepscope_trace::{Dur, ProcessId, Span, Time, Track, TrackId, TrackKind};

use crate::context::Context;
use crate::states::launches::Launch;
use crate::window::Windows;

pub use chains::Chains;
pub use copies::Copies;
pub use fill::{EmptyKernel, Fill, NEARLY_EMPTY};
pub use idle::{Idle, IdleCause};
pub use setup::SINGLE;
pub use streams::{COMPUTES, LEAVES_ROOM, StreamUse, Streams};
pub use unified::{HeldUp, Unified};
pub use waits::Waits;

/// What the bottleneck device of one host does in the counted steps.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct DeviceDetail {
    /// Its idle time by cause.
    pub idle: Idle,
    /// Copies to and from it.
    pub copies: Copies,
    /// What its streams do concurrently.
    pub streams: Streams,
    /// Consecutive elementwise kernels.
    pub chains: Chains,
    /// How full it is while its kernels run.
    #[serde(default)]
    pub fill: Fill,
    /// Pages that move between it and the host.
    #[serde(default)]
    pub unified: Unified,
    /// Number of steps that all figures cover; 1 for a whole capture.
    pub steps: usize,
}

impl DeviceDetail {
    /// Analyses one host's bottleneck device; `None` without a device.
    pub fn of(context: &Context) -> Option<Self> {
        let breakdown = context.breakdown();
        let process = breakdown.bound()?.process?;
        let windows: Vec<Span> = breakdown.counted().map(|(_, shares)| shares.window).collect();
        let device = Device { context, process, windows: &windows };
        let copied = copies::Copied::of(&device);
        let (unified, moving) = unified::find(&device);
        Some(DeviceDetail {
            idle: idle::find(&device, &copied),
            streams: streams::find(&device),
            chains: chains::find(&device),
            fill: fill::find(&device, &moving),
            unified,
            steps: windows.len().max(1),
            copies: copied.copies,
        })
    }

    /// A total in milliseconds per step.
    pub fn per_step(&self, total: Dur) -> f64 {
        total.ms() / self.steps.max(1) as f64
    }
}

/// The device and the analysed windows.
struct Device<'c, 't> {
    context: &'c Context<'t>,
    process: ProcessId,
    windows: &'c [Span],
}

impl<'t> Device<'_, 't> {
    /// Its non-empty streams.
    fn streams(&self) -> impl Iterator<Item = &'t Track> {
        let process = self.process;
        let own = move |track: &&Track| track.process == process && track.kind == TrackKind::Stream;
        self.context.trace.tracks().iter().filter(own).filter(|track| !track.is_empty())
    }

    /// Whether a time lies inside the windows.
    fn holds(&self, at: Time) -> bool {
        let next = self.windows.partition_point(|window| window.end <= at);
        self.windows.get(next).is_some_and(|window| window.start <= at)
    }

    /// The threads that launch its work, each once.
    fn feeding_threads(&self) -> Vec<TrackId> {
        let trace = self.context.trace;
        let own = |launch: &&Launch| trace.track(launch.work.track).process == self.process;
        let all = self.context.launches().all.iter().filter(own);
        let mut threads: Vec<TrackId> = all.map(|launch| launch.call.track).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// The indices of a stream's events that start inside the windows.
    fn counted<'w>(
        &self,
        windows: &'w Windows,
        track: &'t Track,
    ) -> impl Iterator<Item = usize> + use<'w, 't> {
        let mut walk = windows.of_track(self.context.trace, track);
        (0..track.len()).filter(move |&index| walk.counts(track.start(index)))
    }
}
