//! One of the program's own ranges takes much of the step, and nothing inside it was recorded.
//!
//! # What it means
//! The recording has ranges that the program marks (NVTX, `record_function`), and hardly anything else. They show where
//! the time goes, but not why.
//!
//! # How it is detected
//! Steps are known, no device is missing, at least {UNEXPLAINED} of the step is `unknown` or `idle`, and one range takes at
//! least {SEVERE} of the step, without the ranges nested in it. The finding promises nothing.
//!
//! # How to fix it
//! Record what runs inside the range: the device, the framework's ops, or Python frames. Or mark its parts.
//!
//! # How to check
//! `stepscope scopes PATH` shows all ranges.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::quoted;

use super::shared::ranges::Ranges;
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::SEVERE;

/// The rule.
pub static RULE: Rule = Rule {
    id: "range-dominates",
    about: About::Cause,
    view: "scopes",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("range_dominates.rs"),
};

thresholds! {
    /// If more of the step than this is explained by what ran, that says more than a range.
    UNEXPLAINED: Share = 0.50;
}

fn check(facts: &Facts) -> Option<Finding> {
    let ranges = Ranges::of(facts);
    let (name, ms, share) = ranges.named.first().cloned()?;
    let steps = facts.timeline && facts.summary.bound().is_some_and(|host| !host.whole_capture);
    let unexplained = facts.shares(&[Category::Unknown, Category::Idle]);
    (steps && unexplained >= UNEXPLAINED && share >= SEVERE).then(|| {
        let claims = vec![(Category::Unknown, ms.min(facts.ms(Category::Unknown)))];
        Finding::new(&RULE, Severity::Info, Dominates { ranges }, facts.framework())
            .owning(claims, None)
            .about(name)
            .yielding_to(&super::no_device_trace::RULE)
            .sure(0.9)
    })
}

/// Ranges, and nothing inside them.
#[derive(Clone, Debug)]
pub struct Dominates {
    /// The longest first.
    pub ranges: Ranges,
}

impl Cause for Dominates {
    fn words(&self, finding: &Finding) -> Words {
        let Some((name, ms, _)) = self.ranges.named.first() else { return Words::default() };
        let (name, taken) = (quoted(name), finding.owned(*ms));
        let record = match finding.framework {
            Framework::PyTorch => {
                "Record ops, too: `profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])`."
            }
            _ => {
                "Record what runs in it, too: `nsys profile --trace=cuda,nvtx,osrt --python-sampling=true --output=run \
                 python train.py`."
            }
        };
        Words {
            summary: format!("Range dominates: the program's range {name} takes {taken}."),
            evidence: self.ranges.evidence().collect(),
            advice: vec![record.to_owned(), format!("Or mark the parts of {name} with ranges of their own.")],
        }
    }

    fn verify(&self) -> Option<&'static str> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, Dominates { ranges: Ranges::sample() });
    }
}
