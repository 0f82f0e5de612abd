//! Framework overhead fills the step although ops run inside compiled functions.
//!
//! # What it means
//! Typical of small models: the executor costs a few microseconds per op, whatever the op does.
//!
//! # How it is detected
//! `dispatch` owns at least {DISPATCH} of the step, and neither `eager-dispatch` nor waiting for the interpreter lock
//! (`input-bound`, `host-python`) explains it. A fix saves at most {GAIN} of
//! this time. What stands out in single steps does not count: a checkpoint or a new epoch is not the cost of the ops. If one
//! call from Python takes most of it, such as `tf.constant` of a large array, the finding names it. If the input pipeline
//! runs Python in other threads for at least {MOST} of it, the finding says so, because only one thread runs Python at a
//! time. If a loop inside the step (`tf.map_fn`, `jax.lax.scan`) runs at least {MOST} of the ops, the finding names the loop:
//! written for all elements at once, each op runs once instead of once per round, so that its own time goes away, too.
//!
//! # How to fix it
//! Do more work per call. Larger batches always help.
//!
//! Keras: `model.compile(..., steps_per_execution=16)`, `jit_compile=True`.
//!
//! TensorFlow: several steps inside one `@tf.function`, `jit_compile=True`.
//!
//! A loop inside the step: `tf.vectorized_map` or ops on the whole batch instead of `tf.map_fn`, `jax.vmap` instead of
//! `jax.lax.scan` over samples. A recurrence that cannot be vectorised gets cheaper with `jit_compile=True` or `unroll`.
//!
//! JAX: `jax.lax.scan` over several steps, `donate_argnums`.
//!
//! PyTorch: `torch.compile(mode="reduce-overhead")`, a fused optimizer.
//!
//! # How to check
//! `dispatch` drops.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{decimal, duration_ms, quoted, share};

use super::eager_dispatch;
use super::input_bound::locked_ms;
use super::shared::of_step;
use crate::facts::{Facts, InnerLoop, ModelOps};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "dispatch-bound",
    about: About::Habits,
    view: "ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("dispatch_bound.rs"),
};

thresholds! {
    /// Some dispatch is part of every step; a fifth of it is more than a well-fed loop shows.
    DISPATCH: Share = 0.20;
    /// A call that does more work still has to be dispatched.
    GAIN: Share = 0.90;
    /// A call with this share of the overhead is the reason for it; so may be what runs at the same time.
    MOST: Share = 0.50;
}

fn check(facts: &Facts) -> Option<Finding> {
    // What a checkpoint or a new epoch dispatches is not the cost of the ops.
    let ms = facts.own_ms(Category::Dispatch).min(facts.usual_ms(Category::Dispatch));
    if of_step(facts, ms) < DISPATCH || locked_ms(facts).is_some() {
        return None;
    }
    let ops_per_step = facts.get::<ModelOps>().0.iter().map(|op| op.count_per_step).sum();
    let longest = facts.eager.longest_call().filter(|(_, call_ms)| *call_ms >= MOST * ms);
    let call = longest.map(|(name, ms)| (name.to_owned(), ms));
    // Overhead that exceeds the work is the bottleneck; less of it may be hidden behind other threads.
    let confidence = if ms > facts.ms(Category::Compute) { 0.75 } else { 0.6 };
    let subject = call.as_ref().map(|(name, _)| name.clone());
    let callbacks = &facts.callbacks;
    let beside = callbacks.beside.get(Category::Dispatch).ms() / callbacks.steps.max(1) as f64;
    let beside_python = (beside >= MOST * ms).then_some(beside.min(ms));
    let inner =
        InnerLoop::of(&facts.ops, &facts.graph_loops).filter(|inner| inner.ops >= MOST && call.is_none());
    let (claims, gain) = claims(facts, ms, inner.as_ref());
    let subject = subject.or_else(|| inner.as_ref().map(|inner| inner.name.clone()));
    let cause = OpOverhead { ms, ops_per_step, call, beside_python, inner, single_batches: single(facts) };
    let finding = Finding::new(&RULE, Severity::Warning, cause, facts.framework());
    // Many eager ops are the better reason.
    let finding = finding.yielding_to(&eager_dispatch::RULE);
    Some(finding.owning(claims, Some(gain)).sure(confidence).about(subject))
}

/// What goes away, and which share of it at most. Without the rounds of a loop, the ops of all rounds but one go away.
fn claims(facts: &Facts, ms: f64, inner: Option<&InnerLoop>) -> (Vec<(Category, f64)>, f64) {
    let Some(inner) = inner.filter(|_| !facts.on_device()) else {
        return (vec![(Category::Dispatch, ms)], GAIN);
    };
    let ops = facts.ms(Category::Compute) * inner.time;
    (vec![(Category::Dispatch, ms), (Category::Compute, ops)], 1.0 - 1.0 / inner.rounds.max(2.0))
}

