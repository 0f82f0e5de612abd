//! What rules look at: the results of the analyses, in the shape that rules need, with nothing of formats and
//! traces in it. One for a whole session.

mod exchange;
mod from_session;
mod inner_loop;
mod loading;
mod ops;
mod parts;
mod precision;

use stepscope_analyze::devices::bottleneck::DeviceDetail;
use stepscope_analyze::devices::collectives::Waiting;
use stepscope_analyze::states::missing_device::MissingDevice;
use stepscope_analyze::time::callbacks::Callbacks;
use stepscope_analyze::time::eager::Eager;
use stepscope_analyze::time::odd_steps::OddSteps;
use stepscope_analyze::time::optimizer::Updates;
use stepscope_analyze::time::pipeline_setup::SetUp;
use stepscope_analyze::time::requests::Latencies;
use stepscope_analyze::time::summary::Summary;
use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::counters::KernelCounters;
use stepscope_analyze::work::layers::Layers;
use stepscope_analyze::{Category, Shares};

use stepscope_trace::{DeviceKind, Dur};

pub use exchange::{Exchange, Exchanges};
pub use inner_loop::InnerLoop;
pub use parts::{CopyFacts, Loader, OneSide, OpCost, Pipeline, PythonLine, Rebuilding, RebuiltFunction};
pub use precision::Precision;

/// What the recording says about itself.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// What broke, and at which byte.
    pub damage: Option<(String, Option<u64>)>,
    /// Events that the recorder dropped, by its own word or because their number is exactly its limit.
    pub dropped: Option<u64>,
    /// Devices, or calls to devices, were seen, but nothing that ran on one.
    pub device_missing: bool,
    /// Why, as far as the recording tells.
    pub missing_device: Option<MissingDevice>,
    /// The recorder's own errors, and its warnings about the device.
    pub complaints: Vec<String>,
    /// The share of events that are frames of a Python tracer.
    pub python_frames: f64,
    /// The program's own ranges around time of which nothing else is known, with their milliseconds per step, longest
    /// first.
    pub ranges: Vec<(String, f64)>,
}

/// Device work, over all devices.
#[derive(Clone, Debug)]
pub struct DeviceWork {
    /// Kernels per step on one device, without collectives.
    pub kernels_per_step: f64,
    /// Their mean length in microseconds.
    pub kernel_us: f64,
    /// The median length of calls that launch a kernel, in microseconds.
    pub launch_us: Option<f64>,
    /// The share of kernels that are started by graphs of kernels.
    pub graph_share: f64,
    /// Matrix kernels that use no matrix units although the device has them.
    pub without_matrix_units: Option<WithoutMatrixUnits>,
    /// Kernels of low occupancy.
    pub low_occupancy: Option<LowOccupancy>,
}

/// Kernels that leave most of the device's threads empty, by their launch configuration.
#[derive(Clone, Debug)]
pub struct LowOccupancy {
    /// Their share of kernel time.
    pub share: f64,
    /// The costliest of them.
    pub kernel: String,
    /// The share of the device's threads that it occupies at most.
    pub occupancy: f64,
    /// What limits it on one multiprocessor.
    pub limiter: Option<String>,
    /// Its blocks, and threads per block, where these are too few for the whole device.
    pub grid: Option<(u64, u32)>,
}

/// Matrix kernels on a device's ordinary units.
#[derive(Clone, Debug)]
pub struct WithoutMatrixUnits {
    /// Their share of kernel time.
    pub share: f64,
    /// The costliest of them.
    pub kernel: String,
    /// How many times faster the matrix units are at the most.
    pub speedup: f64,
    /// The units take 16 bits of one sort alone: those of NVIDIA's before compute capability 8.0 know float16.
    pub only_half: bool,
}

/// A kernel whose hardware counters were collected.
#[derive(Clone, Debug)]
pub struct ProfiledKernel {
    /// Its counters.
    pub counters: KernelCounters,
    /// Milliseconds per step that it takes, or of the profiled time where there is no timeline; `None` where the
    /// timeline does not show it.
    pub ms: Option<f64>,
}

