//! Hardware counters of single kernels from Nsight Compute: why a kernel takes as long as it does.
//!
//! One row per kernel and launch configuration, with means over its launches weighted by time. What was not
//! collected is `None`. One partial result per host ([`CountersPartial::of`]) → [`CountersPartial::merge`] →
//! [`CountersPartial::finish`]. Shares are 0 to 1.

mod join;
mod metrics;
mod rates;
#[cfg(test)]
mod tests;
mod useful;

use hashbrown::HashMap;
use rustc_hash::{FxBuildHasher, FxHashMap};
use stepscope_trace::{Args, Dur, StrId, Trace};

use crate::analysis::Analysis;
use crate::context::Context;
use crate::vocabulary::launch_tracks;

use crate::work::gpu_specs::peaks_of;
use crate::work::kernels::{LaunchConfig, LaunchKeys, Limiter};
pub use join::Join;
use metrics::{Figures, Means, Metric, Names};
use rates::{
    arithmetic, bank_conflicts, dram, dram_limit, excess_sectors, flops_per_s, limiter, over, passes,
    sectors, stall, stalls, traffic,
};
pub use useful::{Unit, Waste};

/// Whether kernels were profiled without any counter that shows what limits them. Times alone do not.
pub fn lacks_limits(trace: &Trace) -> bool {
    let names = Names::of(trace);
    let mut profiled = false;
    for track in launch_tracks(trace) {
        profiled = true;
        // A metric may have a name in the report but no value.
        if (0..track.len()).any(|index| names.read(trace.args_at(track, index)).tell_limits()) {
            return false;
        }
    }
    profiled
}

/// A kernel and its launch configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
struct Key {
    name: String,
    launch: LaunchConfig,
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Entry {
    launches: u64,
    total: Dur,
    min: Option<Dur>,
    max: Dur,
    means: Means,
}

/// The profiled kernels of one host, or of several merged.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct CountersPartial {
    #[serde(with = "crate::stored::sorted")]
    entries: HashMap<Key, Entry, FxBuildHasher>,
}

impl Analysis for CountersPartial {
    type Output = Counters;

    /// The profiled kernels of one host.
    fn of(context: &Context) -> Self {
        let trace = context.trace;
        let mut found = CountersPartial::default();
        let mut tracks = launch_tracks(trace).peekable();
        if tracks.peek().is_none() {
            return found;
        }
        let (names, launches) = (Names::of(trace), LaunchKeys::of(trace));
        let ceilings = Ceilings::of(trace);
        for track in tracks {
            for index in 0..track.len() {
                let args = trace.args_at(track, index);
                let name = trace.kind_name(track.kind_of(index)).to_owned();
                let entry = found.entries.entry(Key { name, launch: launches.read(args) }).or_default();
                let mut figures = names.read(args);
                ceilings.complete(&mut figures, args);
                entry.add(figures, track.dur(index));
            }
        }
        found
    }

    /// Adds another host.
    fn merge(&mut self, other: CountersPartial) {
        for (key, entry) in other.entries {
            let own = self.entries.entry(key).or_default();
            own.launches = own.launches.saturating_add(entry.launches);
            own.total += entry.total;
            own.min = [own.min, entry.min].into_iter().flatten().min();
            own.max = own.max.max(entry.max);
            own.means.merge(&entry.means);
        }
    }

    /// Keeps the longest kernels.
    fn bound(&mut self) {
        const KERNELS: usize = 512;
        if self.entries.len() > KERNELS {
            let kept = crate::stored::keep_largest(self.entries.drain(), KERNELS, |entry| entry.total).0;
            self.entries = kept.into_iter().collect();
        }
    }

    /// Ranks the kernels, longest first.
    fn finish(self) -> Counters {
        let all: Dur = self.entries.values().map(|entry| entry.total).sum();
        let mut kernels: Vec<KernelCounters> =
            self.entries.into_iter().map(|(key, entry)| KernelCounters::new(key, &entry, all)).collect();
        kernels.sort_by(|a, b| {
            let sides = |kernel: &KernelCounters| (kernel.launch.grid, kernel.launch.block);
            b.total_ms
                .total_cmp(&a.total_ms)
                .then_with(|| a.name.cmp(&b.name))
                .then_with(|| sides(a).cmp(&sides(b)))
        });
        Counters { kernels }
    }
}

impl Entry {
    /// Adds a launch, or as many as a summary covers, with their total time.
    fn add(&mut self, mut figures: Figures, dur: Dur) {
        let launches = figures.get(Metric::Invocations).map_or(1, |launches| (launches as u64).max(1));
        let mean = Dur::from_ps(dur.ps() / i64::try_from(launches).unwrap_or(i64::MAX));
        let end = |metric| figures.get(metric).map_or(mean, |ns| Dur::from_ps((ns * 1e3) as i64));
        let (shortest, longest) = (end(Metric::Shortest).min(mean), end(Metric::Longest).max(mean));
        self.launches = self.launches.saturating_add(launches);
        self.total += dur;
        self.min = Some(self.min.map_or(shortest, |min| min.min(shortest)));
        self.max = self.max.max(longest);
        figures.derive_rates(mean.secs());
        // Launches without a collected time count too, but very little.
        self.means.add(&figures, (dur.ps() as f64).max(launches as f64));
    }
}

