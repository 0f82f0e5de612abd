//! Runs the rules and settles who owns what.
//!
//! Rules compete for the step's time: two of them may have a claim on the same milliseconds (launch-bound and
//! idle, for example), but fixing both cannot save them twice. So claims are served in order, the strongest first,
//! from what the categories own, and all gains together never exceed the step.

use std::collections::BTreeMap;

use stepscope_analyze::Category;
use stepscope_analyze::steps::{How, Origin};
use stepscope_analyze::time::recurrence::Recurrence;
use stepscope_analyze::time::summary::{HostSummary, StepRow};
use stepscope_trace::Dur;

use crate::facts::Facts;
use crate::finding::{Finding, Severity, ShownStep};
use crate::owners;
use crate::rule::{About, Check, Rule};
use crate::rules::{RULES, severity};
use crate::thresholds;

/// What is wrong with a profile: the answer first, then doubts about it, then the rest. Everything that is written keeps
/// this order. A doubt is the answer only if it explains the recorded time, or if nothing else is found.
pub fn diagnose(facts: &Facts) -> Vec<Finding> {
    diagnose_with_run(facts, Vec::new())
}

/// The same for a profile of a run in which this was found.
pub fn diagnose_with_run(facts: &Facts, of_run: Vec<Finding>) -> Vec<Finding> {
    let mut findings = of_profile(facts);
    // What the run's curves show comes behind what the profile shows; a remark is no verdict on a profile.
    let alone = findings.is_empty();
    findings.extend(of_run.into_iter().filter(|finding| !alone || finding.severity != Severity::Info));
    if let Some(answer) = findings.iter().position(Finding::explains) {
        findings[..=answer].rotate_right(1);
    }
    findings
}

/// What is wrong with a profile, doubts first.
fn of_profile(facts: &Facts) -> Vec<Finding> {
    let check = |rule: &&Rule| match rule.check {
        Check::Profile(check) => check(facts),
        Check::Run(_) => None,
    };
    let mut findings: Vec<Finding> = RULES.iter().filter_map(check).collect();
    let found: Vec<&str> = findings.iter().map(Finding::id).collect();
    findings.retain(|finding| !finding.yields_to.iter().any(|rule| found.contains(&rule.id)));
    findings.sort_by(order);
    // Those that promise something are served before those that only describe. What refines others promises too, but takes
    // nothing from what describes.
    let (mut refining, others): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|finding| finding.cause.refines());
    let (mut promising, mut describing): (Vec<Finding>, Vec<Finding>) =
        others.into_iter().partition(|finding| finding.winnable.is_some() || finding.claims.is_empty());
    let mut left: BTreeMap<Category, f64> = facts.summary.breakdown_ms.iter().copied().collect();
    settle(&mut promising, facts, &mut left);
    settle(&mut describing, facts, &mut left.clone());
    settle(&mut refining, facts, &mut left);
    let mut findings: Vec<Finding> = promising.into_iter().chain(describing).chain(refining).collect();
    findings.sort_by(order);
    // What others have a better claim to is not worth saying twice.
    let step = facts.summary.length_ms();
    findings.retain(|finding| {
        step <= 0.0 || finding.claims.is_empty() || finding.claimed_ms() / step >= thresholds::NOTABLE
    });
    let refined: Vec<Category> = findings
        .iter()
        .filter(|finding| finding.cause.refines())
        .flat_map(|finding| finding.claims.iter().map(|(category, _)| *category))
        .collect();
    for finding in findings.iter_mut().filter(|finding| !finding.cause.refines()) {
        finding.refined = finding.claims.iter().any(|(category, _)| refined.contains(category));
    }
    if is_tiny(facts) {
        findings.retain(Finding::is_about_trust);
    }
    if findings.iter().any(|finding| finding.cause.hides_habits()) {
        findings.retain(|finding| finding.rule.about != About::Habits);
    }
    owners::explain(&mut findings, facts);
    findings
}

/// Is so little recorded that any share of it is chance?
fn is_tiny(facts: &Facts) -> bool {
    let Some(host) = facts.summary.bound().filter(|_| facts.timeline) else { return false };
    let step = facts.summary.length_ms();
    step < thresholds::TINY || (!are_certain(host) && (host.events as f64) < thresholds::FEW_EVENTS)
}

/// Are its steps steps, however little was recorded of them? Those that somebody marked are; so are several calls that each
/// stand for a whole program, such as a graph of kernels.
fn are_certain(host: &HostSummary) -> bool {
    let program = matches!(host.how, How::FunctionCalls(_) | How::ModuleRuns(_));
    let several = || host.counted().count() as f64 >= thresholds::FEW_STEPS;
    !host.whole_capture && (host.origin == Origin::Marker || (program && several()))
}

