//! Unified memory: pages that move between host and device when either touches them.
//!
//! A migration is recorded as a copy that no call asked for, and page faults as spans of their own, if the
//! profiler was asked for them. Both only show part of the cost, because a kernel also waits for each fault to be
//! reported and handled. So runs of a kernel during which pages move are compared with runs of the same kernel
//! in the same launch configuration during which none do.

use rustc_hash::FxHashMap;
use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, KindId, ProcessId, Span, Trace, Track, TrackKind};

use super::Device;
use crate::breakdown::{Shares, owner};
use crate::devices::{Moved, add_copy, place};
use crate::host_trace::merged;
use crate::vocabulary::{Role, is_device_fault, is_host_fault, is_migration, is_prefetch};
use crate::window::Windows;
use crate::work::kernels::{LaunchConfig, LaunchKeys};

/// With fewer runs without a fault, the usual length of a kernel is unknown.
const LEAST_RUNS: usize = 2;

/// Unified memory in the counted steps.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Unified {
    /// Migrations to the device and to the host.
    pub moved: [Moved; 2],
    /// Page faults on the device, and on the host.
    pub faults: [u64; 2],
    /// Calls that move pages ahead of their use were recorded.
    pub prefetches: bool,
    /// Breakdown of the time in which pages move or faults are handled.
    pub shares: Shares,
    /// How much longer kernels ran than the same kernels without a migration.
    pub held_up: Dur,
    /// The kernel that was held up most.
    pub kernel: Option<HeldUp>,
}

/// A kernel that waits for pages.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct HeldUp {
    /// Its name.
    pub name: String,
    /// Runs during which pages moved.
    pub runs: u64,
    /// Their mean length.
    pub with: Dur,
    /// The median length of runs during which none did.
    pub without: Dur,
}

/// With the times in which pages move or faults are handled, in time order.
pub(super) fn find(device: &Device) -> (Unified, Vec<Span>) {
    let trace = device.context.trace;
    let migrations = trace.kinds_where(|kind| is_migration(trace.kind_name(kind)));
    let device_faults = trace.kinds_where(|kind| is_device_fault(trace.kind_name(kind)));
    if migrations.is_empty() && device_faults.is_empty() {
        return (Unified::default(), Vec::new());
    }
    let windows = Windows::of(device.context);
    let prefetches = trace.kinds().iter().any(|kind| is_prefetch(trace.str(kind.name)));
    let mut found = Unified { prefetches, ..Unified::default() };
    let mut spans: Vec<Span> = Vec::new();
    for track in device.streams() {
        for index in device.counted(&windows, track).filter(|&at| migrations.has(track.kind_of(at))) {
            let kind = track.kind_of(index);
            let Role::Copy(direction) = device.context.vocabulary().role(kind) else { continue };
            if let Some(moved) = found.moved.get_mut(place(direction)) {
                add_copy(moved, track.dur(index), trace.kind_name(kind), trace.args_at(track, index));
            }
            spans.push(track.span_of(index));
        }
    }
    for track in fault_tracks(trace, Some(device.process)) {
        for (index, _) in track.events_of(&device_faults).filter(|(at, _)| device.holds(track.start(*at))) {
            let faults = trace.args_at(track, index).named("faults").and_then(|value| value.as_u64());
            found.faults[0] = found.faults[0].saturating_add(faults.unwrap_or(1));
            spans.push(track.span_of(index));
        }
    }
    let host_faults = trace.kinds_where(|kind| is_host_fault(trace.kind_name(kind)));
    for track in fault_tracks(trace, None) {
        let inside = track.events_of(&host_faults).filter(|(at, _)| device.holds(track.start(*at)));
        found.faults[1] += inside.count() as u64;
    }
    let spans = united(spans);
    found.shares = shares(device, &spans);
    (found.held_up, found.kernel) = held_up(device, &windows, &spans);
    (found, spans)
}

/// The tracks that may hold page faults of a device, or of the host's processes.
fn fault_tracks(trace: &Trace, of: Option<ProcessId>) -> impl Iterator<Item = &Track> {
    let own = move |track: &&Track| {
        track.kind == TrackKind::Derived && of.is_none_or(|process| track.process == process)
    };
    trace.tracks().iter().filter(own)
}

/// Whether any of `spans`, in time order and apart, lies at the same time.
pub(super) fn overlaps(spans: &[Span], span: Span) -> bool {
    let next = spans.partition_point(|other| other.end <= span.start);
    spans.get(next).is_some_and(|other| other.start < span.end)
}

