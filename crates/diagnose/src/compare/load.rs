//! How much of a difference the machine explains, and what is left of it.
//!
//! An op that runs as often as before does the same work. If all such ops take longer by one factor, the machine is
//! busier or its clocks are lower, or the change touches every op; a change of the input, of Python or of one op does
//! not look like that. The factor is a weighted median over those ops. No op has more than a quarter of the weight, so
//! that one op that really changed does not move it.
//!
//! On shared cores, equal runs differ by 10 to 20 % even if nothing else runs on purpose. After the factor is taken out,
//! they differ by 2 to 4 % (`tools/noise_study` measures both). A change of 10 % is invisible in the first and clear in
//! the second.

use stepscope_analyze::Category;

use super::matching::{Match, OpDelta};
use super::noise::Measured;
use super::side::ComparedRun;
use crate::statistics::{self, Confidence};

/// Fewer ops say nothing about the machine.
const LEAST_OPS: usize = 5;
/// An op runs as often as before if its number differs by less than this.
const SAME_COUNT: f64 = 0.02;
/// Ops below this share of the step are mostly the recorder's own cost.
const LEAST_SHARE: f64 = 0.002;
/// The most weight that one op has.
const MOST_WEIGHT: f64 = 0.25;
/// What is left differs at least by this between two runs of one program (standard deviation, relative) …
const LEAST_LEFT: f64 = 0.015;
/// … and by this much more for unrest beyond what is ordinary: a crowded machine does not slow down everything alike.
/// With it, 2 % of pairs of equal runs beside a controlled load are called different; with 0.15, 4 %.
const LEFT_PER_UNREST: f64 = 0.25;
/// Unrest up to this needs no allowance: it slows the ops as well, so the factor covers it.
const ORDINARY_UNREST: f64 = 0.10;

/// What the ops that did not change have in common.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Load {
    /// How many times longer they take in NEW.
    pub factor: f64,
    /// How far they differ from that, as the standard deviation of the logarithm.
    pub spread: f64,
    /// How many there are.
    pub ops: usize,
    /// How many ops of equal weight they are worth.
    worth: f64,
}

/// The factor that ops of both sides share, where steps of both take `step_ms` (their geometric mean, so that the sides may
/// change places); `None` where there are too few.
pub fn load(ops: &[OpDelta], step_ms: f64) -> Option<Load> {
    let least = LEAST_SHARE * step_ms;
    let unchanged = |op: &&OpDelta| {
        op.matched == Match::Name
            && op.base_ms.min(op.new_ms) >= least
            && op.base_ms.min(op.new_ms) > 0.0
            && (op.new_count - op.base_count).abs() <= SAME_COUNT * op.base_count.min(op.new_count)
    };
    let weighted = |op: &OpDelta| ((op.new_ms / op.base_ms).ln(), (op.new_ms * op.base_ms).powf(0.25));
    let mut ratios: Vec<(f64, f64)> = ops.iter().filter(unchanged).map(weighted).collect();
    if ratios.len() < LEAST_OPS {
        return None;
    }
    cap(&mut ratios);
    let worth = 1.0 / ratios.iter().map(|(_, weight)| weight * weight).sum::<f64>();
    let middle = weighted_median(&mut ratios)?;
    let mut off: Vec<(f64, f64)> =
        ratios.iter().map(|(log, weight)| ((log - middle).abs(), *weight)).collect();
    let spread = 1.4826 * weighted_median(&mut off)?;
    Some(Load { factor: middle.exp(), spread, ops: ratios.len(), worth })
}

/// Makes the weights sum to 1 with none above the most; what is cut off goes to the others.
fn cap(values: &mut [(f64, f64)]) {
    // Each round brings the largest closer; eight are enough for a fraction of a per cent.
    for _ in 0..8 {
        let total: f64 = values.iter().map(|(_, weight)| weight).sum();
        values.iter_mut().for_each(|(_, weight)| *weight = (*weight / total).min(MOST_WEIGHT));
    }
    let total: f64 = values.iter().map(|(_, weight)| weight).sum();
    values.iter_mut().for_each(|(_, weight)| *weight /= total);
}

/// The value below which half of the weight lies.
fn weighted_median(values: &mut [(f64, f64)]) -> Option<f64> {
    values.sort_by(|a, b| a.0.total_cmp(&b.0));
    let half = values.iter().map(|(_, weight)| weight).sum::<f64>() / 2.0;
    let mut seen = 0.0;
    values
        .iter()
        .find(|(_, weight)| {
            seen += weight;
            seen >= half
        })
        .map(|(value, _)| *value)
}

/// What a run's step is besides its compute.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Around {
    /// The share of compute in the mean step, 0 to 1.
    pub compute: f64,
    /// How far the ratio of the mean step to its compute strays by chance of the steps: a relative standard deviation.
    pub deviation: f64,
}

impl Around {
    /// Of a run whose steps' shares are known.
    pub(super) fn of(run: &ComparedRun) -> Option<Around> {
        let compute = run.category_ms(Category::Compute);
        let (step, work) = (statistics::mean(&run.steps_ms)?, statistics::mean(&compute)?);
        if compute.len() != run.steps_ms.len() || work <= 0.0 || step <= 0.0 {
            return None;
        }
        // To the first order, the ratio of two means strays like the mean of this.
        let strays = |(ms, compute): (&f64, &f64)| 1.0 + ms / step - compute / work;
        let steps: Vec<f64> = run.steps_ms.iter().zip(&compute).map(strays).collect();
        let deviation = super::noise::deviation_of_mean(&steps)?;
        Some(Around { compute: (work / step).min(1.0), deviation })
    }
}

