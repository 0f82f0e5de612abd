//! From what a session knows to what rules look at. Only this module and its neighbours know the analyses' own types.

use stepscope_analyze::Category;
use stepscope_analyze::fleet::{Feeding, Session};
use stepscope_analyze::memory::Allocator;
use stepscope_analyze::recording::health::{Issue, Trouble};
use stepscope_analyze::time::checkpoint_cost::CheckpointCost;
use stepscope_analyze::time::summary::HostSummary;
use stepscope_analyze::vocabulary::{framework_of, is_output_op};
use stepscope_analyze::work::functions::{FunctionRow, Sign};
use stepscope_analyze::work::kernels::{KernelRow, Kernels, is_product_without};
use stepscope_analyze::work::layers::Layers;
use stepscope_analyze::work::ops::{COLLECTIVE, OpRow};

use stepscope_trace::DeviceKind;

use super::loading::{loader, python_lines, range_lines};
use super::ops::op_costs;
use super::{
    DeviceWork, Exchanges, Facts, InnerLoop, LowOccupancy, Memory, OneSide, Precision, ProfiledKernel,
    PythonLine, Rebuilding, RebuiltFunction, Recording, WithoutMatrixUnits,
};
use crate::thresholds;

impl Facts {
    /// What rules look at in a session.
    pub fn of(session: &Session) -> Self {
        let summary = &session.summary;
        let is_model_op =
            |row: &OpRow| !row.key.input && !is_output_op(&row.key.kind) && row.key.kind != COLLECTIVE;
        let output = summary.breakdown_ms.iter().find(|(category, _)| *category == Category::Output);
        let output_ms = output.map_or(0.0, |(_, ms)| *ms);
        Facts {
            detail: session.detail.clone(),
            waiting: session.waiting.clone(),
            exchanges: Exchanges::of(session),
            requests: session.requests.clone(),
            counters: profiled(session),
            timeline: session.timeline,
            recording: recording(session),
            ops: op_costs(&session.ops, summary, is_model_op),
            precision: Precision::of(session),
            inner_loop: InnerLoop::of(&session.ops, &session.graph_loops),
            called: session.functions.rows.iter().map(|function| function.name.clone()).collect(),
            layers: Layers::of(&session.ops),
            output_ops: op_costs(&session.ops, summary, |row| is_output_op(&row.key.kind)),
            around_output_ms: (session.checkpoint_cost.stretches_ms() - output_ms).max(0.0),
            writers: writers(&session.checkpoint_cost),
            variables_read: session.checkpoint_cost.variables_per_step(),
            summary: summary.clone(),
            eager: session.eager.clone(),
            callbacks: session.callbacks.clone(),
            setup: session.setup.clone(),
            updates: session.updates.clone(),
            one_side: one_side(session),
            odd: session.odd.clone(),
            rebuilt: session.functions.rows.iter().filter_map(rebuilt).collect(),
            loader: loader(&session.input),
            python: python_lines(&session.input),
            ranges: range_lines(&session.input),
            device: device_work(&session.kernels, session.feeding),
            kernels_of: framework_of(session.kernels.rows.iter().map(|row| row.name.as_str())),
            memory: session.memory.allocators.iter().map(allocator).collect(),
        }
    }
}

/// The ranks that were recorded, unless all were, or they could be compared.
fn one_side(session: &Session) -> Option<OneSide> {
    let working = |host: &HostSummary| {
        let devices = host.devices.iter().filter(|device| device.kind != DeviceKind::Cpu);
        devices.filter(|device| device.steps_seen > 0).count().max(1)
    };
    let recorded: usize = session.summary.hosts.iter().map(working).sum();
    // A collective of one rank alone has partners that were not recorded.
    let missing = session.world_size.map_or(recorded == 1, |ranks| ranks > recorded as u64);
    (session.waiting.is_none() && missing).then_some(OneSide { recorded, of: session.world_size })
}

