//! The host is blocked on a device that is idle, or that is idle afterwards.
//!
//! # What it means
//! The host waits although it does not need to, or right after a launch. That costs time while it waits, and again
//! afterwards: the host could not prepare any work meanwhile.
//!
//! # How it is detected
//! `sync`, without the time that copies block, and the gaps that follow a wait own at least {NOTABLE} of the step. A gap
//! counts for at most as long as the wait blocked the host, and only if `kernel-launch-bound` does not explain it. A fix
//! saves at most {GAIN} of this time.
//!
//! # How to fix it
//! Read results only when you log.
//!
//! TensorFlow and Keras: avoid `.numpy()`, `float(loss)` and callbacks that read `logs` in every batch.
//!
//! JAX: avoid `float(loss)` and `jax.block_until_ready` in every step.
//!
//! PyTorch: avoid `.item()`, `torch.cuda.synchronize()`, `if loss > x:` and `nonzero()`.
//!
//! # How to check
//! `sync` drops.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::duration_ms;

use super::shared::{of_step, severity, total};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;
use crate::words::frameworks::few_reads;

/// The rule.
pub static RULE: Rule = Rule {
    id: "sync-stall",
    about: About::Cause,
    view: "devices",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("sync_stall.rs"),
};

thresholds! {
    /// A host that runs ahead never waits for an idle device.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let after = facts.detail.as_ref().map(|detail| facts.owned_of(&detail.idle.after_waits));
    // Where launching is too slow anyway, the device would run dry without any wait.
    let launching = super::kernel_launch_bound::check(facts).is_some();
    let after = after.filter(|_| !launching).unwrap_or_default();
    let after_ms = total(&after);
    // What copies hold up is theirs.
    let in_copies = facts
        .detail
        .as_ref()
        .map_or(0.0, |detail| detail.per_step(detail.idle.in_copies.get(Category::Sync)));
    let ms = (facts.ms(Category::Sync) - in_copies).max(0.0);
    let share = of_step(facts, ms + after_ms);
    (share >= NOTABLE).then(|| {
        let claims = std::iter::once((Category::Sync, ms)).chain(after).collect();
        Finding::new(&RULE, severity(share), Blocked { ms, after_ms }, facts.framework())
            .owning(claims, Some(GAIN))
            .sure(0.8)
    })
}

/// Blocking calls.
#[derive(Copy, Clone, Debug)]
pub struct Blocked {
    /// Milliseconds per step in which the host is blocked on an idle device.
    pub ms: f64,
    /// Milliseconds per step for which the device is idle after a wait, because the host was blocked in it.
    pub after_ms: f64,
}

impl Cause for Blocked {
    fn words(&self, finding: &Finding) -> Words {
        let mut evidence = Vec::new();
        if self.ms > 0.0 {
            evidence.push(format!(
                "The host waits inside a blocking call while no kernel and no copy runs: {} per step.",
                duration_ms(self.ms)
            ));
        }
        if self.after_ms > 0.0 {
            evidence.push(format!(
                "After a wait the device is idle for {} per step: the host could not prepare work meanwhile.",
                duration_ms(self.after_ms)
            ));
        }
        let what = if self.ms >= self.after_ms {
            "the host is blocked on an idle device"
        } else {
            "the host waits for the device, which is then idle until the host catches up"
        };
        let mut advice = vec![few_reads(finding.framework).to_owned()];
        advice.extend(explicit_waits(finding.framework).map(str::to_owned));
        Words {
            summary: format!("Sync stall: {what}, {}.", finding.owned(self.ms + self.after_ms)),
            evidence,
            advice,
        }
    }
}

fn explicit_waits(framework: Framework) -> Option<&'static str> {
    match framework {
        Framework::PyTorch => Some(
            "Remove `torch.cuda.synchronize()` from the loop, and `if loss > x:` or `tensor.nonzero()`, which wait \
             too.",
        ),
        Framework::Jax => Some("Call `jax.block_until_ready` once after the loop, not in every step."),
        Framework::Keras => Some(
            "Callbacks that read `logs` in `on_train_batch_end` wait for the device in every batch: read them every \
             hundred batches.",
        ),
        Framework::TensorFlow | Framework::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, Blocked { ms: 4.0, after_ms: 0.0 });
        speaks(&RULE, Blocked { ms: 1.0, after_ms: 3.0 });
    }
}
