//! One category of the step in one run: what it takes on average, and how far that may be off.
//!
//! Each run is summed up by itself, so that a run of which only these figures are kept (a line of the journal) is compared
//! like the recording that they came from.

use stepscope_analyze::Category;

use super::noise::{Estimate, Measured};
use crate::statistics::{Confidence, Sample, interval, mean};

/// A category in the mean step of a run.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Part {
    /// Which.
    pub category: Category,
    /// Milliseconds of the mean step.
    pub mean_ms: f64,
    /// How far the mean may be lower by chance of the steps (95 %), in milliseconds; `None` of a single step.
    pub below_ms: Option<f64>,
    /// The same above it.
    pub above_ms: Option<f64>,
}

impl Part {
    /// Of a category's milliseconds in each step; `None` without steps.
    pub(super) fn of(category: Category, steps: &[f64]) -> Option<Part> {
        let mean_ms = mean(steps)?;
        if steps.iter().all(|ms| *ms == 0.0) {
            return Some(Part { category, mean_ms, below_ms: Some(0.0), above_ms: Some(0.0) });
        }
        let zero = vec![0.0; steps.len()];
        let of_mean = |values: &mut [f64]| mean(values).unwrap_or(0.0);
        let difference = |zero: &[f64], part: &[f64]| mean(part).unwrap_or(0.0) - mean(zero).unwrap_or(0.0);
        let off = interval(
            &[Sample::new(&zero)],
            &[Sample::new(steps)],
            &of_mean,
            &difference,
            Confidence::default(),
        );
        let (below_ms, above_ms) = (off.map(|off| off.below), off.map(|off| off.above));
        Some(Part { category, mean_ms, below_ms, above_ms })
    }
}

/// A category over the runs of a side.
struct Side {
    mean_ms: f64,
    /// Below and above.
    off_ms: Option<(f64, f64)>,
}

impl Side {
    fn of(runs: &[Part]) -> Option<Side> {
        let mean_ms = mean(&runs.iter().map(|run| run.mean_ms).collect::<Vec<_>>())?;
        let of_mean = |of: fn(&Part) -> Option<f64>| {
            let squares: Option<f64> = runs.iter().map(|run| of(run).map(|off| off * off)).sum();
            squares.map(|squares| squares.sqrt() / runs.len() as f64)
        };
        let off_ms = of_mean(|run| run.below_ms).zip(of_mean(|run| run.above_ms));
        Some(Side { mean_ms, off_ms })
    }
}

/// Measures a part of the mean step on both sides. `from_runs` is how far runs differ by themselves, relative.
///
/// A part may be almost nothing on one side and nothing in most steps, so that its ratio says little. Its difference is
/// measured instead; the ratio is the same interval in another unit.
pub(super) fn measure(
    base: &[Part],
    new: &[Part],
    from_runs: f64,
    confidence: Confidence,
) -> Option<Measured> {
    let (base, new) = (Side::of(base)?, Side::of(new)?);
    let (base_ms, new_ms) = (base.mean_ms, new.mean_ms);
    let larger = base_ms.max(new_ms);
    let value = new_ms - base_ms;
    let surer = confidence.normal() / Confidence::default().normal();
    let by_steps = base.off_ms.zip(new.off_ms).map(|((base_below, base_above), (new_below, new_above))| {
        (surer * new_below.hypot(base_above), surer * new_above.hypot(base_below))
    });
    // Runs differ by a factor: it takes away less of a part than it may add.
    let (towards, away) = (larger * -(-from_runs).exp_m1(), larger * from_runs.exp_m1());
    let (below, above) = if value > 0.0 { (towards, away) } else { (away, towards) };
    let low = by_steps.map(|(off, _)| value - off.hypot(below));
    let high = by_steps.map(|(_, off)| value + off.hypot(above));
    let over_base = |delta: f64| (1.0 + delta / base_ms).max(0.0);
    let ratio = Estimate { value: over_base(value), low: low.map(over_base), high: high.map(over_base) };
    Some(Measured {
        base_ms,
        new_ms,
        delta_ms: Estimate { value, low, high },
        ratio: (base_ms > 0.0).then_some(ratio),
        from_steps: by_steps.filter(|_| larger > 0.0).map(|(below, above)| below.max(above) / larger),
        from_runs,
    })
}
