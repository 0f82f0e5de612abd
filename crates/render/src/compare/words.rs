//! The sentences of a comparison, shared by text, Markdown, the page and the gate. Its first line is in `headline`.

use stepscope_analyze::steps::Origin;
use stepscope_diagnose::compare::{
    Basis, Comparison, Difference, Estimate, FindingKey, Likeness, Machines, Match, Measured, Next, OpDelta,
    OwnWork, PartChange, SideFigures, Unit, Work, WorkDelta, WorkUnit,
};
use stepscope_diagnose::statistics::RankTest;
use stepscope_trace::DeviceKind;

use crate::format::{bytes, duration_ms, from_to_ms, name_cut, number, percent, plural, prefixed, short};

/// What the verdict is about.
pub(super) fn what(comparison: &Comparison) -> &'static str {
    match (comparison.unit, comparison.decided_by) {
        (Unit::Launch, _) => "a launch of the profiled kernels",
        (Unit::Step, Basis::Median) => "the median step",
        (Unit::Step, Basis::Mean | Basis::BeyondLoad) => "the mean step",
        (Unit::Step, Basis::Pairs) => "the mean step of paired windows",
    }
}

/// The figures of both sides with their names, the mean first.
pub(crate) fn figures(comparison: &Comparison) -> Vec<(&'static str, &Measured)> {
    // Where load hides the mean, what is left of it decided, and stands first with the interval that decided.
    let left = if comparison.decided_by == Basis::BeyondLoad { &comparison.beyond } else { &None };
    let all = match comparison.unit {
        Unit::Step => vec![
            ("mean step beyond load", left),
            (if comparison.pairs.is_some() { "paired step" } else { "mean step" }, &comparison.mean),
            ("median step", &comparison.median),
            ("90th percentile", &comparison.p90),
        ],
        Unit::Launch => vec![("one launch of each kernel profiled on both sides", &comparison.mean)],
    };
    all.into_iter().filter_map(|(name, figure)| Some((name, figure.as_ref()?))).collect()
}

/// A figure of work in its own unit: `31.2 ms`, `1,204`, `3.1 MB`.
pub(crate) fn work_amount(work: Work, value: f64) -> String {
    match work.unit() {
        WorkUnit::Ms => duration_ms(value),
        WorkUnit::Bytes => bytes(value),
        WorkUnit::Count if value >= 1e6 => prefixed(value),
        WorkUnit::Count => number(value),
    }
}

/// What a kind of work is called: `CPU time`.
pub(crate) fn work_name(work: Work) -> &'static str {
    match work {
        Work::Cpu => "CPU time",
        Work::Instructions => "instructions",
        Work::Device => "device time",
        Work::Launches => "launches",
        Work::Copied => "bytes copied",
        Work::Ops => "ops",
    }
}

/// `CPU time +31.0 %`.
pub(crate) fn work_change(delta: &WorkDelta) -> String {
    let change = match delta.measured.ratio {
        Some(ratio) => change(ratio.value),
        None => format!("+{}", work_amount(delta.work, delta.measured.new_ms)),
    };
    format!("{} {change}", work_name(delta.work))
}

/// The unit of the ops' times.
pub(crate) fn per_unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Step => "per step",
        Unit::Launch => "per launch",
    }
}

/// The interval of a ratio, in parentheses; empty if there is none.
pub(crate) fn range(ratio: &Estimate) -> String {
    interval(ratio).map_or_else(String::new, |interval| format!(" (95 % interval {interval})"))
}

/// `−1.2 % to +3.4 %`. An interval that holds half of BASE as well as twice of it says nothing, so its ends are not shown.
pub(crate) fn interval(ratio: &Estimate) -> Option<String> {
    const HALF_TO_TWICE: (f64, f64) = (0.5, 2.0);
    let (low, high) = ratio.low.zip(ratio.high)?;
    if low < HALF_TO_TWICE.0 && high > HALF_TO_TWICE.1 {
        return Some("too wide to say".to_owned());
    }
    Some(format!("{} to {}", change(low), change(high)))
}

