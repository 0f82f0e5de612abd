//! Warm-up steps, which would distort the mean.

use stepscope_trace::Dur;

use super::{Category, DeviceBreakdown, StepShares};
use crate::steps::{Exclusion, Step};
use stepscope_trace::statistics::median_duration;

/// A step this many times longer than the later ones is warm-up …
const STARTUP_LENGTH: f64 = 1.5;
/// … if it also traces or compiles for this share of its time, and the later ones do much less.
const STARTUP_SHARE: f64 = 0.1;
/// … or if it is this many times longer, whatever it does.
const STARTUP_LENGTH_ALONE: f64 = 4.0;
/// More steps than this that only take longer are a slow phase of the program: what is set up at first use takes a few steps.
const MOST_ALONE: usize = 10;

/// Excludes the first steps that only warm up. The rest must contain the work of a step: a marker around
/// nothing does not make the previous step a warm-up.
pub(super) fn exclude_startup(steps: &mut [Step], device: &DeviceBreakdown) {
    let places: Vec<usize> = (0..steps.len()).filter(|&index| steps[index].excluded.is_none()).collect();
    let counted = || places.iter().filter_map(|&index| device.steps.get(index));
    // The first launch of a kernel loads its code: launching is part of building where it makes the step longer, and
    // where the recording has the loop's first step.
    let from_start = steps.first().is_some_and(|step| step.excluded.is_none());
    let launching = median_duration(counted().map(|shares| shares.shares.get(Category::Launch)));
    let usual_length = median_duration(counted().map(|shares| shares.window.dur()));
    let building = |shares: &StepShares| {
        let of = |category| shares.shares.get(category);
        let loading = of(Category::Launch).max(launching) - launching;
        let longer = shares.window.dur().max(usual_length) - usual_length;
        let loading = if from_start && loading.ps() * 2 >= longer.ps() { loading } else { Dur::ZERO };
        let time = of(Category::Tracing) + of(Category::Compile) + loading;
        (shares.window.dur(), time.fraction_of(shares.window.dur()), shares.busy)
    };
    let all: Vec<(Dur, f64, Dur)> = counted().map(building).collect();
    let mut found: Vec<(usize, bool)> = Vec::new();
    // At most the first half can be warm-up: a program that always warms up never gets warm.
    for (index, &place) in places.iter().enumerate().take(all.len() / 2) {
        let (length, share, busy) = all[index];
        let later = &all[index + 1..];
        let usual = median_duration(later.iter().map(|&(length, ..)| length));
        let mut later_shares: Vec<f64> = later.iter().map(|&(_, share, _)| share).collect();
        later_shares.sort_by(f64::total_cmp);
        let usual_share = later_shares.get(later_shares.len() / 2).copied().unwrap_or(1.0);
        let ratio = if usual.is_zero() { 1.0 } else { length.ps() as f64 / usual.ps() as f64 };
        let builds = ratio >= STARTUP_LENGTH && share >= STARTUP_SHARE && usual_share < share / 3.0;
        // What comes back in the later half of the recording belongs to the loop: a checkpoint, a new trace.
        let half_as_long = usual.ps() as f64 * (1.0 + ratio) / 2.0;
        let comes_back = |&(length, other, _): &(Dur, f64, Dur)| {
            length.ps() as f64 >= half_as_long && (!builds || other >= share / 2.0)
        };
        let recurs = all[all.len().div_ceil(2).max(index + 1)..].iter().any(comes_back);
        let rest_works = busy.is_zero() || later.iter().any(|&(.., busy)| !busy.is_zero());
        if !rest_works || recurs || (!builds && ratio < STARTUP_LENGTH_ALONE) {
            break;
        }
        found.push((place, builds));
    }
    let is_slow_phase = found.iter().filter(|(_, builds)| !builds).count() > MOST_ALONE;
    for (place, _) in found.into_iter().filter(|(_, builds)| *builds || !is_slow_phase) {
        steps[place].excluded = Some(Exclusion::Startup);
    }
}

#[cfg(test)]
mod tests {
    use stepscope_trace::{Span, Time};

    use super::*;
    use crate::breakdown::Shares;

