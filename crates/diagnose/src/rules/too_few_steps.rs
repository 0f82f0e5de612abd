//! Too few steps were recorded to say how they vary.
//!
//! # What it means
//! It is unknown how steps vary, and whether the recorded ones are typical.
//!
//! # How it is detected
//! Fewer than {FEW_STEPS} steps count.
//!
//! # How to fix it
//! Record at least ten steps.
//!
//! Keras: `TensorBoard(logdir, profile_batch=(10, 20))`.
//!
//! TensorFlow and JAX: start the profiler after step 10, stop it after step 20.
//!
//! PyTorch: `schedule(wait=5, warmup=5, active=10)`.
//!
//! # How to check
//! The step line of the report shows ten steps or more.

use stepscope_analyze::steps::How;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of};
use crate::thresholds::FEW_STEPS;
use crate::words;
use crate::words::frameworks::capture;

/// The rule.
pub static RULE: Rule = Rule {
    id: "too-few-steps",
    about: About::Trust { rank: 4 },
    view: "steps",
    check: Check::Profile(check),
    thresholds: &[],
    source: doc_of!("too_few_steps.rs"),
};

fn check(facts: &Facts) -> Option<Finding> {
    let host = facts.summary.bound()?;
    let few = !host.whole_capture && (facts.summary.count as f64) < FEW_STEPS;
    few.then(|| {
        let cause = FewSteps { count: facts.summary.count, how: host.how.clone() };
        Finding::new(&RULE, Severity::Warning, cause, facts.recorder())
    })
}

/// Few steps.
#[derive(Clone, Debug)]
pub struct FewSteps {
    /// How many count.
    pub count: usize,
    /// By what they were found.
    pub how: How,
}

impl Cause for FewSteps {
    fn words(&self, finding: &Finding) -> Words {
        let summary = match self.count {
            0 => "Too few steps: no complete step was recorded, so it is unknown what is typical.".to_owned(),
            1 => "Too few steps: only one complete step was recorded; it may not be typical.".to_owned(),
            some => format!("Too few steps: only {some} steps count; it is unknown how steps vary."),
        };
        Words {
            summary,
            evidence: vec![format!("Steps are {}.", words::how(&self.how))],
            advice: vec![format!("Record at least ten steps: {}.", capture(finding.framework))],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        for count in 0..3 {
            speaks(&RULE, FewSteps { count, how: How::Marker("train".into()) });
        }
    }
}
