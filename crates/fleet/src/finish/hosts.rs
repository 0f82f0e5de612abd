//! Hosts that are slower than their peers, over all recordings in which they took part.
//!
//! One slow recording may be chance. Hosts are ranked by the lower bound of the share of recordings in which they are slow, at 95 %
//! confidence, so that a host that is slow in four of four comes before one that is slow in one of one.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_diagnose::statistics::median;
use stepscope_results::fleet::HostRow;
use stepscope_text::duration_ms;

use crate::record::{HostFacts, Record};

/// From here on a host holds up the others, as in the finding `straggler`.
const SLOW: f64 = 0.1;
/// A rank that is last at this share of the collectives, as there.
const LATE: f64 = 0.75;

struct Seen<'r> {
    record: &'r Record,
    facts: &'r HostFacts,
}

impl Seen<'_> {
    fn is_slow(&self) -> bool {
        // With two hosts, the middle one is halfway between both.
        let least = if self.record.hosts.len() == 2 { SLOW / 2.0 } else { SLOW };
        self.facts.slow >= least
            || (self.facts.slow >= SLOW / 2.0 && self.facts.last.is_some_and(|last| last >= LATE))
    }
}

/// The hosts that were slow at least once.
pub(super) fn rows(records: &[&Record]) -> Vec<HostRow> {
    let mut by_host: BTreeMap<&str, Vec<Seen>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.hosts.len() > 1) {
        for facts in &record.hosts {
            by_host.entry(&facts.host).or_default().push(Seen { record, facts });
        }
    }
    let mut rows: Vec<HostRow> = by_host.into_iter().filter_map(|(host, seen)| row(host, &seen)).collect();
    rows.sort_by(|a, b| {
        let by_amount = b.slow_fraction.total_cmp(&a.slow_fraction);
        b.sure.total_cmp(&a.sure).then(by_amount).then_with(|| a.host.cmp(&b.host))
    });
    rows
}

fn row(host: &str, seen: &[Seen]) -> Option<HostRow> {
    let slow: Vec<&Seen> = seen.iter().filter(|seen| seen.is_slow()).collect();
    let worst = slow.iter().rev().max_by(|a, b| a.facts.slow.total_cmp(&b.facts.slow))?;
    let jobs: BTreeSet<&str> = slow.iter().map(|seen| seen.record.recording.job.as_str()).collect();
    let mean = seen.iter().map(|seen| seen.facts.slow).sum::<f64>() / seen.len() as f64;
    Some(HostRow {
        host: host.to_owned(),
        job: worst.record.recording.job.clone(),
        slow_fraction: mean,
        recordings: seen.len() as u64,
        slow_in: slow.len() as u64,
        jobs: jobs.len() as u64,
        sure: least_share(slow.len() as f64, seen.len() as f64),
        last_fraction: worst.facts.last,
        evidence: evidence(worst),
    })
}

/// What was measured in one recording: the step and the host's own work in it, of which one is longer than usual.
fn evidence(seen: &Seen) -> String {
    let Seen { record, facts } = seen;
    let with_steps = || record.hosts.iter().filter(|host| host.step_ms.is_some());
    let usual = |all: Vec<f64>| median(&all).map_or_else(|| "unknown".to_owned(), duration_ms);
    format!(
        "{} in session {}: step {}, own work {}; medians of {} hosts: {} and {}",
        record.recording.job,
        record.recording.session,
        facts.step_ms.map_or_else(|| "unknown".to_owned(), duration_ms),
        duration_ms(facts.own_ms),
        with_steps().count(),
        usual(with_steps().filter_map(|host| host.step_ms).collect()),
        usual(with_steps().map(|host| host.own_ms).collect()),
    )
}

/// The lower bound of Wilson's interval for a share, with 95 % confidence.
fn least_share(hits: f64, of: f64) -> f64 {
    const Z: f64 = 1.96;
    let share = hits / of;
    let middle = share + Z * Z / (2.0 * of);
    let spread = Z * (share * (1.0 - share) / of + Z * Z / (4.0 * of * of)).sqrt();
    ((middle - spread) / (1.0 + Z * Z / of)).max(0.0)
}

#[cfg(test)]
mod tests {
    use super::least_share;

    #[test]
    fn again_and_again_is_surer_than_once() {
        assert!(least_share(4.0, 4.0) > least_share(1.0, 1.0));
        assert!(least_share(1.0, 1.0) > least_share(3.0, 100.0));
    }
}
