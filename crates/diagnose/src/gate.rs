//! The gate: figures of two sides held against limits, for CI.
//!
//! A check fails only if the figure is worse than a limit allows *and* that is no noise. Where the interval
//! reaches beyond a limit without proof, the check is unclear: it passes, with a warning, unless the caller is
//! strict.

use stepscope_analyze::Category;

use crate::compare::noise::{Estimate, Measured, Statistic};
use crate::compare::program::plain_type;
use crate::compare::{ComparedRun, Comparison, OpDelta, Verdict, Work, parts, verdict_on};
use crate::rules::RULES;

/// Changes of a part of the step below this share of the step never fail: a category of a few microseconds
/// may well double.
const NEGLIGIBLE: f64 = 0.01;

/// What is held against the limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Metric {
    /// The step's length.
    Step(Statistic),
    /// A category of the mean step.
    Breakdown(Category),
    /// Self time a step of an op, by type or by stable name. A type also means its fused versions and those of a vendor.
    Op(String),
    /// A finding must not be new.
    Finding(String),
    /// What a step does, whatever time that takes.
    Work(Work),
}

impl Metric {
    /// From the words of the command line: `step.median`, `step.mean`, `step.p90`, `breakdown.CATEGORY`,
    /// `op:NAME`, `finding:ID`, or a kind of work (`cpu`, `instructions`, …).
    pub fn parse(text: &str) -> Option<Metric> {
        let named = |name: &str| (!name.is_empty()).then(|| name.to_owned());
        if let Some(name) = text.strip_prefix("op:") {
            return named(name).map(Metric::Op);
        }
        if let Some(id) = text.strip_prefix("finding:") {
            let known = RULES.iter().any(|rule| rule.id == id);
            return known.then(|| Metric::Finding(id.to_owned()));
        }
        if let Some(key) = text.strip_prefix("breakdown.") {
            return Category::ALL.into_iter().find(|category| category.key() == key).map(Metric::Breakdown);
        }
        if let Some(work) = Work::ALL.into_iter().find(|work| work.key() == text) {
            return Some(Metric::Work(work));
        }
        let statistic = match text {
            "step.median" => Statistic::Median,
            "step.mean" => Statistic::Mean,
            "step.p90" => Statistic::P90,
            _ => return None,
        };
        Some(Metric::Step(statistic))
    }

    /// The words of the command line.
    pub fn key(&self) -> String {
        match self {
            Metric::Step(Statistic::Median) => "step.median".to_owned(),
            Metric::Step(Statistic::Mean) => "step.mean".to_owned(),
            Metric::Step(Statistic::P90) => "step.p90".to_owned(),
            Metric::Breakdown(category) => format!("breakdown.{}", category.key()),
            Metric::Op(name) => format!("op:{name}"),
            Metric::Finding(id) => format!("finding:{id}"),
            Metric::Work(work) => work.key().to_owned(),
        }
    }
}

/// How much worse NEW may be. A limit that is `None` is not looked at; each of the others can fail by itself.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Limits {
    /// Relative to BASE, e.g. 0.05.
    pub relative: Option<f64>,
    /// In milliseconds a step.
    pub absolute_ms: Option<f64>,
}

/// How a check ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Within the limits.
    Passed,
    /// Perhaps beyond a limit; too noisy to say.
    Unclear,
    /// Beyond a limit, and no noise.
    Failed,
    /// Neither side has such a thing: a name was misspelt.
    Missing,
}

impl Outcome {
    /// The public name.
    pub fn key(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Unclear => "unclear",
            Outcome::Failed => "failed",
            Outcome::Missing => "missing",
        }
    }
}

/// One metric, judged.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// Which.
    pub metric: Metric,
    /// How it ended.
    pub outcome: Outcome,
    /// The figures; `None` for findings and for what is missing.
    pub measured: Option<Measured>,
    /// Did the mean step decide, because this figure's own interval is too wide?
    pub by_mean: bool,
    /// Is it only reported? Work that was not asked for does not fail a gate whose step is within the limits.
    pub advisory: bool,
}

impl Check {
    fn of(metric: &Metric, outcome: Outcome, measured: Option<Measured>) -> Self {
        Check { metric: metric.clone(), outcome, measured, by_mean: false, advisory: false }
    }
}

/// All checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// One for each metric, in the order asked for.
    pub checks: Vec<Check>,
    /// The limits.
    pub limits: Limits,
    /// Can the sides be compared at all?
    pub comparable: bool,
}

