//! How far two recordings of the same program differ by themselves.
//!
//! Steps of one recording agree better with each other than with those of the next: memory lies elsewhere, a
//! neighbour on the machine comes or goes, a chip is warmer. Intervals from the steps alone are therefore too narrow.
//! The interval of a comparison has two parts: the scatter of the steps (the block bootstrap), and the difference
//! between runs, which is estimated here. Several runs per side measure it. With one run per side it is taken from
//! the scatter of the steps: load that disturbs single steps also moves the level of whole runs.

use super::certain::far_apart;
use crate::statistics::{self, Confidence, Deviation, Sample, interval, mean, median, median_in_place};

/// The least standard deviation between runs, relative to the step. Recordings of the same program on one quiet
/// machine differ by 0.6 to 3 % although their own steps agree to a fraction of that (`tools/noise_study.py`
/// measures it). A smaller value would call such pairs different, a larger one would hide a change of 10 %.
pub(crate) const LEAST_RUN_TO_RUN: f64 = 0.02;
/// Steps scatter by a little on a quiet machine. That averages out within a run.
const ORDINARY_SCATTER: f64 = 0.02;
/// How the standard deviation between runs grows with the scatter beyond that. Measured with three frameworks on two
/// shared cores (`tools/noise_study`): steps that scattered by 4 to 15 % came with levels that differed by 9 to 14 %
/// although nothing else ran on purpose. With this factor 2 % of such pairs are called different; with 1.5, 4 %.
const RUNS_PER_SCATTER: f64 = 2.0;
/// Beyond this, scatter is no measure of load. It is the program's own: steps that wait for a batch or do not, that compile or
/// do not. On two cores with a load average above 15, the mean steps of equal runs differed by 43 % at most.
const MOST_FROM_SCATTER: f64 = 0.35;
/// How it grows with the drift of the level within a run, beyond what is ordinary. What comes and goes within a run comes
/// and goes between runs, too, though single steps may agree well with their neighbours.
const RUNS_PER_DRIFT: f64 = 1.5;
/// So many pieces of a run show its drift …
const DRIFT_PIECES: usize = 8;
/// … if each has at least so many steps.
const DRIFT_STEPS: usize = 4;
/// The estimate from the scatter counts like so many runs against what repeated runs say themselves.
const PRIOR_RUNS: f64 = 3.0;
/// How many independent differences that estimate is worth: it is right within a factor of about 1.5.
const PRIOR_FREEDOM: f64 = 6.0;

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
                stepscope_trace::statistics::quantile(values, 0.9).unwrap_or(f64::NAN)
            }
        }
    }
}

/// An estimate with its interval; the ends are `None` where there are too few steps for one.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// The lower end.
    pub low: Option<f64>,
    /// The upper end.
    pub high: Option<f64>,
}

impl Estimate {
    /// An estimate without an interval.
    pub(crate) fn exact(value: f64) -> Self {
        Estimate { value, low: None, high: None }
    }
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
    /// Nothing on both sides.
    pub(crate) fn nothing() -> Self {
        let zero = Estimate { value: 0.0, low: Some(0.0), high: Some(0.0) };
        Measured {
            base_ms: 0.0,
            new_ms: 0.0,
            delta_ms: zero,
            ratio: None,
            from_steps: Some(0.0),
            from_runs: 0.0,
        }
    }

