//! An allocator is nearly full at its peak.
//!
//! # What it means
//! The next larger batch or a longer sequence will not fit.
//!
//! # How it is detected
//! The peak is at least {PRESSURE} of the capacity.
//!
//! # How to fix it
//! Recompute activations, keep them in 16 bits, or use smaller batches with accumulated gradients.
//!
//! PyTorch: `torch.utils.checkpoint`.
//!
//! JAX: `jax.checkpoint`.
//!
//! TensorFlow and Keras: `tf.recompute_grad`.
//!
//! # How to check
//! `stepscope memory PATH` shows a lower peak.

use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{bytes, quoted, share};

use crate::facts::{Facts, Memory};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "memory-pressure",
    about: About::Cause,
    view: "memory",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("memory_pressure.rs"),
};

thresholds! {
    /// Of the capacity: what remains does not hold another large tensor.
    PRESSURE: Share = 0.90;
}

fn check(facts: &Facts) -> Option<Finding> {
    facts.memory.allocators.iter().map(Memory::of).find_map(|memory| {
        let (peak_bytes, capacity_bytes) = (memory.peak_bytes?, memory.capacity_bytes?);
        (capacity_bytes > 0.0 && peak_bytes / capacity_bytes >= PRESSURE).then(|| {
            let cause = Pressure { allocator: memory.allocator.clone(), peak_bytes, capacity_bytes };
            Finding::new(&RULE, Severity::Warning, cause, facts.framework())
                .about(memory.allocator.clone())
                .sure(0.8)
        })
    })
}

/// Memory that is nearly full.
#[derive(Clone, Debug)]
pub struct Pressure {
    /// The allocator.
    pub allocator: String,
    /// Bytes in use at the peak.
    pub peak_bytes: f64,
    /// Its capacity.
    pub capacity_bytes: f64,
}

impl Cause for Pressure {
    fn words(&self, finding: &Finding) -> Words {
        let (peak, capacity) = (self.peak_bytes, self.capacity_bytes);
        let used = if capacity > 0.0 { peak / capacity } else { 0.0 };
        Words {
            summary: format!(
                "Memory pressure: {} uses {} of {} at its peak ({}).",
                quoted(&self.allocator),
                bytes(peak),
                bytes(capacity),
                share(used)
            ),
            evidence: vec![format!("Free at the peak: {}.", bytes((capacity - peak).max(0.0)))],
            advice: lines([
                keep_less(finding.framework),
                "Or use a smaller batch and accumulate gradients. `stepscope memory PATH` shows what is live at the peak.",
            ]),
        }
    }
}

fn keep_less(framework: Framework) -> &'static str {
    match framework {
        Framework::PyTorch => {
            "Recompute activations instead of keeping them: `torch.utils.checkpoint.checkpoint(block, x, \
             use_reentrant=False)`. `torch.autocast` halves activations; `optimizer.zero_grad(set_to_none=True)` frees \
             gradients."
        }
        Framework::Jax => {
            "Recompute activations instead of keeping them: `jax.checkpoint(block)`. Donate what is replaced: \
             `jax.jit(step, donate_argnums=0)`. Keep activations in `jnp.bfloat16`."
        }
        Framework::TensorFlow | Framework::Keras => {
            "Recompute activations instead of keeping them: `tf.recompute_grad(block)`. Halve activations: \
             `tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")`."
        }
        Framework::Unknown => "Recompute activations instead of keeping them, or keep them in 16 bits.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, Pressure { allocator: "bfc".into(), peak_bytes: 39e9, capacity_bytes: 40e9 });
    }
}
