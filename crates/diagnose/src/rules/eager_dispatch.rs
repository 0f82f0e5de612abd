//! The loop starts ops one by one, and starting them costs more than running them.
//!
//! # What it means
//! Each op passes through Python and the framework's dispatcher on its own. A compiled function starts them all at once.
//!
//! # How it is detected
//! At least {EAGER_OPS} eager ops run per step, with or without a compiled step beside them, and the framework's overhead
//! together with the Python between the ops owns at least {SEVERE} of the step. In JAX each call of a compiled function
//! counts as one op: outside `jax.jit`, an op is such a function. If kernels are shorter than what starting them costs,
//! their time counts too: a compiler fuses such ops into few. A fix saves at most {GAIN} of this time.
//!
//! # How to fix it
//! TensorFlow: `@tf.function` around the step.
//!
//! Keras: no `run_eagerly=True`, no `tf.config.run_functions_eagerly(True)`.
//!
//! JAX: one `jax.jit` around the step.
//!
//! PyTorch: `torch.compile(model)`, a fused optimizer.
//!
//! # How to check
//! `dispatch` and `python` drop. `stepscope ops PATH` shows the ops inside functions.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{decimal, listed, quoted, short};

use super::shared::severity;
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Rule, doc_of, thresholds};
use crate::thresholds::SEVERE;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "eager-dispatch",
    about: About::Habits,
    view: "ops",
    check,
    thresholds: THRESHOLDS,
    source: doc_of!("eager_dispatch.rs"),
};

thresholds! {
    /// Fewer ops per step cannot add up.
    EAGER_OPS: Number = 20.0;
    /// Calling one compiled function costs next to nothing beside this many ops.
    GAIN: Share = 1.0;
}

/// Op types named.
const NAMED: usize = 3;

/// Python between ops, in milliseconds per step: it disappears with them.
pub(super) fn between(facts: &Facts) -> f64 {
    (facts.eager.between.ms() / facts.eager.steps.max(1) as f64).min(facts.ms(Category::Python))
}

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let steps = facts.eager.steps.max(1) as f64;
    let ops_per_step = facts.eager.ops as f64 / steps;
    let between = between(facts);
    let dispatch = facts.own_ms(Category::Dispatch);
    let overhead = dispatch + between;
    let step = facts.summary.length_ms();
    if ops_per_step < EAGER_OPS || step <= 0.0 || overhead / step < SEVERE {
        return None;
    }
    let kernels = (facts.eager.kernels.ms() / steps).min(facts.ms(Category::Compute));
    let mut claims = vec![(Category::Dispatch, dispatch), (Category::Python, between)];
    if kernels < overhead {
        claims.push((Category::Compute, kernels));
    }
    let mut types: Vec<(String, f64)> =
        facts.eager.types.iter().map(|(op, count)| (op.clone(), *count as f64 / steps)).collect();
    types.sort_by(|a, b| b.1.total_cmp(&a.1));
    types.truncate(NAMED);
    let cause = EagerOps {
        ops_per_step,
        us_per_op: overhead * 1e3 / ops_per_step,
        beside: facts.eager.compiled_step().map(str::to_owned),
        updates_per_step: facts.eager.updates() as f64 / steps,
        types,
    };
    let finding = Finding::new(&RULE, severity(overhead / step), cause, facts.framework());
    Some(finding.owning(claims, Some(GAIN)).sure(0.9))
}

/// Ops started one by one.
#[derive(Clone, Debug)]
pub struct EagerOps {
    /// How many per step.
    pub ops_per_step: f64,
    /// What starting one costs, in microseconds, Python included.
    pub us_per_op: f64,
    /// The compiled function that the loop calls beside them in about every step.
    pub beside: Option<String>,
    /// How many of them change variables, per step.
    pub updates_per_step: f64,
    /// The most frequent types, with how many per step.
    pub types: Vec<(String, f64)>,
}

impl Cause for EagerOps {
    fn words(&self, finding: &Finding) -> Words {
        let traces = matches!(finding.framework, Framework::TensorFlow | Framework::Keras);
        let compiled = self.beside.as_deref().filter(|_| traces);
        let updates = compiled.is_some() && self.updates_per_step >= 1.0;
        // What JAX starts is a compiled program, of one op or of several.
        let started = if finding.framework == Framework::Jax { "programs" } else { "ops" };
        let one = if finding.framework == Framework::Jax { "program" } else { "op" };
        let place = compiled.map_or(String::new(), |name| format!(" beside the compiled {}", quoted(name)));
        let mut evidence =
            vec![format!("Starting one {one} costs {} µs, Python included.", short(self.us_per_op))];
        if !self.types.is_empty() {
            let each = |(op, count): &(String, f64)| format!("{} ({} per step)", quoted(op), short(*count));
            let most: Vec<String> = self.types.iter().map(each).collect();
            evidence.push(format!("Most of them: {}.", listed(&most)));
        }
        if updates {
            evidence.push(format!(
                "{} of them per step change variables, as metrics and moving averages do.",
                short(self.updates_per_step)
            ));
        }
        Words {
            summary: format!(
                "Eager dispatch: {} {started} per step are started one by one{place}; starting them takes {}.",
                decimal(self.ops_per_step, 0),
                finding.owned(self.ops_per_step * self.us_per_op / 1e3)
            ),
            evidence,
            advice: match compiled {
                Some(function) => beside_a_function(function, updates),
                None => compile(finding.framework),
            },
        }
    }
}

fn compile(framework: Framework) -> Vec<String> {
    match framework {
        Framework::TensorFlow => lines([
            "Put the step into one function: `@tf.function` on the function that computes loss and gradients.",
            "Check that nothing switches functions off: `tf.config.run_functions_eagerly(False)`.",
        ]),
        Framework::Keras => lines([
            "Let Keras run its compiled step: `model.compile(..., run_eagerly=False)` and no \
             `tf.config.run_functions_eagerly(True)`.",
            "In a loop of your own, put the step into one function with `@tf.function`.",
        ]),
        Framework::Jax => lines([
            "Put the whole step under one `jax.jit`: ops outside of it are compiled and started one by one.",
            "Replace a Python loop over small calls by `jax.lax.scan` or `jax.vmap` inside it.",
        ]),
        Framework::PyTorch => lines([
            "Compile the model: `model = torch.compile(model)`; for many tiny ops \
             `torch.compile(model, mode=\"reduce-overhead\")`.",
            "Update all parameters at once: `torch.optim.AdamW(..., fused=True)`.",
        ]),
        Framework::Unknown => lines(["Run the step as one compiled function instead of op by op."]),
    }
}

/// The step is compiled already: what is not are metrics, losses and logs around it.
fn beside_a_function(function: &str, updates: bool) -> Vec<String> {
    let what = if updates { "metrics (`metric.update_state(...)`)" } else { "what follows it" };
    vec![
        format!(
            "Move {what} into the compiled {}: ops outside of it are started one by one.",
            quoted(function)
        ),
        "Read metrics (`metric.result()`) only when you log, every hundred steps.".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        let cause = EagerOps {
            ops_per_step: 1_800.0,
            us_per_op: 14.0,
            beside: None,
            updates_per_step: 0.0,
            types: vec![("Tanh".to_owned(), 600.0)],
        };
        speaks(&RULE, cause.clone());
        speaks(&RULE, EagerOps { beside: Some("train_step".into()), updates_per_step: 3.0, ..cause });
    }
}
