//! Copies to and from the bottleneck device: memory type, size, streams, and which of them blocked the host.

use rustc_hash::FxHashSet;
use stepscope_trace::{Dur, EventId, Span, Track};

use super::Device;
use crate::devices::{Moved, add_copy, place};
use crate::states::launches::waits_for_copy;
use crate::vocabulary::Role;
use crate::window::Windows;

/// A stream with a smaller share of the kernel time does not compute.
const COMPUTES: f64 = 0.1;

/// Copies in the counted steps.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Copies {
    /// To the device, from it, and within or between devices.
    pub moved: [Moved; 3],
    /// The time of copies to and from the device on streams that also compute: they cannot overlap with what
    /// follows them there.
    pub on_computing_streams: Dur,
    /// Copies whose call waited until they were done.
    pub blocking: u64,
    /// Total duration of these calls.
    pub blocked: Dur,
    /// In a capture without steps: the time of copies between host and device before the first kernel and after the last. A
    /// program loads its data and reads its results once.
    #[serde(default)]
    pub at_ends: Dur,
}

impl Copies {
    /// The time of copies between host and device.
    pub fn with_host(&self) -> Dur {
        self.moved[0].time + self.moved[1].time
    }

    /// The share of that time with pageable memory; `None` if it is unknown for most of them.
    pub fn pageable_share(&self) -> Option<f64> {
        let pageable = self.moved[0].pageable_time + self.moved[1].pageable_time;
        let known = pageable + self.moved[0].pinned_time + self.moved[1].pinned_time;
        let all = self.with_host();
        (known.fraction_of(all) > 0.5).then(|| pageable.fraction_of(known))
    }
}

/// Copies, with the calls that waited for them.
pub(super) struct Copied {
    pub(super) copies: Copies,
    /// The calls that waited, unordered.
    pub(super) waits: Vec<(EventId, Span)>,
}

impl Copied {
    pub(super) fn of(device: &Device) -> Self {
        let (trace, vocabulary) = (device.context.trace, device.context.vocabulary());
        let windows = Windows::of(device.context);
        let mut found = Copied { copies: Copies::default(), waits: Vec::new() };
        let mut streams: Vec<(Dur, Dur)> = Vec::new();
        let mut seen: FxHashSet<EventId> = FxHashSet::default();
        for track in device.streams() {
            let (mut kernels, mut copies) = (Dur::ZERO, Dur::ZERO);
            for index in device.counted(&windows, track) {
                let (kind, dur) = (track.kind_of(index), track.dur(index));
                let direction = match vocabulary.role(kind) {
                    Role::Kernel => {
                        kernels += dur;
                        continue;
                    }
                    Role::Copy(direction) => direction,
                    _ => continue,
                };
                let (name, place) = (trace.kind_name(kind), place(direction));
                let moved = &mut found.copies.moved[place];
                let pageable = moved.pageable;
                add_copy(moved, dur, name, trace.args_at(track, index));
                let pageable = moved.pageable > pageable;
                if place < 2 {
                    copies += dur;
                }
                let launch = device.context.launches().of_work(track.event_id(index));
                if let Some(launch) = launch.filter(|launch| seen.insert(launch.call)) {
                    let caller = trace.track(launch.call.track);
                    let call = caller.span_of(launch.call.index as usize);
                    let name = trace.kind_name(caller.kind_of(launch.call.index as usize));
                    let waits = pageable || waits_for_copy(name, call.dur());
                    if waits && call.end >= track.end(index) {
                        found.copies.blocking += 1;
                        found.copies.blocked += call.dur();
                        found.waits.push((launch.call, call));
                    }
                }
            }
            streams.push((kernels, copies));
        }
        let all: Dur = streams.iter().map(|(kernels, _)| *kernels).sum();
        let computing = streams.iter().filter(|(kernels, _)| kernels.fraction_of(all) >= COMPUTES);
        found.copies.on_computing_streams = computing.map(|(_, copies)| *copies).sum();
        found.copies.at_ends = at_ends(device, &windows);
        found
    }
}

