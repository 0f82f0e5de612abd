//! From a profile to a [`ComparedRun`]: everything that a comparison needs to know about one recording.

use std::collections::BTreeMap;
use std::path::Path;

use stepscope_analyze::Category;
use stepscope_analyze::session::{HostPartial, Session};
use stepscope_analyze::steps::Origin;
use stepscope_analyze::vocabulary::names::stable_name;
use stepscope_analyze::work::ops::{Ops, Where};
use stepscope_analyze::work::programs::Programs;
use stepscope_diagnose::Facts;
use stepscope_diagnose::compare::{ComparedRun, FindingKey, OpTime, PartCost, Work};
use stepscope_diagnose::facts::{ProfiledKernel, ProfiledKernels};
use stepscope_diagnose::{Finding, diagnose};
use stepscope_trace::{Delivers, DeviceKind, Property, Trace, Value};

use crate::{HostProfile, Hosts, Problem, SavedRun};

/// Summarises one recording; fails if none of its hosts can be read. For a saved run, the steps are the ones that the run timed, without a profiler
/// that slows them down; a profile in the same folder shows their breakdown.
pub fn run_of(hosts: &Hosts<'_>, label: &str) -> Result<ComparedRun, Problem> {
    let parts = hosts.visit(Part::of);
    hosts.any()?;
    let saved = parts.iter().find(|part| part.samples).and_then(|part| part.saved_run());
    let mut run = of_parts(parts, label);
    if let Some(saved) = saved {
        if !saved.steps_ms.is_empty() {
            run.steps_ms = saved.steps_ms;
            run.setting.origin = Some(Origin::Marker);
        }
        run.setting.batch_size = saved.batch_size.or(run.setting.batch_size);
        run.machine = Some(saved.machine);
        // Samples tell of every GPU: where there is none, the processors did the work.
        if run.setting.devices.is_empty() {
            run.setting.devices.push((DeviceKind::Cpu, "CPU".to_owned()));
        }
    }
    Ok(run)
}

/// One host of a recording.
struct Part {
    path: String,
    /// Whether it holds the samples of a saved run.
    samples: bool,
    partial: HostPartial,
    versions: Vec<(String, String)>,
}

impl Part {
    fn of(loaded: &HostProfile) -> Self {
        Part {
            path: loaded.path.clone(),
            samples: loaded.format.delivers == Delivers::RunSamples,
            partial: HostPartial::of(&loaded.context()),
            versions: versions(&loaded.trace),
        }
    }

    /// The run that was saved together with the samples.
    fn saved_run(&self) -> Option<SavedRun> {
        SavedRun::in_folder(Path::new(&self.path).parent()?)
    }
}

fn of_parts(parts: Vec<Part>, label: &str) -> ComparedRun {
    // Samples beside a profile are not a separate host. On their own, they at least show which devices exist.
    let alone = parts.iter().all(|part| part.samples);
    let versions: BTreeMap<String, String> = parts.iter().flat_map(|part| part.versions.clone()).collect();
    let hosts = parts.into_iter().filter(|part| alone || !part.samples).map(|part| part.partial).collect();
    let Some(session) = Session::finish(hosts) else { return ComparedRun::default() };
    let facts = Facts::of(session);
    let profiled = facts.get::<ProfiledKernels>();
    let mut run = ComparedRun::of(label, &facts.summary);
    run.profiled = !facts.timeline && !profiled.0.is_empty();
    run.ops = if run.profiled { launch_times(&profiled.0) } else { op_times(&facts.ops) };
    run.parts = part_costs(&facts.programs);
    let findings = diagnose(&facts);
    run.work = work_of(&run, &facts);
    run.culprits = findings.iter().filter_map(culprit).collect();
    run.findings = findings
        .into_iter()
        .map(|finding| FindingKey { id: finding.id().to_owned(), subject: finding.subject })
        .collect();
    run.setting.versions = versions.into_iter().collect();
    let pipeline = facts.input.pipeline.as_ref();
    run.setting.batch_size = pipeline.and_then(|pipeline| pipeline.batch_size).map(|(size, _)| size);
    run
}

