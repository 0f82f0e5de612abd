//! The sentences of a comparison, shared by text, Markdown, the page and the gate.

use stepscope_analyze::steps::Origin;
use stepscope_diagnose::compare::{
    Basis, CategoryDelta, Comparison, Difference, Estimate, FindingKey, Likeness, Machines, Match, Measured,
    Next, OpDelta, OwnWork, PartChange, SideFigures, Unit, Verdict,
};
use stepscope_diagnose::statistics::RankTest;
use stepscope_trace::DeviceKind;

use crate::format::{duration_ms, from_to_ms, name_cut, number, percent, plural, short};

/// Number of causes in the first line.
const CAUSES: usize = 2;
/// A category with a smaller share of the change is not a cause.
const CAUSE: f64 = 0.1;

/// The result in one line: verdict, size, cause.
pub(crate) fn headline(comparison: &Comparison) -> String {
    let figure = comparison.deciding();
    let Some((measured, ratio)) = figure.and_then(|figure| Some((figure, figure.ratio?))) else {
        return match comparison.unit {
            Unit::Step => "not comparable: a side has no steps".to_owned(),
            Unit::Launch => format!("not comparable: {}", difference(&Difference::NoKernelInCommon)),
        };
    };
    let what = what(comparison);
    let times = from_to_ms(measured.base_ms, measured.new_ms);
    match comparison.verdict {
        Verdict::Slower | Verdict::Faster => {
            let (word, (size, than)) = (comparison.verdict.key(), size(ratio.value));
            let size = match comparison.decided_by {
                Basis::BeyondLoad => format!(
                    "{word}: {what} takes {size} {than} the load of the machine explains ({} expected, {} measured)",
                    duration_ms(measured.base_ms),
                    duration_ms(measured.new_ms)
                ),
                Basis::Mean | Basis::Median => format!("{word}: {what} takes {size} ({times})"),
            };
            let all: Vec<String> = std::iter::once(size).chain(causes(comparison)).collect();
            all.join("; ")
        }
        Verdict::Same if comparison.decided_by == Basis::BeyondLoad => format!(
            "no difference beyond the load of the machine: {what} takes {} instead of {}{}",
            duration_ms(measured.new_ms),
            duration_ms(measured.base_ms),
            range(&ratio)
        ),
        Verdict::Same => format!("no difference: {what} takes {times}{}", range(&ratio)),
        Verdict::Unclear => {
            let certain: Vec<String> = comparison
                .breakdown
                .iter()
                .filter(|delta| delta.proven())
                .take(CAUSES)
                .map(category_change)
                .collect();
            let whole = format!("{what} takes {times}{}", range(&ratio));
            match &certain[..] {
                [] => format!("unclear: {whole}, within the noise"),
                certain => format!(
                    "unclear: {} is significant, but the total is too noisy: {whole}",
                    certain.join(" and ")
                ),
            }
        }
        Verdict::NotComparable => {
            let why = comparison.comparability.differences.iter().find(|difference| difference.blocks());
            format!("not comparable: {}", why.map_or_else(String::new, difference))
        }
    }
}

/// What the verdict is about.
fn what(comparison: &Comparison) -> &'static str {
    match (comparison.unit, comparison.decided_by) {
        (Unit::Launch, _) => "a launch of the profiled kernels",
        (Unit::Step, Basis::Median) => "the median step",
        (Unit::Step, Basis::Mean | Basis::BeyondLoad) => "the mean step",
    }
}

/// `20.0 % longer`, `2.92 times as long`, `45.0 % less time`, and the word before what that is compared with.
fn size(ratio: f64) -> (String, &'static str) {
    match ratio {
        ratio if ratio >= 2.0 => (format!("{} times as long", short(ratio)), "as"),
        ratio if ratio >= 1.0 => (format!("{} longer", percent(ratio - 1.0)), "than"),
        ratio => (format!("{} less time", percent(1.0 - ratio)), "than"),
    }
}

/// What caused the difference: categories with a significant change in its direction, findings that appeared or
/// disappeared.
fn causes(comparison: &Comparison) -> Vec<String> {
    let delta = comparison.mean.map_or(0.0, |mean| mean.delta_ms.value);
    let moved = comparison
        .breakdown
        .iter()
        .filter(|it| it.proven() && it.measured.delta_ms.value * delta.signum() >= CAUSE * delta.abs());
    let moved = moved.take(CAUSES).map(category_change);
    let (findings, word) = match comparison.verdict {
        Verdict::Faster => (&comparison.findings.solved, "solved"),
        _ => (&comparison.findings.new, "new"),
    };
    let findings = findings.iter().take(CAUSES).map(|it| format!("{} {word}", it.id));
    let judged = comparison.breakdown.iter().any(|delta| delta.measured.delta_ms.low.is_some());
    let none = judged && !comparison.breakdown.iter().any(CategoryDelta::proven);
    let unexplained = none.then(|| "no category alone changed by more than its noise".to_owned());
    moved.chain(findings).chain(unexplained).collect()
}

/// `input −36.8 ms`.
fn category_change(delta: &CategoryDelta) -> String {
    format!("{} {}", delta.category.key(), change_ms(delta.measured.delta_ms.value))
}

/// The figures of both sides with their names, the mean first.
pub(crate) fn figures(comparison: &Comparison) -> Vec<(&'static str, &Measured)> {
    // Where load hides the mean, what is left of it decided, and stands first with the interval that decided.
    let left = if comparison.decided_by == Basis::BeyondLoad { &comparison.beyond } else { &None };
    let all = match comparison.unit {
        Unit::Step => vec![
            ("mean step beyond load", left),
            ("mean step", &comparison.mean),
            ("median step", &comparison.median),
            ("90th percentile", &comparison.p90),
        ],
        Unit::Launch => vec![("one launch of each kernel profiled on both sides", &comparison.mean)],
    };
    all.into_iter().filter_map(|(name, figure)| Some((name, figure.as_ref()?))).collect()
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
    lines.push(format!(
        "Assumed difference between runs of the same program: {} (standard deviation). Changes below {} are ignored.",
        percent(comparison.run_to_run.deviation()),
        percent(comparison.margins.practical)
    ));
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

/// The next step if there is no answer.
fn next(next: Next) -> String {
    match next {
        Next::LongerRuns(steps) => {
            format!("Next: record at least {} per run.", plural(steps, "step", "steps"))
        }
        Next::MoreRuns(runs) => format!(
            "Next: record {} per side, alternating between BASE and NEW, and pass all of them (--base A --base B --new C --new D).",
            plural(runs, "run", "runs")
        ),
        Next::QuieterMachine => {
            "Next: record again on an idle machine; more runs would not be enough.".to_owned()
        }
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
    // How far runs differ matters only where there are steps to compare.
    let one_run = comparison.base.runs.len().min(comparison.new.runs.len()) == 1;
    if comparison.mean.is_some() && one_run && comparison.next != Some(Next::QuieterMachine) {
        remarks.push(format!(
            "One run per side: runs of the same program are assumed to differ by {}. To measure this instead, use several \
             runs per side (--base A --base B --new C --new D).",
            percent(comparison.run_to_run.deviation())
        ));
    }
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

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_go_with_what_follows() {
        let said = |ratio| {
            let (size, than) = size(ratio);
            format!("{size} {than} the load explains")
        };
        assert_eq!(said(11.2), "11.2 times as long as the load explains");
        assert_eq!(said(1.2), "20.0 % longer than the load explains");
        assert_eq!(said(0.5), "50.0 % less time than the load explains");
    }
}
