//! What all hosts of a session say together: runs every analysis on one host ([`HostPartial::of`]), merges hosts, and
//! finishes what each analysis found ([`Session::finish`]). Nothing is judged here.

mod feeding;
mod gathering;

use crate::breakdown::Category;
use crate::context::Context;
use crate::devices::bottleneck::DeviceDetail;
use crate::devices::collectives::clock::Clocks;
use crate::devices::collectives::{CollectivesPartial, Waiting};
use crate::devices::gpu_samples::{GpuSamples, GpuSamplesPartial, Wall};
use crate::input::{Input, InputPartial};
use crate::memory::{Memory, MemoryPartial};
use crate::recording::health::{Issue, health};
use crate::states::missing_device::MissingDevice;
use crate::time::callbacks::Callbacks;
use crate::time::checkpoint_cost::CheckpointCost;
use crate::time::eager::Eager;
use crate::time::graph_loops::GraphLoops;
use crate::time::named_ranges::NamedRanges;
use crate::time::odd_steps::OddSteps;
use crate::time::optimizer::Updates;
use crate::time::pipeline_setup::SetUp;
use crate::time::requests::{Latencies, RequestsPartial};
use crate::time::summary::{HostSummary, Summary};
use crate::vocabulary::has_timeline;
use crate::vocabulary::is_python_frame;
use crate::work::counters::{Counters, CountersPartial};
use crate::work::functions::{Functions, FunctionsPartial};
use crate::work::kernels::{Kernels, KernelsPartial};
use crate::work::ops::{Ops, OpsPartial};
use crate::work::program_types::ProgramTypes;

use stepscope_trace::KindId;

pub use feeding::Feeding;
use feeding::computed_on_device;
pub use gathering::{Gathering, Timeline};

/// Everything that one host has to say.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
pub struct HostPartial {
    summary: HostSummary,
    detail: Option<DeviceDetail>,
    odd: Option<OddSteps>,
    /// Does it say what ran when?
    timeline: bool,
    wall: Option<Wall>,
    sums: Sums,
}

/// What hosts have to say together.
#[derive(Debug, serde::Serialize, serde::Deserialize)]
struct Sums {
    issues: Vec<Issue>,
    ops: OpsPartial,
    input: InputPartial,
    memory: MemoryPartial,
    eager: Eager,
    callbacks: Callbacks,
    #[serde(default)]
    graph_loops: GraphLoops,
    #[serde(default)]
    program_types: ProgramTypes,
    setup: SetUp,
    #[serde(default)]
    updates: Updates,
    checkpoint_cost: CheckpointCost,
    functions: FunctionsPartial,
    kernels: KernelsPartial,
    counters: CountersPartial,
    /// Stored partials know it by its first name.
    #[serde(rename = "gauges")]
    gpu_samples: GpuSamplesPartial,
    collectives: CollectivesPartial,
    #[serde(default)]
    requests: RequestsPartial,
    feeding: Feeding,
    /// Why no kernel of a device was recorded; `None` where some were.
    missing_device: Option<MissingDevice>,
    /// Ranges around time of which nothing else is known.
    #[serde(default)]
    ranges: NamedRanges,
    frames: u64,
    events: u64,
}

impl HostPartial {
    /// When it was recorded, if it has a time of day.
    pub fn wall(&self) -> Option<Wall> {
        self.wall
    }

    /// Its collectives.
    pub fn collectives(&self) -> &CollectivesPartial {
        &self.sums.collectives
    }

    /// What it says about the time that it covers; `None` if it has no timeline.
    pub fn timeline(&self) -> Option<Timeline> {
        self.timeline.then_some(Timeline { wall: self.wall })
    }

    /// Limits what grows with the length of a recording, for files: the longest are kept one by one, and the sum of the
    /// rest.
    pub fn bound(&mut self) {
        const ISSUES: usize = 64;
        self.summary.bound();
        let sums = &mut self.sums;
        sums.issues.sort_by(|a, b| a.order().cmp(&b.order()));
        sums.issues.truncate(ISSUES);
        sums.ops.bound();
        sums.input.bound();
        sums.memory.bound();
        sums.functions.bound();
        sums.kernels.bound();
        sums.counters.bound();
        sums.collectives.bound();
        sums.requests.bound();
    }

