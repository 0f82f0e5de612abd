//! Devices: busy and idle time with reasons, concurrency of streams, and bytes moved to and from each.
//!
//! One [`DevicesPartial`] per host, merged, then finished into [`Devices`].

pub mod bottleneck;
pub mod collectives;
pub mod feeding;
pub mod gpu_samples;
pub mod servers;

/// The analyses of this room, for the results of a session ([`crate::session`]): a line each.
macro_rules! analyses {
    ($next:ident $($rooms:ident)* => $($listed:tt)*) => {
        crate::$next::analyses! { $($rooms)* => $($listed)*
            {
                /// What ranks exchange, and how long they wait for one another.
                collectives: crate::devices::collectives::CollectivesPartial,
                /// Tensors that workers receive from parameter servers; `None` without any.
                servers: crate::devices::servers::ServersPartial,
                /// What a monitor sampled of GPUs.
                gpu_samples: crate::devices::gpu_samples::GpuSamplesPartial,
                /// Devices, and the calls that feed them.
                feeding: crate::devices::feeding::Feeding,
            }
        }
    };
}
pub(crate) use analyses;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use stepscope_trace::{Args, DeviceKind, Dur, ProcessId, Span, Time, Track, TrackKind};

use crate::breakdown::{Category, DeviceBreakdown, Shares, owner};
use crate::context::Context;
use crate::host_trace::merged;
use crate::states::State;
use crate::states::timeline::DEVICE_BUSY;
use crate::states::timeline::{Mask, Timeline};
use crate::time::summary::{DeviceRow, HostSummary};
use crate::vocabulary::has_timeline;
use crate::vocabulary::{CopyDirection, Role};

/// Copies in one direction.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Moved {
    /// How many.
    pub copies: u64,
    /// Their total time.
    pub time: Dur,
    /// Bytes moved by those that report it; `None` if none does.
    pub bytes: Option<u64>,
    /// The time of copies that report their size.
    pub measured: Dur,
    /// Number of copies with pageable memory: slower, and they block.
    pub pageable: u64,
    /// Copies from or to pinned memory.
    pub pinned: u64,
    /// The time of copies with pageable memory.
    pub pageable_time: Dur,
    /// The time of copies with pinned memory.
    pub pinned_time: Dur,
}

impl Moved {
    /// Bytes per second while copying.
    pub fn bandwidth(&self) -> Option<f64> {
        let seconds = self.measured.secs();
        self.bytes.filter(|_| seconds > 0.0).map(|bytes| bytes as f64 / seconds)
    }
}

/// A time in which the device was idle.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// When.
    pub span: Span,
    /// What the host did for most of it.
    pub cause: Category,
    /// The innermost event on the loop's thread in the middle of it.
    pub host_event: Option<String>,
}

/// One device of one host.
#[derive(Clone, Debug)]
pub struct DeviceUse {
    /// The host.
    pub host: String,
    /// The name in the trace.
    pub id: String,
    /// Its model.
    pub name: String,
    /// What sort.
    pub kind: DeviceKind,
    /// The share of the steps in which it was busy; `None` if its side was not recorded.
    pub busy_fraction: Option<f64>,
    /// Number of steps in which it did anything.
    pub steps_seen: usize,
    /// Number of counted steps.
    pub steps: usize,
    /// The breakdown of the steps on this device.
    pub shares: Shares,
    /// Number of active streams; 0 for a host.
    pub streams: usize,
    /// Average number of concurrently active streams while any was active.
    pub concurrency: Option<f64>,
    /// Collectives, and the part hidden under compute.
    pub communication: (Dur, Dur),
    /// Copies, and the part hidden under compute.
    pub copies: (Dur, Dur),
    /// Number of kernels, and their total time.
    pub kernels: (u64, Dur),
    /// Copies to the device, from it, and within or between devices.
    pub moved: [Moved; 3],
    /// The longest gaps, longest first; at most [`MOST_GAPS`].
    pub gaps: Vec<Gap>,
}

impl DeviceUse {
    /// A device without known work yet.
    fn new(host: &str, row: DeviceRow) -> Self {
        DeviceUse {
            host: host.to_owned(),
            id: row.id,
            name: row.name,
            kind: row.kind,
            busy_fraction: row.busy_fraction,
            steps_seen: row.steps_seen,
            steps: 0,
            shares: Shares::default(),
            streams: 0,
            concurrency: None,
            communication: (Dur::ZERO, Dur::ZERO),
            copies: (Dur::ZERO, Dur::ZERO),
            kernels: (0, Dur::ZERO),
            moved: [Moved::default(); 3],
            gaps: Vec::new(),
        }
    }
}

/// Maximum number of gaps in a result.
pub(crate) const MOST_GAPS: usize = 20;

/// The devices of one host.
#[derive(Clone, Debug, Default)]
pub struct DevicesPartial {
    devices: Vec<DeviceUse>,
}

/// All devices of the session.
#[derive(Clone, Debug)]
pub struct Devices {
    /// By host, in the trace's order.
    pub devices: Vec<DeviceUse>,
}

