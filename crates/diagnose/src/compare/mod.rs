//! What changed between two sides, and whether it is more than noise.
//!
//! Each side is one recording or several of the same program ([`ComparedRun`]). Steps are compared as distributions
//! ([`noise`], [`verdict`]), the breakdown category by category, ops by stable name ([`matching`]), findings by
//! id and subject; [`comparable`] tells whether both sides measure the same thing at all.

mod certain;
pub mod comparable;
mod compiled;
mod launches;
pub mod load;
pub mod machine;
pub mod matching;
pub mod noise;
mod parts;
pub mod program;
pub mod rhythm;
mod side;
pub mod verdict;
mod work;

use stepscope_analyze::Category;

use crate::statistics::{Confidence, RankTest};
pub use comparable::{Comparability, Difference};
pub use compiled::{PartChange, PartCost, PartDelta};
pub use load::{Around, Load};
pub use machine::{Machine, Machines};
pub use matching::{Match, OpDelta, ScopeDelta};
pub use noise::{Estimate, Measured, RunToRun, Statistic, Unrest};
pub use parts::Part;
pub use program::{Likeness, OwnWork, Programs};
pub use rhythm::Rhythm;
pub use side::{ComparedRun, FindingKey, OpTime, Setting};
use verdict::Decision;
pub use verdict::{Basis, Margins, Next, Verdict};
pub(crate) use work::verdict_on;
pub use work::{Work, WorkDelta, WorkUnit};

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
    /// What only some steps pay; `None` where all pay alike.
    pub rhythm: Option<Rhythm>,
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
    /// What the figures and `ops` are about.
    pub unit: Unit,
    /// What is paid: the mean step, or one launch of each kernel in common; `None` where a side has neither.
    pub mean: Option<Measured>,
    /// The typical step; for launches the same as `mean`.
    pub median: Option<Measured>,
    /// The slow steps: nine of ten are faster.
    pub p90: Option<Measured>,
    /// The mean step beside what the machine makes of BASE's: `base_ms` is what was to be expected of an unchanged
    /// program; `None` where the machine's share is not known.
    pub beyond: Option<Measured>,
    /// The figure that decided.
    pub decided_by: Basis,
    /// The ranks of all steps.
    pub ranks: Option<RankTest>,
    /// How much of the difference all ops share; `None` where that cannot be read off.
    pub load: Option<Load>,
    /// What else the machine did while both sides were recorded, where that was measured.
    pub machines: Option<Machines>,
    /// Was a difference called unclear because the machine alone explains it?
    pub machine_explains: bool,
    /// What would most likely give an answer, where there is none.
    pub next: Option<Next>,
    /// How far runs of the same program are taken to differ.
    pub run_to_run: RunToRun,
    /// How far step times varied within the most disturbed run, relative.
    pub varied: f64,
    /// What takes the time of the category that explains the change, on the slower side; `None` where no finding names it.
    pub culprit: Option<(Category, String)>,
    /// How many pairs of windows decided; `None` where whole recordings were compared.
    pub pairs: Option<usize>,
    /// What a step does, as far as both sides know it.
    pub work: Vec<WorkDelta>,
    /// The breakdown; the largest change first.
    pub breakdown: Vec<CategoryDelta>,
    /// Ops; the largest change first.
    pub ops: Vec<OpDelta>,
    /// Name scopes, as far as the ops' names tell them; the largest change first.
    pub scopes: Vec<ScopeDelta>,
    /// Parts of the model in compiled programs, with their work; the largest change first. Empty if a side has none.
    pub parts: Vec<PartDelta>,
    /// Findings.
    pub findings: FindingChanges,
    /// What else differs.
    pub comparability: Comparability,
    /// BASE.
    pub base: SideFigures,
    /// NEW.
    pub new: SideFigures,
}

impl Comparison {
    /// What is paid, as far as the machine lets it be known: the mean step, beside what load explains where that decided.
    pub(crate) fn paid(&self) -> Option<&Measured> {
        match self.decided_by {
            Basis::BeyondLoad => self.beyond.as_ref(),
            Basis::Mean | Basis::Median | Basis::Pairs => self.mean.as_ref(),
        }
    }

    /// The figure that decided.
    pub fn deciding(&self) -> Option<&Measured> {
        match self.decided_by {
            Basis::Median => self.median.as_ref(),
            Basis::Mean | Basis::Pairs => self.mean.as_ref(),
            Basis::BeyondLoad => self.beyond.as_ref(),
        }
    }
}

/// How much of a comparison is wanted. Drawing steps again takes most of its time, for each figure anew.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Detail {
    /// All of it.
    Full,
    /// The verdict, the figure that decides it, and what else differs; no slow steps, and no median where the
    /// mean decides.
    Verdict,
}

/// Compares two sides.
pub fn compare(base: &[ComparedRun], new: &[ComparedRun], margins: Margins) -> Comparison {
    compare_in(Detail::Full, base, new, margins)
}

