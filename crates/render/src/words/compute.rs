//! Words for findings about the model's own work: `compute-bound`, `op-dominates`, `low-precision-unused`,
//! `low-occupancy`, `unfused-elementwise`.

use stepscope_analyze::vocabulary::Framework;
use stepscope_diagnose::Finding;
use stepscope_diagnose::finding::OpCost;

use super::{Words, listed, number, of_others, owned, quoted, share};
use crate::format::{duration_ms, short};

pub(super) fn bound(finding: &Finding, top: &[OpCost], on_device: bool) -> Words {
    let most = top.first().map_or(String::new(), |op| format!("; {} costs most", quoted(&op.op_type)));
    let place = if on_device { "the device" } else { "the processor" };
    let step = finding.claimed_ms();
    Words {
        summary: format!("Compute-bound: {place} works on the model for {}{most}.", owned(finding, step)),
        evidence: top.iter().take(3).map(cost).collect(),
        advice: faster_model(finding, on_device),
    }
}

/// `MatMul: 12.1 ms a step, 61 % of all ops, 24 a step; most in model/dense/MatMul.`
fn cost(op: &OpCost) -> String {
    let example = op.example.as_deref().filter(|example| *example != op.op_type);
    let example = example.map_or(String::new(), |example| format!("; most in {}", quoted(example)));
    let each = if op.devices > 1 { format!(" on each of {} devices", op.devices) } else { String::new() };
    format!(
        "{}: {} a step{each}, {} of all ops' time, {} a step{example}.",
        quoted(&op.op_type),
        duration_ms(op.ms_per_step),
        share(op.share),
        times(op.count_per_step)
    )
}

fn times(count: f64) -> String {
    if count == 1.0 {
        return "once".to_owned();
    }
    format!("{} times", number(count))
}

/// From this share on, nothing but the model is left to tune.
const FULL: f64 = 0.8;

fn faster_model(finding: &Finding, on_device: bool) -> Vec<String> {
    let framework = finding.framework;
    let full = finding.fraction.is_some_and(|fraction| fraction >= FULL);
    let mut advice = vec![
        if of_others(finding).is_some() {
            "Most of the step is the model's own work, and some of it can be won: see the other findings."
        } else if full {
            "This is how a healthy step looks: what is left is the model itself, its precision or the hardware."
        } else {
            "Most of the step is the model's own work; larger batches shrink the share of what is around it."
        }
        .to_owned(),
    ];
    let precision = match (framework, on_device) {
        (_, false) => None,
        (Framework::TensorFlow | Framework::Keras, true) => {
            Some("`tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")`")
        }
        (Framework::PyTorch, true) => Some("`torch.autocast(\"cuda\", dtype=torch.bfloat16)`"),
        (Framework::Jax, true) => Some("parameters and activations in `jnp.bfloat16`"),
        (Framework::Unknown, true) => None,
    };
    let fusing = match framework {
        Framework::Keras => Some("`model.compile(..., jit_compile=True)`"),
        Framework::TensorFlow => Some("`@tf.function(jit_compile=True)`"),
        Framework::PyTorch => Some("`torch.compile(model)`"),
        Framework::Jax | Framework::Unknown => None,
    };
    let tries: Vec<String> = precision.into_iter().chain(fusing).map(str::to_owned).collect();
    if !tries.is_empty() {
        advice.push(format!("Worth a try, if not in use yet: {}.", listed(&tries)));
    }
    let view = if on_device { "kernels" } else { "ops" };
    advice.push(format!("See what costs most: `stepscope {view} PATH`."));
    advice
}

pub(super) fn one_op(finding: &Finding, op: &OpCost) -> Words {
    let example = op.example.as_deref().filter(|example| *example != op.op_type);
    let scope = example.map_or(String::new(), |example| format!(", most of it in {}", quoted(example)));
    let name = quoted(&op.op_type);
    Words {
        summary: format!("Op dominates: {name} takes {}{scope}.", owned(finding, op.ms_per_step)),
        evidence: vec![cost(op)],
        advice: vec![
            rewrite(&op.op_type, &name),
            format!("Find where it comes from: `stepscope ops PATH --filter {}`.", filter(&op.op_type)),
        ],
    }
}

/// A pattern for the command line that needs no quotes.
fn filter(op_type: &str) -> String {
    let word: String =
        op_type.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect();
    if word.is_empty() { "REGEX".to_owned() } else { word }
}

/// What usually stands behind an op that should not fill a step.
fn rewrite(op_type: &str, name: &str) -> String {
    let lower = op_type.to_ascii_lowercase();
    let is = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    if is(&["concat", "cat", "pack", "stack"]) {
        format!(
            "{name} copies all it is given: do not grow a tensor in a loop. Collect the parts and join them once, \
             or write into a buffer of full size."
        )
    } else if is(&["sort", "topk", "top_k", "unique"]) {
        format!(
            "Do {name} less often or on less: keep the k best instead of sorting, or sort when preparing data."
        )
    } else if is(&["gather", "scatter", "embedding", "index"]) {
        format!(
            "{name} reads memory here and there: look up several at once, sort indices, or make rows denser."
        )
    } else if is(&["transpose", "permute", "contiguous", "copy", "clone", "identity", "cast", "convert"]) {
        format!("{name} only moves data: keep one layout and one type throughout, and leave copies out.")
    } else if is(&["svd", "qr", "cholesky", "inv", "eigh", "solve", "det"]) {
        format!("Do {name} less often (every few steps), on a smaller matrix, or iteratively.")
    } else if is(&["random", "rand", "dropout", "normal", "uniform"]) {
        format!("Draw random numbers once for the whole batch, or beside the step, instead of by {name}.")
    } else if is(&["print", "pyfunc", "py_function", "numpy_function", "io_callback", "assert"]) {
        format!("Take {name} out of the step: it calls back into Python.")
    } else {
        format!("Run {name} less often or on less data, or replace it; everything else together is shorter.")
    }
}

pub(super) fn matrix_units(
    finding: &Finding,
    part: f64,
    kernel: &str,
    speedup: f64,
    only_half: bool,
) -> Words {
    let advice = match finding.framework {
        // Units before compute capability 8.0 know neither TF32 nor bfloat16.
        Framework::PyTorch if only_half => vec![
            "Train in 16 bits: `with torch.autocast(\"cuda\", dtype=torch.float16):` around forward and loss, with a \
             `torch.amp.GradScaler`.",
        ],
        Framework::TensorFlow | Framework::Keras if only_half => {
            vec!["Train in 16 bits: `tf.keras.mixed_precision.set_global_policy(\"mixed_float16\")`."]
        }
        Framework::Jax if only_half => vec!["Keep activations in `jnp.float16`, with a scaled loss."],
        Framework::Unknown if only_half => vec!["Use float16 for matrix products."],
        Framework::PyTorch => vec![
            "Allow TF32: `torch.set_float32_matmul_precision(\"high\")`.",
            "Or train in 16 bits: `with torch.autocast(\"cuda\", dtype=torch.bfloat16):` around forward and loss.",
        ],
        Framework::TensorFlow | Framework::Keras => vec![
            "Train in 16 bits: `tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")` (or \
             `\"mixed_float16\"` on older devices).",
            "See that TF32 is not switched off: `tf.config.experimental.enable_tensor_float_32_execution(True)`.",
        ],
        Framework::Jax => vec![
            "Allow TF32: `jax.config.update(\"jax_default_matmul_precision\", \"tensorfloat32\")`.",
            "Or keep parameters and activations in `jnp.bfloat16`.",
        ],
        Framework::Unknown => vec!["Use TF32, bfloat16 or float16 for matrix products."],
    };
    let mut advice: Vec<String> = advice.into_iter().map(str::to_owned).collect();
    advice.push("Watch the loss: lower precision is safe for most models, not for all.".to_owned());
    Words {
        summary: format!(
            "Low precision unused: {} of kernel time is matrix work without the device's matrix units.",
            share(part)
        ),
        evidence: vec![
            format!("The costliest such kernel is {}.", quoted(kernel)),
            format!("With 16 bits the matrix units are up to {} times as fast.", short(speedup)),
        ],
        advice,
    }
}

