//! The model's products reach little of what the device can do.
//!
//! # What it means
//! MFU (model FLOPs utilisation) is the share of the peak that the model's matrix operations reach while programs run. A low
//! one means that the time goes elsewhere: to products that are too small or badly shaped, to work that memory limits, to
//! waiting inside kernels.
//!
//! # How it is detected
//! `compute` owns at least {COMPUTE} of the step, instructions with products take at least {PRODUCTS} of that, and their model
//! FLOPs, each type against its own peak, reach less than {LOW}. Recomputation does not count. The promise is the time above
//! {REACHABLE} of the peak of whatever limits each instruction. Peaks come from the profile or from data sheets; on CPUs they are
//! unknown, and there is no finding.
//!
//! # How to fix it
//! Begin with the instructions that the finding names: larger batches, dimensions that are multiples of 128, 16 bits, fewer
//! and larger products.
//!
//! # How to check
//! `stepscope hlo modules PATH` shows a higher `MFU`.

use stepscope_analyze::Category;
use stepscope_analyze::work::programs::{ProgramOp, Usage};
use stepscope_text::{duration_ms, quoted, share};

use super::shared::programs::named;
use super::shared::{of_step, severity};
use crate::facts::{Facts, ProgramPart, computes};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;

/// The rule.
pub static RULE: Rule = Rule {
    id: "low-mfu",
    about: About::Cause,
    view: "hlo_roofline",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("low_mfu.rs"),
};

thresholds! {
    /// Where the device mostly waits, what it does while it works matters less.
    COMPUTE: Share = 0.50;
    /// With less, the model is not made of products, and their rate says nothing about it.
    PRODUCTS: Share = 0.30;
    /// Well-tuned training reaches 40 to 60 %.
    LOW: Share = 0.30;
    /// The best kernels reach this share of a peak.
    REACHABLE: Share = 0.85;
}

fn check(facts: &Facts) -> Option<Finding> {
    let peaks = facts.programs.peaks.as_ref()?;
    if facts.share(Category::Compute) < COMPUTE {
        return None;
    }
    let multiplies = |op: &ProgramOp| op.facts.known && op.facts.cost.matrix_flops() > 0;
    let products = facts.program_part(|op| multiplies(op).then_some(0.0))?;
    let computing = || facts.programs.ops.iter().filter(|op| computes(op));
    let time: f64 = computing().map(|op| op.totals.own.ms()).sum();
    let mfu = Usage::of(peaks, computing(), time)?.model;
    if products.share < PRODUCTS || mfu >= LOW {
        return None;
    }
    let part = facts.program_part(|op| {
        let least = op.bound_time(peaks)?.least_ms / REACHABLE;
        Some((op.totals.own.ms() - least).max(0.0))
    })?;
    let owned = of_step(facts, part.ms * part.winnable);
    (owned >= NOTABLE).then(|| {
        let (claims, winnable) = (vec![(Category::Compute, part.ms)], part.winnable);
        let subject = part.largest.first().map(|op| op.op.clone());
        let source = peaks.source.words();
        let cause = LowMfu { part, mfu, device: peaks.device_name().to_owned(), source };
        Finding::new(&RULE, severity(owned), cause, facts.framework())
            .about(subject)
            .owning(claims, Some(winnable))
            .sure(0.6)
    })
}

/// What the model reaches of the peak.
#[derive(Clone, Debug)]
pub struct LowMfu {
    /// The instructions whose least time is known.
    pub part: ProgramPart,
    /// The share of the peak.
    pub mfu: f64,
    /// The device.
    pub device: String,
    /// Where its peaks come from.
    pub source: &'static str,
}

impl Cause for LowMfu {
    fn words(&self, _: &Finding) -> Words {
        let mut evidence = vec![format!("Peaks of {}, {}.", quoted(&self.device), self.source)];
        evidence.extend(self.part.largest.iter().map(|op| {
            let line = named(op);
            format!(
                "{}, {} of it above the least possible.",
                line.trim_end_matches('.'),
                duration_ms(op.saved_ms)
            )
        }));
        Words {
            summary: format!(
                "Low MFU: while programs run, the model's products reach {} of what {} can do.",
                share(self.mfu),
                quoted(&self.device)
            ),
            evidence,
            advice: vec![
                "Begin with the instructions above: larger batches, dimensions that are multiples of 128, 16 bits.".to_owned(),
                "See what limits each of them: `stepscope hlo roofline PATH --sort waste_ms`.".to_owned(),
            ],
        }
    }

    fn refines(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::work::programs::{Cost, MatrixType, OpFacts, Peaks, Programs};

    use super::*;
    use crate::rules::shared::programs::{sample, testing};
    use crate::rules::testing::speaks;

    /// A product that takes this share of the step and reaches this share of the peak in it.
    fn found(share: f64, reached: f64) -> Option<Finding> {
        let mut cost = Cost { bytes: 1, ..Cost::default() };
        cost.matrix[MatrixType::Bf16 as usize] = (share * 100.0 * reached * 1e9) as u64;
        let ops = vec![testing::op("dot.1", share, OpFacts { cost, ..OpFacts::default() })];
        let peaks = Some(Peaks::given(Some(1e12), Some(1e12)));
        check(&testing::facts(Programs { ops, peaks, ..Programs::default() }))
    }

    #[test]
    fn a_low_share_of_the_peak_in_products_is_worth_a_word() {
        assert!(found(1.0, 0.29).is_some());
        assert!(found(1.0, 0.31).is_none());
        assert!(found(0.29, 0.2).is_none(), "hardly any products");
    }

    #[test]
    fn it_speaks() {
        let device = "TPU v6 Lite".to_owned();
        speaks(&RULE, LowMfu { part: sample(), mfu: 0.12, device, source: "stated by the profile" });
    }
}
