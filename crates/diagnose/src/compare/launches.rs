//! Sides without steps whose kernels were profiled one by one: what a launch of each takes.
//!
//! A profiler of kernels holds the clocks and lets nothing run beside, so a launch or two say what many steps must say
//! elsewhere. What is left is what differs from run to run. Only kernels of the same name are held against each other.

use super::matching::{Match, OpDelta};
use super::noise::{Measured, RunToRun};
use super::side::ComparedRun;

/// Is there nothing but profiled kernels on both sides?
pub(super) fn all_there_is(base: &[ComparedRun], new: &[ComparedRun]) -> bool {
    let profiled = |side: &[ComparedRun]| {
        !side.is_empty() && side.iter().all(|run| run.profiled && run.steps_ms.is_empty())
    };
    profiled(base) && profiled(new)
}

/// A launch of each kernel that both sides profiled; `None` where they have no kernel in common.
pub(super) fn measure(base: &[ComparedRun], new: &[ComparedRun], ops: &[OpDelta]) -> Option<Measured> {
    let in_common =
        || ops.iter().filter(|op| op.matched == Match::Name && op.base_ms > 0.0 && op.new_ms > 0.0);
    let (base_ms, new_ms): (f64, f64) =
        (in_common().map(|op| op.base_ms).sum(), in_common().map(|op| op.new_ms).sum());
    if base_ms <= 0.0 {
        return None;
    }
    let from_runs = RunToRun::least().half_width(base.len() as f64, new.len() as f64);
    // One launch is like another: what scatters is the run.
    Some(Measured::of_means(base_ms, new_ms, Some(0.0), from_runs))
}

#[cfg(test)]
mod tests {
    use super::super::{Margins, Unit, Verdict, compare};
    use super::*;
    use crate::compare::OpTime;

    fn profiled(kernels: &[(&str, f64)]) -> Vec<ComparedRun> {
        let op = |&(name, ms): &(&str, f64)| OpTime {
            name: name.to_owned(),
            op_type: name.to_owned(),
            on_device: true,
            ms_per_step: ms,
            count_per_step: 1.0,
        };
        vec![ComparedRun { ops: kernels.iter().map(op).collect(), profiled: true, ..ComparedRun::default() }]
    }

    fn told(base: &[(&str, f64)], new: &[(&str, f64)]) -> (Unit, Verdict) {
        let comparison = compare(&profiled(base), &profiled(new), Margins::default());
        (comparison.unit, comparison.verdict)
    }

    #[test]
    fn kernels_are_compared_a_launch() {
        assert_eq!(
            told(&[("gemm", 4.0), ("relu", 1.0)], &[("gemm", 2.0), ("relu", 1.0)]),
            (Unit::Launch, Verdict::Faster)
        );
        assert_eq!(told(&[("gemm", 2.0)], &[("gemm", 2.4)]), (Unit::Launch, Verdict::Slower));
        assert_eq!(told(&[("gemm", 2.0)], &[("gemm", 2.02)]), (Unit::Launch, Verdict::Same));
    }

    #[test]
    fn what_only_one_side_has_is_no_change() {
        assert_eq!(
            told(&[("gemm", 2.0), ("old", 1.0)], &[("gemm", 2.0), ("new", 9.0)]),
            (Unit::Launch, Verdict::Same)
        );
        assert_eq!(told(&[("gemm", 2.0)], &[("conv", 2.0)]), (Unit::Launch, Verdict::NotComparable));
    }
}