pub(super) fn occupancy(kernel: &str, occupancy: f64, limiter: Option<&str>, part: f64) -> Words {
    let limited = limiter.map_or(String::new(), |limiter| format!(", limited by {}", quoted(limiter)));
    Words {
        summary: format!(
            "Low occupancy: kernels with {} of kernel time leave most of the device's threads empty.",
            share(part)
        ),
        evidence: vec![format!("{} reaches {} at the most{limited}.", quoted(kernel), share(occupancy))],
        advice: vec![
            "Give such kernels more to do at once: a larger batch, or fused ops.".to_owned(),
            "In kernels of your own, use fewer registers or less shared memory a block, or other block sizes; \
             `stepscope kernels PATH` shows the limits."
                .to_owned(),
        ],
    }
}

pub(super) fn unfused(finding: &Finding, figures: [f64; 4], example: Option<&str>) -> Words {
    let [kernels_per_step, length, part, winnable] = figures;
    let advice = match finding.framework {
        Framework::PyTorch => "Fuse them: `torch.compile(model)`; for the optimizer `fused=True`.",
        Framework::Keras => "Fuse them: `model.compile(..., jit_compile=True)`.",
        Framework::TensorFlow => "Fuse them: `@tf.function(jit_compile=True)` around the step.",
        Framework::Jax => "Fuse them: one `jax.jit` around the whole step, optimizer included.",
        Framework::Unknown => {
            "Fuse them with a compiler (`torch.compile`, XLA), or write one kernel for what is done to each element."
        }
    };
    let mut evidence = vec![
        format!(
            "{} elementwise kernels a step follow one another, {} in a row on average.",
            number(kernels_per_step),
            short(length)
        ),
        format!(
            "One kernel for each such row spares at most {} of kernel time: all but the longest of each.",
            share(winnable)
        ),
    ];
    evidence.extend(example.map(|kernel| format!("The costliest of them is {}.", quoted(kernel))));
    Words {
        summary: format!(
            "Unfused elementwise: {} of kernel time is spent in elementwise kernels that follow one another and could be one.",
            share(part)
        ),
        evidence,
        advice: vec![advice.to_owned(), "See them: `stepscope kernels PATH`.".to_owned()],
    }
}
