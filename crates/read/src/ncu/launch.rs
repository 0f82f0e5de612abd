//! Profiled launches → a trace.

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_trace::{
    ArgSourceId, Datum, Device, DeviceKind, Dur, Kind, NoteKind, ProcessKind, Property, StrId, Time, Trace,
    TraceBuilder, TrackId, TrackKind,
};

use super::units::to_base;
use crate::csv::number;

/// The metric for a kernel's duration, in nanoseconds.
const DURATION: &str = "gpu__time_duration.sum";
/// The same for the shortest and the longest of several launches.
const DURATION_ENDS: [&str; 2] = ["gpu__time_duration.min", "gpu__time_duration.max"];

/// One profiled launch of a kernel.
#[derive(Default)]
pub(super) struct Launch {
    pub name: String,
    pub device: Option<i64>,
    pub context: Option<i64>,
    pub stream: Option<i64>,
    pub grid: Option<[i64; 3]>,
    pub block: Option<[i64; 3]>,
    /// In a summary, the number of launches this is the mean of.
    pub invocations: Option<i64>,
    /// All metrics, in base units.
    pub metrics: Vec<(StrId, Datum)>,
    /// The names of metrics that were added one by one.
    pub measured: FxHashSet<StrId>,
}

impl Launch {
    /// Adds a metric as printed, unless it already exists.
    pub fn measure(&mut self, name: &str, text: &str, unit: &str, profile: &mut Profile) {
        let name = profile.builder.strings.intern(name);
        if !self.measured.contains(&name)
            && let Some(value) = profile.datum(text, unit)
        {
            self.measured.insert(name);
            self.metrics.push((name, value));
        }
    }

    /// Of a summary's metrics, only the shortest and longest duration are worth keeping.
    pub(crate) fn measure_ends(&mut self, name: &str, ends: [&str; 2], unit: &str, profile: &mut Profile) {
        if name == DURATION {
            for (name, text) in DURATION_ENDS.into_iter().zip(ends) {
                self.measure(name, text, unit, profile);
            }
        }
    }

    /// Adds a metric taken from a sentence, unless a figure exists.
    pub fn tell(&mut self, name: &str, value: f64, profile: &mut Profile) {
        let name = profile.builder.strings.intern(name);
        if self.measured.insert(name) {
            self.metrics.push((name, Datum::Float(value)));
        }
    }
}

/// A device's properties, by the names of ncu's attributes.
pub(super) type Attributes = FxHashMap<String, Datum>;

/// A trace under construction.
pub(super) struct Profile {
    pub builder: TraceBuilder,
    track: TrackId,
    at: Time,
    launches: u64,
    devices: FxHashSet<i64>,
    /// The first damage, and its position.
    pub broken: Option<(String, u64)>,
}

impl Profile {
    pub fn new() -> Self {
        let mut builder = TraceBuilder::new();
        builder.clock.resolution = Dur::from_ns(1);
        let name = builder.strings.intern("Nsight Compute");
        let process = builder.process(name, ProcessKind::Other, 0);
        let name = builder.strings.intern("profiled kernels");
        let track = builder.track(process, name, TrackKind::Derived, 0, ArgSourceId::default());
        Profile { builder, track, at: Time::ZERO, launches: 0, devices: FxHashSet::default(), broken: None }
    }

    /// Whether nothing was profiled.
    pub fn is_empty(&self) -> bool {
        self.launches == 0
    }

    /// A printed value in base units; `None` if there is none.
    pub fn datum(&mut self, text: &str, unit: &str) -> Option<Datum> {
        match number(text) {
            Some(value) => Some(Datum::Float(value * to_base(unit))),
            None if matches!(text.trim(), "" | "n/a" | "nan" | "inf" | "-nan" | "-inf" | "no data") => None,
            None => Some(Datum::Str(self.builder.strings.intern(text.trim()))),
        }
    }

    /// Adds a launch after the previous ones, or all launches of a summary.
    pub fn add(&mut self, mut launch: Launch) {
        self.launches += 1;
        let mut metric = |name: &str| {
            let key = self.builder.strings.intern(name);
            launch.metrics.iter().find(|(known, _)| *known == key).and_then(|&(_, value)| number_of(value))
        };
        let launches = launch.invocations.unwrap_or(1).max(1) as f64;
        let dur =
            metric(DURATION).map(|ns| ns * launches).filter(|ns| (0.0..9e15).contains(ns)).unwrap_or(0.0);
        let mut shape = |what: &str| {
            let mut side = |axis: &str| metric(&format!("launch__{what}_dim_{axis}")).map(|size| size as i64);
            Some([side("x")?, side("y").unwrap_or(1), side("z").unwrap_or(1)])
        };
        launch.grid = launch.grid.or_else(|| shape("grid"));
        launch.block = launch.block.or_else(|| shape("block"));
        let registers = metric("launch__registers_per_thread");
        let shared =
            ["static", "dynamic"].map(|part| metric(&format!("launch__shared_mem_per_block_{part}")));
        let shared = shared.into_iter().flatten().reduce(|a, b| a + b);
        let device = metric("launch__device_id").map(|id| id as i64);
        launch.device = launch.device.or(device);
        self.add_device_of(&launch);

        let common = self.common(&launch, registers, shared);
        let name = self.builder.strings.intern(&launch.name);
        let category = self.builder.strings.intern("ncu_kernel");
        let kind = self.builder.kind(Kind { category, ..Kind::slice(name) });
        let args = self.builder.arena.push(&launch.metrics, &common);
        let dur = Dur::from_ps((dur * 1e3).round() as i64);
        self.builder.event(self.track, self.at, dur, kind, args);
        self.at = self.at + dur;
    }

