//! The circular block bootstrap: how far a statistic of steps would have strayed, had the same runs given other
//! steps.
//!
//! Whole blocks of consecutive steps are drawn, as long as the steps' own dependence asks for, so that a run
//! of slow steps stays a run of slow steps. Each run is drawn from by itself; what differs *between* runs is
//! added by the caller, since two or three runs are too few to be drawn from.
//!
//! Slow steps at a fixed distance, such as a checkpoint every hundred steps, are drawn among themselves: how long they
//! take is chance, how many there are is not.

use std::borrow::Cow;

use stepscope_analyze::time::recurrence::Recurrence;

use super::confidence::Confidence;
use super::dependence::block_length;
use super::random::Random;

/// Equal on every machine.
const SEED: u64 = 0x5748_4F5A_4C4F_5721;
/// How often the steps are drawn. The ends of a 95 % interval then stray by a few per cent of its width.
const DRAWS: usize = 2000;
const LEAST_DRAWS: usize = 400;
/// So many steps are drawn in all at most, which bounds the time for very long runs to some tenth of a second.
const STEPS_DRAWN: usize = 20_000_000;

/// One run's steps with the length of the blocks that they are drawn in.
#[derive(Clone, Debug)]
pub struct Sample<'a> {
    steps: &'a [f64],
    /// Those that are drawn in blocks.
    usual: Cow<'a, [f64]>,
    /// Slow ones at a fixed distance.
    slow: Vec<f64>,
    block: usize,
}

/// A step is slow if it takes this many times the median. Load makes steps slower by less, or makes so many slower that
/// they are the median.
const SLOW: f64 = 2.0;
/// More slow steps than this share are no exception.
const MOST_SLOW: f64 = 0.4;

/// Which steps are slow, if they come at a fixed distance from the first step to the last.
fn slow_by_rhythm(steps: &[f64]) -> Option<Vec<bool>> {
    let middle = super::median(steps)?;
    // A part of the step that most steps do not have: those that have it.
    let usual = if middle > 0.0 { SLOW * middle } else { super::mean(steps)? };
    let slow: Vec<bool> = steps.iter().map(|step| *step > usual).collect();
    let often = Recurrence::of(slow.iter().copied());
    let few = often.steps as f64 <= MOST_SLOW * often.of as f64;
    (often.recurs() && often.is_periodic() && few).then_some(slow)
}

impl<'a> Sample<'a> {
    /// Steps in the order in which they ran.
    pub fn new(steps: &'a [f64]) -> Self {
        let Some(slow) = slow_by_rhythm(steps) else {
            return Sample { steps, usual: steps.into(), slow: Vec::new(), block: block_length(steps) };
        };
        let of = |wanted: bool| -> Vec<f64> {
            steps.iter().zip(&slow).filter(|(_, slow)| **slow == wanted).map(|(step, _)| *step).collect()
        };
        let usual = of(false);
        Sample { steps, block: block_length(&usual), usual: usual.into(), slow: of(true) }
    }

    /// How many independent pieces it is worth.
    fn blocks(&self) -> f64 {
        self.usual.len() as f64 / self.block as f64
    }

    fn draw(&self, random: &mut Random, into: &mut Vec<f64>) {
        let n = self.usual.len();
        into.clear();
        while into.len() < n {
            let start = random.below(n);
            let length = self.block.min(n - into.len());
            let tail = (n - start).min(length);
            into.extend_from_slice(&self.usual[start..start + tail]);
            into.extend_from_slice(&self.usual[..length - tail]);
        }
        into.extend(self.slow.iter().map(|_| self.slow[random.below(self.slow.len())]));
    }
}

/// How far an estimate may be off by chance.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Deviation {
    /// From the lower end of the interval to the estimate.
    pub below: f64,
    /// From the estimate to the upper end.
    pub above: f64,
}

impl Deviation {
    /// Independent errors add up as squares.
    pub fn and(self, half_width: f64) -> Deviation {
        Deviation { below: self.below.hypot(half_width), above: self.above.hypot(half_width) }
    }

    /// The wider side.
    pub fn widest(self) -> f64 {
        self.below.max(self.above)
    }
}

