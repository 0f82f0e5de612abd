//! A `tf.function` is traced repeatedly.
//!
//! # What it means
//! Each new combination of Python values, shapes and types builds a new graph, which costs many times the step.
//!
//! # How it is detected
//! `tracing` and `compile` own at least {REBUILDING} of the step, in two steps or more. The share of the time decides: one
//! tracing step in ten may take most of the time. If it happens in some steps only, the finding says in which, such as
//! every fourth. It names the function with its calls and traces, and says whether its arguments vary or it is recreated.
//! A fix saves at most {GAIN} of the tracing and of the compilation that follows.
//!
//! # How to fix it
//! TensorFlow and Keras: pass numbers as tensors (`tf.constant(n)`). If shapes vary, use
//! `@tf.function(reduce_retracing=True)` or an `input_signature` with `None`. Create the function once, outside the loop.
//!
//! # How to check
//! `stepscope functions PATH` shows one trace per function.

use stepscope_analyze::Category;

use super::shared::building::{self, BUILDING, Saying};
use super::shared::{is_jax, steps_with};
use crate::facts::{Facts, RebuiltFunction};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};

/// The rule.
pub static RULE: Rule = Rule {
    id: "retracing",
    about: About::Cause,
    view: "functions",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("retracing.rs"),
};

thresholds! {
    /// Steady steps neither trace nor compile. A tenth of the step means that it keeps happening.
    REBUILDING: Share = 0.10;
    /// A function that is built once costs nothing later.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.shares(&BUILDING);
    if is_jax(facts) || facts.share(Category::Tracing) <= 0.0 || share < REBUILDING {
        return None;
    }
    let recurrence = steps_with(facts, &BUILDING, REBUILDING);
    if !recurrence.recurs() {
        return None;
    }
    Some(building::found(facts, &RULE, recurrence, GAIN, |functions, steps| Retraced { functions, steps }))
}

/// Functions that are traced repeatedly.
#[derive(Clone, Debug)]
pub struct Retraced {
    /// Which, the worst first.
    pub functions: Vec<RebuiltFunction>,
    /// Steps in which a function was built.
    pub steps: usize,
}

impl Cause for Retraced {
    fn words(&self, finding: &Finding) -> Words {
        let saying = Saying { title: "Retracing", verb: "traced", times: |function| function.traces };
        building::words(finding, &self.functions, self.steps, saying)
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::vocabulary::Framework;

    use super::*;
    use crate::facts::Rebuilding;
    use crate::rules::testing::{speaks, words};

    fn retraced(why: Rebuilding) -> Retraced {
        let function = RebuiltFunction {
            name: "train_step".into(),
            calls: 12,
            traces: 12,
            compiles: 3,
            ms_per_step: 25.0,
            why,
        };
        Retraced { functions: vec![function], steps: 12 }
    }

    #[test]
    fn it_speaks() {
        speaks(&RULE, retraced(Rebuilding::ArgumentsVary));
        speaks(&RULE, retraced(Rebuilding::Unknown));
    }

    #[test]
    fn the_reason_for_building_again_decides_the_fix() {
        let varying = words(&RULE, retraced(Rebuilding::ArgumentsVary), Framework::TensorFlow);
        assert_eq!(
            varying.summary,
            "Retracing: `train_step` is traced in 12 of 12 calls, which takes 30.0 ms of 40.0 ms (75 %); its \
             arguments vary."
        );
        assert!(varying.advice[0].contains("train_step(x, tf.constant(n))"), "{}", varying.advice[0]);
        let recreated = words(&RULE, retraced(Rebuilding::Recreated), Framework::TensorFlow).advice.join(" ");
        assert!(recreated.contains("outside the loop") && !recreated.contains("tf.constant"), "{recreated}");
    }
}