    fn device(steps: &[(i64, i64, i64)]) -> DeviceBreakdown {
        let shares = |&(length, tracing, busy): &(i64, i64, i64)| {
            let mut shares = Shares::default();
            shares.add(Category::Tracing, Dur::from_ps(tracing));
            StepShares {
                window: Span::new(Time::ZERO, Time::from_ps(length)),
                work: Span::default(),
                shares,
                busy: Dur::from_ps(busy),
                own_busy: Dur::ZERO,
                hidden_communication: Dur::ZERO,
                hidden_copies: Dur::ZERO,
            }
        };
        DeviceBreakdown {
            process: None,
            steps: steps.iter().map(shares).collect(),
            asynchronous: false,
            steps_seen: 0,
            busy_outside: Dur::ZERO,
        }
    }

    fn none_apart(count: usize) -> Vec<Step> {
        vec![Step { number: 0, span: Span::default(), excluded: None }; count]
    }

    fn startup(lengths: &[(i64, i64, i64)]) -> Vec<bool> {
        let mut steps = none_apart(lengths.len());
        exclude_startup(&mut steps, &device(lengths));
        steps.iter().map(|step| step.excluded.is_some()).collect()
    }

    #[test]
    fn a_first_step_that_traces_is_startup_and_a_loop_that_always_traces_is_not() {
        assert_eq!(
            startup(&[(500, 400, 1), (100, 0, 1), (100, 0, 1), (100, 0, 1)]),
            [true, false, false, false]
        );
        assert_eq!(startup(&[(500, 400, 1), (480, 400, 1), (510, 400, 1), (490, 400, 1)]), [false; 4]);
        assert_eq!(startup(&[(140, 40, 1), (100, 0, 1), (100, 0, 1), (100, 0, 1)]), [false; 4]);
        assert_eq!(startup(&[]), [false; 0]);
    }

    #[test]
    fn a_first_step_that_loads_code_is_startup_and_a_loop_that_always_launches_is_not() {
        let launching = |steps: &[(i64, i64)]| {
            let lengths: Vec<(i64, i64, i64)> = steps.iter().map(|&(length, _)| (length, 0, 1)).collect();
            let mut device = device(&lengths);
            for (step, &(_, launch)) in device.steps.iter_mut().zip(steps) {
                step.shares.add(Category::Launch, Dur::from_ps(launch));
            }
            let mut found = none_apart(steps.len());
            exclude_startup(&mut found, &device);
            found.iter().filter(|step| step.excluded.is_some()).count()
        };
        assert_eq!(launching(&[(300, 250), (100, 50), (100, 50), (100, 50)]), 1);
        assert_eq!(
            launching(&[(160, 80), (100, 70), (100, 70), (100, 70)]),
            0,
            "it is longer for another reason"
        );
    }

    #[test]
    fn what_comes_back_later_is_no_startup() {
        let every_fourth = |builds: i64| -> Vec<(i64, i64, i64)> {
            (0..12).map(|step| if step % 4 == 0 { (900, builds, 1) } else { (100, 0, 1) }).collect()
        };
        assert_eq!(startup(&every_fourth(0)), [false; 12]);
        assert_eq!(startup(&every_fourth(800)), [false; 12]);
        let mut first_half = [(100, 0, 1); 12];
        first_half[0] = (900, 0, 1);
        first_half[1] = (700, 0, 1);
        assert_eq!(startup(&first_half)[..3], [true, true, false]);
    }

    #[test]
    fn a_long_slow_phase_is_no_startup_unless_it_builds() {
        let slow = |count: usize, builds: i64| -> usize {
            let steps: Vec<_> =
                (0..100).map(|step| if step < count { (900, builds, 1) } else { (100, 0, 1) }).collect();
            startup(&steps).iter().filter(|startup| **startup).count()
        };
        assert_eq!((slow(10, 0), slow(11, 0), slow(40, 0)), (10, 0, 0));
        assert_eq!(slow(11, 500), 11);
    }

    #[test]
    fn the_step_that_holds_all_the_work_is_no_startup() {
        assert_eq!(startup(&[(9_000, 0, 6_000), (50, 0, 0)]), [false, false]);
        let mut steps = none_apart(3);
        steps[1].excluded = Some(Exclusion::Incomplete);
        exclude_startup(&mut steps, &device(&[(9_000, 0, 10), (50, 0, 0), (9_100, 0, 10)]));
        assert_eq!(steps[0].excluded, None, "what is cut off is compared with nothing");
    }
}
