//! Words for `retracing` and `recompilation`: which function is built again, why, and how it is built once.

use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::finding::{Rebuilding, RebuiltFunction};
use stepscope_diagnose::{Finding, FindingId};

use super::{Words, listed, owned, quoted};
use crate::format::{duration_ms, plural, thousands};

pub(super) fn words(finding: &Finding, functions: &[RebuiltFunction], steps: usize) -> Words {
    let tracing = finding.id == FindingId::Retracing;
    let (title, verb) = if tracing { ("Retracing", "traced") } else { ("Recompilation", "compiled") };
    let lost = functions.iter().map(|function| function.ms_per_step).sum();
    let what = match functions.first() {
        Some(first) => {
            let built = |function: &RebuiltFunction| {
                if tracing { function.traces } else { function.compiles.max(function.traces) }
            };
            let (built, calls) = functions.iter().fold((0, 0), |(sum, calls), function| {
                (sum + built(function).min(function.calls), calls + function.calls)
            });
            let times = match calls {
                0 => "again and again".to_owned(),
                calls => format!("in {} of {}", thousands(built), plural(calls, "call", "calls")),
            };
            match functions.len() - 1 {
                0 => format!("{} is {verb} {times}", quoted(&first.name)),
                _ => format!("{} are {verb} {times}", names(functions)),
            }
        }
        None => format!("functions are {verb} in {}", plural(steps as u64, "step", "steps")),
    };
    let why = match (common_reason(functions), functions.len()) {
        (Some(Rebuilding::ArgumentsVary), 1) => "; its arguments vary",
        (Some(Rebuilding::ArgumentsVary), _) => "; their arguments vary",
        (Some(Rebuilding::Recreated), 1) => "; it is made anew for each call",
        (Some(Rebuilding::Recreated), _) => "; they are made anew for each call",
        (Some(Rebuilding::Unknown) | None, _) => "",
    };
    Words {
        summary: format!("{title}: {what}, which takes {}{why}.", owned(finding, lost)),
        evidence: evidence(functions, steps),
        advice: advice(finding, functions),
    }
}

/// Why they are built, where it is the same for all that matter.
fn common_reason(functions: &[RebuiltFunction]) -> Option<Rebuilding> {
    let first = functions.first()?;
    let matter = |function: &&RebuiltFunction| function.ms_per_step >= first.ms_per_step / 4.0;
    functions.iter().filter(matter).all(|function| function.why == first.why).then_some(first.why)
}

/// The worst two by name, the others by number.
fn names(functions: &[RebuiltFunction]) -> String {
    let mut named: Vec<String> = functions.iter().take(2).map(|function| quoted(&function.name)).collect();
    let others = functions.len().saturating_sub(2) as u64;
    if others > 0 {
        named.push(plural(others, "other", "others"));
    }
    listed(&named)
}

fn evidence(functions: &[RebuiltFunction], steps: usize) -> Vec<String> {
    let mut said = vec![format!("Something is built in {}.", plural(steps as u64, "step", "steps"))];
    said.extend(functions.iter().take(3).map(|function| {
        format!(
            "{}: {}, {}, {}; {} a step.",
            quoted(&function.name),
            plural(function.calls, "call", "calls"),
            plural(function.traces, "trace", "traces"),
            plural(function.compiles, "compilation", "compilations"),
            duration_ms(function.ms_per_step)
        )
    }));
    said
}

fn advice(finding: &Finding, functions: &[RebuiltFunction]) -> Vec<String> {
    let first = functions.first();
    let name = if functions.is_empty() { "the function".to_owned() } else { names(functions) };
    let why = common_reason(functions).unwrap_or(Rebuilding::Unknown);
    let (arguments, recreated, explain) = match finding.framework {
        Framework::Jax => jax(&name),
        Framework::PyTorch => pytorch(&name),
        Framework::TensorFlow | Framework::Keras => tensorflow(&name, call_name(first)),
        Framework::Unknown => general(&name),
    };
    let mut advice = match why {
        Rebuilding::ArgumentsVary => arguments,
        Rebuilding::Recreated => vec![recreated],
        Rebuilding::Unknown => arguments.into_iter().chain([recreated]).collect(),
    };
    advice.extend(explain);
    advice
}

/// A name that can stand in a line of code.
fn call_name(function: Option<&RebuiltFunction>) -> &str {
    let name = function.map_or("", |function| function.name.as_str());
    let plain =
        !name.is_empty() && name.len() <= 32 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { name } else { "f" }
}

type Advice = (Vec<String>, String, Option<String>);

fn tensorflow(name: &str, call: &str) -> Advice {
    (
        vec![
            format!(
                "Pass numbers to {name} as tensors, e.g. `{call}(x, tf.constant(n))`: every new Python value is \
                 traced anew."
            ),
            "If shapes vary, trace once for all of them: `@tf.function(reduce_retracing=True)`, or \
             `input_signature=[tf.TensorSpec([None, 28], tf.float32)]`."
                .to_owned(),
        ],
        format!(
            "Make {name} once, outside the loop: each `tf.function(...)`, lambda or decorated inner function that is \
             made anew starts without its traces."
        ),
        None,
    )
}

fn jax(name: &str) -> Advice {
    (
        vec![
            format!(
                "Call {name} with few different shapes: pad to buckets (powers of two, say), and drop or pad the \
                 last batch."
            ),
            "Mark as static only what is really static: take values that change out of `static_argnums` / \
             `static_argnames` and pass them as arrays, `jnp.asarray(n)`."
                .to_owned(),
        ],
        format!(
            "Call `jax.jit` once for {name}, outside the loop: a lambda or `functools.partial` made in every step is \
             a new function."
        ),
        Some("Let JAX say what differs: `jax.config.update(\"jax_explain_cache_misses\", True)`.".to_owned()),
    )
}

fn pytorch(name: &str) -> Advice {
    (
        vec![
            format!(
                "Compile {name} for all sizes at once: `torch.compile(model, dynamic=True)`, or mark the \
                     dimension that varies with `torch._dynamo.mark_dynamic(x, 0)`."
            ),
            "Pass numbers that change as tensors, and pad batches to a few sizes.".to_owned(),
        ],
        format!("Call `torch.compile` once for {name}, outside the loop."),
        Some("Let PyTorch say what differs: run with `TORCH_LOGS=recompiles`.".to_owned()),
    )
}

fn general(name: &str) -> Advice {
    (
        vec![format!("Call {name} with arguments of few different shapes, types and values.")],
        format!("Compile {name} once, outside the loop."),
        None,
    )
}
