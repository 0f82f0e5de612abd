//! Transposes only change the layout of images, because the model is built as `NHWC`.
//!
//! # What it means
//! Convolutions on GPUs run as `NCHW`. TensorFlow's layout optimizer therefore puts transposes around the ops of a model
//! that is built as `NHWC`, wherever it cannot move them together. Each reads and writes a whole activation.
//!
//! # How it is detected
//! Transposes whose names end in `-LayoutOptimizer` take at least {NOTABLE} of the step. A fix saves all of their time at
//! most ({GAIN}).
//!
//! # How to fix it
//! TensorFlow: build convolutions, pooling and normalisation with `data_format="NCHW"`, and transpose the images once,
//! where they come in. With float16 on tensor cores, `NHWC` is the faster layout and needs no transposes.
//!
//! Keras: `tf.keras.backend.set_image_data_format("channels_first")`.
//!
//! # How to check
//! `stepscope ops PATH` shows fewer `Transpose` ops.

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
    id: "layout-transposes",
    about: About::Cause,
    view: "ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("layout_transposes.rs"),
};

thresholds! {
    /// A model in the layout of its kernels needs none of them.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let cost = Layers::of(&facts.ops).layout?;
    let owned = cost.share * facts.ms(Category::Compute);
    let share = of_step(facts, owned);
    if share < NOTABLE {
        return None;
    }
    let cause = Transposes {
        share: cost.share,
        per_step: cost.ops_per_step,
        around: cost.layers.len(),
        example: cost.example,
    };
    let finding = Finding::new(&RULE, severity(share), cause, facts.framework());
    Some(finding.owning(vec![(Category::Compute, owned)], Some(GAIN)).sure(0.8))
}

/// Transposes that the layout optimizer put in.
#[derive(Clone, Debug)]
pub struct Transposes {
    /// The share of all ops' time.
    pub share: f64,
    /// How many per step.
    pub per_step: f64,
    /// Around how many ops.
    pub around: usize,
    /// The one that costs most.
    pub example: String,
}

impl Cause for Transposes {
    fn words(&self, finding: &Finding) -> Words {
        let build = match finding.framework {
            Framework::Keras => {
                "Build the model channels first: `tf.keras.backend.set_image_data_format(\"channels_first\")`."
            }
            _ => "Build convolutions, pooling and normalisation with `data_format=\"NCHW\"`.",
        };
        Words {
            summary: format!(
                "Layout transposes: {} of op time goes to transposes between NHWC and NCHW.",
                share(self.share)
            ),
            evidence: vec![
                format!(
                    "{} per step around {}.",
                    several(self.per_step, "transpose runs", "transposes run"),
                    plural(self.around as u64, "op", "ops")
                ),
                format!("The costliest of them is {}.", quoted(&self.example)),
            ],
            advice: lines([
                build,
                "With float16 on tensor cores, NHWC needs no transposes.",
                "List them: `stepscope ops PATH --filter LayoutOptimizer`.",
            ]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::words;

    #[test]
    fn it_speaks() {
        let example = "conv1/Conv2D-0-TransposeNHWCToNCHW-LayoutOptimizer".to_owned();
        let cause = Transposes { share: 0.2, per_step: 8.0, around: 4, example };
        for framework in [Framework::TensorFlow, Framework::Keras] {
            let said = words(&RULE, cause.clone(), framework);
            assert!(said.summary.starts_with("Layout transposes: 20"), "{}", said.summary);
            assert!(said.evidence[0].contains("around 4 ops"), "{}", said.evidence[0]);
        }
    }
}
