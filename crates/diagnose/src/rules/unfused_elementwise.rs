//! Elementwise kernels follow one another that one kernel could replace.
//!
//! # What it means
//! Each kernel reads and writes whole tensors for one operation per element. A compiler turns such a chain into one kernel,
//! which reads and writes once.
//!
//! # How it is detected
//! Two or more such kernels run in a row with nothing else between them. They are known by their names: PyTorch's eager
//! kernels, TensorFlow's, and XLA's for single ops; what a compiler already fused is excluded. If a kernel repeats, a new
//! chain starts: it is most likely the same op on the next tensor. All but the longest kernel of each chain must add up to
//! at least {FUSABLE} of the step; that is also the promise. The finding is a `warning` at most: whether a kernel reads
//! what the one before it wrote is likely, but not recorded.
//!
//! # How to fix it
//! PyTorch: `torch.compile(model)`, fused optimizers.
//!
//! TensorFlow: `@tf.function(jit_compile=True)`.
//!
//! Keras: `jit_compile=True`.
//!
//! JAX: one `jax.jit` around the step.
//!
//! # How to check
//! `stepscope kernels PATH` shows fewer and longer kernels, and the step is shorter.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{quoted, several, share, short};

use super::shared::of_step;
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of};
use crate::thresholds::FUSABLE;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "unfused-elementwise",
    about: About::Cause,
    view: "kernels",
    check: Check::Profile(check),
    thresholds: &[],
    source: doc_of!("unfused_elementwise.rs"),
};

fn check(facts: &Facts) -> Option<Finding> {
    let detail = facts.detail.as_ref()?;
    let chains = &detail.chains;
    let (share, winnable) = (chains.time.fraction_of(chains.all), chains.winnable.fraction_of(chains.all));
    let compute = facts.ms(Category::Compute);
    (of_step(facts, compute * winnable) >= FUSABLE).then(|| {
        let cause = Chains {
            kernels_per_step: chains.kernels as f64 / detail.steps.max(1) as f64,
            length: chains.kernels as f64 / chains.chains.max(1) as f64,
            share,
            winnable,
            example: chains.example.clone(),
        };
        Finding::new(&RULE, Severity::Warning, cause, facts.framework())
            .owning(vec![(Category::Compute, compute * share)], Some(winnable / share))
            .sure(0.75)
    })
}

/// Elementwise kernels in a row.
#[derive(Clone, Debug)]
pub struct Chains {
    /// Kernels per step in such chains.
    pub kernels_per_step: f64,
    /// Kernels per chain, on average.
    pub length: f64,
    /// The share of kernel time that they take.
    pub share: f64,
    /// The share of kernel time that one kernel per chain saves at most.
    pub winnable: f64,
    /// The kernel with the most time.
    pub example: Option<String>,
}

impl Cause for Chains {
    fn words(&self, finding: &Finding) -> Words {
        let fuse = match finding.framework {
            Framework::PyTorch => "Fuse them: `torch.compile(model)`; for the optimizer `fused=True`.",
            Framework::Keras => "Fuse them: `model.compile(..., jit_compile=True)`.",
            Framework::TensorFlow => "Fuse them: `@tf.function(jit_compile=True)` around the step.",
            Framework::Jax => "Fuse them: one `jax.jit` around the whole step, optimizer included.",
            Framework::Unknown => {
                "Fuse them with a compiler (`torch.compile`, XLA), or write one kernel for all operations per element."
            }
        };
        let mut evidence = vec![
            format!(
                "{} per step in chains of {} on average.",
                several(self.kernels_per_step, "elementwise kernel runs", "elementwise kernels run"),
                short(self.length)
            ),
            format!(
                "One kernel per chain saves at most {} of kernel time: all but the longest kernel of each.",
                share(self.winnable)
            ),
        ];
        evidence.extend(
            self.example.as_deref().map(|kernel| format!("The costliest of them is {}.", quoted(kernel))),
        );
        Words {
            summary: format!(
                "Unfused elementwise: {} of kernel time goes to chains of elementwise kernels that could be fused.",
                share(self.share)
            ),
            evidence,
            advice: lines([fuse, "List them: `stepscope kernels PATH`."]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        let example = Some("void at::native::vectorized_elementwise_kernel<4, Add>(int)".into());
        speaks(&RULE, Chains { kernels_per_step: 300.0, length: 4.5, share: 0.4, winnable: 0.25, example });
    }
}
