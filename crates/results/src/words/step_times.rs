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
    of_steps(&steps)
}

fn of_steps(steps: &[f64]) -> Option<String> {
    if let Some(rhythm) = rhythm(steps) {
        let slow = Recurrence::of(steps.iter().map(|ms| *ms > rhythm.slow_ms));
        // Slow steps that follow one another, or are close to each other in one part, are no rhythm.
        let often = match slow.every.filter(|_| slow.is_periodic()) {
            Some(every) => format!("every {every} steps"),
            None => format!("in {} of {} steps", slow.steps, slow.of),
        };
        return Some(format!("{} more {often}", duration_ms(rhythm.extra_ms)));
    }
    Peaks::of(steps).map(|peaks| peaks_words(&peaks))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_steps_that_follow_one_another_are_counted() {
        let shape = |slow: &dyn Fn(usize) -> bool| {
            of_steps(&(0..24).map(|step| if slow(step) { 30.0 } else { 10.0 }).collect::<Vec<_>>())
        };
        assert_eq!(shape(&|step| step % 4 == 3).as_deref(), Some("20.0 ms more every 4 steps"));
        assert_eq!(shape(&|step| (8..12).contains(&step)).as_deref(), Some("20.0 ms more in 4 of 24 steps"));
        assert_eq!(shape(&|step| step == 8 || step == 11).as_deref(), Some("20.0 ms more in 2 of 24 steps"));
        assert_eq!(shape(&|_| false), None);
    }
}
