//! From analyses to facts: runs, for one host, what the rules look at; merges hosts; puts the results into the
//! shape that rules need. Only this module knows the analyses' own types.

mod loading;
mod ops;

use stepscope_analyze::absence::Absence;
use stepscope_analyze::bounding::DeviceDetail;
use stepscope_analyze::callbacks::Callbacks;
use stepscope_analyze::catalogue::{USUAL_SPEEDUP, peaks_of};
use stepscope_analyze::collectives::CollectivesPartial;
use stepscope_analyze::counters::{Counters, CountersPartial, has_timeline};
use stepscope_analyze::eager::Eager;
use stepscope_analyze::functions::{FunctionRow, FunctionsPartial, Sign};
use stepscope_analyze::gauges::{GaugesPartial, GpuGauges, Wall, may_be_of};
use stepscope_analyze::health::{Issue, Trouble, health};
use stepscope_analyze::input::InputPartial;
use stepscope_analyze::kernels::{KernelRow, Kernels, KernelsPartial, is_product_without};
use stepscope_analyze::launches::LaunchCalls;
use stepscope_analyze::layers::Layers;
use stepscope_analyze::memory::{Allocator, MemoryPartial};
use stepscope_analyze::odd::OddSteps;
use stepscope_analyze::ops::{COLLECTIVE, OpRow, Ops, OpsPartial};
use stepscope_analyze::setup::SetUp;
use stepscope_analyze::summary::{HostSummary, Summary};
use stepscope_analyze::vocabulary::{Role, is_output_op, is_python_frame};
use stepscope_analyze::writing::Writing;
use stepscope_analyze::{Category, Context};

use stepscope_trace::{Device, DeviceKind, KindId, Trace};

use self::loading::{loader, python_lines};
use self::ops::op_costs;
use crate::facts::{
    DeviceWork, Facts, Memory, ProfiledKernel, Rebuilding, RebuiltFunction, Recording, WithoutMatrixUnits,
};
use crate::thresholds;

/// Everything that one host has to say.
#[derive(Debug)]
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
#[derive(Debug)]
struct Sums {
    issues: Vec<Issue>,
    ops: OpsPartial,
    input: InputPartial,
    memory: MemoryPartial,
    eager: Eager,
    callbacks: Callbacks,
    setup: SetUp,
    writing: Writing,
    functions: FunctionsPartial,
    kernels: KernelsPartial,
    counters: CountersPartial,
    gauges: GaugesPartial,
    collectives: CollectivesPartial,
    feeding: Feeding,
    /// Why no kernel of a device was recorded; `None` where some were.
    absence: Option<Absence>,
    frames: u64,
    events: u64,
}

/// What is known of devices and of the calls that feed them.
#[derive(Copy, Clone, Debug, Default)]
struct Feeding {
    calls: LaunchCalls,
    /// How many times faster than the ordinary units the matrix units of a device are at the most.
    matrix_speedup: Option<f64>,
    /// Do the matrix units of a device know float16 alone?
    only_half: bool,
    /// Is a GPU or TPU listed?
    accelerator: bool,
    /// Did anything compute on a device?
    computed: bool,
}

impl HostPartial {
    /// When it was recorded, if it has a time of day.
    pub fn wall(&self) -> Option<Wall> {
        self.wall
    }

