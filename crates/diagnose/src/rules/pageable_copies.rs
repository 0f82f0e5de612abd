//! Copies use memory that the system may move.
//!
//! # What it means
//! The driver stages such copies through a buffer of its own, at half the bus's speed or less, and the call waits.
//!
//! # How it is detected
//! Copies from or to pageable memory own at least {NOTABLE} of the step, not hidden, and all copies together less than the
//! limit of `transfer-bound`, which names the memory itself. A fix saves at most {GAIN} of this time.
//!
//! # How to fix it
//! PyTorch: `DataLoader(pin_memory=True)`, `x.to(device, non_blocking=True)`.
//!
//! TensorFlow and Keras: `prefetch_to_device`.
//!
//! JAX: `jax.device_put` ahead of the step.
//!
//! CUDA: `cudaMallocHost`, `cudaMemcpyAsync`.
//!
//! # How to check
//! `stepscope devices PATH` shows pinned copies and a higher bandwidth.

use stepscope_analyze::Category;

use super::shared::copies::{COPIES, known, may_pin, pin};
use super::shared::{of_step, severity, total};
use super::transfer_bound::TRANSFER;
use crate::facts::{CopyFacts, Facts};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;

/// The rule.
pub static RULE: Rule = Rule {
    id: "pageable-copies",
    about: About::Cause,
    view: "devices",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("pageable_copies.rs"),
};

thresholds! {
    /// Pinned memory makes these copies about twice as fast.
    GAIN: Share = 0.5;
}

fn check(facts: &Facts) -> Option<Finding> {
    let copies = facts.copies()?;
    let pageable = copies.pageable?;
    if facts.shares(&COPIES) >= TRANSFER {
        return None;
    }
    let owned = |category| (category, facts.ms(category) * pageable);
    let claims = vec![owned(Category::TransferIn), owned(Category::TransferOut)];
    let share = of_step(facts, total(&claims));
    (share >= NOTABLE).then(|| {
        Finding::new(&RULE, severity(share * GAIN), Pageable { copies }, facts.framework())
            .owning(claims, Some(GAIN))
            .sure(0.85)
    })
}

/// Copies that are slower than they need to be.
#[derive(Clone, Debug)]
pub struct Pageable {
    /// What is known of them.
    pub copies: CopyFacts,
}

impl Cause for Pageable {
    fn words(&self, finding: &Finding) -> Words {
        let pin = may_pin(Some(&self.copies)).then(|| pin(finding.framework).to_owned());
        Words {
            summary: format!(
                "Pageable copies: copies from or to pageable memory take {}.",
                finding.owned(finding.claimed_ms())
            ),
            evidence: known(&self.copies),
            advice: pin.into_iter().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::shared::copies::sample;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, Pageable { copies: sample(Some(1.0)) });
    }
}
