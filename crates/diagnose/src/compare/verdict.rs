//! Faster, slower, no difference, or too noisy to say: the one decision that all commands share.
//!
//! It is about what is paid: the mean of the loop, so that a cost in every fourth step counts as much as one that is
//! spread over all. If a few outliers hide the mean, the median decides, provided that the mean points the same way. If the
//! load of the machine hides both, what it leaves unexplained decides.
//!
//! There are two questions, each with its own error. *Is it different?* The interval must exclude 1 by a practical margin;
//! for the median, the ranks of the steps must agree. *Is it the same?* The interval must be narrow enough that a relevant
//! change would have been seen, or contain 1 with a best guess near it. If neither is true, the result is unclear.

use super::load::Load;
use super::noise::{Measured, RunToRun, inflation};
use crate::statistics::{Confidence, RankTest, rank_test};

/// What is to be said.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// NEW is faster.
    Faster,
    /// NEW is slower.
    Slower,
    /// No difference.
    Same,
    /// Too noisy to say.
    Unclear,
    /// Other things were measured.
    NotComparable,
}

impl Verdict {
    /// The public name.
    pub fn key(self) -> &'static str {
        match self {
            Verdict::Faster => "faster",
            Verdict::Slower => "slower",
            Verdict::Same => "same",
            Verdict::Unclear => "unclear",
            Verdict::NotComparable => "not-comparable",
        }
    }
}

/// When a difference counts.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Margins {
    /// The interval must exclude 1 by this much: smaller differences are real perhaps, but not worth a word.
    pub practical: f64,
    /// Two sides are the same if the interval reaches no further than this from 1.
    pub same: f64,
    /// How sure a difference must be.
    pub confidence: Confidence,
}

impl Default for Margins {
    fn default() -> Self {
        Margins { practical: 0.01, same: 0.10, confidence: Confidence::default() }
    }
}

/// What would most likely give an answer where there is none.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Runs with at least so many steps.
    LongerRuns(u64),
    /// So many runs per side, recorded in turn.
    MoreRuns(u64),
    /// A machine that does nothing else: no number of runs worth naming would do.
    QuieterMachine,
}

/// The ranks of all steps of both sides.
pub fn ranks(base: &[Vec<f64>], new: &[Vec<f64>]) -> Option<RankTest> {
    rank_test(&base.concat(), &new.concat(), inflation(base, new))
}

/// The figure that a decision is about.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Basis {
    /// The mean step.
    Mean,
    /// The median step.
    Median,
    /// The mean step beside what the machine makes of BASE's.
    BeyondLoad,
    /// Windows of steps that ran in turn.
    Pairs,
}

/// What was decided, and by which figure.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Decision {
    /// What is to be said.
    pub verdict: Verdict,
    /// The figure that decided.
    pub by: Basis,
}

impl Decision {
    /// Nothing was measured.
    pub(super) const NONE: Decision = Decision { verdict: Verdict::Unclear, by: Basis::Mean };
}

/// Decides about both sides' steps, from their mean and their median.
///
/// If both are too noisy and the ops show how busy the machine was, the mean is compared with what that load makes of BASE
/// (`beyond`). Load that slows all ops alike cannot hide a change of anything else.
pub fn decide(
    mean: &Measured,
    median: &Measured,
    ranks: Option<&RankTest>,
    beyond: Option<(&Measured, &Load)>,
    margins: &Margins,
) -> Decision {
    let same_way = |verdict: Verdict| match verdict {
        Verdict::Slower => points(mean, margins) > 0.0,
        Verdict::Faster => points(mean, margins) < 0.0,
        _ => false,
    };
    let paid = verdict(mean, margins);
    if paid != Verdict::Unclear {
        return Decision { verdict: paid, by: Basis::Mean };
    }
    let typical = verdict(median, margins);
    if same_way(typical) && agree(ranks, points(mean, margins), margins) {
        return Decision { verdict: typical, by: Basis::Median };
    }
    let left = beyond.map_or(Verdict::Unclear, |(left, load)| left_over(left, load, margins));
    let by = if left == Verdict::Unclear { Basis::Mean } else { Basis::BeyondLoad };
    Decision { verdict: left, by }
}

