//! One host or rank is slower than the others, and all wait for it.
//!
//! # What it means
//! In synchronous training every step takes as long as the slowest participant.
//!
//! # How it is detected
//! Where processors meet in collectives, arrivals decide: one rank (a process, or a replica or device inside one) causes at
//! least {CAUSES} of all waiting and most of it in {LEADS} of the steps, more often than chance explains, and the others
//! wait at least {WAITS} of the step. The finding names the largest difference to the other ranks: an op, a line of Python, a
//! stage of the input pipeline, the size of the batch, or all ops by one factor. A fix saves what the rank arrives after the
//! last but one.
//!
//! Otherwise, the median step of the slowest host, or its own work in the step, is at least {STRAGGLER} times that of the median host.
//! Or one rank (host and device) arrives last at {LATE} of the collectives or more, and another waits for it at least
//! {NOTABLE} of the step. The finding says in which category a slow host spends more than the others; if that is at
//! least {SEVERE} of the step, it comes before what the host does, and a fix saves at most {GAIN} of it. Ranks are compared on one clock: hosts' clocks are aligned at the ends of the collectives that all
//! ranks share. If a wait is shorter than that alignment is exact, it proves nothing.
//!
//! # How to fix it
//! Compare `stepscope report PATH --host NAME` with the report of another host. Usual causes are other jobs on the
//! machine, a throttled device, uneven data and slower storage.
//!
//! # How to check
//! The hosts' medians move closer together.

mod late;

use stepscope_analyze::Category;
use stepscope_analyze::devices::collectives::clock::Precision;
use stepscope_analyze::time::summary::HostSummary;
use stepscope_text::{duration_ms, plural, quoted, share, shell_word};
use stepscope_trace::statistics::quantile;

use super::shared::{of_step, on_one_clock, severity, total};
pub(super) use late::missing;
pub use late::{Late, Why};

use crate::facts::{Facts, Held, PythonLines};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::{NOTABLE, SEVERE};
use crate::words::{self, lines};

/// The rule.
pub static RULE: Rule = Rule {
    id: "straggler",
    about: About::Cause,
    view: "devices",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("straggler.rs"),
};

thresholds! {
    /// A host whose step is this much longer than that of the median host holds up the others.
    STRAGGLER: Number = 1.1;
    /// By chance alone, a rank is last at one collective in as many as there are ranks; with two ranks, at half of them.
    LATE: Share = 0.75;
    /// Planted stragglers cause 85 to 100 % of the waiting, ranks of equal speed up to 80 %.
    CAUSES: Share = crate::facts::CAUSES;
    /// Planted stragglers are waited for most in 86 to 100 % of the steps, ranks of equal speed in up to 62 %.
    LEADS: Share = crate::facts::LEADS;
    /// Less is within the noise of most runs.
    WAITS: Share = crate::facts::WAITS;
    /// What a host does beyond the others may go away entirely.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    // Where arrivals can be compared, they decide: who is slow without being waited for holds up nobody.
    if *facts.get::<Held>() != Held::Unknown {
        return late::check(facts);
    }
    slower_host(facts).or_else(|| late_rank(facts))
}

fn slower_host(facts: &Facts) -> Option<Finding> {
    // Who serves others has no steps to compare, and workers of parameter servers do not wait for one another.
    let hosts: Vec<&HostSummary> = facts.summary.hosts.iter().filter(|host| host.trains()).collect();
    let slowest = facts.summary.bound()?;
    // Without a timeline nobody waits for anybody.
    if hosts.len() < 2 || !facts.timeline || facts.servers.is_some() {
        return None;
    }
    // Hosts that run in step have steps of equal length; what each does in them differs all the same.
    let lengths = hosts.iter().filter_map(|host| host.median_ms());
    let with_steps = || hosts.iter().copied().filter(|host| host.median_ms().is_some());
    let own_work = with_steps().map(|host| host.own_work_ms());
    let (ms, usual_ms, of_steps) =
        beside_the_usual(slowest.median_ms()?, lengths).map(|(ms, usual)| (ms, usual, true)).or_else(
            || beside_the_usual(slowest.own_work_ms(), own_work).map(|(ms, usual)| (ms, usual, false)),
        )?;
    let more = more_than_usual(slowest, &with_steps().collect::<Vec<_>>());
    let line = more.first().filter(|(category, _)| *category == Category::Python);
    let place = line.and_then(|_| Some(facts.get::<PythonLines>().0.first()?.place.clone()));
    let share = of_step(facts, total(&more));
    let cause = SlowHost {
        name: slowest.host.clone(),
        ms,
        usual_ms,
        of: hosts.len(),
        of_steps,
        most: more.first().copied(),
        place,
        severe: share >= SEVERE,
    };
    let finding = Finding::new(&RULE, severity(1.0 - usual_ms / ms), cause, facts.framework());
    let finding = finding.about(slowest.host.clone()).sure(0.8);
    Some(if share >= SEVERE { finding.owning(more, Some(GAIN)) } else { finding })
}

