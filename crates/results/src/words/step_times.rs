//! How long steps are, where one figure does not say it: a cost in every n-th step, two kinds of steps.

use stepscope_analyze::time::peaks::Peaks;
use stepscope_analyze::time::recurrence::Recurrence;
use stepscope_analyze::time::summary::HostSummary;
use stepscope_diagnose::compare::rhythm::rhythm;
use stepscope_diagnose::rules::step_variance::peaks_words;
use stepscope_trace::statistics::Moments;

use crate::format::duration_ms;

/// The step of a report is the mean step: the breakdown and all findings are about it. If the median differs by more than
/// this share, which is the noise of one run, it is shown beside it with the reason.
const DIFFERS: f64 = 0.05;

/// The median step in milliseconds, if the mean does not stand for it.
pub fn median_if_different(moments: &Moments) -> Option<f64> {
    Some(moments.median).filter(|median| (moments.mean - median).abs() > DIFFERS * median)
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
