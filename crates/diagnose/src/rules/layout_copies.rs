//! Compiled programs copy and transpose arrays instead of computing.
//!
//! # What it means
//! XLA inserts copies where two operations want the same array in different layouts, where an array is transposed or reshaped,
//! and where a buffer is still needed and may not be overwritten. They read and write whole arrays and compute nothing.
//!
//! # How it is detected
//! Instructions that only move data within one memory (`copy`, `transpose`, `reshape`, `bitcast-convert`, and fusions of
//! nothing else) take at least {NOTABLE} of the step. The finding tells changes of layout from copies of a buffer. A fix saves
//! all of their time at most ({GAIN}). From {SEVERE} of the step on, they are the verdict; on the host's processor, the
//! executor's work around them counts in proportion.
//!
//! # How to fix it
//! Changes of layout: keep one order of dimensions throughout (`NHWC` on TPUs and tensor cores), and put the contracted
//! dimension last, so that products need no transposed operand.
//!
//! Copies of a buffer: give arguments away that the step replaces (`jax.jit(step, donate_argnums=0)`).
//!
//! # How to check
//! `stepscope hlo ops PATH --by category` shows less `data formatting`.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::programs::{Movement, ProgramOp};
use stepscope_text::{plural, share};

use super::shared::programs::lines_of;
use super::shared::{of_step, severity};
use crate::facts::{Facts, ProgramPart};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::{NOTABLE, SEVERE};

/// The rule.
pub static RULE: Rule = Rule {
    id: "layout-copies",
    about: About::Cause,
    view: "hlo_ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("layout_copies.rs"),
};

thresholds! {
    /// A program in one layout that may overwrite its arguments needs none of them.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let moves = |op: &ProgramOp| op.facts.movement.filter(|movement| movement.is_within());
    let part = facts.program_part(|op| moves(op).map(|_| op.totals.own.ms()))?;
    let owned = of_step(facts, part.ms);
    if owned < NOTABLE {
        return None;
    }
    let duplicates = facts.program_part(|op| moves(op).filter(|it| *it == Movement::Duplicate).map(|_| 0.0));
    let duplicated = duplicates.map_or(0.0, |copies| copies.ms / part.ms);
    let (subject, ms) = (part.largest.first().map(|op| op.op.clone()), part.ms);
    let fills_step = owned >= SEVERE;
    let mut claims = vec![(Category::Compute, ms)];
    if fills_step && !facts.on_device() {
        claims.push((Category::Dispatch, facts.ms(Category::Dispatch) * part.share));
    }
    let cause = Copies { part, duplicated, fills_step };
    let finding = Finding::new(&RULE, severity(owned), cause, facts.framework()).about(subject);
    Some(finding.owning(claims, Some(GAIN)).sure(0.8))
}

/// Instructions that only move data.
#[derive(Clone, Debug)]
pub struct Copies {
    /// The instructions.
    pub part: ProgramPart,
    /// The share of their time that copies a buffer without changing its layout.
    pub duplicated: f64,
    /// Whether they take so much of the step that nothing else needs to be said first.
    pub fills_step: bool,
}

impl Cause for Copies {
    fn words(&self, finding: &Finding) -> Words {
        let count = plural(self.part.count as u64, "instruction only moves", "instructions only move");
        let kind = match self.duplicated {
            all if all >= 0.995 => "All of that copies buffers as they are.".to_owned(),
            none if none <= 0.005 => "All of that changes layouts.".to_owned(),
            part => {
                format!("{} of that time copies buffers as they are, the rest changes layouts.", share(part))
            }
        };
        let mut evidence = vec![format!("{count} data. {kind}")];
        evidence.extend(lines_of(&self.part.largest));
        let mut advice = Vec::new();
        if self.duplicated < 0.8 {
            advice.push(
                "Keep one order of dimensions from input to output, and put the dimension that a product sums over last."
                    .to_owned(),
            );
        }
        if self.duplicated > 0.2 {
            advice.push(
                match finding.framework {
                    Framework::Jax => {
                        "Let the step overwrite what it replaces: `jax.jit(step, donate_argnums=(0, 1))`."
                    }
                    _ => "Let the step overwrite the buffers that it replaces.",
                }
                .to_owned(),
            );
        }
        advice.push("List them: `stepscope hlo ops PATH --filter \"copy|transpose\"`.".to_owned());
        Words {
            summary: format!(
                "Layout copies: compiled programs move data without computing for {}.",
                finding.owned(self.part.ms)
            ),
            evidence,
            advice,
        }
    }

    fn refines(&self) -> bool {
        !self.fills_step
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::work::programs::{OpFacts, Programs};

    use super::*;
    use crate::rules::shared::programs::{sample, testing};
    use crate::rules::testing::speaks;

    fn found(share: f64, movement: Movement) -> Option<Finding> {
        let facts = OpFacts { movement: Some(movement), ..OpFacts::default() };
        let ops = vec![testing::op("copy.1", share, facts)];
        check(&testing::facts(Programs { ops, ..Programs::default() }))
    }

    #[test]
    fn a_tenth_of_the_step_is_worth_a_word_and_less_is_not() {
        assert!(found(0.101, Movement::Relayout).is_some());
        assert!(found(0.099, Movement::Relayout).is_none());
        let to_host = Movement::Between { from: 0, to: 5 };
        assert!(found(0.9, to_host).is_none(), "no change of layout");
    }

    #[test]
    fn what_fills_the_step_is_the_verdict_and_less_stands_behind_it() {
        let refines = |share| found(share, Movement::Duplicate).map(|finding| finding.cause.refines());
        assert_eq!((refines(0.29), refines(0.31)), (Some(true), Some(false)));
    }

    #[test]
    fn buffers_that_are_copied_as_they_are_ask_for_donation() {
        let advice = |movement| found(0.5, movement).map(|finding| finding.words().advice.concat());
        assert!(advice(Movement::Duplicate).is_some_and(|said| said.contains("overwrite")));
        assert!(advice(Movement::Relayout).is_some_and(|said| !said.contains("overwrite")));
    }

    #[test]
    fn it_speaks() {
        for duplicated in [0.0, 0.5, 1.0] {
            speaks(&RULE, Copies { part: sample(), duplicated, fills_step: duplicated > 0.4 });
        }
    }
}
