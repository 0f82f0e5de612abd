//! Collectives of a compiled program run while nothing else does.
//!
//! # What it means
//! XLA can split a collective into a start and a done, and run other instructions in between. Here most of the time of
//! collectives is in ones that are not split, or in waiting for the done: the exchange is not hidden.
//!
//! # How it is detected
//! `communication` owns at least {NOTABLE} of the step, and at least {EXPOSED} of the time that programs spend in collectives is
//! in whole ones or in waiting. The time itself belongs to `communication-bound`; this finding names the instructions and their
//! lines of source, and promises nothing more.
//!
//! # How to fix it
//! GPU: `XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true`.
//!
//! In all cases: exchange gradients per layer instead of all at the end, in 16 bits, and shard so that a layer's exchange
//! can run during the next layer.
//!
//! # How to check
//! `stepscope hlo ops PATH --filter "all-|reduce-scatter|permute"` shows less time, and `communication` shrinks.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::programs::{Exchange, ProgramOp};
use stepscope_text::{bytes, duration_ms, quoted, share};

use super::shared::{of_step, severity};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;

/// The rule.
pub static RULE: Rule = Rule {
    id: "collective-not-overlapped",
    about: About::Cause,
    view: "hlo_ops",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("collective_not_overlapped.rs"),
};

thresholds! {
    /// With less, most of the exchange runs beside other work already.
    EXPOSED: Share = 0.50;
}

/// Collectives that are named.
const NAMED: usize = 3;

fn check(facts: &Facts) -> Option<Finding> {
    let exposed_ms = facts.ms(Category::Communication);
    let owned = of_step(facts, exposed_ms);
    if owned < NOTABLE {
        return None;
    }
    let own = |op: &&ProgramOp| op.totals.own.ms();
    let of = |wanted: &[Exchange]| -> Vec<&ProgramOp> {
        let is = |op: &&ProgramOp| op.facts.exchange.is_some_and(|part| wanted.contains(&part));
        facts.programs.ops.iter().filter(is).collect()
    };
    let waiting = of(&[Exchange::Whole, Exchange::Done]);
    let time: f64 = waiting.iter().map(own).sum();
    let all = time + of(&[Exchange::Start]).iter().map(own).sum::<f64>();
    if time <= 0.0 || time < EXPOSED * all {
        return None;
    }
    let whole: f64 = of(&[Exchange::Whole]).iter().map(own).sum();
    // The longest come first.
    let named = waiting.iter().take(NAMED).map(|op| Waiting {
        op: op.op.clone(),
        origin: op.title(),
        ms: exposed_ms * op.totals.own.ms() / time,
        sent: op.facts.link_bytes,
    });
    let cause = NotOverlapped { whole: whole / time, largest: named.collect(), on_device: facts.on_device() };
    let subject = cause.largest.first().map(|op| op.op.clone());
    let severity = severity(owned).max(Severity::Warning);
    Some(Finding::new(&RULE, severity, cause, facts.framework()).about(subject).sure(0.8))
}

/// A collective that is waited for.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The instruction.
    pub op: String,
    /// What it is and where it comes from.
    pub origin: String,
    /// Milliseconds per step that are not hidden.
    pub ms: f64,
    /// Bytes that each device sends per execution at least; `None` if unknown.
    pub sent: Option<u64>,
}

/// Collectives that are not hidden.
#[derive(Clone, Debug)]
pub struct NotOverlapped {
    /// The share of that time in collectives that are not split into start and done.
    pub whole: f64,
    /// The longest.
    pub largest: Vec<Waiting>,
    /// Whether a device runs the program; without one, there is no scheduler to switch on.
    pub on_device: bool,
}

impl Cause for NotOverlapped {
    fn words(&self, finding: &Finding) -> Words {
        let mut evidence: Vec<String> = self
            .largest
            .iter()
            .map(|op| {
                let origin =
                    if op.origin == op.op { String::new() } else { format!(" ({})", quoted(&op.origin)) };
                let sent =
                    op.sent.map_or(String::new(), |sent| format!(", {} sent each time", bytes(sent as f64)));
                format!("{}{origin}: {} per step{sent}.", quoted(&op.op), duration_ms(op.ms))
            })
            .collect();
        evidence.push(format!(
            "{} of that time is in collectives that the program does not split.",
            share(self.whole)
        ));
        let schedule = match finding.framework {
            _ if !self.on_device => None,
            Framework::Jax => Some(
                "Let XLA run other work meanwhile: `XLA_FLAGS=--xla_gpu_enable_latency_hiding_scheduler=true` on GPUs.",
            ),
            _ => Some("Let XLA run other work meanwhile: switch on its latency-hiding scheduler."),
        };
        let per_layer = "Exchange per layer instead of all at the end, and in 16 bits.";
        Words {
            summary:
                "Collectives not overlapped: the program waits for its collectives instead of computing."
                    .to_owned(),
            evidence,
            advice: schedule.into_iter().chain([per_layer]).map(str::to_owned).collect(),
        }
    }

    fn refines(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::work::programs::{OpFacts, Programs};

    use super::*;
    use crate::rules::shared::programs::testing;
    use crate::rules::testing::speaks;

    fn found(communication: u16, started: f64, done: f64) -> bool {
        let part = |name: &str, share, exchange| {
            testing::op(name, share, OpFacts { exchange: Some(exchange), ..OpFacts::default() })
        };
        let ops = vec![
            part("all-reduce-start", started, Exchange::Start),
            part("all-reduce-done", done, Exchange::Done),
        ];
        let owned = [(Category::Compute, 100 - communication), (Category::Communication, communication)];
        check(&testing::facts_of(&owned, Programs { ops, ..Programs::default() })).is_some()
    }

    #[test]
    fn waiting_must_hold_most_of_the_exchange_and_a_notable_part_of_the_step() {
        assert!(found(10, 0.1, 0.1));
        assert!(!found(9, 0.1, 0.1));
        assert!(!found(10, 0.11, 0.1), "most of it runs beside other work");
        assert!(!found(50, 0.0, 0.0), "no program has collectives");
    }

    #[test]
    fn it_speaks() {
        let op = Waiting {
            op: "all-reduce.1".into(),
            origin: "psum at a.py:3".into(),
            ms: 2.0,
            sent: Some(1 << 20),
        };
        let cause = |on_device| NotOverlapped { whole: 0.7, largest: vec![op.clone()], on_device };
        speaks(&RULE, cause(true));
        speaks(&RULE, cause(false));
        let advice = |on_device| {
            let finding = Finding::new(&RULE, Severity::Warning, cause(on_device), Framework::Jax);
            cause(on_device).words(&finding).advice.join(" ")
        };
        assert!(advice(true).contains("--xla_gpu") && !advice(false).contains("--xla_gpu"));
    }
}
