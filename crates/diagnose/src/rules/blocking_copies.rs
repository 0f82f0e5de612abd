//! Copies block the host, so that the device is idle during or after them.
//!
//! # What it means
//! A call that waits for its copy (a synchronous one, or one from pageable memory) keeps the host from queueing the next
//! work. The device is idle meanwhile, or runs dry when the copy is done.
//!
//! # How it is detected
//! Two kinds of idle time count: inside copying calls that wait for their copy (synchronous calls, calls with pageable
//! memory, and any that take longer than {RETURNS_WITHIN}), and in the gaps right after them, for at most as long as the call blocked
//! the host. Together they own at least {NOTABLE} of the step. Gaps after copies count only if `kernel-launch-bound` does
//! not explain them. The copies themselves do not count. A fix saves at most {GAIN} of this time.
//!
//! # How to fix it
//! Use pinned memory and calls that do not wait. Read fewer results back. Launch the next work before you wait for a copy.
//!
//! # How to check
//! The device's busy share rises.

use stepscope_analyze::Shares;
use stepscope_text::duration_ms;

use super::shared::copies::{known, may_pin, pin};
use super::shared::{of_step, severity, total};
use crate::facts::{CopyFacts, Facts};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;
use crate::words::frameworks::few_reads;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "blocking-copies",
    about: About::Cause,
    view: "devices",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("blocking_copies.rs"),
};

thresholds! {
    /// A call that does not wait for its copy returns sooner.
    RETURNS_WITHIN: Microseconds = stepscope_analyze::states::launches::RETURNS_WITHIN.ps() as f64 / 1e6;
    /// A host that does not wait keeps the device busy.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let idle = &facts.detail.as_ref()?.idle;
    let copies = facts.copies().unwrap_or_default();
    // Where launching is too slow anyway, the device would run dry without any copy.
    let launching = super::kernel_launch_bound::check(facts).is_some();
    let mut owned = Shares::default();
    owned.add_all(&idle.in_copies);
    if !launching {
        owned.add_all(&idle.after_copies);
    }
    let ms = |shares: &Shares| total(&facts.owned_of(shares));
    let (in_ms, all_ms) = (ms(&idle.in_copies), ms(&owned));
    let share = of_step(facts, all_ms);
    (share >= NOTABLE).then(|| {
        let cause = Blocking { copies, in_ms, after_ms: all_ms - in_ms };
        Finding::new(&RULE, severity(share), cause, facts.framework())
            .owning(facts.owned_of(&owned), Some(GAIN))
            .sure(0.7)
    })
}

/// Copies that block the host.
#[derive(Clone, Debug)]
pub struct Blocking {
    /// What is known of them.
    pub copies: CopyFacts,
    /// Milliseconds per step in which the device is idle while a copy blocks the host.
    pub in_ms: f64,
    /// Milliseconds per step for which the device is idle after copies that blocked the host.
    pub after_ms: f64,
}

impl Cause for Blocking {
    fn words(&self, finding: &Finding) -> Words {
        let mut advice = Vec::new();
        if may_pin(Some(&self.copies)) {
            advice.push(pin(finding.framework).to_owned());
        }
        advice.extend(lines([
            few_reads(finding.framework),
            "Launch the next work before you wait for a copy, so that the device stays busy.",
        ]));
        let mut evidence = known(&self.copies);
        if self.in_ms > 0.0 {
            evidence.push(format!(
                "The host is blocked inside copy calls while the device is idle: {} per step.",
                duration_ms(self.in_ms)
            ));
        }
        if self.after_ms > 0.0 {
            evidence.push(format!(
                "After such calls the device is idle for {} per step, until the host launches again.",
                duration_ms(self.after_ms)
            ));
        }
        let when = if self.in_ms >= self.after_ms { "meanwhile" } else { "afterwards" };
        Words {
            summary: format!(
                "Blocking copies: copies block the host, and the device is idle {when} for {}.",
                finding.owned(self.in_ms + self.after_ms)
            ),
            evidence,
            advice,
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
        speaks(&RULE, Blocking { copies: sample(None), in_ms: 2.0, after_ms: 3.0 });
        speaks(&RULE, Blocking { copies: sample(Some(1.0)), in_ms: 3.0, after_ms: 0.0 });
    }
}