/// A ratio as a change: 1.05 is `+5.0 %`.
pub(crate) fn change(ratio: f64) -> String {
    signed(ratio - 1.0, percent)
}

/// A time difference with its sign.
pub(crate) fn change_ms(ms: f64) -> String {
    signed(ms, duration_ms)
}

fn signed(value: f64, show: fn(f64) -> String) -> String {
    let text = show(value);
    if value > 0.0 && !text.starts_with("0.0 ") { format!("+{text}") } else { text }
}

/// How the verdict was reached, one sentence each.
pub(crate) fn explanation(comparison: &Comparison) -> Vec<String> {
    let Some(figure) = comparison.deciding() else { return Vec::new() };
    let mut lines = vec![format!("Decided by {}.", what(comparison))];
    if let Some(by_steps) = figure.from_steps {
        lines.push(format!(
            "Half-width of the interval: {} from the scatter of the steps (block bootstrap), {} from differences \
             between runs.",
            percent(by_steps),
            percent(figure.from_runs)
        ));
    }
    let runs = comparison.base.runs.len().max(comparison.new.runs.len());
    let from = if runs > 1 { "the runs and their steps" } else { "the scatter of the steps" };
    lines.push(format!(
        "Runs of the same program differ by {} (standard deviation), estimated from {from}. Changes below {} are ignored.",
        percent(comparison.run_to_run.deviation()),
        percent(comparison.margins.practical)
    ));
    if let Some(pairs) = comparison.pairs {
        lines = vec![format!(
            "Decided by {} of windows that ran in turn: the signed-rank interval of their ratios.",
            plural(pairs as u64, "pair", "pairs")
        )];
    }
    lines.extend(
        comparison.ranks.as_ref().map(|ranks| format!("Rank test of all steps: {}.", rank_test(ranks))),
    );
    lines
}

/// `p < 0.001, Cliff's delta 0.812`.
pub(crate) fn rank_test(ranks: &RankTest) -> String {
    let p = if ranks.p < 0.001 { "< 0.001".to_owned() } else { format!("= {:.3}", ranks.p) };
    format!("p {p}, Cliff's delta {}", short(ranks.delta))
}

/// `60 steps of 1 run`.
pub(crate) fn amount(side: &SideFigures, unit: Unit) -> String {
    let runs = plural(side.runs.len() as u64, "run", "runs");
    match unit {
        Unit::Step => format!("{} of {runs}", plural(side.steps as u64, "step", "steps")),
        Unit::Launch => runs,
    }
}

/// The next step if there is no answer, as an imperative without its stop.
pub(crate) fn next_step(next: Next) -> String {
    match next {
        Next::LongerRuns(steps) => format!("record at least {} per run", plural(steps, "step", "steps")),
        Next::MoreRuns(runs) => format!("record {} per side in turn", plural(runs, "run", "runs")),
        Next::QuieterMachine => "run with `stepscope gate --paired`".to_owned(),
    }
}

/// The next step in detail.
fn next(next: Next) -> String {
    match next {
        Next::LongerRuns(_) => format!("Next: {}.", next_step(next)),
        Next::MoreRuns(_) => format!(
            "Next: {}, alternating between BASE and NEW, and pass all of them (--base A --base B --new C --new D).",
            next_step(next)
        ),
        Next::QuieterMachine => "Next: let both programs take turns step by step, so that both see the same machine: \
                                 `stepscope gate --paired --base CMD --new CMD`. Or record again on an idle machine; \
                                 more runs of this kind would not be enough."
            .to_owned(),
    }
}

/// The cost of a side's slow steps.
fn rhythm(name: &str, side: &SideFigures) -> Option<String> {
    let rhythm = side.rhythm?;
    let (typical, extra) = (duration_ms(rhythm.typical_ms), duration_ms(rhythm.extra_ms));
    Some(format!("{name}: {typical} in a typical step, plus {extra} every {:.0} steps.", rhythm.every))
}

/// A factor closer to 1 than this says nothing about the machine.
const LOAD: f64 = 0.05;

