//! What the curves of a run say, without a profile: where its steps got slower, whether they drift, and the findings
//! about them.
//!
//! The motivating situation: a run of three days logs its loss every ten steps. On the second day a neighbour moves in,
//! and every step takes 18 % longer from then on. Nobody looks at the times of points. The split that parts the
//! stretches best by rank is a change if the rank test of [`crate::statistics`] says so and the medians differ enough;
//! then both sides are looked at in turn. Many places are tried, so each must be that much less likely by chance.

use stepscope_analyze::curves::RunCurves;
use stepscope_analyze::curves::pace::{Pace, Piece};

use crate::finding::Finding;
use crate::rule::{Check, Rule};
use crate::rules::RULES;
use crate::statistics::{inflation, mean, median, rank_test};

/// A place at which steps became slower or faster.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Change {
    /// The step from which on.
    pub step: i64,
    /// When, in seconds since 1970.
    pub at_s: f64,
    /// Seconds per step before, up to the change before this one.
    pub before_s: f64,
    /// Seconds per step behind it, up to the next change.
    pub after_s: f64,
    /// How likely it is by chance, all places considered.
    pub p: f64,
}

impl Change {
    /// By which share steps got longer; negative if they got shorter.
    pub fn slower(&self) -> f64 {
        self.after_s / self.before_s - 1.0
    }
}

/// Steps that get slower little by little.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Drift {
    /// Seconds per step at the first stretch.
    pub first_s: f64,
    /// At the last one.
    pub last_s: f64,
    /// The first step.
    pub from_step: i64,
    /// The last one.
    pub step: i64,
}

/// How a run's pace changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Course {
    /// Sudden changes, in order.
    pub changes: Vec<Change>,
    /// A gradual one, which explains the pace better than any sudden one.
    pub drift: Option<Drift>,
}

/// Fewer stretches on a side of a change are no level.
const LEAST: usize = 8;
/// A smaller difference between levels is not worth a word.
const NOTABLE: f64 = 0.05;
/// How likely a change may be by chance.
const CHANCE: f64 = 0.01;
/// No run has more levels than this that anybody could look at.
const MOST: usize = 16;

impl Course {
    /// How a pace changed.
    pub fn of(pace: &Pace) -> Self {
        let values: Vec<f64> = pace.pieces.iter().map(|piece| piece.seconds.ln()).collect();
        let splits = splits(&values);
        if let Some(drift) = drift(&pace.pieces, &values).filter(|_| !splits.is_empty()) {
            return Course { changes: Vec::new(), drift: Some(drift) };
        }
        Course { changes: changes(&pace.pieces, &splits), drift: None }
    }
}

/// Places at which the level changes, and how likely each is by chance.
///
/// All that look like changes are taken first, as if stretches were independent. What is left within the levels then shows
/// how much they depend on one another, and levels that do not differ by that measure are put together again.
fn splits(values: &[f64]) -> Vec<(usize, f64)> {
    let mut bounds = vec![0, values.len()];
    part(values, 0, values.len(), &mut bounds);
    bounds.sort_unstable();
    loop {
        let dependence = dependence(values, &bounds);
        let sides = bounds.windows(3).map(|three| (&values[three[0]..three[1]], &values[three[1]..three[2]]));
        let chances: Vec<f64> =
            sides.map(|(before, after)| chance(before, after, values.len(), dependence)).collect();
        let weakest = chances.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1));
        match weakest {
            Some((at, p)) if p >= CHANCE => bounds.remove(at + 1),
            _ => return bounds.iter().skip(1).copied().zip(chances).collect(),
        };
    }
}

/// Parts values at the place where their ranks differ most, and both sides in turn.
fn part(values: &[f64], from: usize, to: usize, bounds: &mut Vec<usize>) {
    let all = &values[from..to];
    let Some(at) = best_split(all).filter(|_| bounds.len() < MOST) else { return };
    let (before, after) = all.split_at(at);
    if chance(before, after, all.len(), 1.0) < CHANCE {
        bounds.push(from + at);
        part(values, from, from + at, bounds);
        part(values, from + at, to, bounds);
    }
}