/// The mean step of NEW beside what the machine makes of BASE's; `None` where that is not known of all runs.
///
/// The recording cannot say whether the time around the ops follows the machine, too. If all of it does, the step grows by
/// the factor; if none does, only the compute grows: by BASE's share of it, or by what NEW's share says when it is taken
/// back. Anything between these is explained by the machine, so the answer is the same when the sides change places.
pub(super) fn beyond(
    base: &[ComparedRun],
    new: &[ComparedRun],
    mean: &Measured,
    load: &Load,
    confidence: Confidence,
) -> Option<Measured> {
    let around = |side: &[ComparedRun]| side.iter().map(ComparedRun::around).collect::<Option<Vec<Around>>>();
    let (old, now) = (around(base)?, around(new)?);
    let share = |side: &[Around]| statistics::mean(&side.iter().map(|it| it.compute).collect::<Vec<_>>());
    let forward = 1.0 + (load.factor - 1.0) * share(&old)?;
    let backward = 1.0 / (1.0 + (1.0 / load.factor - 1.0) * share(&now)?);
    let least = load.factor.min(forward).min(backward);
    let most = load.factor.max(forward).max(backward);
    // A side whose steps are empty has no ratio.
    let explained = (least <= most).then(|| (mean.new_ms / mean.base_ms).clamp(least, most))?;
    let of_side = |side: &[Around]| {
        side.iter().map(|it| it.deviation.powi(2)).sum::<f64>() / (side.len() as f64).powi(2)
    };
    let by_steps = confidence.normal() * (of_side(&old) + of_side(&now)).sqrt();
    let unrest: Vec<f64> = base.iter().chain(new).map(|run| run.unrest().worst().powi(2)).collect();
    let unrest = (statistics::mean(&unrest)?.sqrt() - ORDINARY_UNREST).max(0.0);
    let runs = LEAST_LEFT.hypot(LEFT_PER_UNREST * unrest)
        * (1.0 / base.len() as f64 + 1.0 / new.len() as f64).sqrt();
    let from_runs = confidence.normal() * runs.hypot(load.spread / load.worth.sqrt());
    Some(Measured::of_means(mean.base_ms * explained, mean.new_ms, Some(by_steps), from_runs))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(name: usize, base_ms: f64, new_ms: f64, new_count: f64) -> OpDelta {
        OpDelta {
            name: format!("op {name}"),
            op_type: "Op".to_owned(),
            on_device: false,
            matched: Match::Name,
            base_ms,
            new_ms,
            base_count: 10.0,
            new_count,
        }
    }

    #[test]
    fn a_busy_machine_makes_all_ops_longer_and_one_slow_op_does_not() {
        let mut ops: Vec<OpDelta> = (0..12).map(|i| op(i, 1.0, 1.5 + 0.01 * i as f64, 10.0)).collect();
        let busy = load(&ops, 12.0).unwrap();
        assert!((1.5..1.62).contains(&busy.factor) && busy.spread < 0.05, "{busy:?}");
        ops.iter_mut().for_each(|op| op.new_ms = op.base_ms);
        ops.push(op(99, 1.0, 40.0, 10.0));
        assert_eq!(load(&ops, 12.0).unwrap().factor, 1.0);
    }

    #[test]
    fn the_op_that_takes_most_of_the_step_is_not_the_machine() {
        let mut ops: Vec<OpDelta> = (0..6).map(|i| op(i, 0.2, 0.2, 10.0)).collect();
        ops.push(op(99, 20.0, 30.0, 10.0));
        let load = load(&ops, 22.0).unwrap();
        assert!(load.factor < 1.01, "{load:?}");
    }

    #[test]
    fn ops_that_run_more_often_and_a_handful_say_nothing() {
        let more: Vec<OpDelta> = (0..12).map(|i| op(i, 1.0, 2.0, 20.0)).collect();
        assert_eq!(load(&more, 12.0), None);
        assert_eq!(load(&[op(1, 1.0, 2.0, 10.0)], 1.0), None);
        let tiny: Vec<OpDelta> = (0..12).map(|i| op(i, 0.01, 0.02, 10.0)).collect();
        assert_eq!(load(&tiny, 1_000.0), None);
    }

    #[test]
    fn what_the_machine_explains_is_not_left() {
        let side = |ms: f64| {
            let around = Some(Around { compute: 0.9, deviation: 0.005 });
            [ComparedRun { steps_ms: vec![ms; 50], kept_around: around, ..ComparedRun::default() }]
        };
        let load = Load { factor: 1.4, spread: 0.02, ops: 12, worth: 8.0 };
        let left = |new_ms: f64| {
            let mean = Measured::of_means(10.0, new_ms, Some(0.01), 0.3);
            beyond(&side(10.0), &side(new_ms), &mean, &load, Confidence::default()).unwrap().ratio.unwrap()
        };
        assert!((left(14.0).value - 1.0).abs() < 1e-9, "all of the step follows the machine");
        assert!((left(13.6).value - 1.0).abs() < 1e-9, "only the compute does");
        let slower = left(15.4);
        assert!((slower.value - 1.1).abs() < 1e-9 && slower.low.unwrap() > 1.02, "{slower:?}");
        assert!(left(12.0).high.unwrap() < 0.97);
        let unknown = [ComparedRun { steps_ms: vec![10.0; 50], ..ComparedRun::default() }];
        let mean = Measured::of_means(10.0, 14.0, Some(0.01), 0.3);
        assert_eq!(beyond(&unknown, &side(14.0), &mean, &load, Confidence::default()), None);
    }
}
