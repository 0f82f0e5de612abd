//! How long steps are, where one figure does not say it: a cost in every n-th step, two kinds of steps.

use stepscope_analyze::time::peaks::Peaks;
use stepscope_analyze::time::recurrence::Recurrence;
use stepscope_analyze::time::summary::HostSummary;
use stepscope_diagnose::compare::rhythm::rhythm;
use stepscope_diagnose::rules::step_variance::peaks_words;
use stepscope_trace::statistics::Moments;

use crate::format::duration_ms;

/// Findings and the breakdown are about the mean step. If the median differs by this share, both are shown.
const DIFFERS: f64 = 0.1;

/// The mean step in milliseconds, if the median does not stand for it.
pub fn mean_beside(moments: &Moments) -> Option<f64> {
    Some(moments.mean).filter(|mean| (mean - moments.median).abs() > DIFFERS * moments.median)
}

/// What some steps cost more, or which kinds of steps there are; `None` if steps are of one kind.
pub fn shape(host: &HostSummary) -> Option<String> {
    let steps: Vec<f64> = host.counted().map(|step| step.span.dur().ms()).collect();
    if let Some(rhythm) = rhythm(&steps) {
        let slow = Recurrence::of(steps.iter().map(|ms| *ms > rhythm.slow_ms));
        let often = match slow.every {
            Some(every) => format!("every {every} steps"),
            None => format!("in {} of {} steps", slow.steps, slow.of),
        };
        return Some(format!("{} more {often}", duration_ms(rhythm.extra_ms)));
    }
    Peaks::of(&steps).map(|peaks| peaks_words(&peaks))
}
