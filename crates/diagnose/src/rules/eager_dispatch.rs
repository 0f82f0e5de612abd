//! The loop starts ops one by one, and starting them costs more than running them.
//!
//! # What it means
//! Each op passes through Python and the framework's dispatcher on its own. A compiled function starts them all at once.
//!
//! # How it is detected
//! At least {EAGER_OPS} eager ops run per step, with or without a compiled step beside them, and the framework's overhead
//! together with the Python between the ops owns at least {SEVERE} of the step. In JAX each call of a compiled function
//! counts as one op: outside `jax.jit`, an op is such a function. If kernels are shorter than what starting them costs,
//! their time counts too: a compiler fuses such ops into few. PyTorch's ops on the host's processor contain their own
//! overhead, at least {OP_START} each. If they are short (at most 100 µs without the ops inside them), their whole time
//! counts for the promise: one op on all the data replaces them. A fix saves at most {GAIN} of this time.
//!
//! # How to fix it
//! TensorFlow: `@tf.function` around the step.
//!
//! Keras: no `run_eagerly=True`, no `tf.config.run_functions_eagerly(True)`.
//!
//! JAX: one `jax.jit` around the step.
//!
//! PyTorch: one op on the whole batch or sequence instead of a Python loop (`nn.LSTM` instead of `nn.LSTMCell`),
//! `torch.compile(model)`, a fused optimizer.
//!
//! # How to check
//! `dispatch` and `python` drop. `stepscope ops PATH` shows the ops inside functions.

use stepscope_analyze::Category;
use stepscope_analyze::time::optimizer::Updating;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{decimal, duration_ms, listed, quoted, short};

use super::shared::ops::joined_update;
use super::shared::{of_step, severity};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::{NOTABLE, SEVERE};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "eager-dispatch",
    about: About::Habits,
    view: "ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("eager_dispatch.rs"),
};

thresholds! {
    /// Fewer ops per step cannot add up.
    EAGER_OPS: Number = 20.0;
    /// No op of PyTorch costs less, whatever it does: dispatcher, autograd and allocation.
    OP_START: Microseconds = 1.0;
    /// Calling one compiled function costs next to nothing beside this many ops.
    GAIN: Share = 1.0;
}

/// Op types named.
const NAMED: usize = 3;

/// Python between ops, in milliseconds per step: it disappears with them.
pub(super) fn between(facts: &Facts) -> f64 {
    (facts.eager.between.ms() / facts.eager.steps.max(1) as f64).min(facts.ms(Category::Python))
}

/// Short ops of PyTorch on the host's processor: milliseconds per step inside them, and the least of it that is overhead.
fn short_ops(facts: &Facts) -> (f64, f64) {
    if facts.on_device() {
        return (0.0, 0.0);
    }
    let steps = facts.eager.steps.max(1) as f64;
    let inside = (facts.eager.short_ops.ms() / steps).min(facts.ms(Category::Compute));
    (inside, inside.min(facts.eager.all_ops as f64 / steps * OP_START / 1e3))
}

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let steps = facts.eager.steps.max(1) as f64;
    let ops_per_step = facts.eager.ops as f64 / steps;
    let between = between(facts);
    let dispatch = facts.own_ms(Category::Dispatch);
    let (inside, starting) = short_ops(facts);
    let overhead = dispatch + between + starting;
    let step = facts.summary.length_ms();
    if ops_per_step < EAGER_OPS || step <= 0.0 || overhead / step < SEVERE {
        return None;
    }
    let kernels = (facts.eager.kernels.ms() / steps).min(facts.ms(Category::Compute));
    let mut claims = vec![(Category::Dispatch, dispatch), (Category::Python, between)];
    claims.push((Category::Compute, if kernels < overhead { inside.max(kernels) } else { inside }));
    claims.retain(|(_, ms)| *ms > 0.0);
    let mut types: Vec<(String, f64)> =
        facts.eager.types.iter().map(|(op, count)| (op.clone(), *count as f64 / steps)).collect();
    let rank = |(op, count): &(String, f64)| if *count >= EAGER_OPS { tells(op) } else { 0 };
    types.sort_by(|a, b| rank(b).cmp(&rank(a)).then(b.1.total_cmp(&a.1)));
    types.truncate(NAMED);
    let cause = EagerOps {
        ops_per_step,
        us_per_op: overhead * 1e3 / ops_per_step,
        inside_ms: inside,
        optimizer: one_by_one(facts),
        beside: facts.eager.compiled_step().map(str::to_owned),
        updates_per_step: facts.eager.updates() as f64 / steps,
        types,
    };
    let finding = Finding::new(&RULE, severity(overhead / step), cause, facts.framework());
    Some(finding.owning(claims, Some(GAIN)).sure(0.9))
}

/// The optimizer that starts a notable part of the ops, parameter by parameter.
fn one_by_one(facts: &Facts) -> Option<Looped> {
    let updates = &facts.updates;
    let ms = updates.shares.total().ms() / updates.steps.max(1) as f64;
    let share = of_step(facts, ms);
    let class = updates.name().filter(|_| share >= NOTABLE && updates.updating == Updating::OneByOne)?;
    let option = joined_update(class)?;
    Some(Looped { class: class.to_owned(), option, mostly: share >= SEVERE })
}