/// The time of copies between host and device before the first kernel and after the last, in a capture without steps.
fn at_ends(device: &Device, windows: &Windows) -> Dur {
    let vocabulary = device.context.vocabulary();
    if !device.context.breakdown().steps.whole_capture {
        return Dur::ZERO;
    }
    let roles = |track: &'_ Track| -> Vec<(Role, Span)> {
        let counted = device.counted(windows, track);
        counted.map(|index| (vocabulary.role(track.kind_of(index)), track.span_of(index))).collect()
    };
    let work: Vec<(Role, Span)> = device.streams().flat_map(roles).collect();
    let kernels = work.iter().filter(|(role, _)| *role == Role::Kernel).map(|(_, span)| *span);
    let Some(kernels) = kernels.reduce(Span::hull) else { return Dur::ZERO };
    let with_host = |role: &Role| matches!(role, Role::Copy(direction) if place(*direction) < 2);
    let outside = |span: &Span| span.end <= kernels.start || kernels.end <= span.start;
    work.iter().filter(|(role, span)| with_host(role) && outside(span)).map(|(_, span)| span.dur()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::devices::bottleneck::DeviceDetail;
    use crate::sketch::{Arg, Sketch};

    fn copies(name: &str, call: &str, call_us: i64) -> Copies {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("python"), sketch.stream());
        sketch.steps(thread, 4, 1_000);
        for turn in 0..4 {
            let (at, id) = (turn * 1_000, || ("correlation", Arg::Int(turn + 1)));
            sketch.event_of(thread, "cuda_runtime", call, at, call_us, &[id()]);
            sketch.event_of(
                stream,
                "gpu_memcpy",
                name,
                at + 20,
                100,
                &[id(), ("bytes", Arg::Int(1_000_000))],
            );
            sketch.event_of(stream, "kernel", "gemm", at + 200, 300, &[]);
        }
        let trace = sketch.finish();
        DeviceDetail::of(&Context::new(&trace, "host")).unwrap_or_default().copies
    }

    #[test]
    fn memory_streams_and_waiting_calls_are_told() {
        let slow = copies("Memcpy HtoD (Pageable -> Device)", "cudaMemcpyAsync", 130);
        assert_eq!((slow.pageable_share(), slow.blocking), (Some(1.0), 4));
        assert_eq!((slow.blocked, slow.on_computing_streams), (Dur::from_us(520), Dur::from_us(400)));
        let fast = copies("Memcpy HtoD (Pinned -> Device)", "cudaMemcpyAsync", 10);
        assert_eq!((fast.pageable_share(), fast.blocking), (Some(0.0), 0));
        let unknown = copies("MemcpyH2D", "cudaMemcpy", 130);
        assert_eq!((unknown.pageable_share(), unknown.blocking), (None, 4));
    }

    /// Copies of 100 µs at these times around kernels of different names at 1, 2 and 3 ms; steps are marked or not.
    fn at_ends_of(copies: &[i64], steps: bool) -> Dur {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("main"), sketch.stream());
        if steps {
            sketch.steps(thread, 4, 1_000);
        }
        for &at in copies {
            sketch.event_of(stream, "gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at, 100, &[]);
        }
        for (turn, name) in ["first", "second", "third"].into_iter().enumerate() {
            sketch.event_of(stream, "kernel", name, 1_000 * (1 + turn as i64), 500, &[]);
        }
        let trace = sketch.finish();
        DeviceDetail::of(&Context::new(&trace, "host")).map_or(Dur::ZERO, |detail| detail.copies.at_ends)
    }

    #[test]
    fn what_is_copied_before_the_first_kernel_and_after_the_last_is_copied_once() {
        assert_eq!(at_ends_of(&[100, 1_600, 3_600], false), Dur::from_us(200), "not the one in between");
        assert_eq!(at_ends_of(&[100, 1_600, 3_600], true), Dur::ZERO, "each step has its own");
    }
}
