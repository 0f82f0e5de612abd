//! How full the bottleneck device is while its kernels run: a kernel of one thread keeps it as busy as one of a
//! million, and the timeline shows no difference.
//!
//! Kernels that run at the same time fill the device together. Kernels without a launch configuration count as
//! if they filled it, and so do those that only run for microseconds: their start and end last as long, whatever
//! the number of their threads.

use std::collections::{BTreeSet, BinaryHeap};

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, KindId, Span, Time};

use super::Device;
use super::unified::overlaps;
use crate::vocabulary::Role;
use crate::window::Windows;
use crate::work::kernels::{LaunchConfig, LaunchKeys, filled};

/// Kernels that together occupy less than this share of the device's threads leave it nearly empty. One block of
/// 128 threads on every multiprocessor, as persistent kernels have, is more than that.
pub const NEARLY_EMPTY: f64 = 0.05;
/// Shorter kernels take this long to start and to end.
const SHORT: Dur = Dur::from_us(10);

/// Parts of a full device. Whole numbers, so that sums do not drift.
const FULL: u32 = 1_000_000_000;

/// Time in which kernels leave the device nearly empty, in the counted steps.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Fill {
    /// The time in which any kernel runs.
    pub kernels: Dur,
    /// The part of it in which they leave the device nearly empty.
    pub nearly_empty: Dur,
    /// The mean share of the device's threads that are occupied meanwhile, 0 to 1.
    pub filled: f64,
    /// The kernel that takes most of this time.
    pub kernel: Option<EmptyKernel>,
}

/// A kernel that leaves the device nearly empty.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct EmptyKernel {
    /// Its name.
    pub name: String,
    /// Its time in a nearly empty device.
    pub time: Dur,
    /// Blocks of its grid.
    pub blocks: u64,
    /// Threads per block.
    pub threads: u32,
    /// Multiprocessors of the device.
    pub multiprocessors: u32,
}

/// One run of a kernel.
struct Run {
    span: Span,
    kind: KindId,
    /// What it occupies, in parts of a full device.
    parts: u32,
    /// The number of its launch configuration.
    config: u32,
    /// It waits for pages of unified memory.
    held_up: bool,
}

/// `moving` are the times in which pages of unified memory move.
pub(super) fn find(device: &Device, moving: &[Span]) -> Fill {
    let trace = device.context.trace;
    let properties = trace.process(device.process).device.and_then(|id| trace.devices().get(id.index()));
    let Some((properties, multiprocessors)) =
        properties.and_then(|device| Some((device, device.multiprocessors?)))
    else {
        return Fill::default();
    };
    let (keys, windows) = (LaunchKeys::of(trace), Windows::of(device.context));
    let mut configs: Vec<LaunchConfig> = vec![LaunchConfig::default()];
    let mut known: FxHashMap<LaunchConfig, (u32, u32)> = FxHashMap::default();
    let mut runs: Vec<Run> = Vec::new();
    for track in device.streams() {
        for index in device.counted(&windows, track) {
            let (kind, span) = (track.kind_of(index), track.span_of(index));
            if device.context.vocabulary().role(kind) != Role::Kernel || span.is_empty() {
                continue;
            }
            // Nothing is promised for short ones, so nobody has to know their launch.
            let (config, parts) = if span.dur() > SHORT {
                let config = keys.read(trace.args_at(track, index));
                *known.entry(config).or_insert_with(|| {
                    let share = filled(properties, &config).unwrap_or(1.0).clamp(0.0, 1.0);
                    configs.push(config);
                    ((configs.len() - 1) as u32, (share * f64::from(FULL)) as u32)
                })
            } else {
                (0, FULL)
            };
            runs.push(Run { span, kind, parts, config, held_up: overlaps(moving, span) });
        }
    }
    runs.sort_unstable_by_key(|run| (run.span.start, run.span.end));
    let swept = sweep(&runs, &long_kernels(&runs));
    let longest = swept.by_kind.into_iter().max_by_key(|&(kind, (time, _))| (time, std::cmp::Reverse(kind)));
    let kernel = longest.and_then(|(kind, (time, config))| {
        let config = configs.get(config as usize)?;
        Some(EmptyKernel {
            name: trace.kind_name(kind).to_owned(),
            time,
            blocks: config.blocks()?,
            threads: config.threads()?,
            multiprocessors,
        })
    });
    Fill { kernel, ..swept.fill }
}

/// The kernels whose usual run is not short. A run that waits for pages says nothing about its threads, if there are
/// others.
fn long_kernels(runs: &[Run]) -> FxHashSet<KindId> {
    let mut lengths: FxHashMap<KindId, [Vec<Dur>; 2]> = FxHashMap::default();
    for run in runs {
        lengths.entry(run.kind).or_default()[usize::from(run.held_up)].push(run.span.dur());
    }
    let usual = |[own, held_up]: &[Vec<Dur>; 2]| {
        median_duration(if own.is_empty() { held_up } else { own }.iter().copied())
    };
    lengths.iter().filter(|(_, all)| usual(all) > SHORT).map(|(kind, _)| *kind).collect()
}

#[derive(Default)]
struct Swept {
    fill: Fill,
    /// The time in a nearly empty device by kernel, with one of its launch configurations.
    by_kind: FxHashMap<KindId, (Dur, u32)>,
    /// The occupied share of the device times picoseconds.
    weighted: f64,
}

/// The kernels that run at an instant.
#[derive(Default)]
struct Open {
    /// By their ends, the first on top.
    ends: BinaryHeap<std::cmp::Reverse<(Time, usize)>>,
    parts: u64,
    /// Those that are not short.
    long: BTreeSet<usize>,
}