/// Compares two sides as far as it is wanted.
pub(crate) fn compare_in(
    detail: Detail,
    base: &[ComparedRun],
    new: &[ComparedRun],
    margins: Margins,
) -> Comparison {
    let (old, now) = (steps(base), steps(new));
    let ops = matching::match_ops(base, new);
    let programs = Programs::of(base, new);
    let mut figures = if launches::all_there_is(base, new) {
        Figures::of_launches(base, new, &ops, &margins)
    } else {
        Figures::of_steps(base, new, &ops, &programs, &margins, detail)
    };
    let mut breakdown = breakdown(base, new, figures.parts_differ(base, new), margins.confidence);
    figures.agree_with(&mut breakdown, &margins);
    let comparability = match figures.unit {
        Unit::Step => comparable::comparability(base, new, comparable::no_steps(base, new), &programs),
        // Only kernels in common are looked at: how many others there are says nothing about those.
        Unit::Launch => {
            let nothing = figures.mean.is_none().then_some(Difference::NoKernelInCommon);
            comparable::comparability(base, new, nothing, &Programs::Unknown)
        }
    };
    let machines = Machines::of(base, new);
    let machine_explains = machines.is_some_and(|machines| match figures.decision.verdict {
        Verdict::Slower => machines.explain(true),
        Verdict::Faster => machines.explain(false),
        _ => false,
    });
    let by_steps = if machine_explains { Verdict::Unclear } else { figures.decision.verdict };
    Comparison {
        verdict: if comparability.is_comparable() { by_steps } else { Verdict::NotComparable },
        by_steps,
        machines,
        machine_explains,
        margins,
        unit: figures.unit,
        next: if machine_explains { Some(Next::QuieterMachine) } else { figures.next(&old, &now, &margins) },
        mean: figures.mean,
        median: figures.median,
        p90: figures.p90,
        decided_by: figures.decision.by,
        ranks: figures.ranks,
        load: figures.load,
        beyond: figures.beyond,
        run_to_run: figures.run_to_run,
        varied: unrest(base, new).into_iter().map(Unrest::worst).fold(0.0, f64::max),
        culprit: culprit(base, new, &breakdown),
        pairs: None,
        work: work::compare(base, new, &margins),
        breakdown,
        findings: findings(base, new),
        comparability,
        scopes: matching::match_scopes(&ops),
        parts: compiled::match_parts(base, new),
        ops,
        base: side_figures(base),
        new: side_figures(new),
    }
}

/// What was measured, and what follows.
struct Figures {
    unit: Unit,
    mean: Option<Measured>,
    median: Option<Measured>,
    p90: Option<Measured>,
    ranks: Option<RankTest>,
    load: Option<Load>,
    beyond: Option<Measured>,
    run_to_run: RunToRun,
    decision: Decision,
}

impl Figures {
    fn of_steps(
        base: &[ComparedRun],
        new: &[ComparedRun],
        ops: &[OpDelta],
        programs: &Programs,
        margins: &Margins,
        detail: Detail,
    ) -> Self {
        let (old, now) = (steps(base), steps(new));
        let run_to_run = noise::run_to_run(&old, &now, &unrest(base, new), margins.confidence);
        let measure = |statistic| noise::measure(&old, &now, statistic, run_to_run);
        let mean = measure(Statistic::Mean);
        let is_decided = mean.is_some_and(|mean| verdict::verdict(&mean, margins) != Verdict::Unclear);
        let wants = |needed: bool| detail == Detail::Full || needed;
        let median = wants(!is_decided).then(|| measure(Statistic::Median)).flatten();
        let p90 = wants(false).then(|| measure(Statistic::P90)).flatten();
        let load = mean.and_then(|mean| load::load(ops, (mean.base_ms * mean.new_ms).sqrt()));
        // Another batch size, device or version changes all ops alike, as load does.
        let alike = comparable::comparability(base, new, None, programs);
        let beyond = mean
            .zip(load)
            .filter(|_| alike.differences.is_empty())
            .and_then(|(mean, load)| load::beyond(base, new, &mean, &load, margins.confidence));
        let ranks = verdict::ranks(&old, &now);
        // A mean that decides needs no median.
        let both = mean.as_ref().zip(median.as_ref().or(mean.as_ref().filter(|_| is_decided)));
        let decision = both.map_or(Decision::NONE, |(mean, median)| {
            verdict::decide(mean, median, ranks.as_ref(), beyond.as_ref().zip(load.as_ref()), margins)
        });
        Figures { unit: Unit::Step, mean, median, p90, ranks, load, beyond, run_to_run, decision }
    }

    fn of_launches(base: &[ComparedRun], new: &[ComparedRun], ops: &[OpDelta], margins: &Margins) -> Self {
        let mean = launches::measure(base, new, ops);
        let verdict = mean.as_ref().map(|mean| verdict::verdict(mean, margins));
        Figures {
            unit: Unit::Launch,
            mean,
            median: mean,
            p90: None,
            ranks: None,
            load: None,
            beyond: None,
            run_to_run: RunToRun::least(),
            decision: verdict.map_or(Decision::NONE, |verdict| Decision { verdict, by: Basis::Mean }),
        }
    }

