//! Steps of which the device's side was not recorded: its trace began later or ended earlier than the host's.
//!
//! Such steps have no time on the device and would lower the mean.

use stepscope_trace::Dur;
use stepscope_trace::statistics::median_duration;

use super::DeviceBreakdown;
use crate::steps::{Exclusion, Step};

/// The share of the steps in between that must use a device. A loop that uses it now and then has ends without device work too.
const USUALLY: f64 = 0.9;
/// Fewer steps in between do not show what is usual.
const LEAST: usize = 2;
/// A step beside unrecorded ones with less than this share of the usual work was cut off with them.
const CUT: f64 = 0.8;

/// Excludes the steps before the first and after the last device work, and a step that the device's trace cuts off.
pub(super) fn exclude(steps: &mut [Step], devices: &[DeviceBreakdown]) {
    let busy = |index: usize| -> Dur {
        devices.iter().filter_map(|device| device.steps.get(index)).map(|shares| shares.own_busy).sum()
    };
    let works: Vec<Dur> = (0..steps.len()).map(busy).collect();
    let works_at = |&index: &usize| !works[index].is_zero();
    let (Some(first), Some(last)) = ((0..steps.len()).find(works_at), (0..steps.len()).rev().find(works_at))
    else {
        return;
    };
    let between = first..last + 1;
    let working = between.clone().filter(works_at).count();
    if between.len() < LEAST || (working as f64) < USUALLY * between.len() as f64 {
        return;
    }
    let usual = median_duration(between.clone().map(|index| works[index]));
    let is_cut = |index: usize| works[index].fraction_of(usual) < CUT;
    for (index, step) in steps.iter_mut().enumerate().filter(|(_, step)| step.excluded.is_none()) {
        if !between.contains(&index) {
            step.excluded = Some(Exclusion::Unrecorded);
        } else if index == last && last + 1 < works.len() && is_cut(index) {
            step.excluded = Some(Exclusion::Incomplete);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};
    use crate::steps::Exclusion;

    /// Why each of `count` marked steps is excluded, if the device is recorded in those of `recorded`, by as many kernels.
    fn excluded(count: i64, recorded: impl Fn(i64) -> i64) -> Vec<Option<Exclusion>> {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("python"), sketch.stream());
        sketch.steps(thread, count, 600);
        for step in 0..count {
            for kernel in 0..10 {
                let id = [("correlation", Arg::Int(1 + step * 10 + kernel))];
                sketch.event_of(
                    thread,
                    "cuda_runtime",
                    "cudaLaunchKernel",
                    step * 600 + kernel * 50,
                    10,
                    &id,
                );
                // The device lags behind its host.
                if kernel < recorded(step) {
                    let at = 300 + step * 600 + kernel * 60;
                    sketch.event_of(stream, "kernel", "gemm", at, 55, &id);
                }
            }
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        context.breakdown().steps.all.iter().map(|step| step.excluded).collect()
    }

    #[test]
    fn steps_after_the_last_device_event_do_not_count() {
        let seen = excluded(12, |step| if step < 9 { 10 } else { 0 });
        assert_eq!(seen[..9], [None; 9]);
        assert_eq!(seen[9..], [Some(Exclusion::Unrecorded); 3]);
        let cut = excluded(12, |step| [10, 3, 0][(step - 7).clamp(0, 2) as usize]);
        assert_eq!(
            (cut[7], cut[8], cut[9]),
            (None, Some(Exclusion::Incomplete), Some(Exclusion::Unrecorded))
        );
        let late = excluded(12, |step| if step < 2 { 0 } else { 10 });
        assert_eq!((late[1], late[2]), (Some(Exclusion::Unrecorded), None), "before the first one");
    }

    #[test]
    fn a_loop_that_uses_its_device_now_and_then_has_steps_without_it() {
        assert!(excluded(12, |step| if step % 4 == 0 { 10 } else { 0 }).iter().all(Option::is_none));
        assert!(excluded(12, |_| 0).iter().all(Option::is_none));
    }
}