fn writers(cost: &CheckpointCost) -> Vec<PythonLine> {
    cost.writers_ms().into_iter().map(|(place, ms)| PythonLine::new(place, ms)).collect()
}

/// What the profiled kernels cost: in a step, as far as the timeline shows them.
fn profiled(session: &Session) -> Vec<ProfiledKernel> {
    let Session { counters, kernels, summary, timeline, .. } = session;
    let compute = summary.length_ms() * summary.fraction(Category::Compute);
    let all: f64 = computing(kernels).map(|row| row.total_ms).sum();
    let in_steps = counters.join().ms_in(&kernels.rows);
    let cost = |profiled_ms: f64, seen_ms: f64| match *timeline {
        false => Some(profiled_ms),
        true => (all > 0.0 && seen_ms > 0.0).then(|| compute * seen_ms / all),
    };
    let kernels = counters.kernels.iter().zip(in_steps);
    kernels
        .map(|(counters, seen)| ProfiledKernel {
            ms: cost(counters.total_ms, seen),
            counters: counters.clone(),
        })
        .collect()
}

fn recording(session: &Session) -> Recording {
    let issues = &session.issues;
    let of = |trouble: Trouble| issues.iter().filter(move |issue| issue.trouble == trouble);
    // A break inside a message breaks all that hold it; the innermost lies furthest.
    let damage = of(Trouble::Changed)
        .chain(of(Trouble::OverBudget))
        .next()
        .or_else(|| of(Trouble::Damaged).max_by_key(|issue| issue.offset));
    let broke = |issue: &Issue| match issue.trouble {
        Trouble::Changed => "the file changed while it was read".to_owned(),
        Trouble::OverBudget => format!("the limit of {} {}", issue.count.unwrap_or(0), issue.detail),
        _ => issue.detail.clone(),
    };
    let mut dropped = of(Trouble::DroppedEvents).chain(of(Trouble::EventCap)).peekable();
    Recording {
        damage: damage.map(|issue| (broke(issue), issue.offset)),
        dropped: dropped.peek().is_some().then(|| lost(dropped)),
        device_missing: of(Trouble::NoDeviceEvents).next().is_some()
            || (session.feeding.accelerator && !session.feeding.computed),
        missing_device: session.missing_device.clone(),
        complaints: of(Trouble::CollectionError)
            .chain(of(Trouble::CollectionWarning).filter(|issue| is_about_device(&issue.detail)))
            .map(|issue| issue.detail.clone())
            .collect(),
        python_frames: session.python_frames,
        ranges: session.ranges.ms_per_step(),
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
    let empty = share(&|row| occupied(row).is_some_and(|occupancy| occupancy < thresholds::OCCUPANCY));
    Some(DeviceWork {
        kernels_per_step: kernels.on_each(count as f64),
        kernel_us: all * 1e3 / count as f64,
        launch_us: feeding.calls.usual().map(|usual| usual.ms() * 1e3),
        graph_share: feeding.calls.graph_share(),
        without_matrix_units: without,
        low_occupancy: empty.and_then(|(share, row)| low_occupancy(share, row)),
    })
}

/// The share of the device's threads that a kernel occupies at most. What only runs for microseconds is done before
/// more threads could help, so the size of its grid does not count.
fn occupied(row: &KernelRow) -> Option<f64> {
    let filled = row.filled.filter(|_| row.mean_ms() * 1e3 > thresholds::SMALL_KERNEL);
    row.occupancy.into_iter().chain(filled).reduce(f64::min)
}

fn low_occupancy(share: f64, row: KernelRow) -> Option<LowOccupancy> {
    let occupancy = occupied(&row)?;
    let small = row.occupancy.is_none_or(|each| occupancy < each);
    Some(LowOccupancy {
        share,
        occupancy,
        limiter: row.limiter.filter(|_| !small).map(|limiter| limiter.key().to_owned()),
        grid: row.launch.blocks().zip(row.launch.threads()).filter(|_| small),
        kernel: row.name,
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