/// How much of the difference comes from the machine.
fn load(comparison: &Comparison) -> Option<String> {
    let load = comparison.load?;
    let ops = plural(load.ops as u64, "op", "ops");
    let decides = comparison.decided_by == Basis::BeyondLoad;
    let shown = (decides || load.factor.ln().abs() > LOAD.max(load.spread)).then(|| {
        format!(
            "The {ops} that run equally often on both sides take {} as long on NEW: load on the machine, other clocks, or a \
             change that affects all of them.",
            format_args!("{} times", short(load.factor))
        )
    });
    shown.filter(|_| comparison.unit == Unit::Step)
}

/// What else the machine did, where it differs enough to matter, or where it explains the difference.
fn machine(comparison: &Comparison) -> Option<String> {
    let Machines { base, new } = comparison.machines?;
    let share = |what: &str, base: Option<f64>, new: Option<f64>| {
        let (base, new) = base.zip(new)?;
        ((new - base).abs() >= LOAD).then(|| format!("{what} {} (BASE: {})", percent(new), percent(base)))
    };
    let all = [
        share("other processes used", base.others, new.others),
        share("other machines took", base.stolen, new.stolen),
        share("the CPU quota stalled the run for", base.throttled, new.throttled),
        share("GPU clocks were held down for", base.gpu_throttled, new.gpu_throttled),
    ];
    let said: Vec<String> = all.into_iter().flatten().collect();
    let mut text = format!("On NEW, {}.", said.join(", "));
    if let Some((base, new)) = base.cpu_ms_per_step.zip(new.cpu_ms_per_step) {
        text.push_str(&format!(" CPU time per step: {}.", from_to_ms(base, new)));
    }
    if comparison.machine_explains {
        text.push_str(" The machine alone can explain the difference.");
    }
    (!said.is_empty()).then_some(text)
}

/// What differs, as a clause.
pub(crate) fn difference(difference: &Difference) -> String {
    match difference {
        Difference::Model(likeness) => model(likeness),
        Difference::CompiledOnOneSide => {
            "a compiler named the kernels of one side only: whether both run the same model \
                                          cannot be seen"
                .to_owned()
        }
        Difference::BatchSize(base, new) => format!("the batch size changed from {base} to {new}"),
        Difference::Hardware(base, new) => {
            format!("the work moved from {} to {}", kinds(base), kinds(new))
        }
        Difference::DeviceModel(base, new) => {
            format!("the device changed from {} to {}", base.join(", "), new.join(", "))
        }
        Difference::DeviceCount(base, new) => format!("the number of devices changed from {base} to {new}"),
        Difference::HostCount(base, new) => {
            format!("the number of recorded hosts changed from {base} to {new}")
        }
        Difference::Framework(base, new) => format!("the framework changed from {base:?} to {new:?}"),
        Difference::Version { of, base, new } => format!("{of} changed from {base} to {new}"),
        Difference::StepOrigin(base, new) => {
            let origin = |origin: &Origin| match origin {
                Origin::Marker => "marked",
                Origin::Inferred => "inferred",
                Origin::None => "not found",
            };
            format!(
                "steps were {} on BASE and {} on NEW: they may mean different things",
                origin(base),
                origin(new)
            )
        }
        Difference::NoKernelInCommon => "no kernel with the same name was profiled on both sides".to_owned(),
        Difference::NoSteps { base: true, new: true } => "neither side has steps".to_owned(),
        Difference::NoSteps { base: true, .. } => "BASE has no steps".to_owned(),
        Difference::NoSteps { .. } => "NEW has no steps".to_owned(),
    }
}

/// What differs between two programs: how much is in common, and what only one side does.
fn model(likeness: &Likeness) -> String {
    let only = |side: &str, own: &OwnWork| {
        let named: Vec<String> = own
            .largest
            .iter()
            .map(|(name, share)| format!("{} {}", name_cut(name, 40), percent(*share)))
            .collect();
        (!named.is_empty())
            .then(|| format!("only {side} has {} ({} of its op time)", named.join(", "), percent(own.share)))
    };
    let said = if likeness.is_another() { "different programs" } else { "the program changed" };
    let common = format!("{said}: {} of their kinds of ops are in common", percent(likeness.common));
    let parts = [only("BASE", &likeness.base), only("NEW", &likeness.new)];
    std::iter::once(common).chain(parts.into_iter().flatten()).collect::<Vec<_>>().join("; ")
}

