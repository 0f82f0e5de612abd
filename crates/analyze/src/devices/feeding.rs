//! What is known of a host's devices, and of the calls that feed them.

use stepscope_trace::{Device, DeviceKind, Dur, KindId, ProcessKind, Trace, Track, TrackKind};

use crate::analysis::Analysis;
use crate::context::Context;
use crate::states::launches::LaunchCalls;
use crate::states::missing_device::{MissingDevice, starts_any_kernel};
use crate::vocabulary::Role;
use crate::vocabulary::has_timeline;
use crate::work::gpu_specs::{USUAL_SPEEDUP, peaks_of};

/// What is known of devices and of the calls that feed them.
#[derive(Copy, Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Feeding {
    /// How long calls that launch work take.
    pub calls: LaunchCalls,
    /// How many times faster than the ordinary units the matrix units of a device are at the most.
    pub matrix_speedup: Option<f64>,
    /// Do the matrix units of a device know float16 alone?
    pub only_half: bool,
    /// Is a GPU or TPU listed?
    pub accelerator: bool,
    /// Did anything compute on a device?
    pub computed: bool,
}

impl Analysis for Feeding {
    type Output = Self;

    /// Of one host.
    fn of(context: &Context) -> Self {
        let calls = context.launches().calls(context.trace, context.vocabulary());
        let accelerator = has_timeline(context.trace)
            && context
                .trace
                .devices()
                .iter()
                .any(|device| matches!(device.kind, DeviceKind::Gpu | DeviceKind::Tpu));
        let matrix_speedup = matrix_speedup(context.trace);
        let old = |device: &Device| device.compute_capability.is_some_and(|(major, _)| major < 8);
        let only_half = context.trace.devices().iter().any(old);
        Feeding { calls, matrix_speedup, only_half, accelerator, computed: computed_on_device(context) }
    }

    /// Adds another host's.
    fn merge(&mut self, other: Feeding) {
        self.calls.merge(&other.calls);
        self.matrix_speedup = fastest([self.matrix_speedup, other.matrix_speedup]);
        self.only_half |= other.only_half;
        self.accelerator |= other.accelerator;
        self.computed |= other.computed;
    }

    fn finish(self) -> Self {
        self
    }
}

/// Why no kernel of a device was recorded; `None` where some were.
impl Analysis for Option<MissingDevice> {
    type Output = Self;

    fn of(context: &Context) -> Self {
        let missing = has_timeline(context.trace) && !computed_on_device(context);
        missing.then(|| MissingDevice::of(context.trace, context.vocabulary()))
    }

    fn merge(&mut self, other: Self) {
        *self = self.take().or(other);
    }

    fn finish(self) -> Self {
        self
    }
}

/// Whether the device's side was recorded. Not by the kernels' table: what runs on a TPU is no kernel.
fn computed_on_device(context: &Context) -> bool {
    let computes = |role: Role| matches!(role, Role::Kernel | Role::Collective);
    (0..context.trace.kinds().len())
        .any(|index| computes(context.vocabulary().role(KindId::from_index(index))))
        || only_copies(context)
}

/// A program that mostly copies needs no kernel; one that prepares a device copies little.
const COPYING: f64 = 0.05;

/// Whether copies are all that the device did: no call started a kernel, and copies take a notable part of the time.
fn only_copies(context: &Context) -> bool {
    let trace = context.trace;
    let copies = trace.kinds_where(|kind| matches!(context.vocabulary().role(kind), Role::Copy(_)));
    if copies.is_empty() || starts_any_kernel(trace) {
        return false;
    }
    let on_device = |track: &&Track| {
        track.kind == TrackKind::Stream && trace.process(track.process).kind == ProcessKind::Device
    };
    let tracks = trace.tracks().iter().filter(on_device);
    let copied: Dur =
        tracks.map(|track| track.events_of(&copies).map(|(index, _)| track.dur(index)).sum::<Dur>()).sum();
    trace.span().is_some_and(|span| copied.fraction_of(span.dur()) >= COPYING)
}

/// By the device's name; of one that is not listed, NVIDIA's since compute capability 7.0. The last cards that are
/// called GTX have that, but no such units.
fn matrix_speedup(trace: &Trace) -> Option<f64> {
    fastest(trace.devices().iter().map(|device| {
        let name = trace.str(device.name);
        match peaks_of(name) {
            Some(peaks) => peaks.matrix_speedup(),
            None if name.contains("GTX") => None,
            None => device.compute_capability.filter(|&(major, _)| major >= 7).map(|_| USUAL_SPEEDUP),
        }
    }))
}

fn fastest(speedups: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    speedups.into_iter().flatten().max_by(f64::total_cmp)
}