/// Whether Keras is called batch by batch: `steps_per_execution` is for `fit` alone.
fn single(facts: &Facts) -> bool {
    let calls = |name: &str| facts.functions.rows.iter().any(|function| function.name == name);
    calls("one_step_on_data") && !calls("one_step_on_iterator") && !calls("multi_step_on_iterator")
}

/// The framework's work around ops.
#[derive(Clone, Debug)]
pub struct OpOverhead {
    /// Milliseconds per step.
    pub ms: f64,
    /// Ops per step.
    pub ops_per_step: f64,
    /// The call from Python that takes most of it, if it is neither an op nor a compiled function, with its milliseconds
    /// per step.
    pub call: Option<(String, f64)>,
    /// Milliseconds per step of it in which the input pipeline runs Python, if that is most of it.
    pub beside_python: Option<f64>,
    /// The loop inside the step that runs most of the ops.
    pub inner: Option<InnerLoop>,
    /// Keras gets one batch per call, as by `train_on_batch`.
    pub single_batches: bool,
}

impl Cause for OpOverhead {
    fn words(&self, finding: &Finding) -> Words {
        let mut evidence = Vec::new();
        if let Some((call, ms)) = &self.call {
            evidence.push(format!("{}: {} per step.", quoted(call), duration_ms(*ms)));
        } else if self.ops_per_step >= 1.0 {
            let each = duration_ms(self.ms / self.ops_per_step);
            evidence.push(format!(
                "Ops per step: {}, each with {each} of overhead.",
                decimal(self.ops_per_step, 0)
            ));
        }
        evidence.extend(self.beside_python.map(|ms| {
            format!(
                "For {} of it, the input pipeline runs Python in other threads. While they hold the interpreter lock, \
                 calls of the loop wait.",
                duration_ms(ms)
            )
        }));
        evidence.extend(self.inner.as_ref().map(|inner| {
            format!(
                "{} of the ops are rounds of the loop {} inside the step: {} rounds per step.",
                share(inner.ops),
                quoted(&inner.name),
                decimal(inner.rounds, 0)
            )
        }));
        let most =
            self.call.as_ref().map_or(String::new(), |(call, _)| format!(", most of it in {}", quoted(call)));
        Words {
            summary: match &self.inner {
                Some(inner) => format!(
                    "Dispatch-bound: a loop inside the step ({}) runs small ops one by one; with their overhead they take \
                     {}.",
                    label(&inner.name, finding.framework),
                    finding.owned(self.ms)
                ),
                None => format!("Dispatch-bound: framework overhead takes {}{most}.", finding.owned(self.ms)),
            },
            evidence,
            advice: match &self.call {
                _ if self.beside_python.is_some() => without_python(finding.framework),
                Some((call, _)) => once(call, finding.framework),
                None => match &self.inner {
                    Some(inner) => without_rounds(inner, finding.framework),
                    None if self.single_batches && finding.framework == Framework::Keras => single_batches(),
                    None => more_per_call(finding.framework),
                },
            },
        }
    }
}

/// How to free the interpreter from the pipeline.
fn without_python(framework: Framework) -> Vec<String> {
    match framework {
        Framework::TensorFlow | Framework::Keras => lines([
            "Replace the Python in the pipeline (`tf.py_function`, `tf.numpy_function`, a generator) by TensorFlow ops: \
             these run without the interpreter lock.",
            "If it has to stay Python, run it in other processes: prepare the data offline, or read it through the \
             `tf.data` service.",
        ]),
        _ => lines([
            "Run the Python of the input pipeline in other processes, which have an interpreter lock of their own.",
        ]),
    }
}

/// A call that is made in each step: mostly data that is converted to a tensor each time.
fn once(call: &str, framework: Framework) -> Vec<String> {
    let deliver = match framework {
        Framework::TensorFlow | Framework::Keras => {
            "Let `tf.data` deliver batches as tensors: `tf.data.Dataset.from_tensor_slices(arrays).batch(n).prefetch(2)`."
        }
        Framework::Jax => {
            "Copy batches ahead of the step: `jax.device_put(next_batch)` before the current step ends."
        }
        Framework::PyTorch => {
            "Let a `DataLoader` deliver batches as tensors: `torch.from_numpy(array)` does not copy."
        }
        Framework::Unknown => "Let the input pipeline deliver batches as tensors.",
    };
    vec![
        format!("Call {} once, outside the loop, for data that stays the same.", quoted(call)),
        deliver.to_owned(),
    ]
}

/// How the user knows a loop: TensorFlow names the scope of `tf.map_fn` `map`.
fn label(name: &str, framework: Framework) -> String {
    let tensorflow = matches!(framework, Framework::TensorFlow | Framework::Keras);
    quoted(match name.split('_').next().filter(|_| tensorflow) {
        Some("map") => "tf.map_fn",
        Some("scan") => "tf.scan",
        _ => name,
    })
}