/// By how much more levels vary by chance than if each stretch were independent of the one before.
fn dependence(values: &[f64], bounds: &[usize]) -> f64 {
    let levels = bounds.windows(2).map(|two| &values[two[0]..two[1]]);
    let rest = levels.flat_map(|level| {
        let middle = median(level).unwrap_or_default();
        level.iter().map(move |value| value - middle)
    });
    inflation(&rest.collect::<Vec<f64>>())
}

/// How likely two levels differ as much by chance, at any of so many places; certain if they differ by little.
fn chance(before: &[f64], after: &[f64], places: usize, dependence: f64) -> f64 {
    let (Some(low), Some(high)) = (median(before), median(after)) else { return 1.0 };
    let test = rank_test(before, after, dependence).filter(|_| (high - low).abs() >= NOTABLE.ln_1p());
    test.map_or(1.0, |test| (test.p * places as f64).min(1.0))
}

/// The place at which the ranks before it differ most from those behind it.
fn best_split(values: &[f64]) -> Option<usize> {
    let n = values.len();
    if n < 2 * LEAST {
        return None;
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let mut ranks = vec![0.0; n];
    let mut below = 0.0;
    for group in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let size = group.len() as f64;
        group.iter().for_each(|&place| ranks[place] = below + (size + 1.0) / 2.0);
        below += size;
    }
    let middle = (n as f64 + 1.0) / 2.0;
    let (mut sum, mut best) = (0.0, None);
    for (place, rank) in ranks.iter().enumerate().take(n - LEAST) {
        sum += rank - middle;
        let before = place as f64 + 1.0;
        let parted: f64 = sum.abs() / (before * (n as f64 - before)).sqrt();
        if place + 1 >= LEAST && best.is_none_or(|(most, _)| parted > most) {
            best = Some((parted, place + 1));
        }
    }
    best.map(|(_, at)| at)
}

fn changes(pieces: &[Piece], splits: &[(usize, f64)]) -> Vec<Change> {
    let level = |from: usize, to: usize| {
        let seconds: Vec<f64> = pieces.get(from..to)?.iter().map(|piece| piece.seconds).collect();
        median(&seconds)
    };
    let change = |number: usize, &(at, p): &(usize, f64)| {
        let from = number.checked_sub(1).and_then(|before| splits.get(before)).map_or(0, |(at, _)| *at);
        let to = splits.get(number + 1).map_or(pieces.len(), |(at, _)| *at);
        let first = pieces.get(at)?;
        Some(Change {
            step: first.from_step,
            at_s: first.from_s,
            before_s: level(from, at)?,
            after_s: level(at, to)?,
            p,
        })
    };
    splits.iter().enumerate().filter_map(|(number, split)| change(number, split)).collect()
}

/// A straight line through the pace, if it fits better than the best single step.
fn drift(pieces: &[Piece], values: &[f64]) -> Option<Drift> {
    let n = values.len() as f64;
    let (level, middle) = (mean(values)?, (n - 1.0) / 2.0);
    let across: f64 =
        values.iter().enumerate().map(|(at, value)| (at as f64 - middle) * (value - level)).sum();
    let along: f64 = values.iter().enumerate().map(|(at, _)| (at as f64 - middle).powi(2)).sum();
    let slope = if along > 0.0 { across / along } else { return None };
    let line = |at: f64| level + slope * (at - middle);
    let off_line: f64 = values.iter().enumerate().map(|(at, value)| (value - line(at as f64)).powi(2)).sum();
    let (before, after) = values.split_at(best_split(values)?);
    let off =
        |side: &[f64]| mean(side).map_or(0.0, |level| side.iter().map(|value| (value - level).powi(2)).sum());
    let apart = line(n - 1.0) - line(0.0);
    (off_line < off(before) + off(after) && apart.abs() >= NOTABLE.ln_1p()).then_some(())?;
    Some(Drift {
        first_s: line(0.0).exp(),
        last_s: line(n - 1.0).exp(),
        from_step: pieces.first()?.from_step,
        step: pieces.last()?.step,
    })
}

