//! Loops inside compiled programs spend their time between iterations.
//!
//! # What it means
//! A `while` loop of XLA (`jax.lax.scan`, `fori_loop`, `while_loop`) costs a little per iteration: it evaluates the condition,
//! starts the body, and on GPUs may read the condition back. If bodies are short, that adds up.
//!
//! # How it is detected
//! Loops spend at least {NOTABLE} of the step outside of their bodies: in the loop itself and in its condition. That is less
//! than {LONG} per iteration: with more, the loop waits for something else. A fix saves at most {GAIN} of it: with ten
//! iterations unrolled into one, a tenth is left.
//!
//! # How to fix it
//! JAX: `jax.lax.scan(..., unroll=8)`; do more per iteration; `vmap` instead of a loop where iterations do not depend on one
//! another.
//!
//! # How to check
//! `stepscope hlo ops PATH --filter while` shows less time in the loop itself.

use std::collections::BTreeMap;

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::programs::{ProgramKey, ProgramOp};
use stepscope_text::{duration_ms, number};

use super::shared::programs::lines_of;
use super::shared::{of_step, severity};
use crate::facts::{Facts, ProgramPart};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;

/// The rule.
pub static RULE: Rule = Rule {
    id: "loop-overhead",
    about: About::Cause,
    view: "hlo_ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("loop_overhead.rs"),
};

thresholds! {
    /// Starting a body takes a few microseconds on processors, and tens of them on GPUs.
    LONG: Microseconds = 100.0;
    /// With ten iterations in one, a tenth of the overhead is left.
    GAIN: Share = 0.90;
}

/// Time outside of bodies, and how often bodies ran.
#[derive(Default)]
struct Loops {
    overhead_ms: f64,
    iterations: u64,
}

fn is_loop(op: &ProgramOp) -> bool {
    op.facts.known && (op.facts.opcode == "while" || op.facts.in_condition)
}

fn check(facts: &Facts) -> Option<Finding> {
    let mut programs: BTreeMap<&ProgramKey, Loops> = BTreeMap::new();
    for op in facts.programs.ops.iter().filter(|op| is_loop(op)) {
        let loops = programs.entry(&op.program).or_default();
        loops.overhead_ms += op.totals.own.ms();
        if op.facts.in_condition {
            // The condition is evaluated once more than the body.
            loops.iterations = loops.iterations.max(op.totals.executions);
        }
    }
    let short =
        |loops: &Loops| loops.iterations > 0 && loops.overhead_ms * 1e3 < LONG * loops.iterations as f64;
    programs.retain(|_, loops| short(loops));
    let counts = |op: &ProgramOp| is_loop(op) && programs.contains_key(&op.program);
    let part = facts.program_part(|op| counts(op).then(|| GAIN * op.totals.own.ms()))?;
    let owned = of_step(facts, part.ms);
    (owned >= NOTABLE).then(|| {
        let iterations: u64 = programs.values().map(|loops| loops.iterations).sum();
        let overhead: f64 = programs.values().map(|loops| loops.overhead_ms).sum();
        let per_step = facts.programs.window.per_step(iterations as f64);
        let claims = vec![(Category::Compute, part.ms)];
        let cause = BetweenIterations { part, per_step, each_ms: overhead / iterations.max(1) as f64 };
        Finding::new(&RULE, severity(owned), cause, facts.framework()).owning(claims, Some(GAIN)).sure(0.7)
    })
}

/// Time between iterations.
#[derive(Clone, Debug)]
pub struct BetweenIterations {
    /// Loops and their conditions.
    pub part: ProgramPart,
    /// Iterations per step; `None` without steps.
    pub per_step: Option<f64>,
    /// Milliseconds per iteration outside of the body.
    pub each_ms: f64,
}

impl Cause for BetweenIterations {
    fn words(&self, finding: &Finding) -> Words {
        let often = self
            .per_step
            .map_or(String::new(), |count| format!(" {} iterations run per step.", number(count)));
        let mut evidence =
            vec![format!("Each iteration takes {} outside of its body.{often}", duration_ms(self.each_ms))];
        evidence.extend(lines_of(&self.part.largest));
        let unroll = match finding.framework {
            Framework::Jax => "Unroll the loop: `jax.lax.scan(body, init, xs, unroll=8)`.",
            _ => "Unroll the loop: several iterations per pass.",
        };
        Words {
            summary: format!(
                "Loop overhead: loops of compiled programs spend {} between iterations.",
                finding.owned(self.part.ms)
            ),
            evidence,
            advice: vec![
                unroll.to_owned(),
                "Do more per iteration, or all of them at once where they do not depend on one another."
                    .to_owned(),
            ],
        }
    }

    fn refines(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::work::programs::{OpFacts, Programs};

    use super::*;
    use crate::rules::shared::programs::{sample, testing};
    use crate::rules::testing::speaks;

    fn found(share: f64, iterations: u64) -> bool {
        let facts = OpFacts { opcode: "while".to_owned(), container: true, ..OpFacts::default() };
        let body = testing::op("while.1", share, facts);
        let mut condition =
            testing::op("compare.1", 0.0, OpFacts { in_condition: true, ..OpFacts::default() });
        condition.totals.executions = iterations;
        let ops = vec![body, condition];
        check(&testing::facts(Programs { ops, ..Programs::default() })).is_some()
    }

    #[test]
    fn many_short_iterations_are_overhead_and_few_long_ones_are_not() {
        // A step of 100 ms, ten times: 110 ms in total.
        assert!(found(0.11, 1_101));
        assert!(!found(0.11, 1_099), "100 µs per iteration: it waits for something else");
        assert!(!found(0.09, 100_000), "too little of the step");
        assert!(!found(0.5, 0), "nobody knows how often it ran");
    }

    #[test]
    fn it_speaks() {
        for per_step in [None, Some(1_000.0)] {
            speaks(&RULE, BetweenIterations { part: sample(), per_step, each_ms: 0.012 });
        }
    }
}
