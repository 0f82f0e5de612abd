//! How far two recordings of the same program differ by themselves.
//!
//! Steps of one recording agree better with each other than with those of the next: memory lies elsewhere, a
//! neighbour on the machine comes or goes, a chip is warmer. Intervals from the steps alone are therefore too narrow.
//! The interval of a comparison has two parts: the scatter of the steps (the block bootstrap), and the difference
//! between runs, which is estimated here. Several runs per side measure it. With one run per side it is taken from
//! the scatter of the steps: load that disturbs single steps also moves the level of whole runs.

use super::load::Load;
use crate::statistics::{self, Deviation, Sample, interval, mean, median, median_in_place, student_95};

/// The least standard deviation between runs, relative to the step. Recordings of the same program on one quiet
/// machine differ by 0.6 to 3 % although their own steps agree to a fraction of that (`tools/noise_study.py`
/// measures it). A smaller value would call such pairs different, a larger one would hide a change of 10 %.
pub const LEAST_RUN_TO_RUN: f64 = 0.02;
/// Steps scatter by a few per cent on a quiet machine. That averages out within a run.
const ORDINARY_SCATTER: f64 = 0.05;
/// How the standard deviation between runs grows with the scatter beyond that. Measured on two cores whose load went
/// up and down between 2 and 16 from run to run: steps that scattered by 10 to 30 % came with levels that differed by
/// 20 to 40 %. With this factor about one such pair in twenty is called different; with 1.2, one in ten.
const RUNS_PER_SCATTER: f64 = 1.5;
/// The estimate from the scatter counts like so many runs against what repeated runs say themselves.
const PRIOR_RUNS: f64 = 3.0;

/// What a sample is boiled down to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The middle one.
    Median,
    /// The arithmetic mean.
    Mean,
    /// Nine of ten are below.
    P90,
}

impl Statistic {
    /// Of the values, which get another order; not a number of none.
    fn of(self, values: &mut [f64]) -> f64 {
        match self {
            Statistic::Median => median_in_place(values).unwrap_or(f64::NAN),
            Statistic::Mean => mean(values).unwrap_or(f64::NAN),
            Statistic::P90 => {
                values.sort_by(f64::total_cmp);
                stepscope_analyze::statistics::quantile(values, 0.9).unwrap_or(f64::NAN)
            }
        }
    }
}

/// An estimate with its 95 % interval; the ends are `None` where there are too few steps for one.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

/// One figure on both sides.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Measured {
    /// In milliseconds; the mean over the runs where there are several.
    pub base_ms: f64,
    /// The same of the new side.
    pub new_ms: f64,
    /// NEW − BASE in milliseconds.
    pub delta_ms: Estimate,
    /// NEW over BASE; `None` where BASE has nothing.
    pub ratio: Option<Estimate>,
    /// Half the width of the ratio's interval that comes from the scatter of steps alone, relative.
    pub from_steps: Option<f64>,
    /// The other part: what differs from run to run.
    pub from_runs: f64,
}

impl Measured {
    /// A figure of which only the means are known. They are taken to scatter as much as is told, relative.
    pub fn of_means(base_ms: f64, new_ms: f64, from_steps: Option<f64>, from_runs: f64) -> Self {
        let width = from_steps.map(|from_steps| from_steps.hypot(from_runs));
        let (delta, log) = (new_ms - base_ms, (new_ms / base_ms).ln());
        let off = width.map(|width| width * base_ms.max(new_ms));
        Measured {
            base_ms,
            new_ms,
            delta_ms: Estimate {
                value: delta,
                low: off.map(|off| delta - off),
                high: off.map(|off| delta + off),
            },
            ratio: (base_ms > 0.0).then(|| Estimate {
                value: new_ms / base_ms,
                low: width.map(|width| (log - width).exp()),
                high: width.map(|width| (log + width).exp()),
            }),
            from_steps,
            from_runs,
        }
    }
}

impl Measured {
    /// The same without the machine's share: what is left of the ratio beyond the factor that all ops have in common.
    /// The difference between runs is in that factor already, and how far ops differ from it takes its place.
    pub(super) fn without(&self, load: &Load) -> Option<Measured> {
        let by_steps = self.from_steps?;
        let from_runs =
            student_95(f64::INFINITY) * load.spread.hypot(LEAST_RUN_TO_RUN * std::f64::consts::SQRT_2);
        Some(Measured::of_means(self.base_ms, self.new_ms / load.factor, Some(by_steps), from_runs))
    }
}

