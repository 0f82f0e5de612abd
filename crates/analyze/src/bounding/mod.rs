//! The device that bounds the step, in more detail than the breakdown has: why it idles, how data reaches it, what
//! its streams do side by side, and which of its kernels could have been one.
//!
//! One [`DeviceDetail`] a host. Only that of the host which bounds the session is ever asked for, so there is nothing
//! to merge: whoever gathers hosts keeps them all and takes the one that [`crate::summary::Summary`] names.

mod chains;
mod copies;
mod idle;
mod ranges;
mod setup;
mod streams;
mod waits;

use stepscope_trace::{Dur, ProcessId, Span, Track, TrackId, TrackKind};

use crate::context::Context;
use crate::launches::Launch;
use crate::window::Windows;

pub use chains::Chains;
pub use copies::Copies;
pub use idle::{Idle, IdleCause};
pub use setup::SINGLE;
pub use streams::{COMPUTES, LEAVES_ROOM, StreamUse, Streams};
pub use waits::Waits;

/// What the bounding device of one host does in the steps that count.
#[derive(Clone, Debug, Default)]
pub struct DeviceDetail {
    /// Why it has nothing to do when it has nothing to do.
    pub idle: Idle,
    /// Copies to and from it.
    pub copies: Copies,
    /// What its streams do side by side.
    pub streams: Streams,
    /// Elementwise kernels in a row.
    pub chains: Chains,
    /// How many steps all figures are over; 1 for a whole capture.
    pub steps: usize,
}

impl DeviceDetail {
    /// Looks at one host's bounding device; `None` without a device.
    pub fn of(context: &Context) -> Option<Self> {
        let breakdown = context.breakdown();
        let process = breakdown.bound()?.process?;
        let windows: Vec<Span> = breakdown.counted().map(|(_, shares)| shares.window).collect();
        let device = Device { context, process, windows: &windows };
        let copied = copies::Copied::of(&device);
        Some(DeviceDetail {
            idle: idle::find(&device, &copied),
            streams: streams::find(&device),
            chains: chains::find(&device),
            steps: windows.len().max(1),
            copies: copied.copies,
        })
    }

    /// A total in milliseconds a step.
    pub fn per_step(&self, total: Dur) -> f64 {
        total.ms() / self.steps.max(1) as f64
    }
}

/// The device and the windows that are looked at.
struct Device<'c, 't> {
    context: &'c Context<'t>,
    process: ProcessId,
    windows: &'c [Span],
}

impl<'t> Device<'_, 't> {
    /// Its streams that hold anything.
    fn streams(&self) -> impl Iterator<Item = &'t Track> {
        let process = self.process;
        let own = move |track: &&Track| track.process == process && track.kind == TrackKind::Stream;
        self.context.trace.tracks().iter().filter(own).filter(|track| !track.is_empty())
    }

    /// The threads that start its work, each once.
    fn feeding_threads(&self) -> Vec<TrackId> {
        let trace = self.context.trace;
        let own = |launch: &&Launch| trace.track(launch.work.track).process == self.process;
        let all = self.context.launches().all.iter().filter(own);
        let mut threads: Vec<TrackId> = all.map(|launch| launch.call.track).collect();
        threads.sort_unstable();
        threads.dedup();
        threads
    }

    /// The numbers of a stream's events that begin inside the windows.
    fn counted<'w>(
        &self,
        windows: &'w Windows,
        track: &'t Track,
    ) -> impl Iterator<Item = usize> + use<'w, 't> {
        let mut walk = windows.of_track(self.context.trace, track);
        (0..track.len()).filter(move |&index| walk.counts(track.start(index)))
    }
}