impl DevicesPartial {
    /// The devices of one host.
    pub fn of(context: &Context) -> Self {
        let rows = HostSummary::of(context).devices;
        let breakdown = context.breakdown();
        let host = merged(context, None);
        if !has_timeline(context.trace) {
            return DevicesPartial {
                devices: rows.into_iter().map(|row| DeviceUse::new(&context.host, row)).collect(),
            };
        }
        let devices = breakdown.devices.iter().zip(rows).map(|(device, row)| {
            let counted: Vec<_> = breakdown
                .steps
                .all
                .iter()
                .zip(&device.steps)
                .filter(|(step, _)| step.excluded.is_none())
                .map(|(_, shares)| shares)
                .collect();
            let mut shares = Shares::default();
            counted.iter().for_each(|step| shares.add_all(&step.shares));
            let mut found = DeviceUse::new(&context.host, row);
            found.steps = if breakdown.steps.whole_capture { 0 } else { counted.len() };
            found.shares = shares;
            found.communication.1 = counted.iter().map(|step| step.hidden_communication).sum();
            found.copies.1 = counted.iter().map(|step| step.hidden_copies).sum();
            if let Some(process) = device.process {
                let windows: Vec<Span> = counted.iter().map(|step| step.window).collect();
                add_device_side(context, &host, process, device, &windows, &mut found);
            }
            found
        });
        DevicesPartial { devices: devices.collect() }
    }

    /// Adds another host.
    pub fn merge(&mut self, other: DevicesPartial) {
        self.devices.extend(other.devices);
    }

    /// The result.
    pub fn finish(self) -> Devices {
        let mut devices = self.devices;
        devices.sort_by(|a, b| a.host.cmp(&b.host));
        Devices { devices }
    }
}

const COPIES: Mask = Mask(State::CopyIn as u16 | State::CopyOut as u16 | State::CopyDevice as u16);

fn add_device_side(
    context: &Context,
    host: &Timeline<'_>,
    process: ProcessId,
    device: &DeviceBreakdown,
    windows: &[Span],
    found: &mut DeviceUse,
) {
    let line = merged(context, Some(process));
    for &window in windows {
        found.communication.0 += line.time_in(Mask::of(State::Communication), window);
        found.copies.0 += line.time_in(COPIES, window);
    }
    let streams = context
        .trace
        .tracks()
        .iter()
        .filter(|track| track.process == process && track.kind == TrackKind::Stream && !track.is_empty());
    for track in streams {
        found.streams += usize::from(walk_stream(context, track, found));
    }
    let whole = line.span().unwrap_or_default();
    let busy = line.time_in(DEVICE_BUSY, whole);
    let each: Dur = context
        .states()
        .lines
        .iter()
        .filter(|(track, _)| context.trace.track(*track).process == process)
        .map(|(_, states)| Timeline::merge(&[states]).time_in(DEVICE_BUSY, whole))
        .sum();
    found.concurrency = (!busy.is_zero()).then(|| each.fraction_of(busy));
    let steps = device.steps.iter().map(|step| step.window).reduce(Span::hull);
    found.gaps = gaps(context, host, &line, steps.unwrap_or(whole));
}

/// Counts a stream's work; returns whether there was any.
fn walk_stream(context: &Context, track: &Track, found: &mut DeviceUse) -> bool {
    let (trace, vocabulary) = (context.trace, context.vocabulary());
    let mut worked = false;
    for (index, &kind) in track.kinds().iter().enumerate() {
        match vocabulary.role(kind) {
            Role::Kernel => {
                found.kernels.0 += 1;
                found.kernels.1 += track.dur(index);
            }
            Role::Copy(direction) => {
                let name = trace.kind_name(kind);
                let moved = &mut found.moved[place(direction)];
                add_copy(moved, track.dur(index), name, trace.args_at(track, index));
            }
            Role::Collective | Role::Memset => {}
            _ => continue,
        }
        worked = true;
    }
    worked
}

/// Position of a direction in [`DeviceUse::moved`].
pub(crate) fn place(direction: CopyDirection) -> usize {
    match direction {
        CopyDirection::In => 0,
        CopyDirection::Out => 1,
        CopyDirection::Device => 2,
    }
}

/// Counts a copy.
pub(crate) fn add_copy(moved: &mut Moved, time: Dur, name: &str, args: Args<'_>) {
    let (mut bytes, mut details) = (None, None);
    if let Some(value) = args.named("bytes") {
        bytes = value.as_u64();
    } else if let Some(value) = args.named("memcpy_details") {
        details = value.as_str().map(str::to_owned);
        bytes = details.as_deref().and_then(size_in);
    }
    let text = details.as_deref().unwrap_or("").to_ascii_lowercase();
    let says = |word: &str| name.contains(word) || text.contains(&word.to_ascii_lowercase());
    moved.copies += 1;
    moved.time += time;
    if says("Pageable") {
        moved.pageable += 1;
        moved.pageable_time += time;
    } else if says("Pinned") {
        moved.pinned += 1;
        moved.pinned_time += time;
    }
    if let Some(bytes) = bytes {
        moved.bytes = Some(moved.bytes.unwrap_or(0).saturating_add(bytes));
        moved.measured += time;
    }
}