/// How far runs of one program differ: relative variances.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct RunToRun {
    /// The part that every pair of runs has, known from studies.
    known: f64,
    /// The part that these runs show.
    estimated: f64,
    /// How many independent differences the estimate is worth.
    freedom: f64,
}

impl RunToRun {
    /// No difference: both sides are one run.
    pub const NONE: RunToRun = RunToRun { known: 0.0, estimated: 0.0, freedom: f64::INFINITY };

    /// What every pair of runs has, and no more.
    pub fn least() -> Self {
        RunToRun { known: LEAST_RUN_TO_RUN.powi(2), estimated: 0.0, freedom: f64::INFINITY }
    }

    /// The relative standard deviation between runs.
    pub fn deviation(self) -> f64 {
        (self.known + self.estimated).sqrt()
    }

    /// Half the width of the 95 % interval of the ratio of two sides with so many runs each, as far as it comes from
    /// the difference between runs.
    pub(super) fn half_width(self, base_runs: f64, new_runs: f64) -> f64 {
        let known = student_95(f64::INFINITY).powi(2) * self.known;
        let estimated = student_95(self.freedom).powi(2) * self.estimated;
        ((known + estimated) * (1.0 / base_runs + 1.0 / new_runs)).sqrt()
    }
}

/// The difference between runs, from the scatter of their steps and from repeated runs.
pub fn run_to_run(base: &[Vec<f64>], new: &[Vec<f64>]) -> RunToRun {
    let by_scatter = |run: &Vec<f64>| (RUNS_PER_SCATTER * (scatter(run) - ORDINARY_SCATTER).max(0.0)).powi(2);
    let scattered: Vec<f64> = base.iter().chain(new).filter(|run| !run.is_empty()).map(by_scatter).collect();
    let (mut squares, mut weight) = (PRIOR_RUNS * mean(&scattered).unwrap_or(0.0), PRIOR_RUNS);
    for side in [base, new] {
        let levels: Vec<f64> =
            side.iter().filter_map(|run| mean(run)).filter(|level| *level > 0.0).map(f64::ln).collect();
        let Some(middle) = mean(&levels) else { continue };
        squares += levels.iter().map(|level| (level - middle).powi(2)).sum::<f64>();
        weight += levels.len() as f64 - 1.0;
    }
    let known = PRIOR_RUNS * LEAST_RUN_TO_RUN.powi(2) / weight;
    RunToRun { known, estimated: squares / weight, freedom: weight }
}

/// The robust relative standard deviation of a run's steps: from the middle half of their distances to the median, so
/// that a few slow steps, which may well belong to the program, do not count.
fn scatter(steps: &[f64]) -> f64 {
    let of = || {
        let middle = median(steps)?;
        let off: Vec<f64> = steps.iter().map(|step| (step - middle).abs()).collect();
        Some(1.4826 * median(&off)? / middle)
    };
    of().filter(|scatter: &f64| scatter.is_finite()).unwrap_or(0.0)
}

/// Measures one figure on both sides. A side is its runs, a run its values step by step. `None` where a side
/// has no value.
pub fn measure(
    base: &[Vec<f64>],
    new: &[Vec<f64>],
    statistic: Statistic,
    run_to_run: RunToRun,
) -> Option<Measured> {
    let level = |side: &[Vec<f64>]| {
        let values: Vec<f64> =
            side.iter().filter(|run| !run.is_empty()).map(|run| statistic.of(&mut run.clone())).collect();
        mean(&values)
    };
    let (base_ms, new_ms) = (level(base)?, level(new)?);
    let count = |side: &[Vec<f64>]| side.iter().filter(|run| !run.is_empty()).count() as f64;
    let from_runs = run_to_run.half_width(count(base), count(new));
    let difference = |base: &[f64], new: &[f64]| mean(new).unwrap_or(0.0) - mean(base).unwrap_or(0.0);
    let log_ratio = |base: &[f64], new: &[f64]| (mean(new).unwrap_or(0.0) / mean(base).unwrap_or(0.0)).ln();
    let by_steps =
        (base_ms > 0.0 && new_ms > 0.0).then(|| deviation(base, new, statistic, &log_ratio)).flatten();
    let ratio = (base_ms > 0.0).then(|| {
        let log = (new_ms / base_ms).ln();
        let whole = by_steps.map(|by_steps| by_steps.and(from_runs));
        Estimate {
            value: new_ms / base_ms,
            low: whole.map(|off| (log - off.below).exp()),
            high: whole.map(|off| (log + off.above).exp()),
        }
    });
    // One interval, in two units: both say the same. Only what was nothing before has a difference and no ratio.
    let delta = new_ms - base_ms;
    let of_ratio = ratio.and_then(|ratio| ratio.low.zip(ratio.high));
    let ends = of_ratio.map(|(low, high)| (base_ms * (low - 1.0), base_ms * (high - 1.0))).or_else(|| {
        let off = deviation(base, new, statistic, &difference)?.and(from_runs * base_ms.max(new_ms));
        Some((delta - off.below, delta + off.above))
    });
    Some(Measured {
        base_ms,
        new_ms,
        delta_ms: Estimate { value: delta, low: ends.map(|ends| ends.0), high: ends.map(|ends| ends.1) },
        ratio,
        from_steps: by_steps.map(Deviation::widest),
        from_runs,
    })
}

