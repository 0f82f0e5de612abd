//! Kernels: what runs on GPUs, how it was launched, by which op, and how long it was queued.
//!
//! One row per kernel name, over the counted steps. A name may be launched in many configurations: the row
//! shows the one that takes the most time and the number of configurations. One partial result per host
//! ([`KernelsPartial::of`]) → [`KernelsPartial::merge`] → [`KernelsPartial::finish`].

mod launch;
mod occupancy;
mod tensor_core;

use std::collections::BTreeSet;

use hashbrown::HashMap;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Device, DeviceKind, Dur, ProcessKind, Trace, Track, TrackKind};

use crate::analysis::Analysis;
use crate::context::Context;
use crate::stored::keep_largest;
use crate::vocabulary::Role;
use crate::window::{Window, Windows};
use crate::work::ops::OTHER;
use crate::work::ops::OpTable;
use crate::work::ops::launching_op::{LaunchingOps, OpKeys};

pub use launch::{LaunchConfig, LaunchKeys};
pub use occupancy::{Limiter, Occupancy, filled, theoretical, waves};
pub use tensor_core::{is_product_without, uses_tensor_cores};

/// Number of values kept per kernel name (configurations, ops, streams); later ones are only counted.
const KEPT: usize = 64;

/// Source of a kernel's occupancy.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum OccupancySource {
    /// Reported by the profile.
    Reported,
    /// Computed from the launch and the device's properties: the theoretical one.
    Computed,
}

/// A launch configuration with the values derived from it.
#[derive(Copy, Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
struct Launched {
    config: LaunchConfig,
    computed: Option<Occupancy>,
    waves: Option<(f64, f64)>,
    #[serde(default)]
    filled: Option<f64>,
}

/// Something and the time that it took.
type Timed<T> = Vec<(T, Dur)>;

fn took<T: PartialEq>(all: &mut Timed<T>, what: T, time: Dur) {
    let full = all.len() >= KEPT;
    match all.iter_mut().find(|(known, _)| *known == what) {
        Some((_, known)) => *known += time,
        None if !full => all.push((what, time)),
        None => {}
    }
}

fn longest<T>(all: &Timed<T>) -> Option<&T> {
    // The first of equals wins.
    all.iter().rev().max_by_key(|(_, time)| *time).map(|(what, _)| what)
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Entry {
    count: u64,
    total: Dur,
    min: Option<Dur>,
    max: Dur,
    launches: Timed<Launched>,
    ops: Timed<String>,
    streams: Timed<i64>,
    devices: Timed<String>,
    /// Kernels whose launch was recorded, with the time since its start and since its end.
    delayed: u64,
    delay: Dur,
    queue: Dur,
    /// It exchanges data with other devices.
    collective: bool,
}

impl Entry {
    fn add(&mut self, other: Entry) {
        self.count += other.count;
        self.total += other.total;
        self.min = [self.min, other.min].into_iter().flatten().min();
        self.max = self.max.max(other.max);
        other.launches.into_iter().for_each(|(what, time)| took(&mut self.launches, what, time));
        other.ops.into_iter().for_each(|(what, time)| took(&mut self.ops, what, time));
        other.streams.into_iter().for_each(|(what, time)| took(&mut self.streams, what, time));
        other.devices.into_iter().for_each(|(what, time)| took(&mut self.devices, what, time));
        self.delayed += other.delayed;
        self.delay += other.delay;
        self.queue += other.queue;
        self.collective |= other.collective;
    }
}

/// The kernels of one host, or of several merged.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct KernelsPartial {
    window: Window,
    /// Number of devices that ran any of them, times the number of windows.
    device_windows: usize,
    devices: usize,
    #[serde(with = "crate::stored::sorted")]
    entries: HashMap<String, Entry, FxBuildHasher>,
}

impl Analysis for KernelsPartial {
    type Output = Kernels;

