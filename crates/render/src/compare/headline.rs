//! The first line of a comparison and of a gate: what a reviewer needs to know. Verdict, size, cause; else why there is no
//! verdict and what to do about it. Load, expectations and intervals of other figures are details, and come later.

use stepscope_analyze::Category;
use stepscope_diagnose::compare::{
    Basis, CategoryDelta, Comparison, Difference, Estimate, Measured, Unit, Verdict, WorkDelta,
};

use super::words::{difference, next_step, what, work_change};
use crate::format::{name_cut, percent, plural};

/// Number of causes in the first line.
const CAUSES: usize = 2;
/// A category with a smaller share of the change is not a cause.
const CAUSE: f64 = 0.1;
/// From this ratio on, people say how many times.
const TIMES: f64 = 2.0;
/// If the load of the machine changed by less than this, the measured times need no explanation.
const LOAD: f64 = 0.10;

/// The result in one line.
pub(crate) fn headline(comparison: &Comparison) -> String {
    let Some(figure) = shown(comparison).filter(|figure| figure.ratio.is_some()) else {
        return match comparison.unit {
            Unit::Step if comparison.pairs.is_some() => {
                "Cannot decide: no pair of windows was measured".to_owned()
            }
            Unit::Step => "Not comparable: a side has no steps".to_owned(),
            Unit::Launch => format!("Not comparable: {}", difference(&Difference::NoKernelInCommon)),
        };
    };
    match comparison.verdict {
        Verdict::Slower | Verdict::Faster => {
            let mut text = format!("{}: {}.", size(comparison, figure), times(figure));
            if let Some(causes) = causes(comparison) {
                text.push(' ');
                text.push_str(&causes);
            }
            text
        }
        Verdict::Same => format!("No change beyond {}: {}", farthest(figure), times(figure)),
        Verdict::Unclear => unclear(comparison, figure),
        Verdict::NotComparable => {
            let why = comparison.comparability.differences.iter().find(|difference| difference.blocks());
            format!("Not comparable: {}", why.map_or_else(String::new, difference))
        }
    }
}

/// The figure that the first line is about: what was measured, unless the machine made much of it.
fn shown(comparison: &Comparison) -> Option<&Measured> {
    let quiet = comparison.load.is_some_and(|load| load.factor.ln().abs() < LOAD);
    match comparison.decided_by {
        Basis::BeyondLoad if quiet => comparison.mean.as_ref(),
        _ => comparison.deciding(),
    }
}

/// `Slower by 12 % [9, 15]`, `12 times faster`, and what that is about if it is not the mean step as measured.
fn size(comparison: &Comparison, figure: &Measured) -> String {
    let slower = comparison.verdict == Verdict::Slower;
    let ratio = figure.ratio.map_or(1.0, |ratio| ratio.value);
    let times = if slower { ratio } else { 1.0 / ratio };
    let about = match (comparison.unit, comparison.decided_by) {
        (Unit::Launch, _) => format!(" ({})", what(comparison)),
        (Unit::Step, Basis::Median) => " in the median step".to_owned(),
        (Unit::Step, Basis::BeyondLoad) if Some(figure) == comparison.beyond.as_ref() => {
            " beyond the load of the machine".to_owned()
        }
        (Unit::Step, _) => String::new(),
    };
    if times >= TIMES {
        let word = if slower { "slower" } else { "faster" };
        return format!("{} times {word}{about}", significant(times));
    }
    let word = if slower { "Slower" } else { "Faster" };
    // A figure decided by another one of the same step has an interval of its own that says less.
    let decides = comparison.deciding() == Some(figure);
    let range =
        figure.ratio.filter(|_| decides).and_then(|ratio| brackets(&ratio, slower)).unwrap_or_default();
    format!("{word} by {}{range}{about}", brief_percent((ratio - 1.0).abs()))
}

/// ` [9, 15]`: the interval in per cent, in the direction of the verdict.
fn brackets(ratio: &Estimate, slower: bool) -> Option<String> {
    let (low, high) = ratio.low.zip(ratio.high)?;
    let change = |ratio: f64| if slower { ratio - 1.0 } else { 1.0 - ratio };
    let (a, b) = (change(low), change(high));
    let number = |value: f64| brief_percent(value).trim_end_matches(" %").to_owned();
    Some(format!(" [{}, {}]", number(a.min(b)), number(a.max(b))))
}

/// `4 %`: what the interval still allows.
fn farthest(figure: &Measured) -> String {
    let ends = figure.ratio.and_then(|ratio| ratio.low.zip(ratio.high));
    let far = ends.map_or(0.0, |(low, high)| (1.0 - low).max(high - 1.0).max(0.0));
    brief_percent((far * 100.0).ceil() / 100.0)
}