/// The interval around `statistic(base, new)`, where each side is the list of its runs' own `of`.
///
/// `of` is taken of each drawn run (a median, a mean) and `statistic` puts both sides' together. `None` where
/// a side has fewer than two steps, or the statistic is not a number.
pub fn interval(
    base: &[Sample<'_>],
    new: &[Sample<'_>],
    of: &dyn Fn(&mut [f64]) -> f64,
    statistic: &dyn Fn(&[f64], &[f64]) -> f64,
    confidence: Confidence,
) -> Option<Deviation> {
    let steps: usize = base.iter().chain(new).map(|run| run.steps.len()).sum();
    if [base, new].iter().any(|side| side.iter().map(|run| run.steps.len()).max().unwrap_or(0) < 2) {
        return None;
    }
    let draws = (STEPS_DRAWN / steps.max(1)).clamp(LEAST_DRAWS, DRAWS);
    let whole = |side: &[Sample<'_>]| side.iter().map(|run| of(&mut run.steps.to_vec())).collect::<Vec<_>>();
    let estimate = statistic(&whole(base), &whole(new));
    let (mut random, mut room) = (Random::new(SEED), Vec::new());
    let mut drawn_side = |side: &[Sample<'_>]| {
        let values = side.iter().map(|run| {
            run.draw(&mut random, &mut room);
            of(&mut room)
        });
        values.collect::<Vec<_>>()
    };
    let mut drawn: Vec<f64> = (0..draws).map(|_| statistic(&drawn_side(base), &drawn_side(new))).collect();
    if !estimate.is_finite() || drawn.iter().any(|value| !value.is_finite()) {
        return None;
    }
    drawn.sort_by(f64::total_cmp);
    let quantile = |q| stepscope_trace::statistics::quantile(&drawn, q);
    // Few blocks vary more than their own spread tells, as few values do.
    let blocks = |side: &[Sample<'_>]| side.iter().map(Sample::blocks).sum::<f64>();
    let few = confidence.student(blocks(base).min(blocks(new)) - 1.0) / confidence.normal();
    let end = confidence.error() / 2.0;
    Some(Deviation {
        below: ((estimate - quantile(end)?) * few).max(0.0),
        above: ((quantile(1.0 - end)? - estimate) * few).max(0.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::{mean, median_in_place};

    /// A series of the first order around `level`, with normal noise of standard deviation `spread`.
    fn series(random: &mut Random, n: usize, level: f64, spread: f64, rho: f64) -> Vec<f64> {
        let mut normal = || (0..12).map(|_| random.unit()).sum::<f64>() - 6.0;
        let mut state = normal();
        (0..n)
            .map(|_| {
                state = rho * state + (1.0 - rho * rho).sqrt() * normal();
                level + spread * state
            })
            .collect()
    }

    fn once() -> Confidence {
        Confidence::default()
    }

    fn log_ratio(base: &[f64], new: &[f64]) -> f64 {
        mean(new).unwrap() - mean(base).unwrap()
    }

    fn log_median(steps: &mut [f64]) -> f64 {
        median_in_place(steps).unwrap().ln()
    }

    #[test]
    fn a_cost_at_a_fixed_rhythm_is_no_chance() {
        let mut random = Random::new(5);
        let mut steps = |slow: &dyn Fn(usize) -> bool| -> Vec<f64> {
            let usual = series(&mut random, 24, 10.0, 0.3, 0.0);
            (0..).zip(usual).map(|(step, ms)| if slow(step) { ms + 250.0 } else { ms }).collect()
        };
        let width = |steps: &[f64]| {
            let side = [Sample::new(steps)];
            let of = |values: &mut [f64]| mean(values).unwrap();
            interval(&side, &side, &of, &log_ratio, once()).unwrap().widest()
        };
        let regular = width(&steps(&|step| step % 8 == 0));
        let random = width(&steps(&|step| [1, 2, 17].contains(&step)));
        assert!(regular < 1.0 && random > 20.0, "{regular} {random}");
    }

    fn coverage(n: usize, rho: f64) -> f64 {
        let mut random = Random::new(11);
        let rounds = 100;
        let covered = (0..rounds).filter(|_| {
            let base = series(&mut random, n, 10.0, 0.5, rho);
            let new = series(&mut random, n, 11.0, 0.5, rho);
            let estimate = log_median(&mut new.clone()) - log_median(&mut base.clone());
            let deviation =
                interval(&[Sample::new(&base)], &[Sample::new(&new)], &log_median, &log_ratio, once())
                    .unwrap();
            let truth = 1.1_f64.ln();
            estimate - deviation.below <= truth && truth <= estimate + deviation.above
        });
        covered.count() as f64 / f64::from(rounds)
    }

    #[test]
    fn intervals_hold_the_truth_about_as_often_as_they_say() {
        for (n, rho) in [(20, 0.0), (60, 0.0), (60, 0.5), (200, 0.8)] {
            let covered = coverage(n, rho);
            assert!((0.87..=1.0).contains(&covered), "n {n}, rho {rho}: {covered}");
        }
    }

    #[test]
    fn one_step_has_no_interval() {
        let (one, two) = ([1.0], [1.0, 2.0]);
        assert_eq!(
            interval(&[Sample::new(&one)], &[Sample::new(&two)], &log_median, &log_ratio, once()),
            None
        );
        assert_eq!(interval(&[], &[Sample::new(&two)], &log_median, &log_ratio, once()), None);
    }

    #[test]
    fn equal_steps_have_an_interval_without_width() {
        let steps = [3.0; 20];
        let sides = [Sample::new(&steps)];
        let deviation = interval(&sides, &sides, &log_median, &log_ratio, once()).unwrap();
        assert_eq!(deviation, Deviation { below: 0.0, above: 0.0 });
    }
}