    /// The kernels of one host.
    fn of(context: &Context) -> Self {
        let trace = context.trace;
        let windows = Windows::of(context);
        let table = OpTable::of(trace, context.vocabulary());
        let pass = Pass {
            context,
            windows: &windows,
            keys: OpKeys::of(trace),
            launch_keys: LaunchKeys::of(trace),
            owners: LaunchingOps::of(context, &table),
            table: &table,
        };
        let found: Vec<_> = trace
            .tracks()
            .par_iter()
            .filter(|track| track.kind == TrackKind::Stream)
            .filter(|track| trace.process(track.process).kind == ProcessKind::Device)
            // TPUs run ops, not kernels.
            .filter(|track| device_of(trace, track).is_none_or(|device| device.kind != DeviceKind::Tpu))
            .map(|track| (track.process, pass.walk(track)))
            .filter(|(_, found)| !found.is_empty())
            .collect();
        let devices = found.iter().map(|(process, _)| *process).collect::<BTreeSet<_>>().len();
        let mut entries: HashMap<String, Entry, FxBuildHasher> = HashMap::default();
        for (kind, entry) in found.into_iter().flat_map(|(_, found)| found) {
            entries.entry(trace.kind_name(kind).to_owned()).or_default().add(entry);
        }
        let steps = match windows.window {
            Window::Steps(steps) => steps,
            Window::WholeCapture => 1,
        };
        KernelsPartial { window: windows.window, device_windows: devices * steps, devices, entries }
    }

    /// Adds another host.
    fn merge(&mut self, other: KernelsPartial) {
        // A host without steps adds nothing to a mean step.
        self.device_windows = match (self.window, other.window) {
            (Window::WholeCapture, Window::Steps(_)) => other.device_windows,
            (Window::Steps(_), Window::WholeCapture) => self.device_windows,
            _ => self.device_windows + other.device_windows,
        };
        self.devices += other.devices;
        self.window = self.window.merge(other.window);
        for (name, entry) in other.entries {
            self.entries.entry(name).or_default().add(entry);
        }
    }

    /// Keeps the longest kernels and the sum of the others.
    fn bound(&mut self) {
        const KERNELS: usize = 512;
        if self.entries.len() <= KERNELS {
            return;
        }
        let (kept, rest) = keep_largest(self.entries.drain(), KERNELS, |entry| entry.total);
        self.entries = kept.into_iter().collect();
        for (_, entry) in rest {
            self.entries.entry(OTHER.to_owned()).or_default().add(entry);
        }
    }

    /// Ranks the kernels, longest first.
    fn finish(self) -> Kernels {
        let all: Dur = self.entries.values().map(|entry| entry.total).sum();
        let mut rows: Vec<KernelRow> =
            self.entries.into_iter().map(|(name, entry)| KernelRow::new(name, entry, all)).collect();
        rows.sort_by(|a, b| b.total_ms.total_cmp(&a.total_ms).then_with(|| a.name.cmp(&b.name)));
        Kernels { window: self.window, device_windows: self.device_windows, devices: self.devices, rows }
    }
}

fn device_of<'t>(trace: &'t Trace, track: &Track) -> Option<&'t Device> {
    trace.devices().get(trace.process(track.process).device?.index())
}

struct Pass<'c, 't> {
    context: &'c Context<'t>,
    windows: &'c Windows,
    keys: OpKeys,
    launch_keys: LaunchKeys,
    owners: LaunchingOps,
    table: &'c OpTable,
}

impl Pass<'_, '_> {
    fn walk(&self, track: &Track) -> HashMap<stepscope_trace::KindId, Entry, FxBuildHasher> {
        let (trace, vocabulary) = (self.context.trace, self.context.vocabulary());
        let device = device_of(trace, track);
        let device_name = trace.str(trace.process(track.process).name);
        let mut windows = self.windows.of_track(trace, track);
        let mut found: HashMap<_, Entry, FxBuildHasher> = HashMap::default();
        for index in 0..track.len() {
            let kind = track.kind_of(index);
            let start = track.start(index);
            if !matches!(vocabulary.role(kind), Role::Kernel | Role::Collective) || !windows.counts(start) {
                continue;
            }
            let time = track.dur(index);
            let args = trace.args_at(track, index);
            let entry = found.entry(kind).or_default();
            entry.count += 1;
            entry.collective |= vocabulary.role(kind) == Role::Collective;
            entry.total += time;
            entry.min = Some(entry.min.map_or(time, |min| min.min(time)));
            entry.max = entry.max.max(time);
            took(&mut entry.launches, launched(self.launch_keys.read(args), device), time);
            took(&mut entry.streams, track.number, time);
            if entry.devices.is_empty() {
                entry.devices.push((device_name.to_owned(), Dur::ZERO));
            }
            if let Some((_, known)) = entry.devices.first_mut() {
                *known += time;
            }
            let work = track.event_id(index);
            let named = self.keys.named(args, trace.kind_name(kind)).map(|op| op.name);
            let owner = || self.owners.op_of(work).and_then(|op| self.table.ops.get(op as usize));
            if let Some(op) = named.or_else(|| owner().map(|(name, _)| name.clone())) {
                took(&mut entry.ops, op, time);
            }
            if let Some(launch) = self.context.launches().of_work(work) {
                let call = trace.track(launch.call.track).end(launch.call.index as usize);
                entry.delayed += 1;
                entry.delay += (start - launch.called).at_least_zero();
                entry.queue += (start - call).at_least_zero();
            }
        }
        found
    }
}