impl Gate {
    /// The worst outcome of all checks.
    pub fn worst(&self) -> Outcome {
        self.checks
            .iter()
            .filter(|check| !check.advisory)
            .map(|check| check.outcome)
            .max()
            .unwrap_or(Outcome::Passed)
    }
}

/// Holds `metrics` of two sides against `limits`. `comparison` is that of the same sides.
pub fn gate(
    base: &[ComparedRun],
    new: &[ComparedRun],
    comparison: &Comparison,
    metrics: &[Metric],
    limits: Limits,
) -> Gate {
    let judge = Judge { base, new, comparison, limits };
    Gate {
        checks: metrics.iter().map(|metric| judge.check(metric)).collect(),
        limits,
        comparable: comparison.verdict != Verdict::NotComparable,
    }
}

/// What a gate checks if nobody asks for anything else: the mean step, and beside it all work that both sides know. More
/// work fails the gate only while the step itself is too noisy to decide: what takes more work and less time is welcome.
pub fn gate_by_default(
    base: &[ComparedRun],
    new: &[ComparedRun],
    comparison: &Comparison,
    limits: Limits,
) -> Gate {
    let work = comparison.work.iter().map(|delta| Metric::Work(delta.work));
    let metrics: Vec<Metric> = std::iter::once(Metric::Step(Statistic::Mean)).chain(work).collect();
    let mut gate = gate(base, new, comparison, &metrics, limits);
    let open = gate.checks.first().is_some_and(|step| step.outcome == Outcome::Unclear);
    for check in gate.checks.iter_mut().skip(1) {
        check.advisory = !(open && check.outcome == Outcome::Failed);
    }
    gate
}

struct Judge<'a> {
    base: &'a [ComparedRun],
    new: &'a [ComparedRun],
    comparison: &'a Comparison,
    limits: Limits,
}

impl Judge<'_> {
    fn check(&self, metric: &Metric) -> Check {
        let measured = match metric {
            Metric::Finding(id) => {
                let outcome = self.finding(id);
                return Check::of(metric, outcome, None);
            }
            Metric::Step(Statistic::Mean) => self.comparison.paid().copied(),
            Metric::Step(Statistic::Median) => self.comparison.median,
            Metric::Step(Statistic::P90) => self.comparison.p90,
            Metric::Breakdown(which) => self.part(*which),
            Metric::Op(name) => self.op(name),
            Metric::Work(which) => {
                self.comparison.work.iter().find(|delta| delta.work == *which).map(|delta| delta.measured)
            }
        };
        let Some(figure) = &measured else {
            return Check::of(metric, Outcome::Missing, None);
        };
        let own = verdict_on(figure, &self.comparison.margins);
        let (verdict, by_mean) = self.verdict(metric, figure, own);
        let outcome = self.outcome(metric, figure, verdict);
        Check { by_mean, ..Check::of(metric, outcome, measured) }
    }

    /// A category as the comparison measured it; one that takes nothing on both sides is there nevertheless.
    fn part(&self, which: Category) -> Option<Measured> {
        let measured = self.comparison.breakdown.iter().find(|delta| delta.category == which);
        measured.map(|delta| delta.measured).or_else(|| {
            // Nothing on both sides, as far as both know their categories.
            let known = !parts(self.base, which).is_empty() && !parts(self.new, which).is_empty();
            known.then(Measured::nothing)
        })
    }

    fn finding(&self, id: &str) -> Outcome {
        let is_new = self.comparison.findings.new.iter().any(|finding| finding.id == id);
        let was_there = self.comparison.findings.left.iter().any(|finding| finding.id == id);
        if is_new && !was_there { Outcome::Failed } else { Outcome::Passed }
    }

    /// An op is known by its mean alone, so it is taken to scatter as much as the step does.
    fn op(&self, name: &str) -> Option<Measured> {
        let named = |op: &&OpDelta| op.op_type == name || op.name == name || plain_type(&op.op_type) == name;
        let mut found = self.comparison.ops.iter().filter(named).peekable();
        found.peek()?;
        let (base_ms, new_ms) = found.fold((0.0, 0.0), |sum, op| (sum.0 + op.base_ms, sum.1 + op.new_ms));
        let step = self.comparison.mean.as_ref()?;
        Some(Measured::of_means(base_ms, new_ms, step.from_steps, step.from_runs))
    }

    fn outcome(&self, metric: &Metric, measured: &Measured, verdict: Verdict) -> Outcome {
        let whole = self.comparison.mean.map_or(0.0, |step| step.base_ms);
        let of_part = matches!(metric, Metric::Breakdown(_) | Metric::Op(_));
        if verdict == Verdict::Faster || (of_part && measured.delta_ms.value < NEGLIGIBLE * whole) {
            return Outcome::Passed;
        }
        let relative = self.limits.relative.map(|limit| match &measured.ratio {
            Some(ratio) => judged(ratio, (1.0, limit), verdict),
            None if matches!(metric, Metric::Work(_)) => judged(&measured.delta_ms, (0.0, 0.0), verdict),
            // It was nothing before: what it is now is held against the whole step.
            None => judged(&measured.delta_ms, (0.0, limit * whole), verdict),
        });
        // Milliseconds of the step are no limit for its work.
        let in_ms = self.limits.absolute_ms.filter(|_| !matches!(metric, Metric::Work(_)));
        let absolute = in_ms.map(|limit| judged(&measured.delta_ms, (0.0, limit), verdict));
        relative.into_iter().chain(absolute).max().unwrap_or(Outcome::Passed)
    }

    /// What is certain about a figure, and whether that follows from the mean step. About the mean step, which is what is
    /// paid, the comparison has decided. Where it has, another figure of the step that moved the same way in most steps is
    /// decided, too.
    fn verdict(&self, metric: &Metric, measured: &Measured, own: Verdict) -> (Verdict, bool) {
        let whole = self.comparison.by_steps;
        let sign = match whole {
            Verdict::Slower => 1.0,
            Verdict::Faster => -1.0,
            _ => 0.0,
        };
        match metric {
            Metric::Step(Statistic::Mean) => (whole, false),
            Metric::Step(_) if own == Verdict::Unclear => {
                let moved = sign * measured.delta_ms.value > 0.0;
                let error = self.comparison.margins.confidence.error();
                let most =
                    self.comparison.ranks.is_some_and(|ranks| ranks.p < error && ranks.delta * sign > 0.0);
                if moved && most { (whole, true) } else { (own, false) }
            }
            _ => (own, false),
        }
    }
}