/// The verdict on what the machine leaves unexplained. If it leaves nothing, the sides are the same only where the
/// machine itself made little difference: a change that slows all ops alike looks like a busy machine.
fn left_over(left: &Measured, load: &Load, margins: &Margins) -> Verdict {
    match verdict(left, margins) {
        Verdict::Same if !within(load.factor, load.factor, margins.same) => Verdict::Unclear,
        verdict => verdict,
    }
}

/// Which way the best guess points: 1 for slower, −1 for faster, 0 for neither.
fn points(measured: &Measured, margins: &Margins) -> f64 {
    let Some(ratio) = measured.ratio else { return 0.0 };
    let log = ratio.value.ln();
    if log.abs() > (1.0 + margins.practical).ln() { log.signum() } else { 0.0 }
}

fn agree(ranks: Option<&RankTest>, sign: f64, margins: &Margins) -> bool {
    ranks.is_some_and(|ranks| ranks.p < margins.confidence.error() && ranks.delta * sign > 0.0)
}

/// The verdict on one measured figure.
pub fn verdict(measured: &Measured, margins: &Margins) -> Verdict {
    let Some((low, high)) = measured.ratio.and_then(|ratio| ratio.low.zip(ratio.high)) else {
        return Verdict::Unclear;
    };
    if low > 1.0 + margins.practical {
        Verdict::Slower
    } else if high < 1.0 / (1.0 + margins.practical) {
        Verdict::Faster
    } else if within(low, high, margins.same) || nothing_shows(measured, low, high, margins) {
        Verdict::Same
    } else {
        Verdict::Unclear
    }
}

/// Does the interval reach no further than `margin` from 1?
fn within(low: f64, high: f64, margin: f64) -> bool {
    low >= 1.0 / (1.0 + margin) && high <= 1.0 + margin
}

/// The best guess is near 1 and so is a fair part of the interval: no difference shows, though a small one could
/// hide. An interval twice as wide as what counts as the same says nothing.
fn nothing_shows(measured: &Measured, low: f64, high: f64, margins: &Margins) -> bool {
    let near = measured.ratio.is_some_and(|ratio| within(ratio.value, ratio.value, 0.8 * margins.same));
    near && low <= 1.0 + margins.practical
        && high >= 1.0 / (1.0 + margins.practical)
        && within(low, high, 2.0 * margins.same)
}

/// More runs per side than this are not worth proposing.
const MOST_RUNS: f64 = 10.0;
/// More steps per run than this are not worth proposing.
const MOST_STEPS: f64 = 2000.0;
/// Fewer steps give no interval that is worth having.
const LEAST_STEPS: u64 = 20;
/// Fewer runs per side do not measure how runs differ.
const LEAST_RUNS: f64 = 3.0;

/// What would bring the interval down to half of the margin for `same`: the one step that helps most.
pub fn next(measured: &Measured, steps: usize, runs: usize, run_to_run: RunToRun, margins: &Margins) -> Next {
    let target = (1.0 + margins.same).ln() / 2.0;
    let Some(from_steps) = measured.from_steps else { return Next::LongerRuns(LEAST_STEPS) };
    let steps_needed = steps as f64 * (from_steps / target).powi(2);
    if from_steps > measured.from_runs && steps_needed <= MOST_STEPS {
        return Next::LongerRuns(round_up(steps_needed).max(LEAST_STEPS));
    }
    // More runs average the scatter of steps out as well.
    let of_a_run =
        (margins.confidence.normal() * run_to_run.deviation()).hypot(from_steps * (runs as f64 / 2.0).sqrt());
    let runs_needed = (2.0 * (of_a_run / target).powi(2)).ceil().max(LEAST_RUNS).max(runs as f64 + 1.0);
    if runs_needed <= MOST_RUNS { Next::MoreRuns(runs_needed as u64) } else { Next::QuieterMachine }
}

/// To one significant digit: nobody needs 9,194 steps.
fn round_up(value: f64) -> u64 {
    let digit = 10_f64.powf(value.max(1.0).log10().floor());
    ((value / digit).ceil() * digit) as u64
}
