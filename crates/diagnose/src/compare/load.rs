//! How much of a difference the machine explains.
//!
//! An op that runs as often as before does the same work. If all such ops take longer by one factor, the machine is
//! busier or its clocks are lower, or the change touches every op; a change of the input, of Python or of one op does
//! not look like that. The factor is the weighted median over those ops, so that one op that really changed does not
//! move it.

use super::matching::{Match, OpDelta};

/// Fewer ops say nothing about the machine.
const LEAST_OPS: usize = 8;
/// An op runs as often as before if its number differs by less than this.
const SAME_COUNT: f64 = 0.02;
/// Shorter ops are mostly the recorder's own cost, in milliseconds per step.
const LEAST_MS: f64 = 0.005;

/// What the ops that did not change have in common.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Load {
    /// How many times longer they take in NEW.
    pub factor: f64,
    /// How far they differ from that, as the standard deviation of the logarithm.
    pub spread: f64,
    /// How many there are.
    pub ops: usize,
}

/// The factor that ops of both sides share; `None` where there are too few.
pub fn load(ops: &[OpDelta]) -> Option<Load> {
    let unchanged = |op: &&OpDelta| {
        op.matched == Match::Name
            && op.base_ms.min(op.new_ms) >= LEAST_MS
            && (op.new_count - op.base_count).abs() <= SAME_COUNT * op.base_count
    };
    let mut ratios: Vec<(f64, f64)> =
        ops.iter().filter(unchanged).map(|op| ((op.new_ms / op.base_ms).ln(), op.base_ms)).collect();
    if ratios.len() < LEAST_OPS {
        return None;
    }
    let middle = weighted_median(&mut ratios)?;
    let mut off: Vec<(f64, f64)> =
        ratios.iter().map(|(log, weight)| ((log - middle).abs(), *weight)).collect();
    let spread = 1.4826 * weighted_median(&mut off)?;
    Some(Load { factor: middle.exp(), spread, ops: ratios.len() })
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
        let busy = load(&ops).unwrap();
        assert!((1.5..1.62).contains(&busy.factor) && busy.spread < 0.05, "{busy:?}");
        ops.iter_mut().for_each(|op| op.new_ms = op.base_ms);
        ops.push(op(99, 1.0, 40.0, 10.0));
        assert_eq!(load(&ops).unwrap().factor, 1.0);
    }

    #[test]
    fn ops_that_run_more_often_and_a_handful_say_nothing() {
        let more: Vec<OpDelta> = (0..12).map(|i| op(i, 1.0, 2.0, 20.0)).collect();
        assert_eq!(load(&more), None);
        assert_eq!(load(&[op(1, 1.0, 2.0, 10.0)]), None);
    }
}
