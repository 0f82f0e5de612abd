//! Functions that are built repeatedly: the cause behind `retracing` and `recompilation`, and its words.

use stepscope_analyze::Category;
use stepscope_analyze::time::recurrence::Recurrence;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{duration_ms, listed, plural, quoted, thousands};

use super::severity;
use crate::facts::{Facts, Rebuilding, RebuiltFunction};
use crate::finding::{Cause, Finding, Words};
use crate::rule::Rule;

/// The time of building.
pub(in crate::rules) const BUILDING: [Category; 2] = [Category::Tracing, Category::Compile];

/// The finding of a rule about functions that are built in these steps. `cause` is made of the functions, the worst first,
/// and the number of steps; a fix saves at most `gain` of the time of building.
pub(in crate::rules) fn found<C: Cause>(
    facts: &Facts,
    rule: &'static Rule,
    recurrence: Recurrence,
    gain: f64,
    cause: impl FnOnce(Vec<RebuiltFunction>, usize) -> C,
) -> Finding {
    let functions = RebuiltFunction::all(facts);
    let subject = functions.first().map(|function| function.name.clone());
    let cause = cause(functions, recurrence.steps);
    Finding::new(rule, severity(facts.shares(&BUILDING)), cause, facts.framework())
        .owning(facts.claims(&BUILDING), Some(gain))
        .in_steps(recurrence)
        .sure(0.95)
        .about(subject)
}

/// How a rule says that functions are built again.
#[derive(Copy, Clone, Debug)]
pub(in crate::rules) struct Saying {
    /// Its title, e.g. `Retracing`.
    pub(in crate::rules) title: &'static str,
    /// What happens to the function, e.g. `traced`.
    pub(in crate::rules) verb: &'static str,
    /// How often it happened to one.
    pub(in crate::rules) times: fn(&RebuiltFunction) -> u64,
}

pub(in crate::rules) fn words(
    finding: &Finding,
    functions: &[RebuiltFunction],
    steps: usize,
    saying: Saying,
) -> Words {
    let lost = functions.iter().map(|function| function.ms_per_step).sum();
    let what = what_happens(functions, steps, saying);
    let why = match (common_reason(functions), functions.len()) {
        (Some(Rebuilding::ArgumentsVary), 1) => "; its arguments vary",
        (Some(Rebuilding::ArgumentsVary), _) => "; their arguments vary",
        (Some(Rebuilding::Recreated), 1) => "; it is recreated for each call",
        (Some(Rebuilding::Recreated), _) => "; they are recreated for each call",
        (Some(Rebuilding::Unknown) | None, _) => "",
    };
    Words {
        summary: format!("{}: {what}, which takes {}{why}.", saying.title, finding.owned(lost)),
        evidence: evidence(functions, steps),
        advice: advice(finding, functions),
    }
}

fn what_happens(functions: &[RebuiltFunction], steps: usize, saying: Saying) -> String {
    let verb = saying.verb;
    let Some(first) = functions.first() else {
        return format!("functions are {verb} in {}", plural(steps as u64, "step", "steps"));
    };
    let (built, calls) = functions.iter().fold((0, 0), |(sum, calls), function| {
        (sum + (saying.times)(function).min(function.calls), calls + function.calls)
    });
    let times = match calls {
        0 => "repeatedly".to_owned(),
        calls => format!("in {} of {}", thousands(built), plural(calls, "call", "calls")),
    };
    match functions.len() {
        1 => format!("{} is {verb} {times}", quoted(&first.name)),
        _ => format!("{} are {verb} {times}", names(functions)),
    }
}

/// Why they are built, if it is the same for all that matter.
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
    let mut said = vec![format!("Functions are built in {}.", plural(steps as u64, "step", "steps"))];
    said.extend(functions.iter().take(3).map(|function| {
        format!(
            "{}: {}, {}, {}; {} per step.",
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
    let name = if functions.is_empty() { "the function".to_owned() } else { names(functions) };
    let why = common_reason(functions).unwrap_or(Rebuilding::Unknown);
    let Advice { arguments, recreated, explain } = match finding.framework {
        Framework::Jax => jax(&name),
        Framework::PyTorch => pytorch(&name),
        Framework::TensorFlow | Framework::Keras => tensorflow(&name, call_name(functions.first())),
        Framework::Unknown => general(&name),
    };
    let mut advice = match why {
        Rebuilding::ArgumentsVary => arguments,
        Rebuilding::Recreated => vec![recreated],
        Rebuilding::Unknown => arguments.into_iter().chain([recreated]).collect(),
    };
    advice.extend(explain.map(str::to_owned));
    advice
}

/// A name that can be part of a line of code.
fn call_name(function: Option<&RebuiltFunction>) -> &str {
    let name = function.map_or("", |function| function.name.as_str());
    let plain =
        !name.is_empty() && name.len() <= 32 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { name } else { "f" }
}

struct Advice {
    /// For arguments that vary.
    arguments: Vec<String>,
    /// For a function that is recreated.
    recreated: String,
    /// How the framework says what differs.
    explain: Option<&'static str>,
}

fn tensorflow(name: &str, call: &str) -> Advice {
    Advice {
        arguments: vec![
            format!(
                "Pass numbers to {name} as tensors, e.g. `{call}(x, tf.constant(n))`: each new Python value triggers \
                 a new trace."
            ),
            "If shapes vary, trace once for all of them: `@tf.function(reduce_retracing=True)`, or \
             `input_signature=[tf.TensorSpec([None, *x.shape[1:]], x.dtype)]`."
                .to_owned(),
        ],
        recreated: format!(
            "Create {name} once, outside the loop: each new `tf.function(...)`, lambda or decorated inner function \
             starts without traces."
        ),
        explain: None,
    }
}

fn jax(name: &str) -> Advice {
    Advice {
        arguments: vec![
            format!(
                "Call {name} with few different shapes: pad to buckets (for example powers of two), and drop or pad \
                 the last batch."
            ),
            "Mark only static values as static: remove values that change from `static_argnums` / \
             `static_argnames` and pass them as arrays, `jnp.asarray(n)`."
                .to_owned(),
        ],
        recreated: format!(
            "Call `jax.jit` once for {name}, outside the loop: a lambda or `functools.partial` created in every step \
             is a new function."
        ),
        explain: Some(
            "Let JAX report what differs: `jax.config.update(\"jax_explain_cache_misses\", True)`.",
        ),
    }
}

fn pytorch(name: &str) -> Advice {
    Advice {
        arguments: vec![
            format!(
                "Compile {name} for all sizes at once: `torch.compile(model, dynamic=True)`, or mark the dimension \
                 that varies with `torch._dynamo.mark_dynamic(x, 0)`."
            ),
            "Pass numbers that change as tensors, and pad batches to a few sizes.".to_owned(),
        ],
        recreated: format!("Call `torch.compile` once for {name}, outside the loop."),
        explain: Some("Let PyTorch report what differs: run with `TORCH_LOGS=recompiles`."),
    }
}

fn general(name: &str) -> Advice {
    Advice {
        arguments: vec![format!("Call {name} with arguments of few different shapes, types and values.")],
        recreated: format!("Compile {name} once, outside the loop."),
        explain: None,
    }
}
