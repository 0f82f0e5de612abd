//! `straggler`: one host is slower than the others, and in synchronous training all wait for it.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let hosts = &facts.summary.hosts;
    let mut lengths: Vec<f64> = hosts.iter().filter_map(|host| host.median_ms()).collect();
    lengths.sort_by(f64::total_cmp);
    let usual_ms = stepscope_analyze::statistics::quantile(&lengths, 0.5)?;
    let slowest = facts.summary.bound()?;
    let ms = slowest.median_ms()?;
    if hosts.len() < 2 || usual_ms <= 0.0 || ms / usual_ms < thresholds::STRAGGLER {
        return None;
    }
    let cause = Cause::Slowest { name: slowest.host.clone(), ms, usual_ms, of: hosts.len() };
    let finding =
        Finding::new(FindingId::Straggler, super::severity(1.0 - usual_ms / ms), cause, facts.framework());
    Some(finding.about(slowest.host.clone()).sure(0.8))
}