fn kinds(kinds: &[DeviceKind]) -> String {
    let name = |kind: &DeviceKind| match kind {
        DeviceKind::Cpu => "a CPU",
        DeviceKind::Gpu => "a GPU",
        DeviceKind::Tpu => "a TPU",
        DeviceKind::Other => "another device",
    };
    let names: Vec<&str> = kinds.iter().map(name).collect();
    if names.is_empty() { "an unknown device".to_owned() } else { names.join(" and ") }
}

/// Public id of a difference.
pub(crate) fn difference_id(difference: &Difference) -> &'static str {
    match difference {
        Difference::Model(_) => "model",
        Difference::CompiledOnOneSide => "compiled-on-one-side",
        Difference::BatchSize(..) => "batch-size",
        Difference::Hardware(..) => "hardware",
        Difference::DeviceModel(..) => "device-model",
        Difference::DeviceCount(..) => "device-count",
        Difference::HostCount(..) => "host-count",
        Difference::Framework(..) => "framework",
        Difference::Version { .. } => "version",
        Difference::StepOrigin(..) => "step-origin",
        Difference::NoKernelInCommon => "no-kernel-in-common",
        Difference::NoSteps { .. } => "no-steps",
    }
}

/// Further notes, one sentence each.
pub(crate) fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut remarks: Vec<String> = comparison
        .comparability
        .differences
        .iter()
        .map(|it| format!("Different setup: {}.", difference(it)))
        .collect();
    if comparison.comparability.several_changes() {
        remarks.push(
            "Several things changed at once: the comparison cannot show which one caused the difference."
                .to_owned(),
        );
    }
    remarks.extend(rhythm("BASE", &comparison.base));
    remarks.extend(rhythm("NEW", &comparison.new));
    remarks.extend(load(comparison));
    remarks.extend(machine(comparison));
    remarks.extend(comparison.next.map(next));
    remarks
}

/// `retracing (train_step)`.
pub(crate) fn finding(finding: &FindingKey) -> String {
    match &finding.subject {
        Some(subject) => format!("{} ({})", finding.id, name_cut(subject, 60)),
        None => finding.id.clone(),
    }
}

/// The type of an op if it adds to the name.
pub(crate) fn op_type(op: &OpDelta) -> Option<&str> {
    (op.op_type != op.name).then_some(&op.op_type)
}

/// How many per step on each side; whole numbers as such.
pub(crate) fn counts(op: &OpDelta) -> String {
    format!("{} → {}", number(op.base_count), number(op.new_count))
}

/// Where an op runs.
pub(crate) fn side(op: &OpDelta) -> &'static str {
    if op.on_device { "device" } else { "host" }
}

/// Why the time of a part differs: `same FLOPs, 12 % slower`, `8 % more FLOPs`.
pub(crate) fn part_change(change: PartChange) -> String {
    let speed = |ratio: f64| match percent((ratio - 1.0).abs()) {
        _ if (ratio - 1.0).abs() < 0.005 => "as fast".to_owned(),
        share if ratio > 1.0 => format!("{share} slower"),
        share => format!("{share} faster"),
    };
    match change {
        PartChange::Added => "new".to_owned(),
        PartChange::Removed => "gone".to_owned(),
        PartChange::Work(ratio) if ratio > 1.0 => format!("{} more work", percent(ratio - 1.0)),
        PartChange::Work(ratio) => format!("{} less work", percent(1.0 - ratio)),
        PartChange::Speed(ratio) => format!("same work, {}", speed(ratio)),
        PartChange::Unknown(ratio) => format!("work unknown, {}", speed(ratio)),
    }
}

/// Public id of how ops were matched.
pub(crate) fn matched(matched: Match) -> &'static str {
    match matched {
        Match::Name => "name",
        Match::Type => "type",
        Match::BaseOnly => "base-only",
        Match::NewOnly => "new-only",
    }
}
