//! A compiled step calls Python on the host.
//!
//! # What it means
//! `jax.pure_callback`, `io_callback`, `jax.debug.callback`, `tf.py_function` and `tf.numpy_function` leave the compiled
//! program. It waits for the interpreter, data is copied there and back, and the compiler can neither fuse across the call
//! nor move it.
//!
//! # How it is detected
//! Such ops, or JAX's own frames around a callback, own at least {NOTABLE} of the step, in two steps or more. The finding
//! names the user's function if Python was traced. Callbacks of the input pipeline belong to `input-bound`. A fix saves at
//! most {GAIN} of their time and, on the host's processor, of the executor's work in proportion.
//!
//! # How to fix it
//! JAX: write the function in `jax.numpy`, or call it outside the jitted step, every hundred steps.
//!
//! TensorFlow and Keras: write it in TensorFlow ops, or move it into the input pipeline.
//!
//! # How to check
//! The op is gone from `stepscope ops PATH`.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{duration_ms, quoted, several};

use super::shared::{severity, total};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "host-callback",
    about: About::Cause,
    view: "ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("host_callback.rs"),
};

thresholds! {
    /// A step without the callback does not need its time.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let callbacks = &facts.callbacks;
    let mut claims = facts.owned_over(&callbacks.shares, callbacks.steps);
    let ms = total(&claims);
    let step = facts.summary.length_ms();
    if step <= 0.0 || ms / step < NOTABLE || !callbacks.recurrence.recurs() {
        return None;
    }
    let compute = facts.ms(Category::Compute);
    if !facts.on_device()
        && compute > 0.0
        && !claims.iter().any(|(category, _)| *category == Category::Dispatch)
    {
        claims.push((Category::Dispatch, facts.ms(Category::Dispatch) * (ms / compute).min(1.0)));
    }
    let op = callbacks.op().unwrap_or_default().to_owned();
    let function = callbacks.function().map(str::to_owned);
    let line = function.clone();
    let calls_per_step = callbacks.calls as f64 / callbacks.steps.max(1) as f64;
    let subject = function.clone().or_else(|| Some(op.clone()));
    let cause = Callback { op, function, calls_per_step, ms };
    let finding = Finding::new(&RULE, severity(ms / step), cause, facts.framework())
        .owning(claims, Some(GAIN))
        .in_steps(callbacks.recurrence)
        .sure(0.9);
    Some(finding.about(subject).at_line(line))
}

/// Python that a compiled program calls.
#[derive(Clone, Debug)]
pub struct Callback {
    /// By which op, e.g. `pure_callback`.
    pub op: String,
    /// The user's function, if a Python tracer saw it.
    pub function: Option<String>,
    /// How many calls per step.
    pub calls_per_step: f64,
    /// Milliseconds per step inside them.
    pub ms: f64,
}

impl Cause for Callback {
    fn words(&self, finding: &Finding) -> Words {
        let what =
            self.function.as_deref().map_or(String::new(), |function| format!(" {}", quoted(function)));
        Words {
            summary: format!(
                "Host callback: the compiled step calls Python{what} through {}, which takes {}.",
                quoted(&self.op),
                finding.owned(self.ms)
            ),
            evidence: vec![format!(
                "{} per step, {} per step in total.",
                several(self.calls_per_step, "call", "calls"),
                duration_ms(self.ms)
            )],
            advice: without(finding.framework),
        }
    }
}

fn without(framework: Framework) -> Vec<String> {
    match framework {
        Framework::Jax => lines([
            "Write the function in `jax.numpy`, so that it is compiled with the step.",
            "If it has to stay in Python, call it outside the jitted step and pass in the result, or call it every \
             hundred steps. To log, return the value and print it outside; `jax.debug.print` is a callback too.",
        ]),
        Framework::TensorFlow | Framework::Keras => lines([
            "Write the function in TensorFlow ops: `tf.py_function` and `tf.numpy_function` leave the graph for the \
             interpreter, one call at a time.",
            "If it has to stay in Python, do it in the input pipeline, or outside the `@tf.function` every hundred \
             steps.",
        ]),
        Framework::PyTorch | Framework::Unknown => {
            lines(["Write the function in ops of the framework, or call it outside the compiled step."])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        let (op, function) = ("pure_callback".to_owned(), Some("train.py:61 slow".to_owned()));
        speaks(&RULE, Callback { op, function, calls_per_step: 1.0, ms: 30.0 });
    }
}