/// Holds an estimate against a limit above `nothing`. Where no difference shows, the interval may reach beyond the limit, up
/// to twice of it: the best guess is within, and the comparison says the same.
fn judged(estimate: &Estimate, (nothing, limit): (f64, f64), verdict: Verdict) -> Outcome {
    let reaches = |far: f64| estimate.high.is_none_or(|high| high > nothing + far);
    if estimate.value > nothing + limit {
        if verdict == Verdict::Slower { Outcome::Failed } else { Outcome::Unclear }
    } else if !reaches(limit) || (verdict == Verdict::Same && !reaches(2.0 * limit)) {
        Outcome::Passed
    } else {
        Outcome::Unclear
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::Shares;
    use stepscope_trace::Dur;

    use super::*;
    use crate::compare::tests::{noisy_run, run_of};
    use crate::compare::{FindingKey, Margins, OpTime, compare};

    const FIVE_PERCENT: Limits = Limits { relative: Some(0.05), absolute_ms: None };

    fn outcome(base: &[ComparedRun], new: &[ComparedRun], metric: &str, limits: Limits) -> Outcome {
        let comparison = compare(base, new, Margins::default());
        gate(base, new, &comparison, &[Metric::parse(metric).unwrap()], limits).worst()
    }

    #[test]
    fn words_and_metrics_go_both_ways() {
        for text in [
            "step.median",
            "step.mean",
            "step.p90",
            "breakdown.transfer_in",
            "op:MatMul",
            "finding:retracing",
            "cpu",
            "launches",
        ] {
            assert_eq!(Metric::parse(text).unwrap().key(), text);
        }
        for text in ["", "step", "step.p99", "breakdown.inputs", "op:", "finding:", "finding:retrace"] {
            assert_eq!(Metric::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_regression_beyond_the_limit_fails_and_one_below_passes() {
        let base = [noisy_run(1, 60, 10.0, 0.02)];
        let slower = [noisy_run(2, 60, 11.0, 0.02)];
        for metric in ["step.median", "step.mean", "step.p90"] {
            assert_eq!(outcome(&base, &slower, metric, FIVE_PERCENT), Outcome::Failed, "{metric}");
            assert_eq!(outcome(&slower, &base, metric, FIVE_PERCENT), Outcome::Passed, "{metric}");
            let lenient = Limits { relative: Some(0.2), absolute_ms: None };
            assert_eq!(outcome(&base, &slower, metric, lenient), Outcome::Passed, "{metric}");
        }
        let half_a_ms = Limits { relative: None, absolute_ms: Some(0.5) };
        assert_eq!(outcome(&base, &slower, "step.median", half_a_ms), Outcome::Failed);
        let two_ms = Limits { relative: None, absolute_ms: Some(2.0) };
        assert_eq!(outcome(&base, &slower, "step.median", two_ms), Outcome::Passed);
    }

    #[test]
    fn what_the_comparison_calls_slower_never_passes() {
        let base = [noisy_run(1, 24, 5.0, 0.1)];
        let mut periodic = noisy_run(2, 24, 5.0, 0.1);
        periodic.steps_ms.iter_mut().step_by(4).for_each(|ms| *ms += 220.0);
        assert_eq!(outcome(&base, &[periodic.clone()], "step.mean", FIVE_PERCENT), Outcome::Failed);
        assert_ne!(outcome(&base, &[periodic], "step.median", FIVE_PERCENT), Outcome::Failed);
        let three_times = [noisy_run(3, 24, 14.6, 0.3)];
        assert_eq!(outcome(&base, &three_times, "step.mean", FIVE_PERCENT), Outcome::Failed);
    }

    #[test]
    fn an_effect_beyond_what_load_can_do_is_decided_for_every_figure() {
        let mut two_peaks = noisy_run(1, 14, 4.0, 0.3);
        two_peaks.steps_ms.iter_mut().step_by(2).for_each(|ms| *ms /= 2.5);
        let slow = [noisy_run(2, 14, 68.0, 0.3)];
        for metric in ["step.mean", "step.median", "step.p90"] {
            let base = [two_peaks.clone()];
            assert_eq!(outcome(&base, &slow, metric, FIVE_PERCENT), Outcome::Failed, "{metric}");
            assert_eq!(outcome(&slow, &base, metric, FIVE_PERCENT), Outcome::Passed, "{metric}");
        }
        // Steps that wait or do not: the ranges overlap, and what is paid is clear.
        let mut waits = noisy_run(3, 12, 75.0, 0.4);
        waits.steps_ms.iter_mut().step_by(3).for_each(|ms| *ms /= 20.0);
        let quick = [noisy_run(4, 12, 3.5, 0.15)];
        for metric in ["step.mean", "step.median", "step.p90"] {
            assert_eq!(outcome(&quick, &[waits.clone()], metric, FIVE_PERCENT), Outcome::Failed, "{metric}");
        }
    }

    #[test]
    fn work_decides_where_time_cannot_and_never_stops_a_faster_step() {
        let side = |seed, step_ms, spread, cpu: f64| {
            let work = vec![(Work::Cpu, vec![cpu; 12])];
            [ComparedRun { work, ..noisy_run(seed, 12, step_ms, spread) }]
        };
        let judged = |base: &[ComparedRun], new: &[ComparedRun]| {
            gate_by_default(base, new, &compare(base, new, Margins::default()), FIVE_PERCENT)
        };
        let noisy = side(1, 10.0, 1.2, 8.0);
        let more_work = judged(&noisy, &side(2, 11.5, 1.2, 10.5));
        assert_eq!(more_work.checks[0].outcome, Outcome::Unclear);
        assert_eq!((more_work.worst(), more_work.checks[1].advisory), (Outcome::Failed, false));
        let same_work = judged(&noisy, &side(2, 11.5, 1.2, 8.0));
        assert_eq!(same_work.worst(), Outcome::Unclear, "work cannot see waiting");
        let quiet = side(3, 10.0, 0.02, 8.0);
        let faster = judged(&quiet, &side(4, 7.0, 0.02, 12.0));
        assert_eq!((faster.worst(), faster.checks[1].outcome), (Outcome::Passed, Outcome::Failed));
        assert!(faster.checks[1].advisory);
        assert_eq!(outcome(&quiet, &side(4, 7.0, 0.02, 12.0), "cpu", FIVE_PERCENT), Outcome::Failed);
        assert_eq!(outcome(&quiet, &quiet, "device", FIVE_PERCENT), Outcome::Missing);
    }

    #[test]
    fn noise_never_fails() {
        let base = [noisy_run(1, 12, 10.0, 1.2)];
        let slower = [noisy_run(2, 12, 11.5, 1.2)];
        assert_eq!(outcome(&base, &slower, "step.median", FIVE_PERCENT), Outcome::Unclear);
    }

    #[test]
    fn parts_of_the_step_have_limits_of_their_own() {
        let base = [run_of(&[(Category::Compute, 9.0), (Category::Input, 1.0)], 40)];
        let waits = [run_of(&[(Category::Compute, 9.0), (Category::Input, 2.0)], 40)];
        assert_eq!(outcome(&base, &waits, "breakdown.input", FIVE_PERCENT), Outcome::Failed);
        assert_eq!(outcome(&base, &waits, "breakdown.compute", FIVE_PERCENT), Outcome::Passed);
        // From nothing: held against the step.
        assert_eq!(outcome(&base, &waits, "breakdown.output", FIVE_PERCENT), Outcome::Passed);
        let writes =
            [run_of(&[(Category::Compute, 9.0), (Category::Input, 1.0), (Category::Output, 3.0)], 40)];
        assert_eq!(outcome(&base, &writes, "breakdown.output", FIVE_PERCENT), Outcome::Failed);
        // From little to a little more: negligible.
        let little = [run_of(&[(Category::Compute, 9.0), (Category::Input, 1.05)], 40)];
        assert_eq!(outcome(&base, &little, "breakdown.input", FIVE_PERCENT), Outcome::Passed);
    }

    #[test]
    fn a_wait_that_comes_in_most_steps_is_certain_though_steps_scatter() {
        let run = |waits: fn(usize) -> f64| {
            let mut run = ComparedRun::default();
            for step in 0..16 {
                let mut shares = Shares::default();
                shares.add(Category::Compute, Dur::from_ps(3_000_000_000 + 30_000_000 * (step as i64 % 3)));
                shares.add(Category::Input, Dur::from_ps((waits(step) * 1e9) as i64));
                run.steps_ms.push(shares.total().ms());
                run.shares.push(shares);
            }
            let op = |number: usize| OpTime {
                name: format!("op {number}"),
                op_type: format!("Op{number}"),
                on_device: false,
                ms_per_step: 0.4,
                count_per_step: 1.0,
            };
            run.ops = (0..8).map(op).collect();
            [run]
        };
        let quick = run(|step| if step % 5 == 0 { 1.5 } else { 0.0 });
        let slow = run(|step| [60.0, 12.0, 45.0][step % 3]);
        assert_eq!(outcome(&quick, &slow, "breakdown.input", FIVE_PERCENT), Outcome::Failed);
        assert_eq!(outcome(&slow, &quick, "breakdown.input", FIVE_PERCENT), Outcome::Passed);
        assert_ne!(
            outcome(&slow, &run(|step| [12.0, 60.0, 48.0][step % 3]), "breakdown.input", FIVE_PERCENT),
            Outcome::Failed
        );
    }

    #[test]
    fn ops_and_findings_are_looked_up() {
        let with_op = |ms: f64| {
            let mut run = noisy_run(1, 40, 10.0, 0.01);
            run.ops.push(OpTime {
                name: "dense/MatMul".to_owned(),
                op_type: "MatMul".to_owned(),
                on_device: false,
                ms_per_step: ms,
                count_per_step: 1.0,
            });
            [run]
        };
        assert_eq!(outcome(&with_op(4.0), &with_op(5.0), "op:MatMul", FIVE_PERCENT), Outcome::Failed);
        assert_eq!(outcome(&with_op(4.0), &with_op(4.0), "op:dense/MatMul", FIVE_PERCENT), Outcome::Passed);
        assert_eq!(outcome(&with_op(4.0), &with_op(4.0), "op:Conv2D", FIVE_PERCENT), Outcome::Missing);
        for variant in ["_MklMatMul", "_FusedMatMul", "_MklNativeFusedMatMul"] {
            let renamed = |ms| {
                with_op(ms).map(|mut run| {
                    run.ops.iter_mut().for_each(|op| op.op_type = variant.to_owned());
                    run
                })
            };
            assert_eq!(outcome(&renamed(4.0), &renamed(5.0), "op:MatMul", FIVE_PERCENT), Outcome::Failed);
        }
        let mut retraces = with_op(4.0);
        retraces[0].findings.push(FindingKey { id: "retracing".to_owned(), subject: None });
        assert_eq!(outcome(&with_op(4.0), &retraces, "finding:retracing", FIVE_PERCENT), Outcome::Failed);
        assert_eq!(outcome(&retraces, &retraces, "finding:retracing", FIVE_PERCENT), Outcome::Passed);
        assert_eq!(outcome(&retraces, &with_op(4.0), "finding:retracing", FIVE_PERCENT), Outcome::Passed);
    }
}
