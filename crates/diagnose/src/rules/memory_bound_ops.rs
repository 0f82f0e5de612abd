//! Instructions of compiled programs run at the speed of the device's memory.
//!
//! # What it means
//! They do so little with each byte that the memory is the limit, and they come close to its peak. Faster arithmetic would not
//! help; touching fewer bytes would.
//!
//! # How it is detected
//! Instructions whose least time is that of their bytes, and which reach at least {REACHED} of the memory's peak, take at
//! least {SEVERE} of the step. A fix saves at most {GAIN} of their time: half the bytes, in 16 bits or through one fusion less.
//!
//! # How to fix it
//! Store activations and parameters in 16 bits; fuse more (fewer results that several operations read); larger batches for
//! products with few rows, which read all weights for each.
//!
//! # How to check
//! `stepscope hlo roofline PATH` shows fewer bytes for the same instructions.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::programs::{Bound, ProgramOp};
use stepscope_text::{prefixed, share};

use super::shared::programs::lines_of;
use super::shared::{of_step, severity};
use crate::facts::{Facts, ProgramPart};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::SEVERE;

/// The rule.
pub static RULE: Rule = Rule {
    id: "memory-bound-ops",
    about: About::Cause,
    view: "hlo_roofline",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("memory_bound_ops.rs"),
};

thresholds! {
    /// With less, something else than the memory's speed limits an instruction.
    REACHED: Share = 0.60;
    /// Half the bytes take half the time.
    GAIN: Share = 0.50;
}

fn check(facts: &Facts) -> Option<Finding> {
    let peaks = facts.programs.peaks.as_ref()?;
    let limited = |op: &ProgramOp| {
        let time = op.bound_time(peaks)?;
        (time.bound == Bound::Memory && time.efficiency >= REACHED).then_some(())
    };
    let part = facts.program_part(|op| limited(op).map(|()| GAIN * op.totals.own.ms()))?;
    let owned = of_step(facts, part.ms);
    (owned >= SEVERE).then(|| {
        let (claims, subject) =
            (vec![(Category::Compute, part.ms)], part.largest.first().map(|op| op.op.clone()));
        let cause = AtMemorySpeed { part, rate: peaks.memory };
        Finding::new(&RULE, severity(owned * GAIN), cause, facts.framework())
            .about(subject)
            .owning(claims, Some(GAIN))
            .sure(0.7)
    })
}

/// Instructions at the speed of memory.
#[derive(Clone, Debug)]
pub struct AtMemorySpeed {
    /// The instructions.
    pub part: ProgramPart,
    /// Bytes per second at the peak.
    pub rate: Option<f64>,
}

impl Cause for AtMemorySpeed {
    fn words(&self, finding: &Finding) -> Words {
        let mut evidence = vec![format!(
            "They reach at least {} of what the memory can do{}.",
            share(REACHED),
            self.rate.map_or(String::new(), |rate| format!(", {}B/s", prefixed(rate)))
        )];
        evidence.extend(lines_of(&self.part.largest));
        let halve = match finding.framework {
            Framework::Jax => "Halve the bytes: keep activations and parameters in `jnp.bfloat16`.",
            Framework::TensorFlow | Framework::Keras => {
                "Halve the bytes: `tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")`."
            }
            _ => "Halve the bytes: keep activations and parameters in 16 bits.",
        };
        Words {
            summary: format!(
                "Memory-bound ops: instructions at the speed of memory take {}.",
                finding.owned(self.part.ms)
            ),
            evidence,
            advice: vec![
                halve.to_owned(),
                "Read weights for more rows at once: larger batches shrink the bytes per example.".to_owned(),
                "See each of them: `stepscope hlo roofline PATH --sort time_ms`.".to_owned(),
            ],
        }
    }

    fn refines(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::work::programs::{Cost, OpFacts, Peaks, Programs};

    use super::*;
    use crate::rules::shared::programs::{sample, testing};
    use crate::rules::testing::speaks;

    /// One instruction that moves this many megabytes per millisecond, on a device that can move a thousand.
    fn found(share: f64, rate: f64) -> Option<Finding> {
        let bytes = (share * 100.0 * rate * 1e6) as u64;
        let cost = Cost { vector: 1, bytes, ..Cost::default() };
        let ops = vec![testing::op("fusion.1", share, OpFacts { cost, ..OpFacts::default() })];
        let peaks = Some(Peaks::given(Some(1e15), Some(1e12)));
        check(&testing::facts(Programs { ops, peaks, ..Programs::default() }))
    }

    #[test]
    fn only_what_comes_close_to_the_memory_s_peak_counts() {
        assert!(found(0.31, 610.0).is_some());
        assert!(found(0.31, 590.0).is_none(), "something else limits it");
        assert!(found(0.29, 900.0).is_none(), "too little of the step");
    }

    #[test]
    fn it_speaks() {
        for rate in [None, Some(1.6e12)] {
            speaks(&RULE, AtMemorySpeed { part: sample(), rate });
        }
    }
}