    /// Runs the analyses on one host.
    pub fn of(context: &Context) -> Self {
        let trace = context.trace;
        let summary = HostSummary::of(context);
        // Whoever makes what both sides share must not wait for the other side, so it is made before they part.
        context.launches();
        // What follows shares the steps and the breakdown, which are known now, and nothing else: the device's side and
        // the host's take about equally long.
        let ((issues, device), host) = rayon::join(
            || (health(trace, &context.host), DeviceSide::of(context)),
            || (OpsPartial::of(context), InputPartial::of(context), MemoryPartial::of(context)),
        );
        let (ops, input, memory) = host;
        let sums = Sums {
            issues,
            ops,
            input,
            memory,
            eager: Eager::of(context),
            callbacks: Callbacks::of(context),
            setup: SetUp::of(context),
            writing: Writing::of(context),
            functions: FunctionsPartial::of(context),
            kernels: device.kernels,
            counters: CountersPartial::of(trace),
            gauges: GaugesPartial::of(trace, &context.host),
            collectives: device.collectives,
            feeding: feeding(context),
            absence: absence(context),
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
        self.setup.merge(other.setup);
        self.writing.merge(&other.writing);
        self.functions.merge(other.functions);
        self.kernels.merge(other.kernels);
        self.counters.merge(other.counters);
        self.gauges.merge(other.gauges);
        self.collectives.merge(other.collectives);
        self.feeding.calls.merge(&other.feeding.calls);
        self.feeding.matrix_speedup = fastest([self.feeding.matrix_speedup, other.feeding.matrix_speedup]);
        self.feeding.only_half |= other.feeding.only_half;
        self.feeding.accelerator |= other.feeding.accelerator;
        self.feeding.computed |= other.feeding.computed;
        self.absence = self.absence.or(other.absence);
        self.frames += other.frames;
        self.events += other.events;
        self
    }

    /// What is known of the recording itself. The issues are in their final order.
    fn recording(&self) -> Recording {
        let mut recording = recording(&self.issues, self.frames as f64 / self.events.max(1) as f64);
        recording.device_missing |= self.feeding.accelerator && !self.feeding.computed;
        recording.absence = self.absence.clone();
        recording
    }
}

/// Samples that lie beside a timeline belong to it only if they may have been taken in the same run.
fn leave_out_other_times(hosts: &mut [HostPartial]) {
    let timelines: Vec<Wall> =
        hosts.iter().filter(|host| host.timeline).filter_map(|host| host.wall).collect();
    let sampled = |host: &&mut HostPartial| !host.timeline && !host.sums.gauges.is_empty();
    for host in hosts.iter_mut().filter(sampled).filter(|host| !may_be_of(host.wall, &timelines)) {
        host.sums.gauges = GaugesPartial::default();
        let name = host.summary.host.clone();
        host.sums.issues.push(Issue {
            host: name.clone(),
            trouble: Trouble::OtherTime,
            detail: name,
            count: None,
            offset: None,
            span: None,
        });
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

fn feeding(context: &Context) -> Feeding {
    let calls = context.launches().calls(context.trace, context.vocabulary());
    let accelerator = has_timeline(context.trace)
        && context
            .trace
            .devices()
            .iter()
            .any(|device| matches!(device.kind, DeviceKind::Gpu | DeviceKind::Tpu));
    let matrix_speedup = matrix_speedup(context.trace);
    let old = |device: &Device| device.compute_capability.is_some_and(|(major, _)| major < 8);
    let only_half = context.trace.devices().iter().any(old);
    Feeding { calls, matrix_speedup, only_half, accelerator, computed: computed_on_device(context) }
}

/// Not by the kernels' table: what runs on a TPU is no kernel.
fn computed_on_device(context: &Context) -> bool {
    let computes = |role: Role| matches!(role, Role::Kernel | Role::Collective);
    (0..context.trace.kinds().len())
        .any(|index| computes(context.vocabulary().role(KindId::from_index(index))))
}

fn absence(context: &Context) -> Option<Absence> {
    let missing = has_timeline(context.trace) && !computed_on_device(context);
    missing.then(|| Absence::of(context.trace, context.vocabulary()))
}

/// By the device's name; of one that is not listed, NVIDIA's since compute capability 7.0. The last cards that are
/// called GTX have that, but no such units.
fn matrix_speedup(trace: &Trace) -> Option<f64> {
    fastest(trace.devices().iter().map(|device| {
        let name = trace.str(device.name);
        match peaks_of(name) {
            Some(peaks) => peaks.matrix_speedup(),
            None if name.contains("GTX") => None,
            None => device.compute_capability.filter(|&(major, _)| major >= 7).map(|_| USUAL_SPEEDUP),
        }
    }))
}

fn fastest(speedups: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    speedups.into_iter().flatten().max_by(f64::total_cmp)
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

/// What all hosts say together.
#[derive(Debug)]
pub struct Gathered {
    /// What rules look at.
    pub facts: Facts,
    /// What is wrong with the recordings, the worst first.
    pub issues: Vec<Issue>,
    /// All ops.
    pub ops: Ops,
    /// What a monitor sampled of GPUs.
    pub gauges: Vec<GpuGauges>,
}

impl Gathered {
    /// Puts the hosts together; `None` of no host.
    pub fn finish(mut hosts: Vec<HostPartial>) -> Option<Self> {
        leave_out_other_times(&mut hosts);
        let timeline = hosts.iter().any(|host| host.timeline);
        let (mut summaries, mut details, mut odd, mut all) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for host in hosts {
            // A host without a timeline has no steps to bound anything.
            if host.timeline || !timeline {
                summaries.push(host.summary);
                details.push(host.detail);
                odd.push(host.odd);
            }
            all.push(host.sums);
        }
        let mut sums = all.into_iter().reduce(Sums::merge)?;
        sums.issues.sort_by_key(|issue| std::cmp::Reverse(issue.trouble.severity()));
        let recording = sums.recording();
        let (ops, input, kernels) = (sums.ops.finish(), sums.input.finish(), sums.kernels.finish());
        let counters = sums.counters.finish();
        let summary = summed_up(summaries, timeline, &counters);
        let is_model_op =
            |row: &OpRow| !row.key.input && !is_output_op(&row.key.kind) && row.key.kind != COLLECTIVE;
        let bounding_host = summary.bounding_host;
        let output = summary.breakdown_ms.iter().find(|(category, _)| *category == Category::Output);
        let output_ms = output.map_or(0.0, |(_, ms)| *ms);
        let facts = Facts {
            detail: details.into_iter().nth(summary.bounding_host).flatten(),
            waiting: sums.collectives.finish(),
            counters: profiled(counters, &kernels, &summary, timeline),
            timeline,
            recording,
            ops: op_costs(&ops, &summary, is_model_op),
            layers: Layers::of(&ops),
            output_ops: op_costs(&ops, &summary, |row| is_output_op(&row.key.kind)),
            around_output_ms: (sums.writing.stretches_ms() - output_ms).max(0.0),
            summary,
            eager: sums.eager,
            callbacks: sums.callbacks,
            setup: sums.setup,
            odd: odd.into_iter().nth(bounding_host).flatten(),
            rebuilt: sums.functions.finish().rows.iter().filter_map(rebuilt).collect(),
            loader: loader(&input),
            python: python_lines(&input),
            device: device_work(&kernels, sums.feeding),
            memory: sums.memory.finish().allocators.iter().map(allocator).collect(),
        };
        Some(Gathered { facts, issues: sums.issues, ops, gauges: sums.gauges.finish() })
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

/// What the profiled kernels cost: in a step, as far as the timeline shows them.
fn profiled(counters: Counters, kernels: &Kernels, summary: &Summary, timeline: bool) -> Vec<ProfiledKernel> {
    let compute = summary.length_ms() * summary.fraction(Category::Compute);
    let all: f64 = computing(kernels).map(|row| row.total_ms).sum();
    let in_steps = counters.join().ms_in(&kernels.rows);
    let cost = |profiled_ms: f64, seen_ms: f64| match timeline {
        false => Some(profiled_ms),
        true => (all > 0.0 && seen_ms > 0.0).then(|| compute * seen_ms / all),
    };
    let kernels = counters.kernels.into_iter().zip(in_steps);
    kernels.map(|(counters, seen)| ProfiledKernel { ms: cost(counters.total_ms, seen), counters }).collect()
}

fn recording(issues: &[Issue], python_frames: f64) -> Recording {
    let of = |trouble: Trouble| issues.iter().filter(move |issue| issue.trouble == trouble);
    // A break inside a message breaks all that hold it; the innermost lies furthest.
    let damage = of(Trouble::Damaged).max_by_key(|issue| issue.offset);
    let mut dropped = of(Trouble::DroppedEvents).chain(of(Trouble::EventCap)).peekable();
    Recording {
        damage: damage.map(|issue| (issue.detail.clone(), issue.offset)),
        dropped: dropped.peek().is_some().then(|| lost(dropped)),
        device_missing: of(Trouble::NoDeviceEvents).next().is_some(),
        absence: None,
        complaints: of(Trouble::CollectionError)
            .chain(of(Trouble::CollectionWarning).filter(|issue| is_about_device(&issue.detail)))
            .map(|issue| issue.detail.clone())
            .collect(),
        python_frames,
    }
}

/// How many events were lost, where somebody counted them; a recorder that stops at its limit does not.
fn lost<'i>(issues: impl Iterator<Item = &'i Issue>) -> u64 {
    issues.filter(|issue| issue.trouble == Trouble::DroppedEvents).filter_map(|issue| issue.count).sum()
}

/// Does a warning of the recorder speak of the device, or of the library that records it?
fn is_about_device(warning: &str) -> bool {
    let lower = warning.to_ascii_lowercase();
    ["cuda", "cupti", "gpu", "hip", "roctracer", "tpu"]
        .iter()
        .any(|word| lower.split(|c: char| !c.is_ascii_alphanumeric()).any(|found| found == *word))
}

fn rebuilt(function: &FunctionRow) -> Option<RebuiltFunction> {
    let why = match function.sign? {
        Sign::ArgumentsVary | Sign::ShapesVary => Rebuilding::ArgumentsVary,
        Sign::Recreated => Rebuilding::Recreated,
        Sign::CompilesEachCall | Sign::ShapesVaryOrRecreated => Rebuilding::Unknown,
        Sign::FirstCallOnly => return None,
    };
    Some(RebuiltFunction {
        name: function.name.clone(),
        calls: function.calls,
        traces: function.traces,
        compiles: function.compiles,
        ms_per_step: function.lost_ms_per_step.unwrap_or(function.tracing_ms + function.compile_ms),
        why,
    })
}

/// Kernels that compute: those that exchange data wait on purpose, with as few threads as that takes.
fn computing(kernels: &Kernels) -> impl Iterator<Item = &KernelRow> {
    kernels.rows.iter().filter(|row| !row.collective)
}

fn device_work(kernels: &Kernels, feeding: Feeding) -> Option<DeviceWork> {
    let all: f64 = computing(kernels).map(|row| row.total_ms).sum();
    let count: u64 = computing(kernels).map(|row| row.count).sum();
    if count == 0 || all <= 0.0 {
        return None;
    }
    let share = |wanted: &dyn Fn(&KernelRow) -> bool| {
        let rows: Vec<&KernelRow> = computing(kernels).filter(|row| wanted(row)).collect();
        let worst = rows.iter().max_by(|a, b| a.total_ms.total_cmp(&b.total_ms)).copied().cloned()?;
        Some((rows.iter().map(|row| row.total_ms).sum::<f64>() / all, worst))
    };
    let without = feeding.matrix_speedup.and_then(|speedup| {
        let (share, kernel) = share(&|row| is_product_without(&row.name))?;
        Some(WithoutMatrixUnits { share, kernel: kernel.name, speedup, only_half: feeding.only_half })
    });
    let empty = share(&|row| row.occupancy.is_some_and(|occupancy| occupancy < thresholds::OCCUPANCY));
    Some(DeviceWork {
        kernels_per_step: kernels.on_each(count as f64),
        kernel_us: all * 1e3 / count as f64,
        launch_us: feeding.calls.usual().map(|usual| usual.ms() * 1e3),
        graph_share: feeding.calls.graph_share(),
        without_matrix_units: without,
        low_occupancy: empty.and_then(|(share, row)| {
            Some((share, row.name, row.occupancy?, row.limiter.map(|limiter| limiter.key().to_owned())))
        }),
    })
}

fn allocator(allocator: &Allocator) -> Memory {
    let steps = allocator.steps.len().max(1) as f64;
    let growth = allocator.growth.as_ref().filter(|growth| growth.grows);
    let kept = allocator.leaks.iter().map(|leak| (leak.op.clone(), leak.blocks as f64 / steps));
    Memory {
        allocator: allocator.name.clone(),
        growth_per_step: growth.map(|growth| growth.bytes_per_step),
        kept: kept.collect(),
        peak_bytes: Some(allocator.peak as f64),
        capacity_bytes: allocator.capacity.map(|bytes| bytes as f64),
        fragmentation: allocator.fragmentation_at_peak,
    }
}
