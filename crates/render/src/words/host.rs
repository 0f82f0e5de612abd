//! Words for findings about the host: `eager-dispatch`, `dispatch-bound`, `host-python`, `output-bound`.

use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::Finding;
use stepscope_diagnose::finding::{OpCost, PythonLine};

use super::{Words, lines, listed, owned, quoted};
use crate::format::{decimal, duration_ms, short};

pub(super) fn eager(
    finding: &Finding,
    [ops_per_step, us_per_op, updates_per_step]: [f64; 3],
    beside: Option<&str>,
    types: &[(String, f64)],
) -> Words {
    let compiled = beside.filter(|_| matches!(finding.framework, Framework::TensorFlow | Framework::Keras));
    let advice = match finding.framework {
        _ if compiled.is_some() => beside_a_function(compiled.unwrap_or_default(), updates_per_step >= 1.0),
        Framework::TensorFlow => lines([
            "Put the step into one function: `@tf.function` on the function that computes loss and gradients.",
            "See that nothing switches functions off: `tf.config.run_functions_eagerly(False)`.",
        ]),
        Framework::Keras => lines([
            "Let Keras run its compiled step: `model.compile(..., run_eagerly=False)` and no \
             `tf.config.run_functions_eagerly(True)`.",
            "In a loop of your own, put the step into one function with `@tf.function`.",
        ]),
        Framework::Jax => lines([
            "Put the whole step under one `jax.jit`: ops outside of it are compiled and started one by one.",
        ]),
        Framework::PyTorch => lines([
            "Compile the model: `model = torch.compile(model)`; for many tiny ops \
             `torch.compile(model, mode=\"reduce-overhead\")`.",
            "Update all parameters at once: `torch.optim.AdamW(..., fused=True)`.",
        ]),
        Framework::Unknown => lines(["Run the step as one compiled function instead of op by op."]),
    };
    let place = compiled.map_or(String::new(), |name| format!(" beside the compiled {}", quoted(name)));
    let mut evidence = vec![format!("Starting one op costs {} µs, Python included.", short(us_per_op))];
    if !types.is_empty() {
        let most: Vec<String> =
            types.iter().map(|(op, count)| format!("{} ({} per step)", quoted(op), short(*count))).collect();
        evidence.push(format!("Most of them: {}.", listed(&most)));
    }
    if compiled.is_some() && updates_per_step >= 1.0 {
        evidence.push(format!(
            "{} of them per step change variables, as metrics and moving averages do.",
            short(updates_per_step)
        ));
    }
    Words {
        summary: format!(
            "Eager dispatch: {} ops per step are started one by one{place}; starting them takes {}.",
            decimal(ops_per_step, 0),
            owned(finding, ops_per_step * us_per_op / 1e3)
        ),
        evidence,
        advice,
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

pub(super) fn dispatch(finding: &Finding, ms: f64, ops_per_step: f64) -> Words {
    let advice = match finding.framework {
        Framework::Keras => lines([
            "Run several batches a call: `model.compile(..., steps_per_execution=16)`.",
            "Fuse the ops: `model.compile(..., jit_compile=True)`. Or use larger batches.",
        ]),
        Framework::TensorFlow => lines([
            "Run several steps a call: a loop `for batch in ds.take(16):` inside the `@tf.function`.",
            "Fuse the ops: `@tf.function(jit_compile=True)`. Or use larger batches.",
        ]),
        Framework::Jax => lines([
            "Run several steps a call: `jax.lax.scan(step, state, batches)` inside `jax.jit`. Or use larger batches.",
            "Pass few arrays: put parameters and state into one pytree that is donated, \
             `jax.jit(step, donate_argnums=0)`.",
        ]),
        Framework::PyTorch => lines([
            "Compile the model: `torch.compile(model, mode=\"reduce-overhead\")`. Or use larger batches.",
            "Update all parameters at once: `torch.optim.AdamW(..., fused=True)`.",
        ]),
        Framework::Unknown => lines(["Do more a call: larger batches, or several steps at once."]),
    };
    let mut evidence = Vec::new();
    if ops_per_step >= 1.0 {
        let each = duration_ms(ms / ops_per_step);
        evidence.push(format!("{} ops a step, {each} of overhead each.", decimal(ops_per_step, 0)));
    }
    Words {
        summary: format!(
            "Dispatch-bound: the framework's own work around the ops takes {}.",
            owned(finding, ms)
        ),
        evidence,
        advice,
    }
}

pub(super) fn python(finding: &Finding, places: &[PythonLine]) -> Words {
    let most = places.first().map_or(String::new(), |line| format!(", most in {}", quoted(&line.place)));
    let evidence = if places.is_empty() {
        lines(["In that time nothing of the framework runs on any thread, and no device works."])
    } else {
        let line =
            |line: &PythonLine| format!("{}: {} a step.", quoted(&line.place), duration_ms(line.ms_per_step));
        places.iter().take(3).map(line).collect()
    };
    let mut advice = vec![match places.first() {
        Some(line) => format!(
            "Take {} out of the step: do it every hundred steps, in another thread, or as ops of the framework.",
            quoted(&line.place)
        ),
        None => {
            "Take Python out of the loop: log, convert and collect every hundred steps, or in another thread."
                .to_owned()
        }
    }];
    advice.push(few_reads(finding.framework).to_owned());
    if places.is_empty() {
        advice.push(format!(
            "To see which lines it is, record with Python frames: {}.",
            frames(finding.framework)
        ));
    }
    Words {
        summary: format!(
            "Host Python: the loop's own Python takes {}{most}.",
            owned(finding, finding.claimed_ms())
        ),
        evidence,
        advice,
    }
}

/// Reading results is the usual Python of a loop.
pub(super) fn few_reads(framework: Framework) -> &'static str {
    match framework {
        Framework::TensorFlow | Framework::Keras => {
            "Keep metrics as tensors (`tf.keras.metrics.Mean`) and call `.numpy()` or `float(loss)` only when you log."
        }
        Framework::Jax => {
            "Keep metrics on the device, and call `float(loss)` or `jax.device_get` only when you log."
        }
        Framework::PyTorch => {
            "Keep metrics as tensors (`loss.detach()`), and call `.item()` or `float(loss)` only when you log."
        }
        Framework::Unknown => "Read results back only when you log.",
    }
}

/// How to record frames of Python.
fn frames(framework: Framework) -> &'static str {
    match framework {
        Framework::TensorFlow | Framework::Keras => {
            "`tf.profiler.experimental.ProfilerOptions(python_tracer_level=1)`"
        }
        Framework::Jax => "`options = jax.profiler.ProfileOptions()`, `options.python_tracer_level = 1`",
        Framework::PyTorch => "`torch.profiler.profile(with_stack=True)`",
        Framework::Unknown => "switch the profiler's Python tracer on",
    }
}

