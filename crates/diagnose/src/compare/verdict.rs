//! Faster, slower, no difference, or too noisy to say.
//!
//! Two questions, each with its own error. *Is it different?* The interval must exclude 1 by a practical margin,
//! and the ranks of the steps must agree; an interval that lies far from 1 as a whole needs no second opinion,
//! which a dozen scattered steps could not give. *Is it the same?* The interval must be narrow enough that a change
//! worth speaking of would have been seen, or hold 1 and a best guess near it. Neither: nobody can say, and what would be needed is told instead.

use super::noise::{Measured, inflation};
use crate::statistics::{RankTest, rank_test, student_95};

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
    /// How unlikely the ranks must be by chance.
    pub significance: f64,
    /// An interval that excludes 1 by this much is plain enough by itself.
    pub plain: f64,
}

impl Default for Margins {
    fn default() -> Self {
        Margins { practical: 0.01, same: 0.10, significance: 0.05, plain: 0.25 }
    }
}

/// What would be needed for an answer.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Needed {
    /// Steps in each run; `None` where more steps would not do.
    pub steps: Option<u64>,
    /// Runs on each side; `None` where one is enough.
    pub runs: Option<u64>,
}

/// The ranks of all steps of both sides.
pub fn ranks(base: &[Vec<f64>], new: &[Vec<f64>]) -> Option<RankTest> {
    rank_test(&base.concat(), &new.concat(), inflation(base, new))
}

/// The verdict on one measured figure.
pub fn verdict(measured: &Measured, ranks: Option<&RankTest>, margins: &Margins) -> Verdict {
    let Some((low, high)) = measured.ratio.and_then(|ratio| ratio.low.zip(ratio.high)) else {
        return Verdict::Unclear;
    };
    let agree =
        |sign: f64| ranks.is_some_and(|ranks| ranks.p < margins.significance && ranks.delta * sign > 0.0);
    let plain = 1.0 + margins.plain;
    if low > 1.0 + margins.practical && (agree(1.0) || low > plain) {
        Verdict::Slower
    } else if high < 1.0 / (1.0 + margins.practical) && (agree(-1.0) || high < 1.0 / plain) {
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

/// The largest number of steps or runs that is worth naming.
const MOST_STEPS: f64 = 100_000.0;
const MOST_RUNS: f64 = 100.0;

/// What it would take to bring the interval down to half of the margin for `same`; nothing where it is
/// narrower already or there is no interval to go by.
pub fn needed(measured: &Measured, steps: usize, runs: usize, run_to_run: f64, margins: &Margins) -> Needed {
    let target = (1.0 + margins.same).ln() / 2.0;
    let Some(from_steps) = measured.from_steps else {
        return Needed { steps: Some(LEAST_STEPS), runs: None };
    };
    // Half of the allowed square for the steps' part, half for the runs'.
    let each = target / std::f64::consts::SQRT_2;
    let factor = (from_steps / each).powi(2);
    let more_steps = (factor > 1.0).then(|| (steps as f64 * factor).ceil().min(MOST_STEPS) as u64);
    let runs_needed = (2.0 * (student_95(f64::INFINITY) * run_to_run / each).powi(2)).ceil();
    let more_runs = (runs_needed > runs as f64).then(|| runs_needed.min(MOST_RUNS) as u64);
    Needed { steps: more_steps, runs: more_runs }
}

/// Fewer steps give no interval that is worth having.
pub const LEAST_STEPS: u64 = 20;