/// What the steps of a profile do.
fn work_of(run: &ComparedRun, facts: &Facts) -> Vec<(Work, Vec<f64>)> {
    if run.profiled || run.steps_ms.is_empty() || run.ops.is_empty() {
        return Vec::new();
    }
    let is_copy = |op: &OpTime| op.op_type.to_ascii_lowercase().contains("memcpy") || op.op_type == "Memset";
    let device = || run.ops.iter().filter(|op| op.on_device);
    let mut work = Vec::new();
    if device().next().is_some() {
        work.push((Work::Device, device().map(|op| op.ms_per_step).sum()));
        work.push((Work::Launches, device().filter(|op| !is_copy(op)).map(|op| op.count_per_step).sum()));
    }
    let copied = facts.detail.as_ref().and_then(|detail| {
        let bytes: Option<u64> =
            detail.copies.moved.iter().filter_map(|moved| moved.bytes).reduce(|a, b| a + b);
        bytes.map(|bytes| bytes as f64 / detail.steps.max(1) as f64)
    });
    work.extend(copied.map(|bytes| (Work::Copied, bytes)));
    let host: f64 = run.ops.iter().filter(|op| !op.on_device).map(|op| op.count_per_step).sum();
    if host > 0.0 {
        work.push((Work::Ops, host));
    }
    work.into_iter().map(|(work, value)| (work, vec![value])).collect()
}

/// What takes the time of the category that a finding claims most of.
fn culprit(finding: &Finding) -> Option<(Category, String)> {
    let (category, _) = finding.claims.iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    Some((*category, finding.cause.culprit().or_else(|| finding.subject.clone())?))
}

/// The model's ops by stable name. Ops inside the input pipeline are excluded, because they overlap the step.
fn op_times(ops: &Ops) -> Vec<OpTime> {
    let mut times: BTreeMap<(bool, String, &str), (f64, f64)> = BTreeMap::new();
    for row in ops.rows.iter().filter(|row| !row.key.input) {
        let Some(ms) = ops.window.per_step(row.self_ms) else { continue };
        let key = (row.key.side == Where::Device, stable_name(&row.key.name), row.key.kind.as_str());
        let (time, count) = times.entry(key).or_default();
        *time += ms;
        *count += ops.window.per_step(row.count as f64).unwrap_or(0.0);
    }
    let one = |((on_device, name, op_type), (ms_per_step, count_per_step)): ((bool, String, &str), _)| {
        OpTime { name, op_type: op_type.to_owned(), on_device, ms_per_step, count_per_step }
    };
    times.into_iter().map(one).collect()
}

/// What compiled programs do, by scope and operation: those names stay from version to version.
fn part_costs(programs: &Programs) -> Vec<PartCost> {
    let mut parts: BTreeMap<(&str, &'static str), PartCost> = BTreeMap::new();
    let steps = |total: f64| programs.window.per_step(total);
    // The longest comes first, so that its line stands for the part.
    for op in programs.ops.iter().filter(|op| op.facts.known && !op.facts.container) {
        let facts = &op.facts;
        let file = facts.source.rsplit_once(':').map_or("", |(file, _)| file);
        let name = if facts.label.is_empty() { file } else { &facts.label };
        let Some(ms) = steps(op.totals.own.ms()).filter(|_| !name.is_empty()) else { continue };
        let part = parts.entry((name, facts.phase.name())).or_insert_with(|| PartCost {
            name: name.to_owned(),
            phase: facts.phase.name(),
            source: facts.source.clone(),
            ms: 0.0,
            flops: Some(0.0),
            bytes: Some(0.0),
        });
        let add = |own: Option<f64>, more: Option<u64>| Some(own? + steps(more? as f64)?);
        part.ms += ms;
        part.flops = add(part.flops, op.flops());
        part.bytes = add(part.bytes, op.bytes());
    }
    parts.into_values().collect()
}

/// Kernels that were profiled one by one, one launch of each. A kernel is its own type: another name is another
/// kernel.
fn launch_times(kernels: &[ProfiledKernel]) -> Vec<OpTime> {
    let mut times: BTreeMap<&str, (f64, u64)> = BTreeMap::new();
    for ProfiledKernel { counters, .. } in kernels {
        let (time, launches) = times.entry(&counters.name).or_default();
        *time += counters.total_ms;
        *launches += counters.launches;
    }
    let one = |(name, (ms, launches)): (&str, (f64, u64))| OpTime {
        name: name.to_owned(),
        op_type: name.to_owned(),
        on_device: true,
        ms_per_step: ms / launches.max(1) as f64,
        count_per_step: launches as f64,
    };
    times.into_iter().map(one).collect()
}

/// Versions that one host reports.
fn versions(trace: &Trace) -> Vec<(String, String)> {
    let one = |property: &Property| {
        let text = match property.value.resolve(trace.strings()) {
            Value::Str(text) | Value::Json(text) => text.into_owned(),
            Value::Int(number) => number.to_string(),
            Value::UInt(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Bool(truth) => truth.to_string(),
            Value::Bytes(_) | Value::Null => return None,
        };
        Some((trace.str(property.key).to_owned(), text))
    };
    trace.environment().versions.iter().filter_map(one).collect()
}