/// An optimizer that goes through its parameters one by one.
#[derive(Clone, Debug)]
pub struct Looped {
    /// Its class.
    pub class: String,
    /// The option that updates all parameters together.
    pub option: &'static str,
    /// It takes so much of the step that it comes first.
    pub mostly: bool,
}

/// Ops started one by one.
#[derive(Clone, Debug)]
pub struct EagerOps {
    /// How many per step.
    pub ops_per_step: f64,
    /// What starting one costs, in microseconds, Python included.
    pub us_per_op: f64,
    /// Milliseconds per step inside short ops, if these run on the host's processor and go with their starts.
    pub inside_ms: f64,
    /// An optimizer that starts a notable part of them, parameter by parameter.
    pub optimizer: Option<Looped>,
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
        if self.inside_ms > 0.0 {
            evidence.push(format!(
                "{} per step lies inside short ops: joined into few ops, they take a fraction of that.",
                duration_ms(self.inside_ms)
            ));
        }
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
                "Eager dispatch: {} {started} per step are started one by one{place}; {} {}.",
                decimal(self.ops_per_step, 0),
                if self.inside_ms > 0.0 {
                    "the short ones and the Python between them take"
                } else {
                    "starting them takes"
                },
                finding.owned(self.ops_per_step * self.us_per_op / 1e3)
            ),
            evidence,
            advice: match compiled {
                Some(function) => beside_a_function(function, updates),
                None if finding.framework == Framework::PyTorch => self.torch(),
                None => compile(finding.framework),
            },
        }
    }
}

impl EagerOps {
    /// What helps in PyTorch: a loop in Python shows as one type of op that is started repeatedly.
    fn torch(&self) -> Vec<String> {
        let looped = self.types.first().filter(|(_, count)| *count >= EAGER_OPS);
        let joined = looped.map(|(op, _)| match layer_of(op) {
            Some((cell, layer)) => format!(
                "Replace the Python loop over {} by one call for the whole sequence: `{layer}` instead of `{cell}`.",
                quoted(op)
            ),
            None => format!(
                "If a Python loop over samples, time steps or parameters calls {}, do it in one call on the whole \
                 tensor: a batched op, `torch.func.vmap`, one loss per batch.",
                quoted(op)
            ),
        });
        let compile = "Compile the model: `model = torch.compile(model)`; for many tiny ops \
                       `torch.compile(model, mode=\"reduce-overhead\")`.";
        let mut advice: Vec<String> = joined.into_iter().chain([compile.to_owned()]).collect();
        if let Some(Looped { class, option, mostly }) = &self.optimizer {
            let update = format!("Update all parameters at once: `torch.optim.{class}(..., {option}=True)`.");
            advice.insert(if *mostly { 0 } else { advice.len() }, update);
        }
        advice
    }
}

/// How much an op says about the loop that calls it: a cell for one time step, or a loss, more than what surrounds it.
fn tells(op: &str) -> u8 {
    match op {
        cell if layer_of(cell).is_some() => 2,
        loss if loss.contains("_loss") => 1,
        _ => 0,
    }
}

/// The module for one time step that calls an op, and the one for all of them.
fn layer_of(op: &str) -> Option<(&'static str, &'static str)> {
    match op {
        "aten::lstm_cell" | "aten::_thnn_fused_lstm_cell" => Some(("nn.LSTMCell", "nn.LSTM")),
        "aten::gru_cell" | "aten::_thnn_fused_gru_cell" => Some(("nn.GRUCell", "nn.GRU")),
        "aten::rnn_tanh_cell" | "aten::rnn_relu_cell" => Some(("nn.RNNCell", "nn.RNN")),
        _ => None,
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
        Framework::PyTorch | Framework::Unknown => {
            lines(["Run the step as one compiled function instead of op by op."])
        }
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
    use crate::rules::testing::{speaks, words};

    #[test]
    fn it_speaks() {
        let cause = EagerOps {
            ops_per_step: 1_800.0,
            us_per_op: 14.0,
            inside_ms: 0.0,
            optimizer: None,
            beside: None,
            updates_per_step: 0.0,
            types: vec![("Tanh".to_owned(), 600.0)],
        };
        speaks(&RULE, cause.clone());
        let optimizer = Looped { class: "Adam".into(), option: "fused", mostly: true };
        speaks(&RULE, EagerOps { inside_ms: 5.0, optimizer: Some(optimizer), ..cause.clone() });
        speaks(&RULE, EagerOps { beside: Some("train_step".into()), updates_per_step: 3.0, ..cause });
    }

    #[test]
    fn a_loop_over_cells_is_told_which_layer_replaces_it() {
        let advice = |op: &str| {
            let types = vec![(op.to_owned(), 80.0)];
            let (beside, optimizer) = (None, None);
            let (ops_per_step, us_per_op) = (2_000.0, 7.0);
            let cause = EagerOps {
                ops_per_step,
                us_per_op,
                inside_ms: 9.0,
                optimizer,
                beside,
                updates_per_step: 0.0,
                types,
            };
            words(&RULE, cause, Framework::PyTorch).advice.join(" ")
        };
        assert!(advice("aten::lstm_cell").contains("`nn.LSTM` instead of `nn.LSTMCell`"));
        assert!(advice("aten::cross_entropy_loss").contains("one loss per batch"));
        assert!(!advice("aten::mul").contains("fused=True"), "nothing shows that an optimizer starts them");
    }
}
