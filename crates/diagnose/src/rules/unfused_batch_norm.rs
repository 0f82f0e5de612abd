//! Batch normalisation runs as single ops instead of one fused kernel.
//!
//! # What it means
//! Mean, variance, scale and offset are ops of their own, and each reads or writes the whole activation. The fused kernel
//! reads it twice and writes it once.
//!
//! # How it is detected
//! Arithmetic ops in a scope named `BatchNorm` or `batch_normalization`, `SquaredDifference` or `Rsqrt` among them, take at
//! least {NOTABLE} of the step, gradients included. Fused kernels do not count. A fix saves at most {GAIN} of their time.
//!
//! # How to fix it
//! TensorFlow 1: `tf.compat.v1.layers.batch_normalization(..., fused=True)`, or
//! `tf.compat.v1.nn.fused_batch_norm` instead of `tf.nn.moments` with `tf.nn.batch_normalization`.
//!
//! TensorFlow 2 and Keras: compile the step with `jit_compile=True`, which fuses the ops.
//!
//! # How to check
//! `stepscope ops PATH` shows `FusedBatchNormV3` or one fused op in place of the single ops.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::layers::Layers;
use stepscope_text::{plural, quoted, several, share};

use super::shared::{of_step, severity};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "unfused-batch-norm",
    about: About::Cause,
    view: "ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("unfused_batch_norm.rs"),
};

thresholds! {
    /// Single ops pass over the activation nine times forward (mean 1, squared difference 2, its mean 1, scale 2,
    /// offset 2, and what is written between them), the fused kernel three times.
    GAIN: Share = 0.67;
}

fn check(facts: &Facts) -> Option<Finding> {
    let cost = Layers::of(&facts.ops).batch_norm?;
    let owned = cost.share * facts.ms(Category::Compute);
    let share = of_step(facts, owned);
    if share < NOTABLE {
        return None;
    }
    let cause = SingleOps {
        share: cost.share,
        ops_per_step: cost.ops_per_step,
        layers: cost.layers.len(),
        example: cost.example,
    };
    let finding = Finding::new(&RULE, severity(share), cause, facts.framework());
    Some(finding.owning(vec![(Category::Compute, owned)], Some(GAIN)).sure(0.8))
}

/// Batch normalisation made of single ops.
#[derive(Clone, Debug)]
pub struct SingleOps {
    /// The share of all ops' time.
    pub share: f64,
    /// How many per step.
    pub ops_per_step: f64,
    /// In how many layers.
    pub layers: usize,
    /// The op that costs most.
    pub example: String,
}

impl Cause for SingleOps {
    fn words(&self, finding: &Finding) -> Words {
        let fuse = match finding.framework {
            Framework::Keras => "Fuse them: `model.compile(..., jit_compile=True)`.",
            _ => {
                "Fuse them: `fused=True` in `tf.compat.v1.layers.batch_normalization`, or `jit_compile=True` for a \
                 `tf.function`."
            }
        };
        Words {
            summary: format!(
                "Unfused batch norm: {} of op time goes to batch normalisation made of single ops.",
                share(self.share)
            ),
            evidence: vec![
                format!(
                    "{} per step in {}.",
                    several(self.ops_per_step, "such op runs", "such ops run"),
                    plural(self.layers as u64, "layer", "layers")
                ),
                format!("The costliest of them is {}.", quoted(&self.example)),
            ],
            advice: lines([fuse, "List them: `stepscope ops PATH --filter (?i)batch`."]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::words;

    #[test]
    fn it_speaks() {
        let cause =
            SingleOps { share: 0.3, ops_per_step: 12.0, layers: 2, example: "conv1/BatchNorm/mul".into() };
        for framework in [Framework::TensorFlow, Framework::Keras] {
            let said = words(&RULE, cause.clone(), framework);
            assert!(said.summary.starts_with("Unfused batch norm: 30"), "{}", said.summary);
            assert!(said.advice.join(" ").contains("jit_compile=True"));
        }
    }
}
