//! Samples → counter tracks, one process per GPU.

use rustc_hash::FxHashMap;
use stepscope_trace::{
    ArgSourceId, Device, DeviceKind, Dur, NoteKind, ProcessId, ProcessKind, StrId, Time, Trace, TraceBuilder,
    TrackId, TrackKind,
};

use super::fields::Metric;

/// More GPUs than any machine has: a larger number means that a column was misread.
const MOST_GPUS: usize = 1_024;

/// A counter trace under construction.
pub(super) struct GpuSamples {
    builder: TraceBuilder,
    /// The log's name of a GPU → its number, process and model.
    gpus: FxHashMap<String, Gpu>,
    /// The process of each number.
    processes: FxHashMap<i64, ProcessId>,
    /// The lowest number that may be free.
    next: i64,
    tracks: FxHashMap<(i64, Metric), TrackId>,
    origin: Option<i64>,
    pub samples: u64,
    /// Unreadable rows.
    pub broken: u64,
    /// Number columns without a known meaning.
    pub unnamed: u64,
}

#[derive(Copy, Clone)]
struct Gpu {
    number: i64,
    process: ProcessId,
    name: StrId,
}

impl GpuSamples {
    pub fn new() -> Self {
        GpuSamples {
            builder: TraceBuilder::new(),
            gpus: FxHashMap::default(),
            processes: FxHashMap::default(),
            next: 0,
            tracks: FxHashMap::default(),
            origin: None,
            samples: 0,
            broken: 0,
            unnamed: 0,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.samples == 0
    }

    /// The trace starts at the wall-clock time of the first sample.
    pub(crate) fn start_at(&mut self, wall_ns: i64) -> i64 {
        *self.origin.get_or_insert(wall_ns)
    }

    /// The number of the GPU that the log calls `key`; `None` if there are too many.
    pub fn gpu(&mut self, key: &str, model: Option<&str>) -> Option<i64> {
        if let Some(gpu) = self.gpus.get_mut(key) {
            if gpu.name == StrId::default()
                && let Some(model) = model
            {
                gpu.name = self.builder.strings.intern(model);
            }
            return Some(gpu.number);
        }
        if self.gpus.len() >= MOST_GPUS {
            return None;
        }
        let taken = |number: i64| self.processes.contains_key(&number);
        // The log's own index is kept; other identifiers are numbered in order of appearance.
        let index = key.rsplit(' ').next().and_then(|index| index.parse().ok());
        let index = index.filter(|&index: &i64| (0..MOST_GPUS as i64).contains(&index) && !taken(index));
        let number = index.unwrap_or_else(|| (self.next..).find(|&number| !taken(number)).unwrap_or(0));
        // Numbers are never given back, so those below stay taken.
        self.next = if index.is_none() { number + 1 } else { self.next };
        let name = self.builder.strings.intern(&format!("GPU {number}"));
        let process = self.builder.process(name, ProcessKind::Device, number);
        let name = model.map(|model| self.builder.strings.intern(model)).unwrap_or_default();
        self.processes.insert(number, process);
        self.gpus.insert(key.to_owned(), Gpu { number, process, name });
        Some(number)
    }

    /// Adds a sample.
    pub fn sample(&mut self, gpu: i64, metric: &Metric, at: Time, value: f64) {
        let key = (gpu, metric.clone());
        let track = match self.tracks.get(&key) {
            Some(&track) => track,
            None => {
                let name = match metric.unit {
                    "" => metric.name.clone(),
                    unit => format!("{} [{unit}]", metric.name),
                };
                let name = self.builder.strings.intern(&name);
                let Some(&process) = self.processes.get(&gpu) else { return };
                let number = self.tracks.len() as i64;
                let track =
                    self.builder.track(process, name, TrackKind::Counter, number, ArgSourceId::default());
                self.tracks.insert(key, track);
                track
            }
        };
        self.samples += 1;
        self.builder.sample(track, at, value);
    }

    pub fn finish(mut self) -> Trace {
        self.builder.note(NoteKind::Damaged, "rows that are not samples", self.broken, None);
        self.builder.note(NoteKind::Unnamed, "", self.unnamed, None);
        self.builder.clock.resolution = Dur::from_us(1_000);
        self.builder.clock.wall_ns_at_origin = self.origin;
        let mut gpus: Vec<Gpu> = self.gpus.into_values().collect();
        gpus.sort_unstable_by_key(|gpu| gpu.number);
        let vendor = Some(self.builder.strings.intern("NVIDIA"));
        for gpu in gpus {
            let device = Device::new(DeviceKind::Gpu, gpu.number);
            self.builder.device(Device { name: gpu.name, vendor, process: Some(gpu.process), ..device });
        }
        self.builder.finish()
    }
}