    /// Launch data that timelines also contain, in their spelling, so that both can be matched.
    fn common(
        &mut self,
        launch: &Launch,
        registers: Option<f64>,
        shared: Option<f64>,
    ) -> Vec<(StrId, Datum)> {
        let mut common = Vec::new();
        let numbers = [
            ("device", launch.device),
            ("context", launch.context),
            ("stream", launch.stream),
            ("invocations", launch.invocations),
            ("registers per thread", registers.map(|count| count as i64)),
            ("shared memory", shared.map(|bytes| bytes as i64)),
        ];
        for (key, value) in numbers {
            let key = self.builder.strings.intern(key);
            common.extend(value.map(|value| (key, Datum::Int(value))));
        }
        for (key, shape) in [("grid", launch.grid), ("block", launch.block)] {
            if let Some([x, y, z]) = shape {
                let key = self.builder.strings.intern(key);
                common.push((key, Datum::Json(self.builder.strings.intern(&format!("[{x}, {y}, {z}]")))));
            }
        }
        common
    }

    /// Pages repeat the device's attributes with every launch.
    fn add_device_of(&mut self, launch: &Launch) {
        let number = launch.device.unwrap_or(0);
        if self.devices.contains(&number) {
            return;
        }
        let mut attributes = Attributes::default();
        for &(key, value) in &launch.metrics {
            if let Some(name) = self.builder.strings.get(key).strip_prefix("device__attribute_") {
                attributes.insert(name.to_owned(), value);
            }
        }
        if !attributes.is_empty() {
            self.add_device(number, &attributes);
        }
    }

    /// Adds a device, once.
    pub(crate) fn add_device(&mut self, number: i64, attributes: &Attributes) {
        if !self.devices.insert(number) {
            return;
        }
        let known = |name: &str| {
            attributes
                .get(name)
                .and_then(|&value| number_of(value))
                .filter(|&value| value > 0.0 && value < 9e15)
        };
        let small =
            |name: &str| known(name).filter(|&value| value <= f64::from(u32::MAX)).map(|value| value as u32);
        let minor = attributes.get("compute_capability_minor").and_then(|&value| number_of(value));
        let capability = small("compute_capability_major").zip(minor.map(|minor| minor as u32));
        // Memory transfers data on both edges of its clock.
        let bandwidth = known("memory_clock_rate")
            .zip(known("global_memory_bus_width"))
            .map(|(khz, bits)| (khz * 1e3 * 2.0 * bits / 8.0) as u64);
        let name = match attributes.get("display_name") {
            Some(Datum::Str(name)) => *name,
            _ => StrId::default(),
        };
        let vendor = Some(self.builder.strings.intern("NVIDIA"));
        let mut sorted: Vec<_> = attributes.iter().collect();
        sorted.sort_unstable_by_key(|(name, _)| *name);
        let properties = sorted
            .into_iter()
            .map(|(name, &value)| Property { key: self.builder.strings.intern(name), value })
            .collect();
        self.builder.device(Device {
            name,
            vendor,
            multiprocessors: small("multiprocessor_count"),
            clock_khz: known("clock_rate").map(|khz| khz as u64),
            memory_bytes: known("total_memory").map(|bytes| bytes as u64),
            memory_bandwidth: bandwidth,
            compute_capability: capability,
            warp_size: small("warp_size"),
            max_threads_per_multiprocessor: small("max_threads_per_multiprocessor"),
            max_blocks_per_multiprocessor: small("max_blocks_per_multiprocessor"),
            registers_per_multiprocessor: small("max_registers_per_multiprocessor"),
            shared_memory_per_multiprocessor: known("max_shared_memory_per_multiprocessor")
                .map(|bytes| bytes as u64),
            properties,
            ..Device::new(DeviceKind::Gpu, number)
        });
    }

    /// Notes damage at a position in the file.
    pub fn damaged(&mut self, what: &str, at: usize) {
        self.broken.get_or_insert_with(|| (what.to_owned(), at as u64));
        self.builder.note(NoteKind::Damaged, what, 1, Some(at as u64));
    }

    pub fn finish(self) -> Trace {
        self.builder.finish()
    }
}

fn number_of(value: Datum) -> Option<f64> {
    match value {
        Datum::Int(value) => Some(value as f64),
        Datum::UInt(value) => Some(value as f64),
        Datum::Float(value) => Some(value).filter(|value| value.is_finite()),
        _ => None,
    }
}
