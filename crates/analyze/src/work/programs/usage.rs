//! The share of the peak that the steps reach: model FLOPs utilisation (MFU) and hardware FLOPs utilisation (HFU).

use super::{Cost, Peaks, Phase, ProgramOp, Programs};

/// Shares of the peak of matrix units, 0 to 1. Each type of numbers counts against its own peak.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Usage {
    /// The model's matrix operations, without recomputation.
    pub model: f64,
    /// All matrix operations that ran.
    pub hardware: f64,
}

impl Usage {
    /// What some instructions reach in `time_ms`; `None` if a peak is unknown, or if none of them multiplies matrices.
    pub fn of<'p>(peaks: &Peaks, ops: impl Iterator<Item = &'p ProgramOp>, time_ms: f64) -> Option<Self> {
        let (mut model, mut all) = (0.0, 0.0);
        for op in ops {
            let Some(cost) = op.cost() else { continue };
            let seconds = peaks.compute_seconds(&Cost { matrix: cost.matrix, ..Cost::default() })?;
            all += seconds;
            if op.facts.phase != Phase::Recompute {
                model += seconds;
            }
        }
        let share = |seconds: f64| seconds * 1e3 / time_ms;
        (all > 0.0 && time_ms > 0.0).then(|| Usage { model: share(model), hardware: share(all) })
    }
}

impl Programs {
    /// What steps of `step_ms` on this many devices reach.
    pub fn usage(&self, step_ms: f64, devices: usize) -> Option<Usage> {
        let peaks = self.peaks.as_ref()?;
        let steps = 1.0 / self.window.per_step(1.0)?;
        Usage::of(peaks, self.ops.iter(), step_ms * steps * devices.max(1) as f64)
    }
}
