//! The loop sets up an input pipeline repeatedly.
//!
//! # What it means
//! `model.predict`, `model.evaluate` and `model.fit` create datasets, functions and an iterator in every call, and
//! `iter(dataset)` creates an iterator. For a single batch that costs many times the model's work.
//!
//! # How it is detected
//! The finding looks at steps that create an iterator (`MakeIterator`). It counts what their Python thread does from the
//! first op of the setup to the last: the functions that are traced for it, the first batch of the new iterator and its
//! release, without the model's functions in between. This owns at least {NOTABLE} of the step, in two steps or more. A
//! fix saves at most {GAIN} of it.
//!
//! # How to fix it
//! Keras: call the model directly (`model(x, training=False)` in a `@tf.function`), use `model.predict_on_batch(x)` or
//! `model.train_on_batch(x, y)`, or call `model.fit` once for all batches.
//!
//! TensorFlow: `it = iter(ds.repeat())` once, before the loop.
//!
//! # How to check
//! `dispatch` and `tracing` drop. `stepscope ops PATH` shows no `MakeIterator`.

use stepscope_analyze::vocabulary::Framework;
use stepscope_text::several;

use super::shared::{severity, total};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "setup-in-loop",
    about: About::Cause,
    view: "ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("setup_in_loop.rs"),
};

thresholds! {
    /// A pipeline that is set up before the loop costs the step nothing.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let setup = &facts.setup;
    let claims = facts.owned_over(&setup.shares, setup.steps);
    let ms = total(&claims);
    let step = facts.summary.length_ms();
    if step <= 0.0 || ms / step < NOTABLE || !setup.recurrence.recurs() {
        return None;
    }
    let cause = SetUp { iterators_per_step: setup.iterators as f64 / setup.steps.max(1) as f64, ms };
    let finding = Finding::new(&RULE, severity(ms / step), cause, facts.framework());
    Some(finding.owning(claims, Some(GAIN)).in_steps(setup.recurrence).sure(0.9))
}

/// Pipelines that are set up in the loop.
#[derive(Copy, Clone, Debug)]
pub struct SetUp {
    /// Iterators created per step.
    pub iterators_per_step: f64,
    /// Milliseconds per step.
    pub ms: f64,
}

impl Cause for SetUp {
    fn words(&self, finding: &Finding) -> Words {
        Words {
            summary: format!(
                "Set-up in the loop: the step sets up a new input pipeline and iterator, which takes {}.",
                finding.owned(self.ms)
            ),
            evidence: vec![format!(
                "{} created per step (`MakeIterator`).",
                several(self.iterators_per_step, "iterator is", "iterators are")
            )],
            advice: once(finding),
        }
    }
}

fn once(finding: &Finding) -> Vec<String> {
    let at_epochs = finding.recurrence.and_then(|often| often.every).filter(|every| *every > 1);
    match finding.framework {
        Framework::Keras if at_epochs.is_some() => lines([
            "If these are the ends of epochs, make epochs longer, because each one sets up its iterator again: `ds.repeat()` \
             and `model.fit(..., steps_per_epoch=1000)`.",
            "If `model.fit`, `model.evaluate` or `model.predict` is called in a loop, call it once for all batches, or \
             use `model.train_on_batch(x, y)` and `model.predict_on_batch(x)`.",
        ]),
        Framework::Keras => lines([
            "Call the model directly: `model(x, training=False)` in a `@tf.function`, or `model.predict_on_batch(x)`. \
             `model.predict`, `model.evaluate` and `model.fit` set up a new pipeline and iterator in every call.",
            "To train, call `model.fit` once for all batches, or `model.train_on_batch(x, y)` for each.",
            "For a dataset, create the iterator once, before the loop: `it = iter(ds.repeat())`, then `next(it)`.",
        ]),
        Framework::Jax | Framework::PyTorch | Framework::Unknown => lines([
            "Create the iterator once, before the loop: `it = iter(ds.repeat())`, then `next(it)` in each step.",
        ]),
        Framework::TensorFlow => lines([
            "Create the iterator once, before the loop: `it = iter(ds.repeat())`, then `next(it)` in each step.",
            "In Keras, `model.predict`, `model.evaluate` and `model.fit` set up a new iterator in every call: call the \
             model directly, or use `model.predict_on_batch(x)` and `model.train_on_batch(x, y)`.",
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, SetUp { iterators_per_step: 1.0, ms: 30.0 });
        speaks(&RULE, SetUp { iterators_per_step: 2.0, ms: 30.0 });
    }
}