fn launched(config: LaunchConfig, device: Option<&Device>) -> Launched {
    let computed = device.and_then(|device| theoretical(device, &config));
    let waves = device.zip(computed).and_then(|(device, found)| waves(device, &config, found.blocks));
    let filled = device.and_then(|device| filled(device, &config).filter(|_| is_small(device, &config)));
    Launched { config, computed, waves, filled }
}

/// Whether a grid has too few blocks for half of the multiprocessors.
fn is_small(device: &Device, config: &LaunchConfig) -> bool {
    config.blocks().zip(device.multiprocessors).is_some_and(|(blocks, all)| blocks <= u64::from(all / 2))
}

/// One kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelRow {
    /// Its name as recorded.
    pub name: String,
    /// How often it ran.
    pub count: u64,
    /// Its total time, in milliseconds.
    pub total_ms: f64,
    /// Its shortest run, in milliseconds.
    pub min_ms: f64,
    /// Its longest run, in milliseconds.
    pub max_ms: f64,
    /// The share of the time of all kernels.
    pub fraction: f64,
    /// The configuration that takes the most time.
    pub launch: LaunchConfig,
    /// Number of configurations.
    pub configurations: usize,
    /// Milliseconds by configuration.
    pub by_launch: Vec<(LaunchConfig, f64)>,
    /// Occupancy of that configuration, 0 to 1.
    pub occupancy: Option<f64>,
    /// Source of the occupancy.
    pub occupancy_source: Option<OccupancySource>,
    /// What limits the theoretical occupancy.
    pub limiter: Option<Limiter>,
    /// How often the grid fills the device.
    pub waves: Option<f64>,
    /// The share of slots that stay empty because the last wave is not full.
    pub tail: Option<f64>,
    /// The share of the device's threads that it occupies at most, 0 to 1, if most multiprocessors have no block of it.
    pub filled: Option<f64>,
    /// Whether it uses the matrix units; `None` if its name does not say.
    pub tensor_core: Option<bool>,
    /// The op that launched most of it.
    pub op: Option<String>,
    /// Mean time from the start of the launching call to its own start, in milliseconds.
    pub launch_delay_ms: Option<f64>,
    /// Mean time from the end of the launching call to its own start, in milliseconds.
    pub queue_ms: Option<f64>,
    /// The stream on which it took the most time.
    pub stream: Option<i64>,
    /// The device on which it took the most time.
    pub device: Option<String>,
    /// True if it exchanges data with other devices instead of computing.
    pub collective: bool,
}