/// One allocator.
#[derive(Clone, Debug)]
pub struct Memory {
    /// Its name.
    pub allocator: String,
    /// Bytes per step by which it grows steadily; `None` if it does not.
    pub growth_per_step: Option<f64>,
    /// What was allocated and never freed: op or place, blocks per step; the largest first.
    pub kept: Vec<(String, f64)>,
    /// Bytes in use at the peak.
    pub peak_bytes: Option<f64>,
    /// Bytes there are.
    pub capacity_bytes: Option<f64>,
    /// The share of free memory at the peak that no large request could use.
    pub fragmentation: Option<f64>,
}

/// A step in which a category takes this many times what it takes in the median step stands out.
const USUAL: f64 = 3.0;

/// Everything.
#[derive(Clone, Debug)]
pub struct Facts {
    /// Steps and their breakdown.
    pub summary: Summary,
    /// What the recording says about itself.
    pub recording: Recording,
    /// The model's op types in the steps, the costliest first.
    pub ops: Vec<OpCost>,
    /// In which precision they run on the host's processor.
    pub precision: Precision,
    /// A loop inside the compiled step.
    pub inner_loop: Option<InnerLoop>,
    /// Compiled functions that the program calls.
    pub called: Vec<String>,
    /// Ops that write, the costliest first.
    pub output_ops: Vec<OpCost>,
    /// Milliseconds per step in Python and dispatch around what writes.
    pub around_output_ms: f64,
    /// Variables per step that are read into Python one after the other.
    pub variables_read: f64,
    /// Lines of Python that write, if a Python tracer saw them, longest first.
    pub writers: Vec<PythonLine>,
    /// Eager execution.
    pub eager: Eager,
    /// Layers that could run faster, by the names of their ops.
    pub layers: Layers,
    /// Host callbacks in the steps.
    pub callbacks: Callbacks,
    /// Pipelines that are set up in the steps.
    pub setup: SetUp,
    /// The optimizer's updates.
    pub updates: Updates,
    /// Steps of the bottleneck host that now and then take much longer than the others.
    pub odd: Option<OddSteps>,
    /// Functions that were built in the steps, the worst first.
    pub rebuilt: Vec<RebuiltFunction>,
    /// How data is loaded.
    pub loader: Loader,
    /// Lines of the user's Python, the costliest first.
    pub python: Vec<PythonLine>,
    /// The user's ranges around Python, the costliest first; empty if lines are known.
    pub ranges: Vec<PythonLine>,
    /// Device work; `None` without devices.
    pub device: Option<DeviceWork>,
    /// The framework whose kernels run.
    pub kernels_of: Framework,
    /// Kernels whose hardware counters were collected, the longest first.
    pub counters: Vec<ProfiledKernel>,
    /// Is there a timeline? Without one the breakdown is of the profiled kernels alone.
    pub timeline: bool,
    /// Allocators.
    pub memory: Vec<Memory>,
    /// The device that bounds the step, in detail; `None` without devices.
    pub detail: Option<DeviceDetail>,
    /// Several ranks' collectives held against one another; `None` of one rank.
    pub waiting: Option<Waiting>,
    /// The ranks that were recorded, if others took part.
    pub one_side: Option<OneSide>,
    /// What devices exchange.
    pub exchanges: Exchanges,
    /// Requests that a server recorded one by one; `None` without any.
    pub requests: Option<Latencies>,
}

impl Facts {
    /// The framework that the program uses: advice is in its language.
    pub fn framework(&self) -> Framework {
        match self.recorder() {
            Framework::Unknown => self.kernels_of,
            known => known,
        }
    }

    /// The framework whose profiler wrote the trace; unknown if it was another program.
    pub fn recorder(&self) -> Framework {
        self.summary.bound().map_or(Framework::Unknown, |host| host.framework)
    }

    /// Milliseconds of the mean step that a category owns.
    pub fn ms(&self, category: Category) -> f64 {
        self.summary.breakdown_ms.iter().find(|(owner, _)| *owner == category).map_or(0.0, |(_, ms)| *ms)
    }