/// How a run went.
#[derive(Clone, Debug, Default)]
pub struct RunVerdict {
    /// How its pace changed.
    pub course: Course,
    /// What is wrong with it, the worst first.
    pub findings: Vec<Finding>,
}

/// Looks at the curves of a run.
pub fn diagnose_run(run: &RunCurves) -> RunVerdict {
    let course = run.pace.as_ref().map(Course::of).unwrap_or_default();
    let check = |rule: &&Rule| match rule.check {
        Check::Run(check) => check(run, &course),
        Check::Profile(_) => None,
    };
    let mut findings: Vec<Finding> = RULES.iter().filter_map(check).collect();
    findings.sort_by_key(|finding| (finding.severity, finding.rule.about.rank()));
    RunVerdict { course, findings }
}

/// Runs that tests make up.
#[cfg(test)]
pub(crate) mod testing {
    use stepscope_analyze::curves::RunCurves;
    use stepscope_trace::series::{RunLog, Series};

    use crate::statistics::Random;

    /// A log whose nth stretch of ten steps takes so many seconds, give or take `noise`.
    pub(crate) fn log(noise: f64, seconds: impl IntoIterator<Item = f64>) -> RunLog {
        let mut random = Random::new(9);
        let mut series = Series { tag: "loss".to_owned(), ..Series::default() };
        let mut at = 1_800_000_000.0;
        for (place, seconds) in std::iter::once(0.0).chain(seconds).enumerate() {
            at += seconds * (1.0 + noise * (random.unit() - 0.5));
            series.steps.push(10 * place as i64);
            series.wall_s.push(at);
            series.values.push(1.0);
        }
        RunLog { name: "train".to_owned(), series: vec![series], last_s: Some(at), ..RunLog::default() }
    }

    /// The same, summed up.
    pub(crate) fn run(noise: f64, seconds: impl IntoIterator<Item = f64>) -> RunCurves {
        RunCurves::of(&log(noise, seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::testing::run;
    use super::*;

    fn course(noise: f64, seconds: impl IntoIterator<Item = f64>) -> Course {
        Course::of(run(noise, seconds).pace.as_ref().unwrap())
    }

    #[test]
    fn a_run_that_gets_slower_says_where_and_by_how_much() {
        let course = course(0.3, (0..400).map(|at| if at >= 250 { 1.18 } else { 1.0 }));
        assert_eq!(course.changes.len(), 1, "{course:?}");
        let change = course.changes[0];
        assert!((2_450..=2_550).contains(&change.step), "{change:?}");
        assert!((0.15..0.21).contains(&change.slower()), "{change:?}");
    }

    #[test]
    fn noise_is_no_change() {
        for noise in [0.0, 0.1, 0.8] {
            assert_eq!(course(noise, std::iter::repeat_n(1.0, 500)), Course::default(), "{noise}");
        }
    }

    #[test]
    fn stretches_that_depend_on_one_another_are_no_change() {
        let mut random = crate::statistics::Random::new(4);
        let mut level = 0.0;
        let wandering = (0..500).map(move |_| {
            level = 0.9 * level + random.unit() - 0.5;
            1.0 + 0.1 * level
        });
        let found = course(0.0, wandering);
        assert!(found.changes.iter().all(|change| change.slower().abs() < 0.1), "{found:?}");
    }

    #[test]
    fn a_slow_phase_has_two_ends() {
        let course = course(0.2, (0..300).map(|at| if (100..200).contains(&at) { 1.5 } else { 1.0 }));
        let ways: Vec<bool> = course.changes.iter().map(|change| change.slower() > 0.0).collect();
        assert_eq!(ways, [true, false], "{course:?}");
    }

    #[test]
    fn what_changes_little_by_little_is_a_drift() {
        let course = course(0.1, (0..400).map(|at| 1.0 + f64::from(at) / 800.0));
        let drift = course.drift.expect("a drift");
        assert!((1.4..1.6).contains(&(drift.last_s / drift.first_s)), "{drift:?}");
        assert_eq!(course.changes, []);
    }
}
