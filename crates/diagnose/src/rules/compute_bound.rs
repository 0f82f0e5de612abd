//! Ops and kernels at work fill the step.
//!
//! # What it means
//! The step spends its time on the model. This is where tuning everything else ends.
//!
//! # How it is detected
//! `compute` owns at least {COMPUTE} of the step, and the device's side was recorded. The finding is always `info` and
//! promises no gain: a profile cannot show what a better algorithm, a lower precision or faster hardware would save.
//!
//! # How to fix it
//! Use a smaller model, a lower precision (see `low-precision-unused`), fusion (`jit_compile=True`, `torch.compile`) or
//! faster hardware.
//!
//! # How to check
//! The step gets shorter: `stepscope compare BEFORE AFTER`.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{listed, quoted};

use super::shared::ops::cost;
use crate::facts::{Facts, OpCost};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Rule, doc_of, thresholds};

/// The rule.
pub static RULE: Rule = Rule {
    id: "compute-bound",
    about: About::Cause,
    view: "ops",
    check,
    thresholds: THRESHOLDS,
    source: doc_of!("compute_bound.rs"),
};

thresholds! {
    /// Below this share, something else is a better answer than the model's own work.
    COMPUTE: Share = 0.50;
}

/// Op types named.
const NAMED: usize = 5;

/// From this share on, nothing but the model is left to tune.
const FULL: f64 = 0.8;

fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.share(Category::Compute);
    // Profiled kernels are nothing but compute.
    let bound = facts.timeline && share >= COMPUTE && !facts.summary.bound()?.device_unseen;
    bound.then(|| {
        let top = facts.ops.iter().take(NAMED).cloned().collect::<Vec<_>>();
        let subject = top.first().map(|op| op.op_type.clone());
        let cause = Compute { top, on_device: facts.on_device() };
        let finding = Finding::new(&RULE, Severity::Info, cause, facts.framework())
            .owning(facts.claims(&[Category::Compute]), None)
            .sure(0.9);
        finding.about(subject)
    })
}

/// The model's own work.
#[derive(Clone, Debug)]
pub struct Compute {
    /// The op types that cost most.
    pub top: Vec<OpCost>,
    /// On a device, rather than on the host's processor?
    pub on_device: bool,
}

impl Cause for Compute {
    fn words(&self, finding: &Finding) -> Words {
        let most =
            self.top.first().map_or(String::new(), |op| format!("; {} costs most", quoted(&op.op_type)));
        let place = if self.on_device { "the device" } else { "the processor" };
        Words {
            summary: format!(
                "Compute-bound: {place} {} for {}{most}.",
                if finding.framework == Framework::Unknown { "computes" } else { "works on the model" },
                finding.owned(finding.claimed_ms())
            ),
            evidence: self.top.iter().take(3).map(cost).collect(),
            advice: faster_model(finding, self.on_device),
        }
    }

    fn verify(&self) -> Option<&'static str> {
        None
    }
}

fn faster_model(finding: &Finding, on_device: bool) -> Vec<String> {
    let framework = finding.framework;
    let full = finding.fraction.is_some_and(|fraction| fraction >= FULL);
    let mut advice = vec![
        match (framework, finding.shares_with_others(), full) {
            (Framework::Unknown, true, _) => {
                "Most of the time is compute, and part of it can be saved: see the other findings."
            }
            (Framework::Unknown, false, true) => {
                "The processors are fed well: what remains is the kernels themselves, their precision and the hardware."
            }
            (Framework::Unknown, false, false) => {
                "Most of the time is compute. More work per call shrinks the share of everything else."
            }
            (_, true, _) => {
                "Most of the step is the model's own work, and part of it can be saved: see the other findings."
            }
            (_, false, true) if finding.stepless => {
                "The time is used well: what remains is the model itself, its precision and the hardware."
            }
            (_, false, true) => {
                "This is a healthy step: what remains is the model itself, its precision and the hardware."
            }
            (_, false, false) => {
                "Most of the step is the model's own work. Larger batches shrink the share of everything else."
            }
        }
        .to_owned(),
    ];
    let precision = match (framework, on_device) {
        (_, false) | (Framework::Unknown, true) => None,
        (Framework::TensorFlow | Framework::Keras, true) => {
            Some("`tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")`")
        }
        (Framework::PyTorch, true) => Some("`torch.autocast(\"cuda\", dtype=torch.bfloat16)`"),
        (Framework::Jax, true) => Some("parameters and activations in `jnp.bfloat16`"),
    };
    let fusing = match framework {
        Framework::Keras => Some("`model.compile(..., jit_compile=True)`"),
        Framework::TensorFlow => Some("`@tf.function(jit_compile=True)`"),
        Framework::PyTorch => Some("`torch.compile(model)`"),
        Framework::Jax | Framework::Unknown => None,
    };
    let tries: Vec<String> = precision.into_iter().chain(fusing).map(str::to_owned).collect();
    if !tries.is_empty() {
        advice.push(format!("Worth trying, if not in use yet: {}.", listed(&tries)));
    }
    let view = if on_device { "kernels" } else { "ops" };
    advice.push(format!("See what costs most: `stepscope {view} PATH`."));
    advice
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::shared::ops::sample;
    use crate::rules::testing::speaks;

    #[test]
    fn without_steps_none_is_called_healthy() {
        let cause = Compute { top: vec![sample("MatMul")], on_device: true };
        let finding = Finding::new(&RULE, Severity::Info, cause, Framework::PyTorch);
        let mut finding = Finding { fraction: Some(0.95), ..finding };
        assert!(faster_model(&finding, true)[0].contains("healthy step"));
        finding.stepless = true;
        assert!(!faster_model(&finding, true)[0].contains("step"));
    }

    #[test]
    fn it_speaks() {
        speaks(&RULE, Compute { top: vec![sample("MatMul")], on_device: true });
    }
}