/// Peaks of devices, for reports that do not say how close a kernel came to them.
struct Ceilings {
    /// The argument with the device.
    key: Option<StrId>,
    /// By the number of the device.
    devices: FxHashMap<i64, Ceiling>,
}

/// The peaks of one device, in bytes and operations per second.
struct Ceiling {
    device: i64,
    /// Memory, from the device's own clock and bus width.
    memory: Option<f64>,
    sheet_memory: Option<f64>,
    /// 32-bit arithmetic.
    sheet_flops: Option<f64>,
}

impl Ceilings {
    fn of(trace: &Trace) -> Self {
        let devices = trace.devices().iter().map(|device| {
            let sheet = peaks_of(trace.str(device.name));
            Ceiling {
                device: device.number,
                memory: device.memory_bandwidth.map(|bytes| bytes as f64),
                sheet_memory: sheet.map(|sheet| sheet.memory * 1e9),
                sheet_flops: sheet.and_then(|sheet| sheet.fp32).map(|rate| rate * 1e12),
            }
        });
        // The first of equal numbers counts.
        let mut by_number = FxHashMap::default();
        for ceiling in devices {
            by_number.entry(ceiling.device).or_insert(ceiling);
        }
        Ceilings { key: trace.strings().find("device"), devices: by_number }
    }

    fn complete(&self, figures: &mut Figures, args: Args<'_>) {
        let number = self.key.and_then(|key| args.get(key)).and_then(|number| number.as_i64()).unwrap_or(0);
        if let Some(ceiling) = self.devices.get(&number) {
            figures.set(Metric::DramPeak, ceiling.memory);
            figures.set(Metric::SheetDramPeak, ceiling.sheet_memory);
            figures.set(Metric::SheetFlopPeak, ceiling.sheet_flops);
        }
    }
}

/// All profiled kernels, longest first.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    /// One per kernel and launch configuration.
    pub kernels: Vec<KernelCounters>,
}

/// How global memory is accessed in one direction.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Access {
    /// Number of 32-byte sectors that a warp's request touches; 4 is ideal for 4-byte lanes, 16 for 16-byte
    /// lanes.
    pub sectors_per_request: Option<f64>,
    /// Requested bytes, of the 32 bytes of a sector.
    pub bytes_per_sector: Option<f64>,
    /// Number of sectors.
    sectors: Option<f64>,
}

/// Requests with 16-byte lanes: a warp's 512 bytes in 16 sectors, of which the counters see half as requested.
const VECTOR_SECTORS: f64 = 16.0;
const VECTOR_BYTES: f64 = 16.0;
/// Tolerance of a mean, because the edges of arrays are ragged.
const RAGGED: f64 = 0.05;
/// Contiguous 4-byte lanes take 4 sectors, or 5 if they are not aligned.
const CONTIGUOUS: f64 = 5.0;
const SECTOR: f64 = 32.0;
/// Threads of a warp.
const WARP: u32 = 32;

impl Access {
    /// Whether these are full, contiguous requests of 16 bytes per lane. They look half wasted, but are
    /// optimal.
    pub fn is_vectorised(&self) -> bool {
        let near = |figure: Option<f64>, ideal: f64| {
            figure.is_some_and(|figure| (figure - ideal).abs() <= RAGGED * ideal)
        };
        near(self.sectors_per_request, VECTOR_SECTORS) && near(self.bytes_per_sector, VECTOR_BYTES)
    }

    /// Wasted sectors, from the requested bytes. Few sectors per request mean that lanes share addresses, which
    /// costs nothing. If the requested bytes are unknown: no request can use more than 16 sectors.
    fn wasted(&self) -> Option<f64> {
        let requested = self.sectors_per_request?;
        let Some(bytes) = self.bytes_per_sector else {
            let scattered = requested > VECTOR_SECTORS * (1.0 + RAGGED) + 1.0;
            return scattered.then_some(self.sectors? * (1.0 - VECTOR_SECTORS / requested));
        };
        let wasteful = requested > CONTIGUOUS && !self.is_vectorised();
        Some(if wasteful { self.sectors? * (1.0 - bytes / SECTOR).max(0.0) } else { 0.0 })
    }
}

/// Source of a peak. Data sheets and the clocks that a device claims are upper bounds, so shares of them are
/// lower bounds.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum PeakSource {
    /// The profiler's counters.
    Counted,
    /// The device's clock and bus width in the report.
    Device,
    /// The data sheet of a device with this name.
    DataSheet,
}

