//! Products run in float32 although the device multiplies 16 bits much faster.
//!
//! # What it means
//! The compiled program multiplies matrices of float32, or asks for exact float32 (`precision=HIGHEST`). The matrix units of
//! the device do several times as much in bfloat16.
//!
//! # How it is detected
//! By the types of operands and the precision that each product states, and the device's peaks. Only products that computing
//! limits count, not those that wait for memory. What the faster type saves at most, by the ratio of peaks, must be at least {NOTABLE}
//! of the step; units that are not at least {FASTER} times as fast are not worth a change.
//!
//! # How to fix it
//! JAX: parameters and activations in `jnp.bfloat16`; `jax.default_matmul_precision("bfloat16")` for products alone.
//!
//! TensorFlow and Keras: `tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")`.
//!
//! Watch the loss.
//!
//! # How to check
//! `stepscope hlo roofline PATH` shows `bf16` in the column `type`, and the step is shorter.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::programs::{Bound, MatrixType, Peaks, ProgramOp};
use stepscope_text::{quoted, short};

use super::low_precision_unused;
use super::shared::programs::lines_of;
use super::shared::{of_step, severity};
use crate::facts::{Facts, ProgramPart};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;

/// The rule.
pub static RULE: Rule = Rule {
    id: "float32-matmul",
    about: About::Cause,
    view: "hlo_roofline",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("float32_matmul.rs"),
};

thresholds! {
    /// Less is lost again in conversions.
    FASTER: Number = 1.5;
}

fn check(facts: &Facts) -> Option<Finding> {
    let peaks = facts.programs.peaks.as_ref()?;
    let part = facts.program_part(|op| Some(op.totals.own.ms() * (1.0 - 1.0 / faster(op, peaks)?)))?;
    let owned = of_step(facts, part.ms * part.winnable);
    (owned >= NOTABLE).then(|| {
        let (claims, winnable) = (vec![(Category::Compute, part.ms)], part.winnable);
        let subject = part.largest.first().map(|op| op.op.clone());
        let speedup = 1.0 / (1.0 - winnable).max(f64::MIN_POSITIVE);
        let cause = Wide { part, speedup, device: peaks.device_name().to_owned() };
        Finding::new(&RULE, severity(owned), cause, facts.framework())
            .about(subject)
            .owning(claims, Some(winnable))
            .sure(0.7)
            .yielding_to(&low_precision_unused::RULE)
    })
}

/// How many times as fast the device would multiply in 16 bits; `None` if the instruction is no such product.
fn faster(op: &ProgramOp, peaks: &Peaks) -> Option<f64> {
    let kind = op.facts.cost.matrix_type()?;
    if !matches!(kind, MatrixType::F32 | MatrixType::F32Exact)
        || op.bound(Some(peaks)) != Some(Bound::Compute)
    {
        return None;
    }
    let ratio = peaks.matrix(MatrixType::Bf16)? / peaks.matrix(kind)?;
    (ratio >= FASTER).then_some(ratio)
}

/// Products in float32.
#[derive(Clone, Debug)]
pub struct Wide {
    /// The instructions.
    pub part: ProgramPart,
    /// How many times as fast the device multiplies in 16 bits.
    pub speedup: f64,
    /// The device.
    pub device: String,
}

impl Cause for Wide {
    fn words(&self, finding: &Finding) -> Words {
        let mut evidence = vec![format!(
            "With bfloat16, {} multiplies up to {} times as fast.",
            quoted(&self.device),
            short(self.speedup)
        )];
        evidence.extend(lines_of(&self.part.largest));
        let narrow = match finding.framework {
            Framework::Jax => {
                "Keep parameters and activations in `jnp.bfloat16`, or round products alone: \
                 `jax.default_matmul_precision(\"bfloat16\")`."
            }
            Framework::TensorFlow | Framework::Keras => {
                "Compute in 16 bits: `tf.keras.mixed_precision.set_global_policy(\"mixed_bfloat16\")`."
            }
            _ => "Compute products in bfloat16.",
        };
        Words {
            summary: format!("Float32 products: products in float32 take {}.", finding.owned(self.part.ms)),
            evidence,
            advice: vec![
                narrow.to_owned(),
                "Watch the loss: lower precision is safe for most models, but not for all.".to_owned(),
            ],
        }
    }

    fn refines(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::work::programs::{Cost, OpFacts, Programs};

    use super::*;
    use crate::rules::shared::programs::{sample, testing};
    use crate::rules::testing::speaks;

    /// A device that does this many float32 operations per second, and 16e12 of 16 bits.
    fn found(share: f64, kind: MatrixType, single: f64) -> Option<Finding> {
        let mut peaks = Peaks::given(Some(16e12), Some(1e12));
        peaks.matrix[MatrixType::F32 as usize] = Some(single);
        let mut cost = Cost { bytes: 1, ..Cost::default() };
        cost.matrix[kind as usize] = 1_000_000;
        let ops = vec![testing::op("dot.1", share, OpFacts { cost, ..OpFacts::default() })];
        check(&testing::facts(Programs { ops, peaks: Some(peaks), ..Programs::default() }))
    }

    #[test]
    fn what_sixteen_bits_save_decides() {
        assert!(found(0.21, MatrixType::F32, 8e12).is_some(), "half of a fifth");
        assert!(found(0.19, MatrixType::F32, 8e12).is_none());
        assert!(found(0.9, MatrixType::F32, 12e12).is_none(), "hardly faster");
        assert!(found(0.9, MatrixType::Bf16, 8e12).is_none(), "in 16 bits already");
    }

    #[test]
    fn it_speaks() {
        speaks(&RULE, Wide { part: sample(), speedup: 8.0, device: "TPU v5".to_owned() });
    }
}