    /// How far a part of the step differs between runs of one program, relative. Where the ops show the load of the machine,
    /// steps that scatter by themselves do not count as load; a part may follow all of the load or nothing of it.
    fn parts_differ(&self, base: &[ComparedRun], new: &[ComparedRun]) -> f64 {
        let with_steps =
            |side: &[ComparedRun]| side.iter().filter(|run| run.has_parts()).count().max(1) as f64;
        let by_steps = self.run_to_run.half_width(with_steps(base), with_steps(new));
        let by_load =
            self.beyond.zip(self.load).map(|(beyond, load)| beyond.from_runs + load.factor.ln().abs());
        by_load.map_or(by_steps, |by_load| by_load.min(by_steps))
    }

    /// The whole and its parts are one change: where one of them is certain and explains it, so is the other.
    fn agree_with(&mut self, breakdown: &mut [CategoryDelta], margins: &Margins) {
        let Some(mean) = self.mean.filter(|_| self.unit == Unit::Step) else { return };
        if self.decision.verdict == Verdict::Unclear
            && let Some(whole) = certain::whole_by_part(&mean, breakdown, margins)
        {
            let verdict = verdict::verdict(&whole, margins);
            if matches!(verdict, Verdict::Faster | Verdict::Slower) {
                self.mean = Some(whole);
                self.decision = Decision { verdict, by: Basis::Mean };
            }
        }
        let decided = match self.decision.by {
            Basis::Median => self.median,
            Basis::Mean | Basis::Pairs => self.mean,
            Basis::BeyondLoad => self.beyond,
        };
        let certain = matches!(self.decision.verdict, Verdict::Faster | Verdict::Slower);
        if let Some(decided) = decided.filter(|_| certain) {
            certain::part_by_whole(&decided, &mean, breakdown);
        }
    }

    fn next(&self, base: &[Vec<f64>], new: &[Vec<f64>], margins: &Margins) -> Option<Next> {
        let unclear = self.decision.verdict == Verdict::Unclear && self.unit == Unit::Step;
        let fewest = |side: &[Vec<f64>]| side.iter().map(Vec::len).filter(|n| *n > 0).min().unwrap_or(0);
        let (steps, runs) = (fewest(base).min(fewest(new)), base.len().min(new.len()));
        let mean = self.mean.as_ref().filter(|_| unclear)?;
        Some(verdict::next(mean, steps, runs, self.run_to_run, margins))
    }
}

/// The steps of a side, run by run.
pub(crate) fn steps(side: &[ComparedRun]) -> Vec<Vec<f64>> {
    side.iter().map(|run| run.steps_ms.clone()).collect()
}

/// How much the steps of each run are disturbed.
fn unrest(base: &[ComparedRun], new: &[ComparedRun]) -> Vec<Unrest> {
    base.iter().chain(new).filter(|run| !run.steps_ms.is_empty()).map(ComparedRun::unrest).collect()
}

/// One category of a side, run by run.
pub(crate) fn parts(side: &[ComparedRun], category: Category) -> Vec<Part> {
    side.iter().filter(|run| run.has_parts()).filter_map(|run| run.part(category)).collect()
}

/// What takes the time of the category that changed most, on the side where it takes more.
fn culprit(
    base: &[ComparedRun],
    new: &[ComparedRun],
    breakdown: &[CategoryDelta],
) -> Option<(Category, String)> {
    let largest = breakdown.first()?;
    let side = if largest.measured.delta_ms.value > 0.0 { new } else { base };
    let named = side.iter().flat_map(|run| &run.culprits).find(|(category, _)| *category == largest.category);
    named.cloned()
}

fn side_figures(side: &[ComparedRun]) -> SideFigures {
    SideFigures {
        runs: side.iter().map(|run| run.label.clone()).collect(),
        steps: side.iter().map(|run| run.steps_ms.len()).sum(),
        rhythm: rhythm::rhythm(&steps(side).concat()),
    }
}

fn breakdown(
    base: &[ComparedRun],
    new: &[ComparedRun],
    from_runs: f64,
    confidence: Confidence,
) -> Vec<CategoryDelta> {
    let measured = |which| {
        let (old, now) = (parts(base, which), parts(new, which));
        parts::measure(&old, &now, from_runs, confidence)
            .filter(|measured| measured.base_ms > 0.0 || measured.new_ms > 0.0)
            .map(|measured| CategoryDelta { category: which, measured })
    };
    let mut deltas: Vec<CategoryDelta> = Category::ALL.into_iter().filter_map(measured).collect();
    let size = |delta: &CategoryDelta| delta.measured.delta_ms.value.abs();
    deltas.sort_by(|a, b| size(b).total_cmp(&size(a)).then(a.category.cmp(&b.category)));
    deltas
}

/// A side has a finding if most of its runs have it: one odd run must not make it come and go.
fn findings(base: &[ComparedRun], new: &[ComparedRun]) -> FindingChanges {
    let of = |side: &[ComparedRun]| -> Vec<FindingKey> {
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