/// The size in `kind_src:pinned kind_dst:device size:1024 dest:0 async:1`.
fn size_in(details: &str) -> Option<u64> {
    details.split_whitespace().find_map(|part| part.strip_prefix("size:"))?.parse().ok()
}

fn gaps(context: &Context, host: &Timeline<'_>, device: &Timeline<'_>, window: Span) -> Vec<Gap> {
    let mut longest: BinaryHeap<Reverse<(Dur, Reverse<Time>)>> = BinaryHeap::new();
    let mut since = window.start;
    let mut note = |since: Time, until: Time| {
        if until > since {
            longest.push(Reverse((until - since, Reverse(since))));
            if longest.len() > MOST_GAPS {
                longest.pop();
            }
        }
    };
    device.sweep(&Timeline::default(), window, |span, mask, _| {
        if mask.0 & DEVICE_BUSY.0 != 0 {
            note(since, span.start);
            since = span.end;
        }
    });
    note(since, window.end);
    let ground = &context.breakdown().ground;
    longest
        .into_sorted_vec()
        .into_iter()
        .map(|Reverse((length, Reverse(start)))| {
            let span = Span::new(start, start + length);
            let mut causes = Shares::default();
            host.sweep(&Timeline::default(), span, |piece, mask, _| {
                causes.add(owner(mask, Mask::default(), ground, piece.start), piece.dur());
            });
            let cause =
                causes.owners().max_by_key(|(_, time)| *time).map_or(Category::Idle, |(cause, _)| cause);
            let middle = start + Dur::from_ps(length.ps() / 2);
            Gap { span, cause, host_event: host_event(context, middle) }
        })
        .collect()
}

/// Number of earlier events searched for one that covers the instant.
const LOOK_BACK: usize = 4_096;

fn host_event(context: &Context, at: Time) -> Option<String> {
    let trace = context.trace;
    let launcher = || context.launches().all.first().map(|launch| launch.call.track);
    let track = trace.track(context.steps().track.filter(|_| context.steps().on_host).or_else(launcher)?);
    let next = track.first_from(at);
    (next.saturating_sub(LOOK_BACK)..next)
        .rev()
        .find(|&index| {
            track.end(index) > at && context.vocabulary().role(track.kind_of(index)) != Role::Bookkeeping
        })
        .map(|index| trace.kind_name(track.kind_of(index)).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{Datum, Device, Kind, ProcessKind, Trace, TraceBuilder};

    fn trace() -> Trace {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("/device:GPU:0");
        let gpu = builder.process(name, ProcessKind::Device, 0);
        builder.device(Device { process: Some(gpu), ..Device::new(DeviceKind::Gpu, 0) });
        let streams = [1, 2].map(|n| builder.track(gpu, name, TrackKind::Stream, n, TraceBuilder::ARENA));
        let mut add = |stream: usize, name: &str, start: i64, len: i64, details: Option<&str>| {
            let name = builder.strings.intern(name);
            let kind = builder.kind(Kind::slice(name));
            let key = builder.strings.intern("memcpy_details");
            let args = details.map(|text| (key, Datum::Str(builder.strings.intern(text))));
            let args = builder.arena.push(args.as_slice(), &[]);
            builder.event(streams[stream], Time::from_ns(start), Dur::from_ns(len), kind, args);
        };
        add(0, "gemm", 0, 100, None);
        add(0, "gemm", 300, 100, None);
        add(1, "MemcpyH2D", 50, 100, Some("kind_src:pageable kind_dst:device size:1000 dest:0 async:1"));
        builder.finish()
    }

    #[test]
    fn copies_streams_and_gaps_are_told() {
        let trace = trace();
        let devices = DevicesPartial::of(&Context::new(&trace, "host")).finish();
        let [gpu] = &devices.devices[..] else { panic!("one device") };
        assert_eq!((gpu.streams, gpu.kernels), (2, (2, Dur::from_ns(200))));
        assert_eq!(gpu.moved[0].bytes, Some(1_000));
        assert_eq!((gpu.moved[0].pageable, gpu.moved[0].pinned), (1, 0));
        assert!((gpu.moved[0].bandwidth().unwrap() - 1e10).abs() < 1.0, "1,000 bytes in 100 ns");
        assert_eq!(gpu.copies, (Dur::from_ns(100), Dur::from_ns(50)), "half of the copy ran under compute");
        assert_eq!(gpu.gaps[0].span, Span::new(Time::from_ns(150), Time::from_ns(300)));
        assert!((gpu.concurrency.unwrap() - 300.0 / 250.0).abs() < 1e-9);
        assert_eq!(gpu.moved[1].bandwidth(), None);
    }

    #[test]
    fn sizes_are_found_in_details_of_every_age() {
        assert_eq!(size_in("kind_src:pinned kind_dst:device size:77 dest:0 async:1"), Some(77));
        assert_eq!(size_in("size:4 dest:1 async:1"), Some(4));
        assert_eq!(size_in("kind:Unknown size:x"), None);
    }
}