/// Doubts first; then by severity, what can be saved before what cannot, and within one by what they own. Ties are broken
/// by the rank of doubts, by habits before others, and by the id: never by where a rule is listed.
fn order(a: &Finding, b: &Finding) -> std::cmp::Ordering {
    // What can be saved comes before a healthy verdict, which stands where its share puts it among mere remarks.
    let rank = |finding: &Finding| match finding.severity {
        Severity::Critical => 0,
        Severity::Warning if finding.promises() => 1,
        Severity::Warning | Severity::Info => 2,
    };
    let leads = |finding: &Finding| match finding.rule.about {
        About::Trust { .. } => 0,
        _ if finding.cause.is_noise() => 5,
        _ if finding.cause.refines() => 4,
        About::Goal => 1,
        _ if finding.cause.leads() => 2,
        _ => 3,
    };
    leads(a)
        .cmp(&leads(b))
        .then(rank(a).cmp(&rank(b)))
        .then(b.claimed_ms().total_cmp(&a.claimed_ms()))
        .then(a.severity.cmp(&b.severity))
        .then(a.rule.about.rank().cmp(&b.rule.about.rank()))
        .then(a.id().cmp(b.id()))
}

/// Serves claims in order from what is left of each category.
fn settle(findings: &mut [Finding], facts: &Facts, left: &mut BTreeMap<Category, f64>) {
    let step = facts.summary.length_ms();
    let stepless = facts.timeline && facts.summary.bound().is_some_and(|host| host.whole_capture);
    let has_device = facts.has_device();
    for finding in findings {
        finding.stepless = stepless;
        finding.has_device = has_device;
        let mut served = 0.0;
        let about: f64 =
            finding.claims.iter().map(|&(category, ms)| ms.min(facts.ms(category)).max(0.0)).sum();
        finding.about_ms = Some(about).filter(|ms| *ms > 0.0);
        finding.whole_ms =
            finding.claims.iter().map(|&(category, _)| (category, facts.ms(category))).collect();
        for (category, ms) in &mut finding.claims {
            let available = left.entry(*category).or_default();
            let taken = ms.min(*available).max(0.0);
            *available -= taken;
            served += taken;
            *ms = taken;
        }
        if step > 0.0 && !finding.claims.is_empty() {
            finding.fraction = Some((about / step).clamp(0.0, 1.0));
            // Where others own part of it, what is left decides how much it matters.
            if served < about {
                finding.severity = finding.severity.max(severity(served / step));
            }
        }
        // Without a timeline there is no step whose milliseconds could be won.
        let winnable = finding.winnable.filter(|_| facts.timeline);
        finding.place = typical_step(finding, facts);
        finding.gain_ms = winnable.map(|share| (served * share).min(step));
        finding.recurrence = finding.recurrence.or_else(|| concentrated(finding, facts));
        if finding.recurrence.is_some_and(|often| often.steps == 1 && often.of >= OFTEN_ENOUGH) {
            // What happened once says nothing about the steps to come.
            finding.severity = finding.severity.max(Severity::Info);
            finding.gain_ms = None;
        }
    }
}

/// Of fewer steps nobody can tell whether one is the exception.
const OFTEN_ENOUGH: usize = 5;

/// The steps that hold nearly all of what a finding is about, where those are not more than half of all.
fn concentrated(finding: &Finding, facts: &Facts) -> Option<Recurrence> {
    let host = facts.summary.bound().filter(|host| !host.whole_capture && !finding.claims.is_empty())?;
    let owned: Vec<Dur> = host
        .counted()
        .map(|step| finding.claims.iter().map(|&(category, _)| step.shares.get(category)).sum())
        .collect();
    let all: Dur = owned.iter().copied().sum();
    let mut sorted = owned.clone();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    let mut held = Dur::ZERO;
    let enough = sorted.iter().take(owned.len() / 2).find(|&&time| {
        held += time;
        held.fraction_of(all) >= thresholds::IN_SOME_STEPS
    });
    let least = *enough.filter(|_| !all.is_zero())?;
    Some(Recurrence::of(owned.iter().map(|&time| time >= least)))
}

/// Where to look: the step that counts in which the finding's categories own about as much as the report says, so that
/// picture and figure agree. Of what happens in some steps only, one of those.
fn typical_step(finding: &Finding, facts: &Facts) -> Option<ShownStep> {
    let host = facts.summary.bound().filter(|host| !host.whole_capture && !finding.claims.is_empty())?;
    let owned = |step: &StepRow| -> Dur {
        finding
            .claims
            .iter()
            .filter(|(_, ms)| *ms > 0.0)
            .map(|&(category, _)| step.shares.get(category))
            .sum()
    };
    let most = host.counted().map(owned).max()?;
    let somewhere = || host.counted().filter(|step| owned(step).fraction_of(most) >= HAPPENS);
    let count = somewhere().count().max(1) as f64;
    let mean = somewhere().map(|step| owned(step).ms()).sum::<f64>() / count;
    let far = |step: &&StepRow| (owned(step).ms() - mean).abs();
    let typical = somewhere().min_by(|a, b| far(a).total_cmp(&far(b)))?;
    Some(ShownStep { host: host.host.clone(), span: typical.span })
}

/// A step with less than this share of the most that any step has does not show what a finding is about.
const HAPPENS: f64 = 0.2;

impl Finding {
    /// Does it promise something that can be relied on?
    fn promises(&self) -> bool {
        self.winnable.is_some() && self.claimed_ms() > 0.0 && self.confidence >= thresholds::RELIABLE
    }
}

#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use tests::facts as sketched;