fn deviation(
    base: &[Vec<f64>],
    new: &[Vec<f64>],
    statistic: Statistic,
    put_together: &dyn Fn(&[f64], &[f64]) -> f64,
) -> Option<Deviation> {
    interval(&samples(base), &samples(new), &|values| statistic.of(values), put_together)
}

fn samples(side: &[Vec<f64>]) -> Vec<Sample<'_>> {
    side.iter().filter(|run| !run.is_empty()).map(|run| Sample::new(run)).collect()
}

/// By how much the ranks' variance is larger than that of independent steps: the mean over the runs.
pub fn inflation(base: &[Vec<f64>], new: &[Vec<f64>]) -> f64 {
    let all: Vec<f64> = base.iter().chain(new).map(|run| statistics::inflation(run)).collect();
    mean(&all).unwrap_or(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Random;

    fn noisy(seed: u64, n: usize, level: f64, spread: f64) -> Vec<f64> {
        let mut random = Random::new(seed);
        (0..n).map(|_| level * (1.0 + spread * (random.unit() - 0.5))).collect()
    }

    #[test]
    fn steps_that_scatter_widen_the_interval() {
        let deviation = |spread| {
            let run = noisy(1, 60, 10.0, spread);
            run_to_run(std::slice::from_ref(&run), std::slice::from_ref(&run)).deviation()
        };
        assert!((LEAST_RUN_TO_RUN..0.025).contains(&deviation(0.02)), "{}", deviation(0.02));
        assert!(deviation(0.8) > 0.15, "{}", deviation(0.8));
    }

    #[test]
    fn a_few_slow_steps_of_the_program_do_not_look_like_load() {
        let mut run = noisy(1, 60, 10.0, 0.02);
        run.iter_mut().step_by(6).for_each(|ms| *ms *= 30.0);
        assert!(run_to_run(&[run.clone()], &[run]).deviation() < 0.025);
    }

    #[test]
    fn repeated_runs_tell_their_own_difference() {
        let apart = [noisy(1, 40, 10.0, 0.02), noisy(2, 40, 11.0, 0.02), noisy(3, 40, 9.0, 0.02)];
        assert!(run_to_run(&apart, &apart).deviation() > 0.05);
        let close = [noisy(1, 40, 10.0, 0.02), noisy(2, 40, 10.0, 0.02), noisy(3, 40, 10.0, 0.02)];
        assert!(run_to_run(&close, &close).deviation() < LEAST_RUN_TO_RUN);
    }

    #[test]
    fn more_runs_per_side_make_the_interval_narrower() {
        let side =
            |level: f64, runs: u64| (0..runs).map(|run| noisy(run, 40, level, 0.05)).collect::<Vec<_>>();
        let width = |runs| {
            let (base, new) = (side(10.0, runs), side(10.4, runs));
            let measured = measure(&base, &new, Statistic::Median, run_to_run(&base, &new)).unwrap();
            let ratio = measured.ratio.unwrap();
            ratio.high.unwrap() - ratio.low.unwrap()
        };
        assert!(width(4) < 0.7 * width(1), "{} {}", width(4), width(1));
    }

    #[test]
    fn a_figure_that_was_nothing_has_no_ratio() {
        let measured = measure(&[vec![0.0; 9]], &[vec![1.0; 9]], Statistic::Mean, RunToRun::least()).unwrap();
        assert_eq!(measured.ratio, None);
        assert_eq!(measured.delta_ms.value, 1.0);
        assert!(measured.delta_ms.low.unwrap() > 0.9, "{:?}", measured.delta_ms);
        assert!(measure(&[], &[vec![1.0]], Statistic::Mean, RunToRun::least()).is_none());
    }
}
