//! Much of the free memory is in pieces too small for large requests.
//!
//! # What it means
//! Memory is short, and a large request may fail although enough bytes are free in total.
//!
//! # How it is detected
//! At a peak of at least {SHORT} of the capacity, at least {FRAGMENTATION} of the free memory is in small pieces.
//!
//! # How to fix it
//! Pad to few sizes.
//!
//! PyTorch: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.
//!
//! TensorFlow and Keras: `TF_GPU_ALLOCATOR=cuda_malloc_async`.
//!
//! JAX: leave preallocation on.
//!
//! # How to check
//! `stepscope memory PATH` shows less fragmentation.

use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{quoted, share};

use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Rule, doc_of, thresholds};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "memory-fragmentation",
    about: About::Cause,
    view: "memory",
    check,
    thresholds: THRESHOLDS,
    source: doc_of!("memory_fragmentation.rs"),
};

thresholds! {
    /// Of the capacity: fragments matter only if memory is short.
    SHORT: Share = 0.70;
    /// Of the free memory: no large request can use it.
    FRAGMENTATION: Share = 0.50;
}

fn check(facts: &Facts) -> Option<Finding> {
    facts.memory.iter().find_map(|memory| {
        let (peak, capacity, share) = (memory.peak_bytes?, memory.capacity_bytes?, memory.fragmentation?);
        (capacity > 0.0 && peak / capacity >= SHORT && share >= FRAGMENTATION).then(|| {
            let cause = Fragments { allocator: memory.allocator.clone(), share };
            Finding::new(&RULE, Severity::Warning, cause, facts.framework())
                .about(memory.allocator.clone())
                .sure(0.7)
        })
    })
}

/// Free memory in pieces.
#[derive(Clone, Debug)]
pub struct Fragments {
    /// The allocator.
    pub allocator: String,
    /// The share of free memory that no large request can use.
    pub share: f64,
}

impl Cause for Fragments {
    fn words(&self, finding: &Finding) -> Words {
        Words {
            summary: format!(
                "Memory fragmentation: {} of the free memory of {} is in pieces too small for large requests.",
                share(self.share),
                quoted(&self.allocator)
            ),
            evidence: lines(["Measured at the peak, when memory is short."]),
            advice: lines([
                fewer_pieces(finding.framework),
                "Pad batches to a few sizes: each new size cuts memory into more pieces.",
            ]),
        }
    }
}

fn fewer_pieces(framework: Framework) -> &'static str {
    match framework {
        Framework::PyTorch => "Let segments grow: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.",
        Framework::TensorFlow | Framework::Keras => {
            "Use the driver's own pool: `TF_GPU_ALLOCATOR=cuda_malloc_async`."
        }
        Framework::Jax => {
            "Take memory once at the start: leave `XLA_PYTHON_CLIENT_PREALLOCATE` on, and use few different shapes."
        }
        Framework::Unknown => "Use few different sizes, and allocate the large ones first.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, Fragments { allocator: "bfc".into(), share: 0.6 });
    }
}