pub(super) fn output(finding: &Finding, ops: &[OpCost]) -> Words {
    let named: Vec<String> = ops.iter().take(2).map(|op| quoted(&op.op_type)).collect();
    let by = if named.is_empty() { String::new() } else { format!(" ({})", listed(&named)) };
    let spent = ops.iter().map(|op| op.ms_per_step).sum();
    Words {
        summary: format!(
            "Output-bound: writing checkpoints, summaries or results{by} takes {}.",
            owned(finding, spent)
        ),
        evidence: ops
            .iter()
            .map(|op| {
                format!(
                    "{}: {} a step, {} times a step.",
                    quoted(&op.op_type),
                    duration_ms(op.ms_per_step),
                    short(op.count_per_step)
                )
            })
            .collect(),
        advice: write_less(finding.framework, ops.iter().any(|op| op.op_type.contains("Summary"))),
    }
}

fn write_less(framework: Framework, summaries: bool) -> Vec<String> {
    match (framework, summaries) {
        (Framework::TensorFlow | Framework::Keras, true) => lines([
            "Write summaries less often: `with tf.summary.record_if(lambda: step % 100 == 0):`.",
            "Of a Keras callback: `TensorBoard(update_freq=100, histogram_freq=0)`.",
        ]),
        (Framework::Keras, false) => lines([
            "Save less often: `ModelCheckpoint(..., save_freq=1000)`, or once an epoch with `save_freq=\"epoch\"`.",
            "Save weights only, if the optimizer is not needed: `ModelCheckpoint(..., save_weights_only=True)`.",
        ]),
        (Framework::TensorFlow, false) => lines([
            "Save less often: `if step % 1000 == 0: manager.save()`.",
            "Save beside the loop: `checkpoint.save(path, options=tf.train.CheckpointOptions(enable_async=True))`.",
        ]),
        (Framework::Jax, _) => lines([
            "Save less often, and beside the loop: `orbax.checkpoint.AsyncCheckpointer(...)`.",
            "Copy results to the host only when you need them: `jax.device_get` every hundred steps.",
        ]),
        (Framework::PyTorch, _) => lines([
            "Save less often, and beside the loop: `torch.distributed.checkpoint.async_save(...)`, or `torch.save` of \
             a copy on the CPU in a thread.",
            "Write logs every hundred steps.",
        ]),
        (Framework::Unknown, _) => lines(["Write less often, or beside the loop."]),
    }
}