    /// Runs the analyses on one host.
    pub fn of(context: &Context) -> Self {
        let trace = context.trace;
        let summary = HostSummary::of(context);
        // Whoever makes what both sides share must not wait for the other side, so it is made before they part.
        context.launches();
        trace.rest_arguments();
        // What follows shares the steps and the breakdown, which are known now, and nothing else. Some of it cannot be
        // spread over cores by itself, so all of it runs side by side.
        let (rest, (device, (issues, host))) = rayon::join(
            || LoopSide::of(context),
            || {
                rayon::join(
                    || DeviceSide::of(context),
                    || rayon::join(|| health(trace, &context.host), || HostSide::of(context)),
                )
            },
        );
        let sums = Sums {
            issues,
            ops: host.ops,
            input: host.input,
            memory: host.memory,
            eager: rest.eager,
            callbacks: rest.callbacks,
            graph_loops: rest.graph_loops,
            program_types: ProgramTypes::of(context.trace),
            setup: rest.setup,
            updates: rest.updates,
            checkpoint_cost: rest.checkpoint_cost,
            functions: rest.functions,
            kernels: device.kernels,
            counters: CountersPartial::of(trace),
            gpu_samples: GpuSamplesPartial::of(trace, &context.host),
            collectives: device.collectives,
            requests: RequestsPartial::of(context),
            feeding: Feeding::of(context),
            missing_device: missing_device(context),
            ranges: NamedRanges::of(context),
            frames: python_frames(context),
            events: trace.events(),
        };
        let (detail, timeline, wall) = (device.detail, has_timeline(trace), Wall::of(trace));
        HostPartial { summary, detail, odd: OddSteps::of(context), timeline, wall, sums }
    }
}

impl Sums {
    fn merge(mut self, other: Sums) -> Self {
        self.issues.extend(other.issues);
        self.ops.merge(other.ops);
        self.input.merge(other.input);
        self.memory.merge(other.memory);
        self.eager.merge(&other.eager);
        self.callbacks.merge(other.callbacks);
        self.graph_loops.merge(other.graph_loops);
        self.program_types.merge(other.program_types);
        self.setup.merge(other.setup);
        self.updates.merge(other.updates);
        self.checkpoint_cost.merge(&other.checkpoint_cost);
        self.functions.merge(other.functions);
        self.kernels.merge(other.kernels);
        self.counters.merge(other.counters);
        self.gpu_samples.merge(other.gpu_samples);
        self.collectives.merge(other.collectives);
        self.requests.merge(other.requests);
        self.feeding.merge(&other.feeding);
        self.missing_device = self.missing_device.or(other.missing_device);
        self.ranges = self.ranges.or(other.ranges);
        self.frames += other.frames;
        self.events += other.events;
        self
    }
}

/// What is known of devices alone.
struct DeviceSide {
    kernels: KernelsPartial,
    detail: Option<DeviceDetail>,
    collectives: CollectivesPartial,
}

impl DeviceSide {
    fn of(context: &Context) -> Self {
        DeviceSide {
            kernels: KernelsPartial::of(context),
            detail: DeviceDetail::of(context),
            collectives: CollectivesPartial::of(context),
        }
    }
}

/// What the host itself computes and holds.
struct HostSide {
    ops: OpsPartial,
    input: InputPartial,
    memory: MemoryPartial,
}

impl HostSide {
    fn of(context: &Context) -> Self {
        HostSide {
            ops: OpsPartial::of(context),
            input: InputPartial::of(context),
            memory: MemoryPartial::of(context),
        }
    }
}

/// What the program's loop does beside its work.
struct LoopSide {
    eager: Eager,
    callbacks: Callbacks,
    graph_loops: GraphLoops,
    setup: SetUp,
    updates: Updates,
    checkpoint_cost: CheckpointCost,
    functions: FunctionsPartial,
}

