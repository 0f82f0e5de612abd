//! `straggler`: one host is slower than the others, and in synchronous training all wait for it.
//!
//! Its steps or its own work in them are longer; or, where that does not show, it is the last to arrive at collectives
//! and the others wait there.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    slower_host(facts).or_else(|| late_rank(facts))
}

fn slower_host(facts: &Facts) -> Option<Finding> {
    let hosts = &facts.summary.hosts;
    let slowest = facts.summary.bound()?;
    // Without a timeline nobody waits for anybody.
    if hosts.len() < 2 || !facts.timeline {
        return None;
    }
    // Hosts that run in step have steps of equal length; what each does in them differs all the same.
    let lengths = hosts.iter().filter_map(|host| host.median_ms());
    let own_work = hosts.iter().map(|host| host.own_work_ms());
    let (ms, usual_ms) = beside_the_usual(slowest.median_ms()?, lengths)
        .or_else(|| beside_the_usual(slowest.own_work_ms(), own_work))?;
    let cause = Cause::Slowest { name: slowest.host.clone(), ms, usual_ms, of: hosts.len() };
    let finding =
        Finding::new(FindingId::Straggler, super::severity(1.0 - usual_ms / ms), cause, facts.framework());
    Some(finding.about(slowest.host.clone()).sure(0.8))
}

fn late_rank(facts: &Facts) -> Option<Finding> {
    let waiting = facts.waiting.as_ref()?;
    let latest = waiting.latest().filter(|rank| rank.last >= thresholds::LATE)?;
    let waiting_ms = waiting.ranks.iter().map(|rank| rank.waiting_ms).fold(0.0, f64::max);
    let share = waiting_ms / facts.summary.length_ms().max(f64::MIN_POSITIVE);
    (share >= thresholds::NOTABLE).then(|| {
        let cause = Cause::Latecomer {
            name: latest.name.clone(),
            last: latest.last,
            waiting_ms,
            of: waiting.ranks.len(),
        };
        let severity = super::severity(share);
        let finding = Finding::new(FindingId::Straggler, severity, cause, facts.framework());
        finding.about(latest.name.clone()).sure(0.7)
    })
}

/// A figure with the middle one of all, if it is far above it.
fn beside_the_usual(figure: f64, all: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut all: Vec<f64> = all.collect();
    all.sort_by(f64::total_cmp);
    let usual = stepscope_analyze::statistics::quantile(&all, 0.5)?;
    (usual > 0.0 && figure / usual >= thresholds::STRAGGLER).then_some((figure, usual))
}
