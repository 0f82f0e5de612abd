//! Runs the rules and settles who owns what.
//!
//! Rules compete for the step's time: two of them may have a claim on the same milliseconds (launch-bound and
//! idle, say), but mending both cannot win them twice. So claims are served in order, the strongest first,
//! from what the categories own, and all gains together never exceed the step.

use std::collections::BTreeMap;

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Finding, Severity};
use crate::rules::RULES;

/// What is wrong, the verdict first.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| (rule.check)(facts)).collect();
    findings.sort_by(order);
    settle(&mut findings, facts);
    findings
}

/// Trust first; then by severity, and within one by what they own.
fn order(a: &Finding, b: &Finding) -> std::cmp::Ordering {
    let trust = |finding: &Finding| !finding.id.is_about_trust();
    let rank = |finding: &Finding| match finding.severity {
        // A healthy verdict stands where its share puts it among mere remarks.
        Severity::Info => Severity::Warning,
        severity => severity,
    };
    trust(a)
        .cmp(&trust(b))
        .then(a.leads().cmp(&b.leads()).reverse())
        .then(rank(a).cmp(&rank(b)))
        .then(b.claimed_ms().total_cmp(&a.claimed_ms()))
        .then(a.severity.cmp(&b.severity))
        .then(a.id.cmp(&b.id))
}

fn settle(findings: &mut [Finding], facts: &Facts) {
    let step = facts.summary.length_ms();
    let mut left: BTreeMap<Category, f64> = facts.summary.breakdown_ms.iter().copied().collect();
    for finding in findings {
        let mut served = 0.0;
        for (category, ms) in &mut finding.claims {
            let available = left.entry(*category).or_default();
            let taken = ms.min(*available).max(0.0);
            // Only what could be won is used up: compute that nobody can win stays for those who can.
            if finding.winnable.is_some() {
                *available -= taken;
            }
            served += taken;
            *ms = taken;
        }
        if step > 0.0 && !finding.claims.is_empty() {
            finding.fraction = Some((served / step).clamp(0.0, 1.0));
        }
        finding.gain_ms = finding.winnable.map(|share| (served * share).min(step));
    }
}

impl Finding {
    /// Does it answer the question that this kind of program asks, whatever else is found?
    fn leads(&self) -> bool {
        self.id == crate::finding::FindingId::InferenceLatency
    }
}
