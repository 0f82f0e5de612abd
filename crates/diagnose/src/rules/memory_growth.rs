//! Memory in use grows from step to step.
//!
//! # What it means
//! Something keeps every step's tensors alive: a list of outputs, a loss that still holds its graph.
//!
//! # How it is detected
//! An allocator's bytes in use rise steadily over the steps. The finding names what was allocated and not freed: by line if
//! the recording has stacks, else by op. Memory that appears once, such as the optimizer's state in the first step, is no
//! growth.
//!
//! # How to fix it
//! Keep numbers instead of tensors.
//!
//! PyTorch: `loss.item()` or `loss.detach()`; a stored loss keeps its whole graph alive.
//!
//! TensorFlow and Keras: `float(loss)`; create variables and datasets before the loop.
//!
//! JAX: `float(loss)`, `jax.device_get`, `donate_argnums`.
//!
//! # How to check
//! `stepscope memory PATH` shows no growth.

use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{bytes, quoted, short};

use crate::facts::{Facts, Memory};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "memory-growth",
    about: About::Cause,
    view: "memory",
    check: Check::Profile(check),
    thresholds: &[],
    source: doc_of!("memory_growth.rs"),
};

fn check(facts: &Facts) -> Option<Finding> {
    let memory = facts
        .memory
        .allocators
        .iter()
        .map(Memory::of)
        .filter(|memory| memory.growth_per_step.is_some_and(|bytes| bytes > 0.0))
        .max_by(|a, b| a.growth_per_step.unwrap_or(0.0).total_cmp(&b.growth_per_step.unwrap_or(0.0)))?;
    let cause = Growth {
        allocator: memory.allocator.clone(),
        bytes_per_step: memory.growth_per_step?,
        kept: memory.kept.iter().take(3).cloned().collect(),
        failed: failed_by_growth(&memory),
    };
    let severity = if cause.failed { Severity::Critical } else { Severity::Warning };
    let finding = Finding::new(&RULE, severity, cause, facts.framework());
    Some(finding.about(memory.allocator).sure(0.8))
}

/// Whether a request failed that would have succeeded without the growth.
fn failed_by_growth(memory: &Memory) -> bool {
    let grown = memory.growth_per_step.unwrap_or(0.0) * memory.steps as f64;
    memory
        .out_of_memory
        .as_ref()
        .is_some_and(|failure| grown >= failure.requested as f64 && !failure.is_fragmentation())
}

/// Memory that grows.
#[derive(Clone, Debug)]
pub struct Growth {
    /// The allocator.
    pub allocator: String,
    /// Bytes per step.
    pub bytes_per_step: f64,
    /// What is never freed, the largest first: op or place, blocks per step.
    pub kept: Vec<(String, f64)>,
    /// Without the growth, the request that failed would have succeeded.
    pub failed: bool,
}

impl Cause for Growth {
    fn words(&self, finding: &Finding) -> Words {
        let most =
            self.kept.first().map_or(String::new(), |(what, _)| format!("; {} is not freed", quoted(what)));
        let mut evidence: Vec<String> = self
            .kept
            .iter()
            .map(|(what, blocks)| {
                format!("{}: {} per step allocated and never freed.", quoted(what), count(*blocks))
            })
            .collect();
        if evidence.is_empty() {
            evidence.extend(lines(["Memory in use grows steadily from step to step."]));
        }
        Words {
            summary: format!(
                "Memory growth: {} grows by {} per step{most}.",
                quoted(&self.allocator),
                bytes(self.bytes_per_step)
            ),
            evidence,
            advice: lines([
                let_go(finding.framework),
                "See what is kept from step to step: `stepscope memory PATH --leaks`.",
            ]),
        }
    }

    fn verify(&self) -> Option<&'static str> {
        Some("record again, then run `stepscope memory BEFORE AFTER`")
    }

    fn leads(&self) -> bool {
        self.failed
    }
}

fn count(blocks: f64) -> String {
    if (blocks - 1.0).abs() < 0.005 { "1 block".to_owned() } else { format!("{} blocks", short(blocks)) }
}

/// How to release tensors that outlive their step.
fn let_go(framework: Framework) -> &'static str {
    match framework {
        Framework::PyTorch => {
            "Keep numbers instead of tensors: `losses.append(loss.item())`. A stored loss keeps its whole graph alive \
             (`loss.detach()` if it must stay a tensor)."
        }
        Framework::Jax => {
            "Do not collect device arrays in a list: keep `float(loss)` or `jax.device_get(x)`, and donate what is \
             replaced, `jax.jit(step, donate_argnums=0)`."
        }
        Framework::TensorFlow | Framework::Keras => {
            "Do not collect outputs in a list: keep `float(loss)` or `.numpy()`, and create variables and datasets \
             before the loop."
        }
        Framework::Unknown => {
            "Do not keep each step's tensors: store numbers, or free what is no longer used."
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        let allocator = "bfc".to_owned();
        let kept = vec![("MatMul".into(), 1.0)];
        speaks(&RULE, Growth { allocator: allocator.clone(), bytes_per_step: 4e6, kept, failed: true });
        speaks(&RULE, Growth { allocator, bytes_per_step: 4e6, kept: Vec::new(), failed: false });
    }
}
