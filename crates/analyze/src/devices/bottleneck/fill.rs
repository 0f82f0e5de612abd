//! How full the bottleneck device is while its kernels run: a kernel of one thread keeps it as busy as one of a
//! million, and the timeline shows no difference.
//!
//! Kernels that run at the same time fill the device together. Kernels without a launch configuration count as
//! if they filled it. What only runs for microseconds does not count: its start and its end last as long,
//! whatever the number of its threads.

use std::collections::BTreeSet;

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, KindId, Span, Time};

use super::Device;
use crate::vocabulary::Role;
use crate::window::Windows;
use crate::work::kernels::{LaunchConfig, LaunchKeys, filled};

/// Kernels that together occupy less than this share of the device's threads leave it nearly empty. One block of
/// 128 threads on every multiprocessor, as persistent kernels have, is more than that.
pub const NEARLY_EMPTY: f64 = 0.05;
/// Shorter kernels take this long to start and to end.
const SHORT: Dur = Dur::from_us(10);

/// Parts of a full device. Whole numbers, so that sums do not drift.
const FULL: u64 = 1_000_000_000;

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
    config: LaunchConfig,
    parts: u64,
}

pub(super) fn find(device: &Device) -> Fill {
    let trace = device.context.trace;
    let properties = trace.process(device.process).device.and_then(|id| trace.devices().get(id.index()));
    let Some((properties, multiprocessors)) =
        properties.and_then(|device| Some((device, device.multiprocessors?)))
    else {
        return Fill::default();
    };
    let (keys, windows) = (LaunchKeys::of(trace), Windows::of(device.context));
    let mut runs: Vec<Run> = Vec::new();
    for track in device.streams() {
        for index in device.counted(&windows, track) {
            let kind = track.kind_of(index);
            if device.context.vocabulary().role(kind) != Role::Kernel || track.dur(index).is_zero() {
                continue;
            }
            let config = keys.read(trace.args_at(track, index));
            let share = filled(properties, &config).unwrap_or(1.0);
            let parts = (share.clamp(0.0, 1.0) * FULL as f64) as u64;
            runs.push(Run { span: track.span_of(index), kind, config, parts });
        }
    }
    let swept = sweep(&runs, &long_kernels(&runs));
    let longest = swept.by_kind.into_iter().max_by_key(|&(kind, (time, _))| (time, std::cmp::Reverse(kind)));
    let kernel = longest.and_then(|(kind, (time, run))| {
        let config = runs.get(run)?.config;
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

/// The kernels whose usual run is not short. A run that a page fault or another process holds up says nothing about
/// its threads.
fn long_kernels(runs: &[Run]) -> FxHashSet<KindId> {
    let mut lengths: FxHashMap<KindId, Vec<Dur>> = FxHashMap::default();
    runs.iter().for_each(|run| lengths.entry(run.kind).or_default().push(run.span.dur()));
    let long = lengths.into_iter().filter(|(_, all)| median_duration(all.iter().copied()) > SHORT);
    long.map(|(kind, _)| kind).collect()
}

struct Swept {
    fill: Fill,
    /// The time in a nearly empty device by kernel, with one of its runs there.
    by_kind: FxHashMap<KindId, (Dur, usize)>,
}

/// Walks through all starts and ends in time order.
fn sweep(runs: &[Run], lasting: &FxHashSet<KindId>) -> Swept {
    // Ends come first: a kernel that starts where another one ends does not run beside it.
    let mut edges: Vec<(Time, bool, usize)> = runs
        .iter()
        .enumerate()
        .flat_map(|(run, Run { span, .. })| [(span.start, true, run), (span.end, false, run)])
        .collect();
    edges.sort_unstable();
    let mut swept = Swept { fill: Fill::default(), by_kind: FxHashMap::default() };
    let (mut open, mut parts, mut long) = (0_u64, 0_u64, BTreeSet::new());
    let mut weighted = 0.0;
    let limit = (NEARLY_EMPTY * FULL as f64) as u64;
    for pair in edges.windows(2) {
        let (at, starts, run) = pair[0];
        let Run { kind, parts: own, .. } = &runs[run];
        if starts {
            (open, parts) = (open + 1, parts.saturating_add(*own));
            if lasting.contains(kind) {
                long.insert(run);
            }
        } else {
            (open, parts) = (open.saturating_sub(1), parts.saturating_sub(*own));
            long.remove(&run);
        }
        let time = pair[1].0 - at;
        if open == 0 || time.is_zero() {
            continue;
        }
        swept.fill.kernels += time;
        let Some(&first) = long.first().filter(|_| parts < limit) else { continue };
        swept.fill.nearly_empty += time;
        weighted += parts as f64 / FULL as f64 * time.ps() as f64;
        swept.by_kind.entry(runs[first].kind).or_insert((Dur::ZERO, first)).0 += time;
    }
    if !swept.fill.nearly_empty.is_zero() {
        swept.fill.filled = weighted / swept.fill.nearly_empty.ps() as f64;
    }
    swept
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