/// Walks through all starts and ends in time order.
fn sweep(runs: &[Run], lasting: &FxHashSet<KindId>) -> Swept {
    let (mut swept, mut open, mut now) = (Swept::default(), Open::default(), Time::MIN);
    for (index, run) in runs.iter().enumerate() {
        now = end_until(runs, run.span.start, now, &mut open, &mut swept);
        open.ends.push(std::cmp::Reverse((run.span.end, index)));
        open.parts += u64::from(run.parts);
        if lasting.contains(&run.kind) {
            open.long.insert(index);
        }
    }
    end_until(runs, Time::MAX, now, &mut open, &mut swept);
    if !swept.fill.nearly_empty.is_zero() {
        swept.fill.filled = swept.weighted / swept.fill.nearly_empty.ps() as f64;
    }
    swept
}

/// Ends what ends before `until`; returns the time up to which everything is counted.
fn end_until(runs: &[Run], until: Time, mut now: Time, open: &mut Open, swept: &mut Swept) -> Time {
    while let Some(&std::cmp::Reverse((end, index))) = open.ends.peek().filter(|ends| ends.0.0 <= until) {
        count(runs, Span::new(now, end), open, swept);
        open.ends.pop();
        open.parts -= u64::from(runs[index].parts);
        open.long.remove(&index);
        now = end;
    }
    count(runs, Span::new(now, until), open, swept);
    until
}

/// Counts a time in which the same kernels run.
fn count(runs: &[Run], span: Span, open: &Open, swept: &mut Swept) {
    if open.ends.is_empty() || span.is_empty() {
        return;
    }
    let time = span.dur();
    swept.fill.kernels += time;
    let share = open.parts as f64 / f64::from(FULL);
    let Some(run) = open.long.first().and_then(|&first| runs.get(first)).filter(|_| share < NEARLY_EMPTY)
    else {
        return;
    };
    swept.fill.nearly_empty += time;
    swept.weighted += share * time.ps() as f64;
    swept.by_kind.entry(run.kind).or_insert((Dur::ZERO, run.config)).0 += time;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::devices::bottleneck::DeviceDetail;
    use crate::sketch::{Arg, Sketch};

    const ONE_THREAD: &str = "regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:1,1,1";
    const FULL_GRID: &str = "regs:32 static_shared:0 dynamic_shared:0 grid:4096,1,1 block:256,1,1";

    /// One kernel of `us` with this launch per step of 1 ms, and a full one of 300 µs at `beside` on another stream.
    fn fill(details: &'static str, us: i64, beside: i64) -> Fill {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("python"), sketch.stream());
        let other = sketch.second_stream(stream);
        sketch.steps(thread, 4, 1_000);
        for turn in 0..4 {
            let at = turn * 1_000;
            sketch.event_of(stream, "kernel", "mine", at, us, &[("kernel_details", Arg::Text(details))]);
            let full = [("kernel_details", Arg::Text(FULL_GRID))];
            sketch.event_of(other, "kernel", "theirs", at + beside, 300, &full);
        }
        let trace = sketch.finish();
        DeviceDetail::of(&Context::new(&trace, "host")).unwrap_or_default().fill
    }

    #[test]
    fn a_kernel_of_one_thread_leaves_the_device_nearly_empty() {
        let found = fill(ONE_THREAD, 400, 600);
        assert_eq!((found.nearly_empty, found.kernels), (Dur::from_us(1_600), Dur::from_us(2_800)));
        assert!(found.filled < 1e-5, "{found:?}");
        let kernel = found.kernel.unwrap();
        assert_eq!((kernel.name.as_str(), kernel.blocks, kernel.threads), ("mine", 1, 1));
        assert_eq!(kernel.multiprocessors, 108);
    }

    #[test]
    fn kernels_that_run_together_fill_the_device_together() {
        let found = fill(ONE_THREAD, 400, 0);
        assert_eq!(found.nearly_empty, Dur::from_us(400), "300 of 400 µs have company");
        assert_eq!(found.kernels, Dur::from_us(1_600));
    }

    #[test]
    fn a_short_kernel_that_waits_for_pages_is_not_one_that_needs_threads() {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("worker"), sketch.stream());
        let pages = sketch.second_stream(stream);
        sketch.steps(thread, 4, 1_000);
        for turn in 0..4 {
            let (at, one) = (turn * 1_000, || [("kernel_details", Arg::Text(ONE_THREAD))]);
            sketch.event_of(stream, "kernel", "flag", at, 3, &one());
            sketch.event_of(stream, "kernel", "flag", at + 100, 300, &one());
            sketch.event_of(stream, "kernel", "flag", at + 500, 300, &one());
            for (name, begin) in [("Memcpy HtoD (Unified)", 110), ("Memcpy HtoD (Unified)", 510)] {
                sketch.event_of(pages, "gpu_memcpy", name, at + begin, 20, &[]);
            }
        }
        let trace = sketch.finish();
        let detail = DeviceDetail::of(&Context::new(&trace, "host")).unwrap_or_default();
        assert_eq!(detail.fill.nearly_empty, Dur::ZERO);
        assert_eq!(detail.unified.held_up, Dur::from_us(4 * 2 * 297));
    }

    #[test]
    fn full_grids_short_kernels_and_unknown_launches_do_not_count() {
        for (details, us) in [(FULL_GRID, 400), (ONE_THREAD, 10), ("", 400)] {
            let found = fill(details, us, 600);
            assert_eq!((found.nearly_empty, found.kernel), (Dur::ZERO, None), "{details} {us}");
        }
        // A persistent kernel: one block of four warps on each multiprocessor.
        let persistent = "regs:168 static_shared:0 dynamic_shared:0 grid:108,1,1 block:128,1,1";
        assert_eq!(fill(persistent, 400, 600).nearly_empty, Dur::ZERO);
    }
}
