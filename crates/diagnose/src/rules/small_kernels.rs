//! Kernels are so short that starting each costs about as much as running it.
//!
//! # What it means
//! Fused kernels, larger batches or captured graphs would do the same work with less overhead.
//!
//! # How it is detected
//! At least {MANY} kernels run per step, and they take {SMALL_KERNEL} or less on average. The finding claims no time: if
//! the device is idle because of them, that time belongs to `kernel-launch-bound`.
//!
//! # How to fix it
//! Launch fewer and longer kernels, as for `kernel-launch-bound`.
//!
//! TensorFlow and Keras: `jit_compile=True`, `steps_per_execution`.
//!
//! JAX: the whole step under one `jax.jit`.
//!
//! PyTorch: `torch.compile(mode="reduce-overhead")`, fused optimizers.
//!
//! # How to check
//! `stepscope kernels PATH` shows fewer and longer kernels.

use stepscope_text::short;

use super::shared::kernels::Launches;
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::SMALL_KERNEL;

/// The rule.
pub static RULE: Rule = Rule {
    id: "small-kernels",
    about: About::Habits,
    view: "kernels",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("small_kernels.rs"),
};

thresholds! {
    /// A handful of short kernels costs nothing.
    MANY: Number = 100.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let launches = Launches::of(facts)?;
    let many = launches.per_step >= MANY && launches.mean_us <= SMALL_KERNEL;
    many.then(|| Finding::new(&RULE, Severity::Info, ShortKernels(launches), facts.framework()).sure(0.7))
}

/// Many short kernels.
#[derive(Clone, Debug)]
pub struct ShortKernels(pub Launches);

impl Cause for ShortKernels {
    fn words(&self, finding: &Finding) -> Words {
        let ShortKernels(launches) = self;
        Words {
            summary: format!(
                "Small kernels: {} per step of {} µs each; starting one costs about as much as running it.",
                launches.many(),
                short(launches.mean_us)
            ),
            evidence: launches.evidence(),
            advice: launches.advice(finding),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, ShortKernels(Launches::sample()));
        speaks(&RULE, ShortKernels(Launches { replays: true, ..Launches::sample() }));
    }
}