impl LoopSide {
    fn of(context: &Context) -> Self {
        LoopSide {
            eager: Eager::of(context),
            callbacks: Callbacks::of(context),
            graph_loops: GraphLoops::of(context),
            setup: SetUp::of(context),
            updates: Updates::of(context),
            checkpoint_cost: CheckpointCost::of(context),
            functions: FunctionsPartial::of(context),
        }
    }
}

fn missing_device(context: &Context) -> Option<MissingDevice> {
    let missing = has_timeline(context.trace) && !computed_on_device(context);
    missing.then(|| MissingDevice::of(context.trace, context.vocabulary()))
}

fn python_frames(context: &Context) -> u64 {
    let trace = context.trace;
    let is_frame =
        |kind: KindId| is_python_frame(trace.kind_name(kind), trace.str(trace.kind(kind).category));
    (0..trace.kinds().len())
        .map(KindId::from_index)
        .filter(|&kind| is_frame(kind))
        .map(|kind| context.vocabulary().signatures.events(kind))
        .sum()
}

/// What all hosts of a session say together.
#[derive(Debug)]
pub struct Session {
    /// Does any host say what ran when?
    pub timeline: bool,
    /// Steps and their breakdown.
    pub summary: Summary,
    /// The bottleneck device of the host that limits the step.
    pub detail: Option<DeviceDetail>,
    /// Long steps of that host that occur now and then.
    pub odd: Option<OddSteps>,
    /// What is wrong with the recordings, the worst first.
    pub issues: Vec<Issue>,
    /// All ops.
    pub ops: Ops,
    /// Where batches come from.
    pub input: Input,
    /// The allocators.
    pub memory: Memory,
    /// Eager execution.
    pub eager: Eager,
    /// Host callbacks.
    pub callbacks: Callbacks,
    /// Loops inside the compiled step.
    pub graph_loops: GraphLoops,
    /// Types of the products of attached programs.
    pub program_types: ProgramTypes,
    /// Pipelines that are set up in the steps.
    pub setup: SetUp,
    /// The optimizer's updates.
    pub updates: Updates,
    /// What surrounds output.
    pub checkpoint_cost: CheckpointCost,
    /// Compiled functions.
    pub functions: Functions,
    /// Kernels.
    pub kernels: Kernels,
    /// Hardware counters of kernels.
    pub counters: Counters,
    /// What a monitor sampled of GPUs.
    pub gpu_samples: Vec<GpuSamples>,
    /// How long ranks wait for one another.
    pub waiting: Option<Waiting>,
    /// Ranks of the distributed job, recorded or not, if the recording says.
    pub world_size: Option<u64>,
    /// How the hosts' clocks stand to one another; `None` if there is one clock.
    pub clocks: Option<Clocks>,
    /// Requests that a server recorded one by one; `None` without any.
    pub requests: Option<Latencies>,
    /// Devices, and the calls that feed them.
    pub feeding: Feeding,
    /// Why no kernel of a device was recorded; `None` where some were.
    pub missing_device: Option<MissingDevice>,
    /// Ranges around time of which nothing else is known.
    pub ranges: NamedRanges,
    /// The share of events that are frames of a Python tracer.
    pub python_frames: f64,
}

impl Session {
    /// Puts the hosts together; `None` of no host.
    pub fn finish(hosts: Vec<HostPartial>) -> Option<Self> {
        let mut gathering = Gathering::new(hosts.iter().filter_map(HostPartial::timeline));
        hosts.into_iter().for_each(|host| gathering.add(host));
        gathering.finish()
    }
}

/// The hosts' steps. Where there is no timeline at all, the time that is looked at is that of the profiled kernels.
fn summed_up(hosts: Vec<HostSummary>, timeline: bool, counters: &Counters) -> Summary {
    let mut summary = Summary::finish(hosts);
    if !timeline {
        let profiled: f64 = counters.kernels.iter().map(|kernel| kernel.total_ms).sum();
        summary.breakdown_ms = vec![(Category::Compute, profiled)];
        summary.breakdown_ms.retain(|(_, ms)| *ms > 0.0);
    }
    summary
}