    /// A figure of which only the means are known. They are taken to scatter as much as is told, relative.
    pub fn of_means(base_ms: f64, new_ms: f64, from_steps: Option<f64>, from_runs: f64) -> Self {
        let width = from_steps.map(|from_steps| from_steps.hypot(from_runs));
        let (delta, log) = (new_ms - base_ms, (new_ms / base_ms).ln());
        // Both sides around their geometric mean: the difference excludes 0 exactly where the ratio excludes 1.
        let middle = (base_ms * new_ms).sqrt();
        let apart = |log: f64| 2.0 * middle * (log / 2.0).sinh();
        Measured {
            base_ms,
            new_ms,
            delta_ms: Estimate {
                value: delta,
                low: width.map(|width| apart(log - width)),
                high: width.map(|width| apart(log + width)),
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

/// How far runs of one program differ: relative variances.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct RunToRun {
    /// The part that every pair of runs has, known from studies.
    known: f64,
    /// The part that these runs show.
    estimated: f64,
    /// How many independent differences the estimate is worth.
    freedom: f64,
    /// How sure the intervals are.
    confidence: Confidence,
}

impl RunToRun {
    /// No difference: both sides are one run.
    pub fn none() -> Self {
        RunToRun { known: 0.0, estimated: 0.0, freedom: f64::INFINITY, confidence: Confidence::default() }
    }

    /// What every pair of runs has, and no more.
    pub fn least() -> Self {
        let confidence = Confidence::default();
        RunToRun { known: LEAST_RUN_TO_RUN.powi(2), estimated: 0.0, freedom: f64::INFINITY, confidence }
    }

    /// The relative standard deviation between runs.
    pub fn deviation(self) -> f64 {
        (self.known + self.estimated).sqrt()
    }

    /// Half the width of the interval of the ratio of two sides with so many runs each, as far as it comes from
    /// the difference between runs.
    pub(super) fn half_width(self, base_runs: f64, new_runs: f64) -> f64 {
        let known = self.confidence.normal().powi(2) * self.known;
        let estimated = self.confidence.student(self.freedom).powi(2) * self.estimated;
        ((known + estimated) * (1.0 / base_runs + 1.0 / new_runs)).sqrt()
    }
}

/// How much a run's steps are disturbed.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Unrest {
    /// How far single steps scatter: a robust relative standard deviation.
    pub scatter: f64,
    /// How far the level drifts within the run, relative.
    pub drift: f64,
}

impl Unrest {
    /// Of steps in the order in which they ran. Robust against a few slow steps, which may well belong to the program.
    pub fn of(steps: &[f64]) -> Self {
        Unrest { scatter: scatter(steps), drift: drift(steps) }
    }

    /// The worse of both.
    pub(super) fn worst(self) -> f64 {
        self.scatter.max(self.drift)
    }

    /// The standard deviation between runs that comes with it.
    fn of_runs(self) -> f64 {
        let beyond = |value: f64| (value - ORDINARY_SCATTER).max(0.0);
        let grown = (RUNS_PER_SCATTER * beyond(self.scatter)).max(RUNS_PER_DRIFT * beyond(self.drift));
        grown.min(MOST_FROM_SCATTER)
    }
}

/// How far the middles of a run's pieces differ.
fn drift(steps: &[f64]) -> f64 {
    let pieces = DRIFT_PIECES.min(steps.len() / DRIFT_STEPS);
    if pieces < 2 {
        return 0.0;
    }
    let middles = steps.chunks(steps.len().div_ceil(pieces)).filter_map(median).filter(|ms| *ms > 0.0);
    let levels: Vec<f64> = middles.map(f64::ln).collect();
    let middle = mean(&levels).unwrap_or(0.0);
    let squares: f64 = levels.iter().map(|level| (level - middle).powi(2)).sum();
    (squares / (levels.len() as f64 - 1.0).max(1.0)).sqrt()
}

/// The difference between runs, from the unrest of their steps (one value per run) and from repeated runs.
pub fn run_to_run(
    base: &[Vec<f64>],
    new: &[Vec<f64>],
    unrest: &[Unrest],
    confidence: Confidence,
) -> RunToRun {
    let scattered: Vec<f64> = unrest.iter().map(|unrest| unrest.of_runs().powi(2)).collect();
    between_runs(base, new, (LEAST_RUN_TO_RUN, mean(&scattered).unwrap_or(0.0)), confidence)
}

/// The same from an estimate: the least standard deviation, and the variance that the scatter of steps adds.
pub(super) fn between_runs(
    base: &[Vec<f64>],
    new: &[Vec<f64>],
    (least, scattered): (f64, f64),
    confidence: Confidence,
) -> RunToRun {
    let (mut squares, mut weight) = (PRIOR_RUNS * scattered, PRIOR_RUNS);
    for side in [base, new] {
        let levels: Vec<f64> =
            side.iter().filter_map(|run| mean(run)).filter(|level| *level > 0.0).map(f64::ln).collect();
        let Some(middle) = mean(&levels) else { continue };
        squares += levels.iter().map(|level| (level - middle).powi(2)).sum::<f64>();
        weight += levels.len() as f64 - 1.0;
    }
    let known = PRIOR_RUNS * least.powi(2) / weight;
    let freedom = weight - PRIOR_RUNS + PRIOR_FREEDOM;
    RunToRun { known, estimated: squares / weight, freedom, confidence }
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
    let by_steps = (base_ms > 0.0 && new_ms > 0.0)
        .then(|| deviation(base, new, statistic, &log_ratio, run_to_run.confidence))
        .flatten();
    let ratio = (base_ms > 0.0).then(|| {
        let log = (new_ms / base_ms).ln();
        let by_chance = by_steps.map(|by_steps| by_steps.and(from_runs));
        let ends = by_chance.map(|off| (log - off.below, log + off.above));
        // Where the sides lie far apart, their ranges say more than an interval that load has widened.
        let open = ends.is_none_or(|(low, high)| low <= 0.0 && high >= 0.0);
        let ends = if open { far_apart(base, new).or(ends) } else { ends };
        Estimate {
            value: new_ms / base_ms,
            low: ends.map(|(low, _)| low.exp()),
            high: ends.map(|(_, high)| high.exp()),
        }
    });
    // One interval, in two units: both say the same. Only what was nothing before has a difference and no ratio.
    let delta = new_ms - base_ms;
    let of_ratio = ratio.and_then(|ratio| ratio.low.zip(ratio.high));
    let ends = of_ratio.map(|(low, high)| (base_ms * (low - 1.0), base_ms * (high - 1.0))).or_else(|| {
        let off = deviation(base, new, statistic, &difference, run_to_run.confidence)?
            .and(from_runs * base_ms.max(new_ms));
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

/// How far the mean of a run's values strays by chance: the standard deviation of the block bootstrap. `None` of fewer
/// than two.
pub(super) fn deviation_of_mean(values: &[f64]) -> Option<f64> {
    let sides = [values.to_vec()];
    let difference = |base: &[f64], new: &[f64]| mean(new).unwrap_or(0.0) - mean(base).unwrap_or(0.0);
    let once = Confidence::default();
    // Against a copy of itself there is twice the variance.
    let both = deviation(&sides, &sides, Statistic::Mean, &difference, once)?;
    Some(both.widest() / once.normal() / std::f64::consts::SQRT_2)
}

fn deviation(
    base: &[Vec<f64>],
    new: &[Vec<f64>],
    statistic: Statistic,
    put_together: &dyn Fn(&[f64], &[f64]) -> f64,
    confidence: Confidence,
) -> Option<Deviation> {
    interval(&samples(base), &samples(new), &|values| statistic.of(values), put_together, confidence)
}

fn samples(side: &[Vec<f64>]) -> Vec<Sample<'_>> {
    side.iter().filter(|run| !run.is_empty()).map(|run| Sample::new(run)).collect()
}

/// By how much the ranks' variance is larger than that of independent steps: the mean over the runs.
pub(crate) fn inflation(base: &[Vec<f64>], new: &[Vec<f64>]) -> f64 {
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

    fn differ(base: &[Vec<f64>], new: &[Vec<f64>]) -> RunToRun {
        let unrest: Vec<Unrest> = base.iter().chain(new).map(|run| Unrest::of(run)).collect();
        run_to_run(base, new, &unrest, Confidence::default())
    }

    #[test]
    fn the_difference_excludes_nothing_where_the_ratio_does_not() {
        for (base, new, width) in
            [(90.0, 30.0, 0.7), (90.0, 30.0, 1.2), (10.0, 10.5, 0.02), (10.0, 10.5, 0.1)]
        {
            let measured = Measured::of_means(base, new, Some(width), 0.0);
            let (ratio, delta) = (measured.ratio.unwrap(), measured.delta_ms);
            let outside =
                |low: Option<f64>, high: Option<f64>, at: f64| low.unwrap() > at || high.unwrap() < at;
            assert_eq!(
                outside(ratio.low, ratio.high, 1.0),
                outside(delta.low, delta.high, 0.0),
                "{measured:?}"
            );
            assert!(delta.low.unwrap() < delta.value && delta.value < delta.high.unwrap(), "{measured:?}");
        }
    }

    #[test]
    fn steps_that_scatter_widen_the_interval() {
        let deviation = |spread| {
            let run = noisy(1, 60, 10.0, spread);
            differ(std::slice::from_ref(&run), std::slice::from_ref(&run)).deviation()
        };
        assert!((LEAST_RUN_TO_RUN..0.025).contains(&deviation(0.02)), "{}", deviation(0.02));
        assert!(deviation(0.8) > 0.15, "{}", deviation(0.8));
    }

    #[test]
    fn a_few_slow_steps_of_the_program_do_not_look_like_load() {
        let mut run = noisy(1, 60, 10.0, 0.02);
        run.iter_mut().step_by(6).for_each(|ms| *ms *= 30.0);
        assert!(differ(&[run.clone()], &[run]).deviation() < 0.025);
    }

    #[test]
    fn a_level_that_comes_and_goes_widens_the_interval_though_neighbours_agree() {
        let run: Vec<f64> = (0..80).map(|i| if (i / 20) % 2 == 0 { 10.0 } else { 18.0 }).collect();
        assert!(differ(std::slice::from_ref(&run), std::slice::from_ref(&run)).deviation() > 0.3);
        let periodic: Vec<f64> = (0..80).map(|i| if i % 4 == 3 { 50.0 } else { 10.0 }).collect();
        assert!(
            differ(std::slice::from_ref(&periodic), std::slice::from_ref(&periodic)).deviation() < 0.025,
            "the program's own rhythm"
        );
    }

    #[test]
    fn repeated_runs_tell_their_own_difference() {
        let apart = [noisy(1, 40, 10.0, 0.02), noisy(2, 40, 11.0, 0.02), noisy(3, 40, 9.0, 0.02)];
        assert!(differ(&apart, &apart).deviation() > 0.05);
        let close = [noisy(1, 40, 10.0, 0.02), noisy(2, 40, 10.0, 0.02), noisy(3, 40, 10.0, 0.02)];
        assert!(differ(&close, &close).deviation() < LEAST_RUN_TO_RUN);
    }

    #[test]
    fn more_runs_per_side_make_the_interval_narrower() {
        let side =
            |level: f64, runs: u64| (0..runs).map(|run| noisy(run, 40, level, 0.05)).collect::<Vec<_>>();
        let width = |runs| {
            let (base, new) = (side(10.0, runs), side(10.4, runs));
            let measured = measure(&base, &new, Statistic::Median, differ(&base, &new)).unwrap();
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