/// The counters of one kernel in one launch configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KernelCounters {
    /// Its name.
    pub name: String,
    /// How it was launched.
    pub launch: LaunchConfig,
    /// Number of profiled launches.
    pub launches: u64,
    /// Their total time, in milliseconds.
    pub total_ms: f64,
    /// The shortest launch, in milliseconds.
    pub min_ms: f64,
    /// The longest launch, in milliseconds.
    pub max_ms: f64,
    /// The share of all profiled time.
    pub fraction: f64,
    /// Speed of light: the busiest compute unit's share of its peak.
    pub compute: Option<f64>,
    /// The busiest memory unit's share of its peak.
    pub memory: Option<f64>,
    /// The same for device memory.
    pub dram: Option<f64>,
    /// The share of the bytes from and to device memory that an ideal access pattern would also move.
    pub dram_useful: Option<f64>,
    /// Source of device memory's peak, if its share is known.
    pub dram_peak: Option<PeakSource>,
    /// 32-bit floating-point rate relative to the device's data sheet.
    pub sheet_fp32: Option<f64>,
    /// The same for the first-level cache.
    pub l1: Option<f64>,
    /// The same for the second-level cache.
    pub l2: Option<f64>,
    /// Resident warps relative to the maximum, while a multiprocessor had any.
    pub achieved: Option<f64>,
    /// What the launch configuration allows.
    pub theoretical: Option<f64>,
    /// What limits the theoretical occupancy.
    pub limiter: Option<Limiter>,
    /// How often the grid fills the device.
    pub waves: Option<f64>,
    /// Blocks of the grid.
    pub blocks: Option<f64>,
    /// Multiprocessors of the device.
    pub multiprocessors: Option<f64>,
    /// Global loads.
    pub loads: Access,
    /// Global stores.
    pub stores: Access,
    /// The share of global memory sectors that an ideal pattern would not need.
    pub excess_sectors: Option<f64>,
    /// Passes through the first cache per load or store instruction, at least; `None` if unknown, or if shared memory may
    /// take them.
    pub passes: Option<f64>,
    /// How often load and store units accept an instruction, as a share of their peak, at most.
    pub requests: Option<f64>,
    /// How close arithmetic is to its peak: the work that remains however data is loaded.
    pub arithmetic: Option<f64>,
    /// The share of shared memory accesses repeated because of bank conflicts.
    pub bank_conflicts: Option<f64>,
    /// Utilisation of the shared memory path.
    pub shared_busy: Option<f64>,
    /// Requests for spilled registers.
    pub spills: Option<f64>,
    /// The longest stall, as ncu names it, and its share of the time between two instructions of a warp.
    pub stall: Option<(&'static str, f64)>,
    /// All stalls in the same way, longest first.
    pub stalls: Vec<(&'static str, f64)>,
    /// Bytes per launch: `load`, `store` (between the kernel and its caches), `dram_read`, `dram_write`, or `dram` for both.
    pub traffic: Vec<(&'static str, f64)>,
    /// The peak of device memory, in bytes per second.
    pub peak_bytes_per_s: Option<f64>,
    /// The peak of 32-bit arithmetic by the device's data sheet, in operations per second.
    pub peak_flops_per_s: Option<f64>,
    /// The share of cycles in which schedulers issue an instruction.
    pub issue: Option<f64>,
    /// Hit rate of the first-level cache.
    pub l1_hits: Option<f64>,
    /// Hit rate of the second-level cache.
    pub l2_hits: Option<f64>,
    /// Bytes per second from and to device memory.
    pub dram_bytes_per_s: Option<f64>,
    /// Utilisation of the matrix units.
    pub tensor: Option<f64>,
    /// 32-bit floating-point operations per second.
    pub flops_per_s: Option<f64>,
}

impl KernelCounters {
    fn new(key: Key, entry: &Entry, all: Dur) -> Self {
        let figures = entry.means.finish();
        let access = |sectors, requests, ratio, bytes| Access {
            sectors_per_request: figures.ratio(sectors, requests).or(figures.get(ratio)),
            bytes_per_sector: figures.get(bytes).filter(|bytes| *bytes > 0.0),
            sectors: figures.get(sectors),
        };
        let loads = access(
            Metric::LoadSectors,
            Metric::LoadRequests,
            Metric::LoadSectorsPerRequest,
            Metric::LoadBytesPerSector,
        );
        let stores = access(
            Metric::StoreSectors,
            Metric::StoreRequests,
            Metric::StoreSectorsPerRequest,
            Metric::StoreBytesPerSector,
        );
        let (dram, dram_peak) = dram(&figures).unzip();
        let shared_bytes = key.launch.shared_bytes;
        let excess_sectors = excess_sectors(&figures, [loads, stores], shared_bytes);
        let issue = figures.get(Metric::Issue).or(figures.share(Metric::IssuePercent));
        let issue = issue.map(|issue| issue.min(1.0));
        let seconds = entry.total.secs() / entry.launches.max(1) as f64;
        let needed = sectors(&figures, [loads, stores]).zip(excess_sectors);
        let needed = needed.map(|(sectors, excess)| sectors * (1.0 - excess) * SECTOR);
        let moved = figures.get(Metric::DramRate).map(|rate| rate * seconds);
        KernelCounters {
            launches: entry.launches,
            total_ms: entry.total.ms(),
            min_ms: entry.min.unwrap_or_default().ms(),
            max_ms: entry.max.ms(),
            fraction: entry.total.fraction_of(all),
            compute: figures.share(Metric::Compute),
            memory: figures.share(Metric::Memory),
            dram,
            dram_useful: over(needed, moved),
            dram_peak,
            sheet_fp32: over(flops_per_s(&figures), figures.get(Metric::SheetFlopPeak)),
            l1: figures.share(Metric::L1),
            l2: figures.share(Metric::L2),
            achieved: figures.share(Metric::Achieved),
            theoretical: figures.share(Metric::Theoretical),
            limiter: limiter(&figures),
            waves: figures.get(Metric::Waves),
            blocks: figures.get(Metric::Blocks).or(key.launch.blocks().map(|blocks| blocks as f64)),
            multiprocessors: figures.get(Metric::Multiprocessors),
            excess_sectors,
            loads,
            stores,
            bank_conflicts: bank_conflicts(&figures),
            shared_busy: figures.share(Metric::SharedBusy).or(figures.share(Metric::LsuWavefronts)),
            spills: figures.sum(Metric::LocalSpills, Metric::SharedSpills),
            stall: stall(&figures),
            stalls: stalls(&figures),
            traffic: traffic(&figures, [loads, stores], seconds),
            peak_bytes_per_s: dram_limit(&figures),
            peak_flops_per_s: figures.get(Metric::SheetFlopPeak),
            issue,
            passes: passes(&figures, shared_bytes),
            requests: figures.share(Metric::LsuRequests),
            arithmetic: arithmetic(&figures, issue),
            l1_hits: figures.share(Metric::L1Hits),
            l2_hits: figures.share(Metric::L2Hits),
            dram_bytes_per_s: figures.get(Metric::DramRate),
            tensor: figures.share(Metric::Tensor),
            flops_per_s: flops_per_s(&figures),
            name: key.name,
            launch: key.launch,
        }
    }

    /// The mean time of a launch, in milliseconds.
    pub fn mean_ms(&self) -> f64 {
        if self.launches > 0 { self.total_ms / self.launches as f64 } else { 0.0 }
    }

    /// The highest speed-of-light figure: how close the kernel is to a peak of the device.
    pub fn speed_of_light(&self) -> Option<f64> {
        [self.compute, self.memory, self.dram, self.l1, self.l2].into_iter().flatten().reduce(f64::max)
    }

    /// The share of the whole device's warp slots in use: a small grid leaves multiprocessors empty that the
    /// achieved occupancy does not count.
    pub fn device_occupancy(&self) -> Option<f64> {
        self.achieved.map(|achieved| achieved * self.reached())
    }

    /// The share of multiprocessors that have a block; all if unknown.
    fn reached(&self) -> f64 {
        let places = self.blocks.zip(self.multiprocessors.filter(|count| *count > 0.0));
        places.map_or(1.0, |(blocks, count)| (blocks / count).min(1.0))
    }

    /// Utilisation of the shared memory path on multiprocessors that have work. Over the whole device, a small
    /// grid would hide it.
    pub fn shared_busy_where_used(&self) -> Option<f64> {
        let reached = self.reached();
        let busy = self.shared_busy.filter(|_| reached > 0.0).map(|busy| (busy / reached).min(1.0));
        busy.or(self.l1)
    }

    /// The share of slots that stay empty because the last wave is not full.
    pub fn tail(&self) -> Option<f64> {
        self.waves.filter(|waves| *waves > 0.0).map(|waves| 1.0 - waves / waves.ceil())
    }

    /// The share of its warps' lanes that have a thread: a block of one thread takes a whole warp.
    pub fn lanes(&self) -> Option<f64> {
        let threads = self.launch.threads().filter(|threads| *threads > 0)?;
        Some(f64::from(threads) / f64::from(threads.div_ceil(WARP).saturating_mul(WARP)))
    }

    /// Floating-point operations per byte of device memory.
    pub fn intensity(&self) -> Option<f64> {
        let bytes = self.dram_bytes_per_s.filter(|bytes| *bytes > 0.0)?;
        self.flops_per_s.map(|flops| flops / bytes)
    }
}