impl KernelRow {
    fn new(name: String, entry: Entry, all: Dur) -> Self {
        let mean = |sum: Dur| (entry.delayed > 0).then(|| sum.ms() / entry.delayed as f64);
        let main = longest(&entry.launches);
        let config = main.map_or_else(LaunchConfig::default, |launched| launched.config);
        let computed = main.and_then(|launched| launched.computed);
        let reported = config.reported_occupancy.map(|hundredths| f64::from(hundredths) / 1e4);
        let theirs = reported.map(|fraction| (fraction, OccupancySource::Reported));
        let ours = computed.map(|found| (found.fraction, OccupancySource::Computed));
        let occupancy = theirs.or(ours);
        KernelRow {
            tensor_core: uses_tensor_cores(&name),
            name,
            count: entry.count,
            total_ms: entry.total.ms(),
            min_ms: entry.min.unwrap_or_default().ms(),
            max_ms: entry.max.ms(),
            fraction: entry.total.fraction_of(all),
            launch: config,
            configurations: entry.launches.len(),
            by_launch: entry.launches.iter().map(|(launched, time)| (launched.config, time.ms())).collect(),
            occupancy: occupancy.map(|(fraction, _)| fraction),
            occupancy_source: occupancy.map(|(_, source)| source),
            limiter: computed.map(|found| found.limiter),
            waves: main.and_then(|launched| launched.waves).map(|(waves, _)| waves),
            tail: main.and_then(|launched| launched.waves).map(|(_, tail)| tail),
            filled: main.and_then(|launched| launched.filled),
            op: longest(&entry.ops).cloned(),
            launch_delay_ms: mean(entry.delay),
            queue_ms: mean(entry.queue),
            stream: longest(&entry.streams).copied(),
            device: longest(&entry.devices).cloned(),
            collective: entry.collective,
        }
    }

    /// The mean time of a run, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        if self.count > 0 { self.total_ms / self.count as f64 } else { 0.0 }
    }
}

/// All kernels, longest first.
#[derive(Clone, Debug)]
pub struct Kernels {
    /// What totals cover.
    pub window: Window,
    /// Number of devices that ran any of them, times the number of steps.
    device_windows: usize,
    /// Number of devices that ran any of them.
    pub devices: usize,
    /// One row per kernel name.
    pub rows: Vec<KernelRow>,
}

impl Kernels {
    /// A total per step and device; per device over the whole capture if there are no steps.
    pub fn on_each(&self, total: f64) -> f64 {
        total / self.device_windows.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{Arg, Sketch};

    #[test]
    fn only_a_grid_for_few_multiprocessors_is_said_to_fill_little() {
        let device = Device {
            compute_capability: Some((8, 0)),
            multiprocessors: Some(108),
            ..Device::new(DeviceKind::Gpu, 0)
        };
        let filled = |blocks| {
            let (grid, block) = (Some([blocks, 1, 1]), Some([128, 1, 1]));
            let config = LaunchConfig { grid, block, registers: Some(32), ..LaunchConfig::default() };
            launched(config, Some(&device)).filled
        };
        assert!(filled(54).is_some_and(|share| share < 0.05));
        assert_eq!(filled(90), None, "a product that fills its tiles may have no more blocks");
    }

    #[test]
    fn a_kernel_has_its_launch_its_op_and_its_delay() {
        let mut sketch = Sketch::new();
        let python = sketch.thread("python");
        sketch.steps(python, 3, 1_000);
        let stream = sketch.stream();
        for step in 0..3 {
            let at = step * 1_000;
            let id = || ("correlation_id", Arg::Int(step + 1));
            sketch.event(python, "cuLaunchKernel", at + 100, 20, &[id()]);
            let details = "regs:64 static_shared:0 dynamic_shared:0 grid:216,1,1 block:256,1,1";
            let args =
                [id(), ("kernel_details", Arg::Text(details)), ("tf_op", Arg::Text("d/MatMul:MatMul"))];
            sketch.event(stream, "ampere_sgemm_128x64_tn", at + 150, 100 + step, &args);
            sketch.event(stream, "MemcpyH2D", at + 500, 10, &[]);
        }
        let trace = sketch.finish();
        let kernels = KernelsPartial::of(&Context::new(&trace, "host")).finish();
        assert_eq!(kernels.rows.len(), 1, "a copy is not a kernel");
        let row = &kernels.rows[0];
        assert_eq!((row.count, row.min_ms, row.max_ms), (3, 0.1, 0.102));
        assert_eq!(row.op.as_deref(), Some("d/MatMul"));
        let near = |value: Option<f64>, want: f64| value.is_some_and(|value| (value - want).abs() < 1e-9);
        assert!(near(row.launch_delay_ms, 0.05) && near(row.queue_ms, 0.03), "{row:?}");
        assert_eq!((row.occupancy, row.occupancy_source), (Some(0.5), Some(OccupancySource::Computed)));
        assert_eq!((row.limiter, row.waves, row.tail), (Some(Limiter::Registers), Some(0.5), Some(0.5)));
        assert_eq!(row.tensor_core, Some(false));
    }
}