/// Milliseconds per step that a host works longer than the median of the others, by category, the longest first.
fn more_than_usual(slowest: &HostSummary, all: &[&HostSummary]) -> Vec<(Category, f64)> {
    let spent = |host: &HostSummary, category| {
        let steps = host.counted().count().max(1) as f64;
        host.counted().map(|step| step.shares.get(category).ms()).sum::<f64>() / steps
    };
    let more = |category: Category| {
        let others = all.iter().filter(|host| !std::ptr::eq(**host, slowest));
        let mut others: Vec<f64> = others.map(|host| spent(host, category)).collect();
        others.sort_by(f64::total_cmp);
        (category, spent(slowest, category) - quantile(&others, 0.5).unwrap_or(0.0))
    };
    let mut more: Vec<_> =
        Category::ALL.into_iter().filter(|category| !WAITING.contains(category)).map(more).collect();
    more.retain(|(_, ms)| *ms > 0.0);
    more.sort_by(|a, b| b.1.total_cmp(&a.1));
    more
}

fn late_rank(facts: &Facts) -> Option<Finding> {
    let waiting = facts.collectives.waiting.as_ref()?;
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

/// A figure with the middle one of the others, if it is far above the middle one of all.
fn beside_the_usual(figure: f64, all: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut all: Vec<f64> = all.collect();
    all.sort_by(f64::total_cmp);
    let usual = quantile(&all, 0.5)?;
    (usual > 0.0 && figure / usual >= STRAGGLER).then(|| (figure, of_the_others(&all)))
}

/// The middle one of all but the largest, in ascending order.
fn of_the_others(sorted: &[f64]) -> f64 {
    let others = sorted.split_last().map_or(sorted, |(_, others)| others);
    quantile(others, 0.5).unwrap_or(0.0)
}

/// One of several hosts that is slower.
#[derive(Clone, Debug)]
pub struct SlowHost {
    /// Its name.
    pub name: String,
    /// Its median step, or its own work per step, in milliseconds.
    pub ms: f64,
    /// That of the median of the other hosts.
    pub usual_ms: f64,
    /// How many hosts there are.
    pub of: usize,
    /// Are these steps, rather than own work in steps of equal length?
    pub of_steps: bool,
    /// Where it spends most of what it needs more than the others, in milliseconds per step.
    pub most: Option<(Category, f64)>,
    /// The line of Python that costs most, if that is where.
    pub place: Option<String>,
    /// Is it worth more than anything else?
    pub severe: bool,
}

impl Cause for SlowHost {
    fn words(&self, _: &Finding) -> Words {
        let slower = if self.usual_ms > 0.0 { self.ms / self.usual_ms - 1.0 } else { 0.0 };
        let host = quoted(&self.name);
        let (ms, usual) = (duration_ms(self.ms), duration_ms(self.usual_ms));
        let needs = if self.of_steps { "needs" } else { "itself works" };
        let figure = if self.of_steps { "Median steps" } else { "Own work per step" };
        let more = self.most.map(|(category, ms)| {
            let line = self.place.as_ref().map(|place| format!(", most of it in {}", quoted(place)));
            let (ms, key, what) = (duration_ms(ms), category.key(), words::category(category));
            format!("{host} spends {ms} more per step in `{key}` ({what}){}.", line.unwrap_or_default())
        });
        let why =
            self.most.map_or(String::new(), |(category, _)| format!(", mostly in `{}`", category.key()));
        Words {
            summary: format!(
                "Straggler: {host} {needs} {ms} per step, {} more than the median of {} ({usual}){why}; all wait for it.",
                share(slower),
                plural(self.of.saturating_sub(1) as u64, "other host", "other hosts")
            ),
            evidence: std::iter::once(format!("{figure}: {ms} on {host}, {usual} on the median of the others."))
                .chain(more)
                .collect(),
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

    fn leads(&self) -> bool {
        self.severe
    }
}

/// Time in these is spent waiting for others, or unknown.
const WAITING: [Category; 4] = [Category::Communication, Category::Sync, Category::Idle, Category::Unknown];

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

    fn slow(name: &str) -> SlowHost {
        SlowHost {
            name: name.into(),
            ms: 12.0,
            usual_ms: 10.0,
            of: 8,
            of_steps: true,
            most: None,
            place: None,
            severe: false,
        }
    }

    #[test]
    fn the_command_is_one_piece_of_code_whatever_the_host_is_called() {
        for (name, command) in [
            ("worker-3", "`stepscope report PATH --host worker-3`"),
            ("a `b`", "`stepscope report PATH --host 'a .b.'`"),
        ] {
            let cause = slow(name);
            let said = words(&RULE, cause, Framework::Unknown);
            assert!(said.advice[0].contains(command), "{}", said.advice[0]);
        }
    }

    #[test]
    fn it_speaks() {
        speaks(&RULE, slow("worker-3"));
        let place = Some("train.py:12 augment".to_owned());
        speaks(&RULE, SlowHost { of_steps: false, place, most: Some((Category::Python, 2.0)), ..slow("b") });
        let late = LateRank { name: "a GPU 1".into(), last: 0.9, waiting_ms: 5.0, of: 2, clocks: None };
        speaks(&RULE, late.clone());
        let clocks = Some(Precision { spread_ms: 0.003, matched: 240, apart_ms: Some(1.25) });
        speaks(&RULE, LateRank { clocks, ..late });
    }
}