/// How to get rid of the rounds of a loop inside the step.
fn without_rounds(inner: &InnerLoop, framework: Framework) -> Vec<String> {
    match (framework, inner.maps) {
        (Framework::Jax, _) => lines([
            "If the rounds do not depend on each other, vectorise them: `jax.vmap(f)(xs)`, or write the function for the \
             whole array, instead of `jax.lax.scan`, `lax.map` or `fori_loop`.",
            "If each round needs the one before, do more per round: `jax.lax.scan(..., unroll=8)`.",
        ]),
        (Framework::PyTorch | Framework::Unknown, _) => lines([
            "If the rounds do not depend on each other, vectorise the loop: write it for all elements at once.",
        ]),
        (_, true) => lines([
            "Vectorise the loop: write the function for the whole batch (`tf.linalg.matmul`, `tf.einsum`, broadcasting), or \
             replace `tf.map_fn(f, xs)` by `tf.vectorized_map(f, xs)`.",
            "If it has to stay a loop, fuse the ops of a round: `@tf.function(jit_compile=True)`.",
        ]),
        (_, false) => lines([
            "If the rounds do not depend on each other, vectorise the loop: write it for all elements at once, or use \
             `tf.vectorized_map`.",
            "If each round needs the one before, fuse the ops of a round with `@tf.function(jit_compile=True)`, or unroll \
             short sequences (`unroll=True` in Keras).",
        ]),
    }
}

/// Keras, called batch by batch.
fn single_batches() -> Vec<String> {
    lines([
        "Let Keras run the loop: `model.compile(..., steps_per_execution=16)` and `model.fit(ds)` instead of a call of \
         `train_on_batch` per batch.",
        "Fuse the ops: `model.compile(..., jit_compile=True)`. Or use larger batches.",
    ])
}

fn more_per_call(framework: Framework) -> Vec<String> {
    match framework {
        Framework::Keras => lines([
            "Run several batches per call: `model.compile(..., steps_per_execution=16)`.",
            "Fuse the ops: `model.compile(..., jit_compile=True)`. Or use larger batches.",
        ]),
        Framework::TensorFlow => lines([
            "Run several steps per call: a loop `for batch in ds.take(16):` inside the `@tf.function`.",
            "Fuse the ops: `@tf.function(jit_compile=True)`. Or use larger batches.",
        ]),
        Framework::Jax => lines([
            "Run several steps per call: `jax.lax.scan(step, state, batches)` inside `jax.jit`. Or use larger batches.",
            "Pass few arrays: put parameters and state into one pytree that is donated, \
             `jax.jit(step, donate_argnums=0)`.",
        ]),
        Framework::PyTorch => lines([
            "Compile the model: `torch.compile(model, mode=\"reduce-overhead\")`. Or use larger batches.",
            "Update all parameters at once: `torch.optim.AdamW(..., fused=True)`.",
        ]),
        Framework::Unknown => lines(["Do more work per call: larger batches, or several steps at once."]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{speaks, words};

    fn overhead() -> OpOverhead {
        OpOverhead {
            ms: 3.0,
            ops_per_step: 40.0,
            call: None,
            beside_python: None,
            inner: None,
            single_batches: false,
        }
    }

    fn inner(name: &str, maps: bool) -> Option<InnerLoop> {
        Some(InnerLoop { name: name.to_owned(), maps, rounds: 64.0, ops: 0.9, time: 0.8 })
    }

    #[test]
    fn it_speaks() {
        speaks(&RULE, overhead());
        speaks(&RULE, OpOverhead { call: Some(("constant".into(), 2.0)), ..overhead() });
        speaks(&RULE, OpOverhead { beside_python: Some(2.5), ..overhead() });
        speaks(&RULE, OpOverhead { inner: inner("map", true), ..overhead() });
        speaks(&RULE, OpOverhead { inner: inner("lstm", false), ..overhead() });
        speaks(&RULE, OpOverhead { single_batches: true, ..overhead() });
    }

    #[test]
    fn a_loop_inside_the_step_is_vectorised_instead_of_put_into_another() {
        let said = |inner| words(&RULE, OpOverhead { inner, ..overhead() }, Framework::TensorFlow);
        let plain = said(None);
        assert!(plain.advice[0].contains("several steps per call"), "{plain:?}");
        let map = said(inner("map", true));
        assert!(map.summary.contains("tf.map_fn") && map.advice[0].contains("Vectorise"), "{map:?}");
        assert!(!map.advice.join(" ").contains("ds.take"), "{map:?}");
    }

    #[test]
    fn steps_per_execution_is_for_fit_alone() {
        let single = OpOverhead { single_batches: true, ..overhead() };
        let advice = words(&RULE, single, Framework::Keras).advice.join(" ");
        assert!(advice.contains("model.fit"), "{advice}");
    }
}
