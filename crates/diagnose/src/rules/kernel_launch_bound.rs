//! The device waits for the host to launch its kernels.
//!
//! # What it means
//! Kernels are shorter than the calls that start them, so one thread cannot keep the device busy.
//!
//! # How it is detected
//! The device is busy for less than {BUSY} of the time, `launch` and `dispatch` own at least {FEEDING} of the step, and
//! kernels are shorter than {LAUNCH_RATIO} times the median launch call, or at most {SMALL_KERNEL} long. For longer kernels,
//! the share must be at least {SEVERE}: a few long ones among many short ones raise the mean. Calls for copies
//! are not launch calls. Time in which memory is allocated, the runtime is set up or a copy blocks the host does not count:
//! other launches would not shorten it. A program that starts at least {REPLAYED} of its kernels through graphs is
//! excluded. A fix saves at most {GAIN} of this time.
//!
//! # How to fix it
//! Launch fewer and longer kernels. Larger batches always help.
//!
//! TensorFlow and Keras: `jit_compile=True`, `steps_per_execution`.
//!
//! JAX: the whole step under one `jax.jit`.
//!
//! PyTorch: `torch.compile(mode="reduce-overhead")`, which captures CUDA graphs; fused optimizers.
//!
//! # How to check
//! The device's busy share rises in `stepscope devices PATH`.

use stepscope_analyze::Category;

use super::shared::kernels::Launches;
use super::shared::{of_step, severity, total};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::{SEVERE, SMALL_KERNEL};

/// The rule.
pub static RULE: Rule = Rule {
    id: "kernel-launch-bound",
    about: About::Habits,
    view: "kernels",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("kernel_launch_bound.rs"),
};

thresholds! {
    /// A device that is busier does not wait for launches.
    BUSY: Share = 0.80;
    /// Some launching is part of every step; a fifth of it is more than a well-fed device shows.
    FEEDING: Share = 0.20;
    /// Kernels shorter than the calls that launch them cannot keep a device busy from one thread.
    LAUNCH_RATIO: Number = 1.0;
    /// Fewer launches still have to be launched.
    GAIN: Share = 0.90;
}

const CATEGORIES: [Category; 2] = [Category::Launch, Category::Dispatch];

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let launches = Launches::of(facts)?;
    let claims = CATEGORIES.map(|category| (category, facts.own_ms(category))).to_vec();
    let share = of_step(facts, total(&claims));
    let short = launches.launch_us.is_some_and(|launch| launches.mean_us < launch * LAUNCH_RATIO)
        || launches.mean_us <= SMALL_KERNEL;
    // Longer kernels can hide their launches, if they follow one another: then only a large share is a sign.
    let enough = if short { FEEDING } else { SEVERE };
    if launches.busy >= BUSY || share < enough || launches.replays {
        return None;
    }
    let finding = Finding::new(&RULE, severity(share), LaunchWait(launches), facts.framework());
    Some(finding.owning(claims, Some(GAIN)).sure(if short { 0.85 } else { 0.75 }))
}

/// A device that waits for launches.
#[derive(Clone, Debug)]
pub struct LaunchWait(pub Launches);

impl Cause for LaunchWait {
    fn words(&self, finding: &Finding) -> Words {
        let LaunchWait(launches) = self;
        Words {
            summary: format!(
                "Kernel-launch-bound: the device waits {} for the host to launch its {}.",
                finding.owned(finding.claimed_ms()),
                launches.many()
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
        speaks(&RULE, LaunchWait(Launches::sample()));
    }
}