    /// Milliseconds of the mean step that a category owns, without what stands out in single steps: those do something
    /// else.
    pub fn usual_ms(&self, category: Category) -> f64 {
        let all = self.ms(category);
        let Some(host) = self.summary.bound().filter(|host| !host.whole_capture) else { return all };
        let mut times: Vec<f64> = host.counted().map(|step| step.shares.get(category).ms()).collect();
        times.sort_by(f64::total_cmp);
        let most = USUAL * times.get(times.len() / 2).copied().unwrap_or(f64::INFINITY);
        let usual: f64 = times.iter().map(|time| time.min(most)).sum();
        all.min(usual / times.len().max(1) as f64)
    }

    /// The share of the mean step that a category owns.
    pub fn share(&self, category: Category) -> f64 {
        self.summary.fraction(category)
    }

    /// The share that several categories own together.
    pub fn shares(&self, categories: &[Category]) -> f64 {
        categories.iter().map(|&category| self.share(category)).sum()
    }

    /// Claims on all that some categories own.
    pub fn claims(&self, categories: &[Category]) -> Vec<(Category, f64)> {
        categories.iter().map(|&category| (category, self.ms(category))).filter(|(_, ms)| *ms > 0.0).collect()
    }

    /// Milliseconds per step that categories own of some time on the bottleneck device, never more than they own at all.
    pub fn owned_of(&self, shares: &Shares) -> Vec<(Category, f64)> {
        let Some(detail) = &self.detail else { return Vec::new() };
        let owned = |(category, time)| (category, detail.per_step(time).min(self.ms(category)));
        shares.owners().map(owned).filter(|(_, ms)| *ms > 0.0).collect()
    }

    /// Milliseconds per step that a category owns of its own: without what setting up the device's runtime or allocating
    /// its memory takes, without single gaps of a capture without steps, and without what only shows because the host was held up before. What is done about the
    /// category would not make those shorter.
    pub fn own_ms(&self, category: Category) -> f64 {
        let others = self.detail.as_ref().map_or(0.0, |detail| {
            let idle = &detail.idle;
            let all = [
                &idle.startup,
                &idle.once,
                &idle.allocation,
                &idle.in_copies,
                &idle.after_copies,
                &idle.after_waits,
            ];
            detail.per_step(all.iter().map(|shares| shares.get(category)).sum())
        });
        (self.ms(category) - others).max(0.0)
    }

    /// Milliseconds per step that categories own of some time on the host, summed over this many steps; never more than
    /// they own at all.
    pub fn owned_over(&self, shares: &Shares, steps: u64) -> Vec<(Category, f64)> {
        let steps = steps.max(1) as f64;
        let owned =
            |(category, time): (Category, Dur)| (category, (time.ms() / steps).min(self.ms(category)));
        shares.owners().map(owned).filter(|(_, ms)| *ms > 0.0).collect()
    }

    /// What is known of copies between host and device.
    pub fn copies(&self) -> Option<CopyFacts> {
        let detail = self.detail.as_ref()?;
        let (copies, steps) = (&detail.copies, detail.steps.max(1) as f64);
        let all = copies.with_host();
        (!all.is_zero()).then(|| CopyFacts {
            per_step: (copies.moved[0].copies + copies.moved[1].copies) as f64 / steps,
            pageable: copies.pageable_share(),
            bandwidth_in: copies.moved[0].bandwidth(),
            bandwidth_out: copies.moved[1].bandwidth(),
            on_computing_streams: copies.on_computing_streams.fraction_of(all),
            blocking: copies.blocking as f64 / steps,
            blocked_ms: detail.per_step(copies.blocked),
        })
    }

    /// Is there a device other than the host's processor, recorded or not?
    pub fn has_device(&self) -> bool {
        let devices = || self.summary.hosts.iter().flat_map(|host| &host.devices);
        self.device.is_some()
            || self.detail.is_some()
            || self.recording.device_missing
            || devices().any(|device| device.kind != DeviceKind::Cpu)
    }

    /// Is there a device whose work was recorded?
    pub fn on_device(&self) -> bool {
        self.summary.bound().is_some_and(|host| host.bottleneck_device.is_some())
    }

    /// The share of the steps in which the bottleneck device was busy.
    pub fn busy(&self) -> Option<f64> {
        let host = self.summary.bound()?;
        host.devices.get(host.bottleneck_device?)?.busy_fraction
    }
}
