//! Matrix kernels run without the device's matrix units.
//!
//! # What it means
//! The kernels run in FP32 on the ordinary units of a device that has matrix units (tensor cores). With TF32 or 16 bits
//! they would run several times faster.
//!
//! # How it is detected
//! Such kernels take at least {KERNEL_SHARE} of kernel time. The promise is what 16 bits save at most, by the ratio of
//! peaks: 94 % of the kernels' time on an A100 or H100, half of it on a GeForce since the 30 series. TF32 saves up to 87 %
//! on an A100 and next to nothing on such a GeForce. Kernels that wait for memory gain less. If the device waits
//! for the host to launch for {PACED_BY_HOST} of the step or more, the host sets the pace: the finding is `info` and promises
//! nothing.
//!
//! # How to fix it
//! PyTorch: `torch.set_float32_matmul_precision("high")`, `torch.autocast("cuda", dtype=torch.bfloat16)`.
//!
//! TensorFlow and Keras: `tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")`; leave TF32 on.
//!
//! JAX: `jax.config.update("jax_default_matmul_precision", "tensorfloat32")`, `jnp.bfloat16`.
//!
//! Watch the loss.
//!
//! # How to check
//! `stepscope kernels PATH` shows other kernel names, and the step is shorter.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{quoted, share, short};

use super::shared::{of_step, severity};
use crate::facts::{DeviceWork, Facts, WithoutMatrixUnits};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::KERNEL_SHARE;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "low-precision-unused",
    about: About::Cause,
    view: "kernels",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("low_precision_unused.rs"),
};

thresholds! {
    /// If launching takes so much of the step while the device is idle, shorter kernels let it wait longer.
    PACED_BY_HOST: Share = 0.50;
}

fn check(facts: &Facts) -> Option<Finding> {
    let found = facts.get::<Option<DeviceWork>>().as_ref().as_ref()?.without_matrix_units.clone()?;
    (found.share >= KERNEL_SHARE).then(|| {
        let owned = facts.ms(Category::Compute) * found.share;
        let won = 1.0 - 1.0 / found.speedup.max(1.0);
        // If the device waits for launches most of the time, it does so even longer after shorter kernels.
        let starting = [Category::Launch, Category::Dispatch, Category::Python];
        let paced_by_host = facts.shares(&starting) >= PACED_BY_HOST;
        let severity = if paced_by_host { Severity::Info } else { severity(of_step(facts, owned * won)) };
        let kernel = found.kernel.clone();
        Finding::new(&RULE, severity, found, facts.framework())
            .about(kernel)
            .owning(vec![(Category::Compute, owned)], (!paced_by_host).then_some(won))
            .sure(0.8)
    })
}

impl Cause for WithoutMatrixUnits {
    fn words(&self, finding: &Finding) -> Words {
        let mut advice = lower_precision(finding.framework, self.only_half);
        advice.extend(lines(["Watch the loss: lower precision is safe for most models, but not for all."]));
        Words {
            summary: format!(
                "Low precision unused: {} of kernel time is matrix work without the device's matrix units.",
                share(self.share)
            ),
            evidence: vec![
                format!("The costliest such kernel is {}.", quoted(&self.kernel)),
                format!("With 16 bits, the matrix units are up to {} times as fast.", short(self.speedup)),
            ],
            advice,
        }
    }
}

/// Units before compute capability 8.0 know neither TF32 nor bfloat16.
fn lower_precision(framework: Framework, only_half: bool) -> Vec<String> {
    match framework {
        Framework::PyTorch if only_half => lines([
            "Train in 16 bits: `with torch.autocast(\"cuda\", dtype=torch.float16):` around forward and loss, with a \
             `torch.amp.GradScaler`.",
        ]),
        Framework::TensorFlow | Framework::Keras if only_half => {
            lines(["Train in 16 bits: `tf.keras.mixed_precision.set_global_policy(\"mixed_float16\")`."])
        }
        Framework::Jax if only_half => lines(["Keep activations in `jnp.float16`, with a scaled loss."]),
        Framework::Unknown if only_half => lines(["Use float16 for matrix products."]),
        Framework::PyTorch => lines([
            "Allow TF32: `torch.set_float32_matmul_precision(\"high\")`.",
            "Or train in 16 bits: `with torch.autocast(\"cuda\", dtype=torch.bfloat16):` around forward and loss.",
        ]),
        Framework::TensorFlow | Framework::Keras => lines([
            "Train in 16 bits: `tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")` (or \
             `\"mixed_float16\"` on older devices).",
            "Check that TF32 is not switched off: `tf.config.experimental.enable_tensor_float_32_execution(True)`.",
        ]),
        Framework::Jax => lines([
            "Allow TF32: `jax.config.update(\"jax_default_matmul_precision\", \"tensorfloat32\")`.",
            "Or keep parameters and activations in `jnp.bfloat16`.",
        ]),
        Framework::Unknown => lines(["Use TF32, bfloat16 or float16 for matrix products."]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        for only_half in [false, true] {
            let kernel = "sgemm_128x64".to_owned();
            speaks(&RULE, WithoutMatrixUnits { share: 0.7, kernel, speedup: 8.0, only_half });
        }
    }
}
