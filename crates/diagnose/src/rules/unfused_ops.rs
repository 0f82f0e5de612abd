//! Compiled programs run elementwise operations one by one that one fusion could do.
//!
//! # What it means
//! Each of them reads and writes whole arrays for one operation per element. XLA usually fuses them; something keeps it from
//! doing so here: a value that several operations use, a library call between them, or operations that are compiled apart.
//!
//! # How it is detected
//! Elementwise instructions that stand alone, also those that a fusion of one wraps, read what another one of the same size
//! wrote, or write for such ones only. The bytes in between, as a share of all bytes that they touch, say what fusing them
//! saves; that must be at least {NOTABLE} of the step. If they take {SEVERE} of the step and more, they are the verdict.
//!
//! # How to fix it
//! JAX: put the operations under one `jax.jit`, without `block_until_ready` or `jax.debug` calls between them.
//!
//! TensorFlow: `@tf.function(jit_compile=True)` around all of them.
//!
//! # How to check
//! `stepscope hlo ops PATH --by category` shows less `unfused elementwise`.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::programs::ProgramOp;
use stepscope_text::{plural, share};

use super::shared::programs::lines_of;
use super::shared::{of_step, severity};
use super::unfused_elementwise;
use crate::facts::{Facts, ProgramPart};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of};
use crate::thresholds::{NOTABLE, SEVERE};

/// The rule.
pub static RULE: Rule = Rule {
    id: "unfused-ops",
    about: About::Cause,
    view: "hlo_ops",
    check: Check::Profile(check),
    thresholds: &[],
    source: doc_of!("unfused_ops.rs"),
};

fn check(facts: &Facts) -> Option<Finding> {
    let saved = |op: &ProgramOp| {
        let (fusable, bytes) = (op.facts.fusable_bytes, op.facts.cost.bytes);
        (fusable > 0 && bytes > 0).then(|| op.totals.own.ms() * (fusable as f64 / bytes as f64).min(1.0))
    };
    let part = facts.program_part(saved)?;
    let owned = of_step(facts, part.ms * part.winnable);
    (owned >= NOTABLE).then(|| {
        let claims = vec![(Category::Compute, part.ms)];
        let (winnable, subject) = (part.winnable, part.largest.first().map(|op| op.op.clone()));
        let fills_step = of_step(facts, part.ms) >= SEVERE;
        Finding::new(&RULE, severity(owned), Unfused { part, fills_step }, facts.framework())
            .about(subject)
            .owning(claims, Some(winnable))
            .sure(0.7)
            .yielding_to(&unfused_elementwise::RULE)
    })
}

/// Elementwise instructions in a row.
#[derive(Clone, Debug)]
pub struct Unfused {
    /// The instructions.
    pub part: ProgramPart,
    /// Whether they take so much of the step that nothing else needs to be said first.
    pub fills_step: bool,
}

impl Cause for Unfused {
    fn words(&self, finding: &Finding) -> Words {
        let Unfused { part, .. } = self;
        let mut evidence = vec![format!(
            "{} one operation per element and pass the result on; {} of the bytes that they touch are in between.",
            plural(part.count as u64, "instruction does", "instructions do"),
            share(part.winnable)
        )];
        evidence.extend(lines_of(&part.largest));
        let fuse = match finding.framework {
            Framework::Jax => "Put all of them under one `jax.jit`: what is compiled together is fused.",
            Framework::TensorFlow | Framework::Keras => {
                "Compile all of them together: `@tf.function(jit_compile=True)` around the step."
            }
            _ => "Compile all of them together: what is compiled together is fused.",
        };
        Words {
            summary: format!(
                "Unfused ops: elementwise operations that one fusion could do take {}.",
                finding.owned(part.ms)
            ),
            evidence,
            advice: vec![
                fuse.to_owned(),
                "See what stands between them: `stepscope hlo show PATH MODULE:OP --radius 2`.".to_owned(),
            ],
        }
    }

    fn refines(&self) -> bool {
        !self.fills_step
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::work::programs::{Cost, OpFacts, Programs};

    use super::*;
    use crate::rules::shared::programs::{sample, testing};
    use crate::rules::testing::speaks;

    fn found(share: f64, fusable_bytes: u64) -> Option<Finding> {
        let cost = Cost { bytes: 200, ..Cost::default() };
        let facts = OpFacts { cost, fusable_bytes, ..OpFacts::default() };
        let ops = vec![testing::op("add.1", share, facts)];
        check(&testing::facts(Programs { ops, ..Programs::default() }))
    }

    #[test]
    fn what_fusing_saves_decides() {
        assert!(found(0.21, 100).is_some(), "half of a fifth");
        assert!(found(0.19, 100).is_none());
        assert!(found(0.9, 0).is_none(), "nothing to fuse with");
    }

    #[test]
    fn it_speaks() {
        for fills_step in [false, true] {
            speaks(&RULE, Unfused { part: sample(), fills_step });
        }
    }
}
