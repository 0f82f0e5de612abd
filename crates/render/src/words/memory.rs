//! Words for findings about memory: `memory-growth`, `memory-pressure`, `memory-fragmentation`.

use stepscope_analyze::vocabulary::Framework;

use super::{Words, quoted, share};
use crate::format::{bytes, short};

pub(super) fn growth(
    framework: Framework,
    allocator: &str,
    bytes_per_step: f64,
    kept: &[(String, f64)],
) -> Words {
    let most = kept.first().map_or(String::new(), |(what, _)| format!("; {} is not freed", quoted(what)));
    let mut evidence: Vec<String> = kept
        .iter()
        .map(|(what, blocks)| {
            format!("{}: {} a step allocated and never freed.", quoted(what), count(*blocks))
        })
        .collect();
    if evidence.is_empty() {
        evidence.push("Memory in use grows steadily from step to step.".to_owned());
    }
    Words {
        summary: format!(
            "Memory growth: {} grows by {} a step{most}.",
            quoted(allocator),
            bytes(bytes_per_step)
        ),
        evidence,
        advice: vec![
            let_go(framework).to_owned(),
            "See what is alive at the peak: `stepscope memory PATH`.".to_owned(),
        ],
    }
}

fn count(blocks: f64) -> String {
    if (blocks - 1.0).abs() < 0.005 { "1 block".to_owned() } else { format!("{} blocks", short(blocks)) }
}

/// How tensors that outlive their step are let go.
fn let_go(framework: Framework) -> &'static str {
    match framework {
        Framework::PyTorch => {
            "Keep numbers, not tensors: `losses.append(loss.item())`; a stored loss keeps its whole graph alive \
             (`loss.detach()` if it must stay a tensor)."
        }
        Framework::Jax => {
            "Do not collect device arrays in a list: keep `float(loss)` or `jax.device_get(x)`, and donate what is \
             replaced, `jax.jit(step, donate_argnums=0)`."
        }
        Framework::TensorFlow | Framework::Keras => {
            "Do not collect outputs in a list: keep `float(loss)` or `.numpy()`, and make variables and datasets \
             before the loop."
        }
        Framework::Unknown => {
            "Do not keep each step's tensors: store numbers, or free what is no longer used."
        }
    }
}

pub(super) fn pressure(framework: Framework, allocator: &str, peak: f64, capacity: f64) -> Words {
    let used = if capacity > 0.0 { peak / capacity } else { 0.0 };
    let cheaper = match framework {
        Framework::PyTorch => {
            "Recompute instead of keeping: `torch.utils.checkpoint.checkpoint(block, x, use_reentrant=False)`; \
             `torch.autocast` halves activations; `optimizer.zero_grad(set_to_none=True)`."
        }
        Framework::Jax => {
            "Recompute instead of keeping: `jax.checkpoint(block)`; donate what is replaced: \
             `jax.jit(step, donate_argnums=0)`; keep activations in `jnp.bfloat16`."
        }
        Framework::TensorFlow | Framework::Keras => {
            "Recompute instead of keeping: `tf.recompute_grad(block)`; halve activations: \
             `tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")`."
        }
        Framework::Unknown => "Recompute activations instead of keeping them, or keep them in 16 bits.",
    };
    Words {
        summary: format!(
            "Memory pressure: {} holds {} of {} at its peak ({}).",
            quoted(allocator),
            bytes(peak),
            bytes(capacity),
            share(used)
        ),
        evidence: vec![format!("{} are left at the peak.", bytes((capacity - peak).max(0.0)))],
        advice: vec![
            cheaper.to_owned(),
            "Or use a smaller batch and accumulate gradients. `stepscope memory PATH` shows what is alive at the peak."
                .to_owned(),
        ],
    }
}

pub(super) fn fragmentation(framework: Framework, allocator: &str, part: f64) -> Words {
    let cure = match framework {
        Framework::PyTorch => "Let segments grow: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.",
        Framework::TensorFlow | Framework::Keras => {
            "Use the driver's own pool: `TF_GPU_ALLOCATOR=cuda_malloc_async`."
        }
        Framework::Jax => {
            "Take memory once at the start: leave `XLA_PYTHON_CLIENT_PREALLOCATE` on, and use few different shapes."
        }
        Framework::Unknown => "Use few different sizes, and allocate the large ones first.",
    };
    Words {
        summary: format!(
            "Memory fragmentation: {} of the memory that {} has free is in pieces too small for large requests.",
            share(part),
            quoted(allocator)
        ),
        evidence: vec!["Measured at the peak, where memory is short.".to_owned()],
        advice: vec![
            cure.to_owned(),
            "Pad batches to a few sizes: ever new sizes cut memory into pieces.".to_owned(),
        ],
    }
}
