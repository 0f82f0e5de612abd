//! The backward pass computes again what the forward pass did not keep.
//!
//! # What it means
//! `jax.checkpoint` trades time for memory: activations are dropped and computed again. Where memory is left, keeping some of
//! them makes the step shorter.
//!
//! # How it is detected
//! Instructions that JAX marks as recomputation (`rematted_computation`) take at least {NOTABLE} of the step. If the device's
//! memory and the program's peak are known, the finding says how much memory is left; if less than {ROOM} of it is, the
//! recomputation is needed and there is no finding. A fix saves all of the time at most ({GAIN}).
//!
//! # How to fix it
//! Keep what is dear to compute and small to store: `jax.checkpoint(f,
//! policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)`, or checkpoint fewer layers.
//!
//! # How to check
//! `stepscope hlo ops PATH --by phase` shows less `recompute`, and `stepscope hlo memory PATH` a higher peak.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::programs::{Phase, ProgramOp};
use stepscope_text::bytes;

use super::shared::programs::lines_of;
use super::shared::{of_step, severity};
use crate::facts::{Facts, ProgramPart};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;

/// The rule.
pub static RULE: Rule = Rule {
    id: "remat-cost",
    about: About::Cause,
    view: "hlo_ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("remat_cost.rs"),
};

thresholds! {
    /// With less memory left, keeping activations would not fit.
    ROOM: Share = 0.20;
    /// Without checkpoints, nothing is computed twice.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let again = |op: &ProgramOp| op.facts.known && op.facts.phase == Phase::Recompute;
    let part = facts.program_part(|op| again(op).then(|| op.totals.own.ms()))?;
    let owned = of_step(facts, part.ms);
    if owned < NOTABLE {
        return None;
    }
    let peaks = facts.programs.programs.iter().filter(|row| row.facts.runs > 0);
    let peak = peaks.filter_map(|row| row.facts.peak.as_ref()).map(|peak| peak.bytes).max();
    let room =
        facts.programs.capacity.zip(peak).map(|(all, peak)| Room { left: all.saturating_sub(peak), all });
    if room.is_some_and(|room| (room.left as f64) < ROOM * room.all as f64) {
        return None;
    }
    let ms = part.ms;
    let finding = Finding::new(&RULE, severity(owned), Again { part, room }, facts.framework());
    // Whether memory has room for it is unknown without the device's size.
    Some(finding.owning(vec![(Category::Compute, ms)], Some(GAIN)).sure(if room.is_some() {
        0.8
    } else {
        0.6
    }))
}

/// Memory that a program leaves.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// Bytes that are never used.
    pub left: u64,
    /// Bytes of the device.
    pub all: u64,
}

/// Work that is done twice.
#[derive(Clone, Debug)]
pub struct Again {
    /// The instructions.
    pub part: ProgramPart,
    /// Memory that is left; `None` if unknown.
    pub room: Option<Room>,
}

impl Cause for Again {
    fn words(&self, finding: &Finding) -> Words {
        let mut evidence = vec![match self.room {
            Some(room) => format!(
                "The programs leave {} of {} on the device unused.",
                bytes(room.left as f64),
                bytes(room.all as f64)
            ),
            None => "The profile does not say how much memory the device has.".to_owned(),
        }];
        evidence.extend(lines_of(&self.part.largest));
        let keep = match finding.framework {
            Framework::Jax => {
                "Keep the results of products, and recompute only the rest: `jax.checkpoint(f, \
                 policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable)`."
            }
            _ => "Keep the results of products, and recompute only the rest.",
        };
        Words {
            summary: format!(
                "Rematerialisation: computing activations again takes {}.",
                finding.owned(self.part.ms)
            ),
            evidence,
            advice: vec![
                keep.to_owned(),
                "Or checkpoint fewer layers; `stepscope hlo memory PATH --by source` shows what would be kept.".to_owned(),
            ],
        }
    }

    fn refines(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::work::programs::{
        OpFacts, ProgramFacts, ProgramKey, ProgramPeak, ProgramRow, Programs,
    };

    use super::*;
    use crate::rules::shared::programs::{sample, testing};
    use crate::rules::testing::speaks;

    fn found(share: f64, capacity: Option<u64>) -> Option<Finding> {
        let facts = OpFacts { phase: Phase::Recompute, ..OpFacts::default() };
        let peak = ProgramPeak { bytes: 80, ..ProgramPeak::default() };
        let row = ProgramRow {
            key: ProgramKey::default(),
            facts: ProgramFacts { runs: 1, peak: Some(peak), ..ProgramFacts::default() },
        };
        let ops = vec![testing::op("dot.1", share, facts)];
        check(&testing::facts(Programs { ops, capacity, programs: vec![row], ..Programs::default() }))
    }

    #[test]
    fn a_tenth_of_the_step_is_worth_a_word_where_memory_is_left() {
        assert!(found(0.101, None).is_some());
        assert!(found(0.099, None).is_none());
        assert!(found(0.5, Some(100)).is_some(), "a fifth is left");
        assert!(found(0.5, Some(99)).is_none(), "it would not fit");
    }

    #[test]
    fn it_speaks() {
        for room in [None, Some(Room { left: 5 << 30, all: 16 << 30 })] {
            speaks(&RULE, Again { part: sample(), room });
        }
    }
}
