//! What changed between two sides, and whether it is more than noise.
//!
//! Each side is one recording or several of the same program ([`Run`]). Steps are compared as distributions
//! ([`noise`], [`verdict`]), the breakdown category by category, ops by stable name ([`matching`]), findings by
//! id and subject; [`comparable`] tells whether both sides measure the same thing at all.

pub mod comparable;
mod launches;
pub mod matching;
pub mod noise;
mod side;
pub mod verdict;

use stepscope_analyze::Category;

use crate::statistics::RankTest;
pub use comparable::{Comparability, Difference};
pub use matching::{Match, OpDelta, ScopeDelta};
pub use noise::{Estimate, Measured, Statistic};
pub use side::{FindingKey, OpTime, Run, Setting};
pub use verdict::{Margins, Needed, Verdict};

/// What was measured on both sides.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unit {
    /// A step.
    Step,
    /// A launch of each kernel that both sides profiled.
    Launch,
}

/// One side, boiled down.
#[derive(Clone, Debug, PartialEq)]
pub struct SideFigures {
    /// The runs' labels.
    pub runs: Vec<String>,
    /// How many steps count in all of them.
    pub steps: usize,
}

/// One category of the breakdown on both sides, in milliseconds of the mean step.
#[derive(Clone, Debug, PartialEq)]
pub struct CategoryDelta {
    /// Which.
    pub category: Category,
    /// What was measured.
    pub measured: Measured,
}

impl CategoryDelta {
    /// Is the change more than noise?
    pub fn proven(&self) -> bool {
        let delta = &self.measured.delta_ms;
        delta.low.is_some_and(|low| low > 0.0) || delta.high.is_some_and(|high| high < 0.0)
    }
}

/// Findings that went, came and stayed.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct FindingChanges {
    /// Only BASE has them.
    pub solved: Vec<FindingKey>,
    /// Only NEW has them.
    pub new: Vec<FindingKey>,
    /// Both have them.
    pub left: Vec<FindingKey>,
}

/// The whole comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// What is to be said.
    pub verdict: Verdict,
    /// What the steps alone say, whether or not the sides can be compared.
    pub by_steps: Verdict,
    /// The margins that it was judged by.
    pub margins: Margins,
    /// What `median` and `ops` are about.
    pub unit: Unit,
    /// The median step, or one launch of each kernel in common; `None` where a side has neither.
    pub median: Option<Measured>,
    /// The ranks of all steps.
    pub ranks: Option<RankTest>,
    /// What would be needed for an answer, where there is none.
    pub needed: Option<Needed>,
    /// The relative standard deviation from run to run that was reckoned with.
    pub run_to_run: f64,
    /// The breakdown; the largest change first.
    pub breakdown: Vec<CategoryDelta>,
    /// Ops; the largest change first.
    pub ops: Vec<OpDelta>,
    /// Name scopes, as far as the ops' names tell them; the largest change first.
    pub scopes: Vec<ScopeDelta>,
    /// Findings.
    pub findings: FindingChanges,
    /// What else differs.
    pub comparability: Comparability,
    /// BASE.
    pub base: SideFigures,
    /// NEW.
    pub new: SideFigures,
}

/// Compares two sides.
pub fn compare(base: &[Run], new: &[Run], margins: Margins) -> Comparison {
    let (old, now) = (steps(base), steps(new));
    let run_to_run = noise::run_to_run(&old, &now);
    let ops = matching::match_ops(base, new);
    let unit = if launches::all_there_is(base, new) { Unit::Launch } else { Unit::Step };
    let median = match unit {
        Unit::Step => noise::measure(&old, &now, Statistic::Median, run_to_run),
        Unit::Launch => launches::measure(base, new, &ops, run_to_run),
    };
    let ranks = verdict::ranks(&old, &now);
    let by_steps = median.as_ref().map_or(Verdict::Unclear, |median| match unit {
        Unit::Step => verdict::verdict(median, ranks.as_ref(), &margins),
        Unit::Launch => launches::judge(median, &margins),
    });
    let comparability = match unit {
        Unit::Step => {
            comparable::comparability(base, new, comparable::no_steps(base, new), matching::similarity(&ops))
        }
        // Only kernels in common are looked at: how many others there are says nothing about those.
        Unit::Launch => {
            let nothing = median.is_none().then_some(Difference::NoKernelInCommon);
            comparable::comparability(base, new, nothing, None)
        }
    };
    let fewest = |side: &[Vec<f64>]| side.iter().map(Vec::len).filter(|n| *n > 0).min().unwrap_or(0);
    let unclear = by_steps == Verdict::Unclear && unit == Unit::Step;
    let needed = median.filter(|_| unclear).map(|median| {
        let (n, runs) = (fewest(&old).min(fewest(&now)), old.len().min(now.len()));
        verdict::needed(&median, n, runs, run_to_run, &margins)
    });
    Comparison {
        verdict: if comparability.is_comparable() { by_steps } else { Verdict::NotComparable },
        by_steps,
        margins,
        unit,
        median,
        ranks,
        needed,
        run_to_run,
        breakdown: breakdown(base, new, run_to_run),
        findings: findings(base, new),
        comparability,
        scopes: matching::match_scopes(&ops),
        ops,
        base: figures(base),
        new: figures(new),
    }
}

/// The steps of a side, run by run.
pub(crate) fn steps(side: &[Run]) -> Vec<Vec<f64>> {
    side.iter().map(|run| run.steps_ms.clone()).collect()
}

/// One category's time of a side, run by run, step by step.
pub(crate) fn category(side: &[Run], category: Category) -> Vec<Vec<f64>> {
    side.iter().map(|run| run.category_ms(category)).collect()
}

fn figures(side: &[Run]) -> SideFigures {
    SideFigures {
        runs: side.iter().map(|run| run.label.clone()).collect(),
        steps: side.iter().map(|run| run.steps_ms.len()).sum(),
    }
}

fn breakdown(base: &[Run], new: &[Run], run_to_run: f64) -> Vec<CategoryDelta> {
    let measured = |which| {
        let (old, now) = (category(base, which), category(new, which));
        noise::measure(&old, &now, Statistic::Mean, run_to_run)
            .filter(|measured| measured.base_ms > 0.0 || measured.new_ms > 0.0)
            .map(|measured| CategoryDelta { category: which, measured })
    };
    let mut deltas: Vec<CategoryDelta> = Category::ALL.into_iter().filter_map(measured).collect();
    let size = |delta: &CategoryDelta| delta.measured.delta_ms.value.abs();
    deltas.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.category.cmp(&b.category)));
    deltas
}

/// A side has a finding if most of its runs have it: one odd run must not make it come and go.
fn findings(base: &[Run], new: &[Run]) -> FindingChanges {
    let of = |side: &[Run]| -> Vec<FindingKey> {
        let mut all: Vec<FindingKey> = Vec::new();
        for finding in side.iter().flat_map(|run| &run.findings) {
            let runs = side.iter().filter(|run| run.findings.contains(finding)).count();
            if 2 * runs > side.len() && !all.contains(finding) {
                all.push(finding.clone());
            }
        }
        all
    };
    let (old, now) = (of(base), of(new));
    let (left, solved) = old.into_iter().partition(|finding| now.contains(finding));
    let left: Vec<FindingKey> = left;
    let new = now.into_iter().filter(|finding| !left.contains(finding)).collect();
    FindingChanges { solved, new, left }
}

#[cfg(test)]
pub(crate) mod tests;
