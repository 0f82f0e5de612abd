//! One host or rank is slower than the others, and all wait for it.
//!
//! # What it means
//! In synchronous training every step takes as long as the slowest participant.
//!
//! # How it is detected
//! The median step of the slowest host, or its own work in the step, is at least {STRAGGLER} times that of the median host.
//! Or one rank (host and device) arrives last at {LATE} of the collectives or more, and another waits for it at least
//! {NOTABLE} of the step. Ranks are compared on one clock: hosts' clocks are aligned at the ends of the collectives that all
//! ranks share. If a wait is shorter than that alignment is exact, it proves nothing.
//!
//! # How to fix it
//! Compare `stepscope report PATH --host NAME` with the report of another host. Usual causes are other jobs on the
//! machine, a throttled device, uneven data and slower storage.
//!
//! # How to check
//! The hosts' medians move closer together.

use stepscope_analyze::devices::collectives::clock::Precision;
use stepscope_text::{duration_ms, plural, quoted, share, shell_word};
use stepscope_trace::statistics::quantile;

use super::shared::{of_step, on_one_clock, severity};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "straggler",
    about: About::Cause,
    view: "devices",
    check,
    thresholds: THRESHOLDS,
    source: doc_of!("straggler.rs"),
};

thresholds! {
    /// A host whose step is this much longer than that of the median host holds up the others.
    STRAGGLER: Number = 1.1;
    /// By chance alone, a rank is last at one collective in as many as there are ranks; with two ranks, at half of them.
    LATE: Share = 0.75;
}

fn check(facts: &Facts) -> Option<Finding> {
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
    let with_steps = hosts.iter().filter(|host| host.median_ms().is_some());
    let own_work = with_steps.map(|host| host.own_work_ms());
    let (ms, usual_ms) = beside_the_usual(slowest.median_ms()?, lengths)
        .or_else(|| beside_the_usual(slowest.own_work_ms(), own_work))?;
    let cause = SlowHost { name: slowest.host.clone(), ms, usual_ms, of: hosts.len() };
    let finding = Finding::new(&RULE, severity(1.0 - usual_ms / ms), cause, facts.framework());
    Some(finding.about(slowest.host.clone()).sure(0.8))
}

fn late_rank(facts: &Facts) -> Option<Finding> {
    let waiting = facts.waiting.as_ref()?;
    let latest = waiting.latest().filter(|rank| rank.last >= LATE)?;
    let waiting_ms = waiting.ranks.iter().map(|rank| rank.waiting_ms).fold(0.0, f64::max);
    // Of one collective, to be held against what is uncertain about its ends.
    let each_ms = waiting_ms / waiting.collectives_per_step.max(1.0);
    if waiting.clocks.is_some_and(|clocks| each_ms <= clocks.spread_ms) {
        return None;
    }
    let share = of_step(facts, waiting_ms);
    (share >= NOTABLE).then(|| {
        let (name, last, of) = (latest.name.clone(), latest.last, waiting.ranks.len());
        let late = LateRank { name, last, waiting_ms, of, clocks: waiting.clocks };
        let finding = Finding::new(&RULE, severity(share), late, facts.framework());
        finding.about(latest.name.clone()).sure(0.7)
    })
}

/// A figure with the middle one of all, if it is far above it.
fn beside_the_usual(figure: f64, all: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut all: Vec<f64> = all.collect();
    all.sort_by(f64::total_cmp);
    let usual = quantile(&all, 0.5)?;
    (usual > 0.0 && figure / usual >= STRAGGLER).then_some((figure, usual))
}

/// One of several hosts that is slower.
#[derive(Clone, Debug)]
pub struct SlowHost {
    /// Its name.
    pub name: String,
    /// Its median step in milliseconds.
    pub ms: f64,
    /// That of the median host.
    pub usual_ms: f64,
    /// How many hosts there are.
    pub of: usize,
}

impl Cause for SlowHost {
    fn words(&self, _: &Finding) -> Words {
        let slower = if self.usual_ms > 0.0 { self.ms / self.usual_ms - 1.0 } else { 0.0 };
        let host = quoted(&self.name);
        let (ms, usual) = (duration_ms(self.ms), duration_ms(self.usual_ms));
        Words {
            summary: format!(
                "Straggler: {host} needs {ms} per step, {} more than the median of {} ({usual}); all wait for it.",
                share(slower),
                plural(self.of as u64, "host", "hosts")
            ),
            evidence: vec![format!("Median steps: {ms} on {host}, {usual} on the median host.")],
            advice: vec![
                format!(
                    "See what it does differently: compare `stepscope report PATH --host {}` with the report of \
                     another host.",
                    // A backtick would end the command.
                    shell_word(&self.name.replace('`', "."))
                ),
                "Usual causes: other jobs on the same machine, a throttled device, uneven data, slower storage."
                    .to_owned(),
            ],
        }
    }
}

/// A rank that arrives late at collectives.
#[derive(Clone, Debug)]
pub struct LateRank {
    /// Its name.
    pub name: String,
    /// The share of the collectives at which it is the last.
    pub last: f64,
    /// Milliseconds per step that the rank which waits longest waits.
    pub waiting_ms: f64,
    /// How many ranks there are.
    pub of: usize,
    /// How well the clocks of their hosts are known; `None` if they share one.
    pub clocks: Option<Precision>,
}

impl Cause for LateRank {
    fn words(&self, _: &Finding) -> Words {
        let rank = quoted(&self.name);
        let last = share(self.last);
        Words {
            summary: format!(
                "Straggler: {rank} is the last of {} to arrive at {last} of the collectives; the others wait for it for up to {} per step.",
                plural(self.of as u64, "rank", "ranks"),
                duration_ms(self.waiting_ms)
            ),
            evidence: std::iter::once(format!(
                "Of the collectives that all ranks share, {last} start last on {rank} (matched by order and size)."
            ))
            .chain(self.clocks.map(on_one_clock))
            .collect(),
            advice: lines([
                "See what it does before its collectives that others do not: more data, another device, other processes.",
                "Usual causes: uneven data, a throttled device, a slower link to the host, other jobs on the machine.",
            ]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::{speaks, words};
    use stepscope_analyze::vocabulary::Framework;

    #[test]
    fn the_command_is_one_piece_of_code_whatever_the_host_is_called() {
        for (name, command) in [
            ("worker-3", "`stepscope report PATH --host worker-3`"),
            ("a `b`", "`stepscope report PATH --host 'a .b.'`"),
        ] {
            let cause = SlowHost { name: name.into(), ms: 12.0, usual_ms: 10.0, of: 8 };
            let said = words(&RULE, cause, Framework::Unknown);
            assert!(said.advice[0].contains(command), "{}", said.advice[0]);
        }
    }

    #[test]
    fn it_speaks() {
        speaks(&RULE, SlowHost { name: "worker-3".into(), ms: 12.0, usual_ms: 10.0, of: 8 });
        let late = LateRank { name: "a GPU 1".into(), last: 0.9, waiting_ms: 5.0, of: 2, clocks: None };
        speaks(&RULE, late.clone());
        let clocks = Some(Precision { spread_ms: 0.003, matched: 240, apart_ms: Some(1.25) });
        speaks(&RULE, LateRank { clocks, ..late });
    }
}