/// Why there is no verdict, and the one thing to do.
fn unclear(comparison: &Comparison, figure: &Measured) -> String {
    let parts = comparison.breakdown.iter().filter(|it| it.proven()).take(CAUSES).map(category_change);
    let changed = |it: &&WorkDelta| matches!(it.verdict, Verdict::Slower | Verdict::Faster);
    let work = comparison.work.iter().filter(changed).take(CAUSES).map(work_change);
    let certain: Vec<String> = work.chain(parts).collect();
    let why = if let Some(pairs) = comparison.pairs {
        format!("{} are not enough on this machine", plural(pairs as u64, "pair", "pairs"))
    } else if comparison.machine_explains {
        "the machine alone can explain the difference".to_owned()
    } else if figure.from_steps.is_none_or(|by_steps| by_steps > figure.from_runs && comparison.varied < LOAD)
    {
        "too few steps".to_owned()
    } else if comparison.base.runs.len().min(comparison.new.runs.len()) > 1 {
        format!("runs of the same program differ by {}", brief_percent(comparison.run_to_run.deviation()))
    } else {
        format!("step times varied by {} within a run", brief_percent(comparison.varied))
    };
    let next = comparison.next.map_or_else(String::new, |next| format!("; {}", next_step(next)));
    let measured = format!("{}, {}", times(figure), signed_percent(figure));
    let but = if certain.is_empty() { String::new() } else { format!(". Certain: {}", certain.join(", ")) };
    format!("Cannot decide ({measured}): {why}{next}{but}")
}

fn signed_percent(figure: &Measured) -> String {
    let change = figure.ratio.map_or(0.0, |ratio| ratio.value - 1.0);
    format!("{}{}", if change > 0.0 { "+" } else { "" }, percent(change))
}

/// What caused the difference: the categories with a certain change in its direction, and what takes their time.
fn causes(comparison: &Comparison) -> Option<String> {
    let delta = comparison.mean.map_or(0.0, |mean| mean.delta_ms.value);
    let moved = |it: &&CategoryDelta| {
        it.proven() && it.measured.delta_ms.value * delta.signum() >= CAUSE * delta.abs()
    };
    let moved: Vec<&CategoryDelta> = comparison.breakdown.iter().filter(moved).take(CAUSES).collect();
    let first = moved.first()?;
    let names: Vec<String> = moved.iter().map(|it| category_change(it)).collect();
    let names = capital(&names.join(", "));
    let culprit = comparison.culprit.as_ref().filter(|(category, _)| *category == first.category);
    let Some((category, name)) = culprit else { return Some(format!("{names}.")) };
    let name = name_cut(name, 60).trim_matches('`').to_owned();
    let slower = first.measured.delta_ms.value > 0.0;
    let does = match (category, slower) {
        (Category::Input, true) => "holds the step",
        (Category::Input, false) => "no longer holds the step",
        (_, true) => "takes more time",
        (_, false) => "takes less time",
    };
    Some(format!("{names}: `{name}` {does}."))
}

/// `input −36 ms`.
fn category_change(delta: &CategoryDelta) -> String {
    let ms = delta.measured.delta_ms.value;
    let sign = if ms < 0.0 { "−" } else { "+" };
    let (value, unit) = scaled(ms.abs(), ms.abs());
    format!("{} {sign}{} {unit}", delta.category.key(), significant(value))
}

/// Capitalises the first letter.
fn capital(sentence: &str) -> String {
    let mut letters = sentence.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `42.3 → 3.5 ms`: both in the unit of the larger one.
fn times(figure: &Measured) -> String {
    let larger = figure.base_ms.max(figure.new_ms);
    let (base, unit) = scaled(figure.base_ms, larger);
    let (new, _) = scaled(figure.new_ms, larger);
    let (short_base, short_new) = (tenths(base), tenths(new));
    if short_base == short_new && base != new {
        return format!("{base:.3} → {new:.3} {unit}");
    }
    format!("{short_base} → {short_new} {unit}")
}

/// A time in the unit that fits `as_ms`.
fn scaled(ms: f64, as_ms: f64) -> (f64, &'static str) {
    if as_ms >= 1e3 {
        (ms / 1e3, "s")
    } else if as_ms >= 1.0 {
        (ms, "ms")
    } else {
        (ms * 1e3, "µs")
    }
}

/// Three digits for large numbers, one decimal for others, two digits for small ones.
fn tenths(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 1.0 => format!("{value:.1}"),
        value if value >= 0.1 => format!("{value:.2}"),
        value => format!("{value:.3}"),
    }
}

/// Two digits: `12`, `2.3`, `0.45`.
fn significant(value: f64) -> String {
    match value {
        value if value >= 9.95 => format!("{value:.0}"),
        value if value >= 0.995 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

/// `12 %`, `3.4 %`.
fn brief_percent(share: f64) -> String {
    let value = share * 100.0;
    if value.abs() >= 9.95 || value == value.round() {
        format!("{value:.0} %")
    } else {
        format!("{value:.1} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_as_many_digits_as_a_reviewer_reads() {
        let figure = |base, new| Measured::of_means(base, new, Some(0.01), 0.02);
        assert_eq!(times(&figure(42.289, 3.537)), "42.3 → 3.5 ms");
        assert_eq!(times(&figure(0.932, 71.5)), "0.93 → 71.5 ms");
        assert_eq!(times(&figure(10.01, 10.04)), "10.010 → 10.040 ms");
        assert_eq!(times(&figure(1_200.0, 980.0)), "1.2 → 0.98 s");
        assert_eq!((significant(11.96), significant(2.31)), ("12".to_owned(), "2.3".to_owned()));
        assert_eq!((brief_percent(0.1204), brief_percent(0.0342)), ("12 %".to_owned(), "3.4 %".to_owned()));
        let ratio = Estimate { value: 1.12, low: Some(1.094), high: Some(1.148) };
        assert_eq!(brackets(&ratio, true).as_deref(), Some(" [9.4, 15]"));
        let ratio = Estimate { value: 0.8, low: Some(0.75), high: Some(0.85) };
        assert_eq!(brackets(&ratio, false).as_deref(), Some(" [15, 25]"));
    }
}
