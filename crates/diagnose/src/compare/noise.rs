//! How far two recordings of the same program differ by themselves.
//!
//! Steps of one recording agree better with each other than with those of the next: memory lies elsewhere, a
//! neighbour on the machine comes or goes, a chip is warmer. Steps alone therefore promise more than they can
//! keep; two intervals from the same program would exclude each other far more often than one time in twenty.
//! So the interval of a comparison has two parts: what the steps' own scatter gives (the block bootstrap), and
//! what differs from run to run, which is estimated here.

use crate::statistics::{self, Deviation, Sample, interval, mean, median, median_in_place, student_95};

/// The least standard deviation from run to run, relative to the step. Recordings of the same program on one
/// machine were seen to differ by 0.6 to 3 % although their own steps agreed to a fraction of that
/// (`tools/noise_study.py` measures it). Less would call such pairs different; more would hide a tenth.
pub const LEAST_RUN_TO_RUN: f64 = 0.02;
/// The part of a run's wandering that is left between the medians of runs: a median ignores bursts, and of what
/// it does not ignore the bootstrap over blocks of steps has its share already. Recordings whose level wandered
/// by 9 % had medians that differed by 3 %.
const LEFT_OF_WANDERING: f64 = 1.0 / 3.0;
/// The least counts like so many runs against what repeated runs say themselves.
const PRIOR_RUNS: f64 = 3.0;
/// A run is cut into so many pieces to see how its level wanders.
const PIECES: usize = 6;
/// Shorter pieces than this say nothing about a level.
const LEAST_PIECE: usize = 5;

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

/// The relative standard deviation from run to run, from what the sides say and the least.
pub fn run_to_run(base: &[Vec<f64>], new: &[Vec<f64>]) -> f64 {
    let levels = |side: &[Vec<f64>]| -> Vec<f64> {
        side.iter().filter_map(|run| median(run)).filter(|level| *level > 0.0).map(f64::ln).collect()
    };
    let wander = base.iter().chain(new).map(|run| wandering(run)).fold(0.0, f64::max);
    let least = LEAST_RUN_TO_RUN.max(wander * LEFT_OF_WANDERING);
    let (mut squares, mut weight) = (PRIOR_RUNS * least * least, PRIOR_RUNS);
    for levels in [levels(base), levels(new)] {
        let Some(middle) = mean(&levels) else { continue };
        squares += levels.iter().map(|level| (level - middle).powi(2)).sum::<f64>();
        weight += levels.len() as f64 - 1.0;
    }
    (squares / weight).sqrt()
}

/// How far the level of a run wanders beyond what the scatter of its steps explains: a relative standard
/// deviation. A level that wanders within a run will be another one in the next run.
fn wandering(steps: &[f64]) -> f64 {
    let size = (steps.len() / PIECES).max(LEAST_PIECE);
    let logs: Vec<f64> = steps.iter().filter(|step| **step > 0.0).map(|step| step.ln()).collect();
    let levels: Vec<f64> = logs.chunks_exact(size).filter_map(median).collect();
    let Some(middle) = mean(&levels).filter(|_| levels.len() > 2) else { return 0.0 };
    let between =
        levels.iter().map(|level| (level - middle).powi(2)).sum::<f64>() / (levels.len() - 1) as f64;
    let off: Vec<f64> = logs
        .chunks_exact(size)
        .zip(&levels)
        .flat_map(|(piece, level)| piece.iter().map(move |log| (log - level).abs()))
        .collect();
    // The scatter around the pieces' own levels, as robust as the levels are.
    let scatter = 1.4826 * median(&off).unwrap_or(0.0);
    let by_chance = std::f64::consts::FRAC_PI_2 * scatter * scatter / size as f64;
    (between - by_chance).max(0.0).sqrt()
}

/// Measures one figure on both sides. A side is its runs, a run its values step by step. `None` where a side
/// has no value.
pub fn measure(
    base: &[Vec<f64>],
    new: &[Vec<f64>],
    statistic: Statistic,
    run_to_run: f64,
) -> Option<Measured> {
    let level = |side: &[Vec<f64>]| {
        let values: Vec<f64> =
            side.iter().filter(|run| !run.is_empty()).map(|run| statistic.of(&mut run.clone())).collect();
        mean(&values)
    };
    let (base_ms, new_ms) = (level(base)?, level(new)?);
    let count = |side: &[Vec<f64>]| side.iter().filter(|run| !run.is_empty()).count() as f64;
    let runs = (1.0 / count(base) + 1.0 / count(new)).sqrt();
    let from_runs = student_95(f64::INFINITY) * run_to_run * runs;
    let drawn = |side: &dyn Fn(&[f64], &[f64]) -> f64| deviation(base, new, statistic, side);
    let difference = |base: &[f64], new: &[f64]| mean(new).unwrap_or(0.0) - mean(base).unwrap_or(0.0);
    let log_ratio = |base: &[f64], new: &[f64]| (mean(new).unwrap_or(0.0) / mean(base).unwrap_or(0.0)).ln();
    let ratio_deviation = if base_ms > 0.0 && new_ms > 0.0 { drawn(&log_ratio) } else { None };
    let ratio = (base_ms > 0.0).then(|| {
        let log = (new_ms / base_ms).ln();
        let whole = ratio_deviation.map(|by_steps| by_steps.and(from_runs));
        Estimate {
            value: new_ms / base_ms,
            low: whole.map(|off| (log - off.below).exp()),
            high: whole.map(|off| (log + off.above).exp()),
        }
    });
    let delta = new_ms - base_ms;
    let whole = drawn(&difference).map(|by_steps| by_steps.and(from_runs * base_ms.max(new_ms)));
    Some(Measured {
        base_ms,
        new_ms,
        delta_ms: Estimate {
            value: delta,
            low: whole.map(|off| delta - off.below),
            high: whole.map(|off| delta + off.above),
        },
        ratio,
        from_steps: ratio_deviation.map(Deviation::widest),
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
    fn a_level_that_wanders_widens_the_interval() {
        let steady = noisy(1, 60, 10.0, 0.1);
        let wandering: Vec<f64> =
            steady.iter().enumerate().map(|(i, ms)| if i < 30 { *ms } else { ms * 1.3 }).collect();
        let quiet = run_to_run(std::slice::from_ref(&steady), std::slice::from_ref(&steady));
        assert!((LEAST_RUN_TO_RUN..0.03).contains(&quiet), "{quiet}");
        assert!(run_to_run(&[steady], &[wandering]) > 0.03);
    }

    #[test]
    fn repeated_runs_tell_their_own_difference() {
        let apart = [noisy(1, 40, 10.0, 0.02), noisy(2, 40, 11.0, 0.02), noisy(3, 40, 9.0, 0.02)];
        assert!(run_to_run(&apart, &apart) > 0.05);
        let close = [noisy(1, 40, 10.0, 0.02), noisy(2, 40, 10.0, 0.02), noisy(3, 40, 10.0, 0.02)];
        assert!(run_to_run(&close, &close) < LEAST_RUN_TO_RUN);
    }

    #[test]
    fn more_runs_a_side_make_the_interval_narrower() {
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
        let measured = measure(&[vec![0.0; 9]], &[vec![1.0; 9]], Statistic::Mean, 0.01).unwrap();
        assert_eq!(measured.ratio, None);
        assert_eq!(measured.delta_ms.value, 1.0);
        assert!(measured.delta_ms.low.unwrap() > 0.9);
        assert!(measure(&[], &[vec![1.0]], Statistic::Mean, 0.01).is_none());
    }
}
