//! The sentences of a comparison, shared by text, Markdown, the page and the gate.

use stepscope_analyze::steps::Origin;
use stepscope_diagnose::compare::{
    Comparison, Difference, Estimate, FindingKey, Match, Needed, OpDelta, SideFigures, Unit, Verdict,
};
use stepscope_diagnose::statistics::RankTest;
use stepscope_trace::DeviceKind;

use crate::format::{duration_ms, name_cut, percent, plural, short};

/// The answer in one line.
pub(crate) fn headline(comparison: &Comparison) -> String {
    let Some(ratio) = comparison.median.and_then(|median| median.ratio) else {
        return match comparison.unit {
            Unit::Step => "not comparable: a side has no steps".to_owned(),
            Unit::Launch => format!("not comparable: {}", difference(&Difference::NoKernelInCommon)),
        };
    };
    let (what, range) = (measured(comparison.unit), range(&ratio));
    match comparison.verdict {
        Verdict::Slower => format!("slower: {what} takes {} longer{range}", percent(ratio.value - 1.0)),
        Verdict::Faster => format!("faster: {what} takes {} less time{range}", percent(1.0 - ratio.value)),
        Verdict::Same => {
            format!("no difference: {what} takes {} of the time before{range}", percent(ratio.value))
        }
        Verdict::Unclear => {
            format!("too noisy to say: {what} takes {} of the time before{range}", percent(ratio.value))
        }
        Verdict::NotComparable => {
            let why = comparison.comparability.differences.iter().find(|difference| difference.blocks());
            format!("not comparable: {}", why.map_or_else(String::new, difference))
        }
    }
}

/// What a comparison is about.
fn measured(unit: Unit) -> &'static str {
    match unit {
        Unit::Step => "the step",
        Unit::Launch => "a launch of the profiled kernels",
    }
}

/// The figure that both sides have, as a label.
pub(crate) fn figure(unit: Unit) -> &'static str {
    match unit {
        Unit::Step => "median step",
        Unit::Launch => "a launch of each kernel that both sides profiled",
    }
}

/// What ops' times are of.
pub(crate) fn a_unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Step => "a step",
        Unit::Launch => "a launch",
    }
}

/// The interval behind a ratio, in brackets; empty where there is none.
pub(crate) fn range(ratio: &Estimate) -> String {
    match ratio.low.zip(ratio.high) {
        Some((low, high)) => format!(" (95 % interval {} to {})", change(low), change(high)),
        None => String::new(),
    }
}

/// A ratio as a change: 1.05 is `+5.0 %`.
pub(crate) fn change(ratio: f64) -> String {
    signed(ratio - 1.0, percent)
}

/// A difference of times with its sign.
pub(crate) fn change_ms(ms: f64) -> String {
    signed(ms, duration_ms)
}

fn signed(value: f64, show: fn(f64) -> String) -> String {
    let text = show(value);
    if value > 0.0 && !text.starts_with("0.0 ") { format!("+{text}") } else { text }
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

/// What would give an answer.
pub(crate) fn needed(needed: &Needed) -> Option<String> {
    let steps = needed.steps.map(|steps| format!("about {} a run", plural(steps, "step", "steps")));
    let runs = needed.runs.map(|runs| format!("about {} a side", plural(runs, "run", "runs")));
    let both: Vec<String> = steps.into_iter().chain(runs).collect();
    (!both.is_empty()).then(|| format!("An answer would need {}.", both.join(" and ")))
}

/// What differs, as a clause.
pub(crate) fn difference(difference: &Difference) -> String {
    match difference {
        Difference::Model(similarity) => {
            format!("the ops have only {} in common: it may be another model", percent(*similarity))
        }
        Difference::BatchSize(base, new) => format!("the batch size was {base} and is {new}"),
        Difference::Hardware(base, new) => {
            format!("the work ran on {} and runs on {}", kinds(base), kinds(new))
        }
        Difference::DeviceModel(base, new) => {
            format!("the device was {} and is {}", base.join(", "), new.join(", "))
        }
        Difference::DeviceCount(base, new) => format!("{base} and {new} devices were at work"),
        Difference::HostCount(base, new) => format!("{base} and {new} hosts were recorded"),
        Difference::Framework(base, new) => format!("the framework was {base:?} and is {new:?}"),
        Difference::Version { of, base, new } => format!("{of} was {base} and is {new}"),
        Difference::StepOrigin(base, new) => {
            let origin = |origin: &Origin| match origin {
                Origin::Marker => "marked",
                Origin::Inferred => "inferred",
                Origin::None => "not found",
            };
            format!(
                "steps were {} and are {}: both may mean other things by a step",
                origin(base),
                origin(new)
            )
        }
        Difference::NoKernelInCommon => "no kernel of the same name was profiled on both sides".to_owned(),
        Difference::NoSteps { base: true, new: true } => "neither side has steps".to_owned(),
        Difference::NoSteps { base: true, .. } => "BASE has no steps".to_owned(),
        Difference::NoSteps { .. } => "NEW has no steps".to_owned(),
    }
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

/// The public name of a difference.
pub(crate) fn difference_id(difference: &Difference) -> &'static str {
    match difference {
        Difference::Model(_) => "model",
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

/// What else is to be said, one sentence each.
pub(crate) fn remarks(comparison: &Comparison) -> Vec<String> {
    let mut remarks: Vec<String> = comparison
        .comparability
        .differences
        .iter()
        .map(|it| format!("Not alike: {}.", difference(it)))
        .collect();
    if comparison.comparability.several_changes() {
        remarks.push(
            "More than one thing was changed at once: nobody can say which one made the difference."
                .to_owned(),
        );
    }
    remarks.extend(comparison.needed.as_ref().and_then(needed));
    // How far runs differ matters only where there are steps to compare.
    if comparison.median.is_some() && comparison.base.runs.len().min(comparison.new.runs.len()) == 1 {
        remarks.push(format!(
            "One run a side: runs of one program are taken to differ by {} from each other; several runs a side \
             (--base A --base B --new C --new D) measure it instead.",
            percent(comparison.run_to_run)
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

/// The type of an op where it says more than the name.
pub(crate) fn op_type(op: &OpDelta) -> Option<&str> {
    (op.op_type != op.name).then_some(&op.op_type)
}

/// The public name of how ops were matched.
pub(crate) fn matched(matched: Match) -> &'static str {
    match matched {
        Match::Name => "name",
        Match::Type => "type",
        Match::BaseOnly => "base-only",
        Match::NewOnly => "new-only",
    }
}