/// In time order, without overlaps.
fn united(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by_key(|span| (span.start, span.end));
    let mut found: Vec<Span> = Vec::new();
    for span in spans {
        match found.last_mut() {
            Some(last) if span.start <= last.end => last.end = last.end.max(span.end),
            _ => found.push(span),
        }
    }
    found
}

/// What the time of these spans counts as.
fn shares(device: &Device, spans: &[Span]) -> Shares {
    let context = device.context;
    let (host, own) = (merged(context, None), merged(context, Some(device.process)));
    let ground = &context.breakdown().ground;
    let mut shares = Shares::default();
    for &span in spans {
        host.sweep(&own, span, |piece, host, device| {
            shares.add(owner(host, device, ground, piece.start), piece.dur());
        });
    }
    shares
}

/// Lengths of a kernel's runs: with pages moving, and without.
type Runs = (Vec<Dur>, Vec<Dur>);

fn held_up(device: &Device, windows: &Windows, spans: &[Span]) -> (Dur, Option<HeldUp>) {
    let trace = device.context.trace;
    let keys = LaunchKeys::of(trace);
    let mut runs: FxHashMap<(KindId, LaunchConfig), Runs> = FxHashMap::default();
    for track in device.streams() {
        for index in device.counted(windows, track) {
            let kind = track.kind_of(index);
            if device.context.vocabulary().role(kind) != Role::Kernel {
                continue;
            }
            let span = track.span_of(index);
            let moving = overlaps(spans, span);
            let (with, without) = runs.entry((kind, keys.read(trace.args_at(track, index)))).or_default();
            if moving { with } else { without }.push(span.dur());
        }
    }
    let mut all = Dur::ZERO;
    let mut worst: Option<(Dur, KindId, HeldUp)> = None;
    for ((kind, _), (with, without)) in runs {
        if with.is_empty() || without.len() < LEAST_RUNS {
            continue;
        }
        let usual = median_duration(without.iter().copied());
        let lost: Dur = with.iter().map(|&run| (run - usual).at_least_zero()).sum();
        all += lost;
        if worst.as_ref().is_none_or(|(most, known, _)| (lost, kind) > (*most, *known)) {
            let sum: Dur = with.iter().copied().sum();
            let mean = Dur::from_ps(sum.ps() / with.len() as i64);
            let name = trace.kind_name(kind).to_owned();
            worst = Some((lost, kind, HeldUp { name, runs: with.len() as u64, with: mean, without: usual }));
        }
    }
    let kernel = worst.filter(|(lost, ..)| !lost.is_zero()).map(|(_, _, kernel)| kernel);
    (all, kernel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown::Category;
    use crate::context::Context;
    use crate::devices::bottleneck::DeviceDetail;
    use crate::sketch::{Arg, Sketch};

    /// Four steps of 1 ms with a kernel of 20 µs and one of 200 µs during which 30 µs of pages move.
    fn unified(copy: &str) -> Unified {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("worker"), sketch.stream());
        let migrations = sketch.second_stream(stream);
        sketch.steps(thread, 4, 1_000);
        for turn in 0..4 {
            let at = turn * 1_000;
            sketch.event_of(stream, "kernel", "flags", at + 100, 20, &[]);
            sketch.event_of(stream, "kernel", "flags", at + 300, 200, &[]);
            let bytes = [("bytes", Arg::Int(65_536))];
            sketch.event_of(migrations, "gpu_memcpy", copy, at + 350, 30, &bytes);
        }
        let trace = sketch.finish();
        DeviceDetail::of(&Context::new(&trace, "host")).unwrap_or_default().unified
    }

    #[test]
    fn runs_with_migrations_are_compared_with_runs_without() {
        let found = unified("Memcpy HtoD (Unified)");
        assert_eq!((found.moved[0].copies, found.moved[0].bytes), (4, Some(4 * 65_536)));
        assert_eq!(found.shares.get(Category::Compute), Dur::from_us(4 * 30));
        assert_eq!(found.held_up, Dur::from_us(4 * 180));
        let kernel = found.kernel.unwrap();
        assert_eq!((kernel.runs, kernel.with, kernel.without), (4, Dur::from_us(200), Dur::from_us(20)));
    }

    #[test]
    fn other_copies_are_not_migrations() {
        assert_eq!(unified("Memcpy HtoD (Pinned -> Device)"), Unified::default());
    }
}
