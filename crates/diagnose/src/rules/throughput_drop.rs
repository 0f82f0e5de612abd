//! From some step on, the run is slower than before.
//!
//! # What it means
//! Every step of a run takes longer from one moment on. The cause is often outside the program: a neighbour on the same
//! machine, a device that throttles, storage that others use. Or the program itself changed phase.
//!
//! # How it is detected
//! The time per step comes from the wall time between points in event files, without pauses for evaluations and
//! checkpoints, or from tags in which the program logs it. Two stretches of the run differ by the rank test that `compare`
//! uses, and the median step is at least {SLOWER} longer in the later one. The finding is `critical` from {SEVERE_DROP} on.
//! It ends where steps are at most {BACK} longer than before.
//!
//! # How to fix it
//! Look for what started at that time: other jobs on the machine, clocks and temperature of the GPU (`stepscope monitor`),
//! a longer sequence length, a larger data set. Record a profile before and after the change, and compare the two.
//!
//! # How to check
//! `stepscope scalars PATH` no longer shows the change.

use stepscope_analyze::curves::RunCurves;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{duration_ms, from_to_ms, quoted, share, thousands};

use super::shared::runs::{at, unit};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::runs::{Change, Course};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "throughput-drop",
    about: About::Run { rank: 1 },
    view: "scalars",
    check: Check::Run(check),
    thresholds: THRESHOLDS,
    source: doc_of!("throughput_drop.rs"),
};

thresholds! {
    /// A smaller loss of speed is within what machines do by themselves over hours.
    SLOWER: Share = 0.10;
    /// A run that loses this much is worth stopping.
    SEVERE_DROP: Share = 0.30;
    /// The speed is back if steps are at most this much longer than before.
    BACK: Share = 0.05;
}

/// Looks at one run.
pub(super) fn check(run: &RunCurves, course: &Course) -> Option<Finding> {
    let pace = run.pace.as_ref()?;
    let slower = course.changes.iter().filter(|change| change.slower() >= SLOWER);
    let lost = |change: &&Change| cost_s(run, course, change);
    let worst = *slower.max_by(|a, b| lost(a).total_cmp(&lost(b)))?;
    let cause = Drop {
        run: run.name.clone(),
        tag: pace.tag.clone(),
        unit: unit(pace.unit),
        until: until(course, &worst),
        lost_s: cost_s(run, course, &worst),
        restarted: run.restarts.iter().any(|restart| near(restart.wall_s, &worst, pace.interval_s)),
        change: worst,
    };
    let severity = if worst.slower() >= SEVERE_DROP { Severity::Critical } else { Severity::Warning };
    Some(Finding::new(&RULE, severity, cause, Framework::Unknown).about(run.name.clone()).sure(0.8))
}

/// Where the speed was back, if it was.
fn until(course: &Course, drop: &Change) -> Option<(i64, f64)> {
    let later = course.changes.iter().filter(|change| change.at_s > drop.at_s);
    let mut back = later.filter(|change| change.after_s <= drop.before_s * (1.0 + BACK));
    back.next().map(|change| (change.step, change.at_s))
}

/// Seconds by which this made the run longer.
fn cost_s(run: &RunCurves, course: &Course, drop: &Change) -> f64 {
    let end = until(course, drop).map_or(f64::INFINITY, |(_, at)| at);
    let pieces = run.pace.iter().flat_map(|pace| &pace.pieces);
    let slow = pieces.filter(|piece| piece.from_s >= drop.at_s && piece.until_s <= end);
    slow.map(|piece| (piece.seconds - drop.before_s) * piece.steps()).sum::<f64>().max(0.0)
}

/// Did something happen right before the change?
fn near(at_s: f64, change: &Change, interval_s: f64) -> bool {
    (change.at_s - 2.0 * interval_s..=change.at_s + interval_s).contains(&at_s)
}

/// Steps that are slower from some step on.
#[derive(Clone, Debug)]
pub struct Drop {
    /// The run.
    pub run: String,
    /// The tag that shows it.
    pub tag: String,
    /// What it counts: `step` or `epoch`.
    pub unit: &'static str,
    /// The change.
    pub change: Change,
    /// Where the speed was back: step and time.
    pub until: Option<(i64, f64)>,
    /// Seconds that the run took longer.
    pub lost_s: f64,
    /// Did the program start again there?
    pub restarted: bool,
}

impl Cause for Drop {
    fn words(&self, _: &Finding) -> Words {
        let (change, unit) = (&self.change, self.unit);
        let slower = share(change.slower());
        let place = match self.until {
            Some((step, _)) => format!("from {unit} {} to {}", thousands(change.step), thousands(step)),
            None => format!("from {unit} {} on", thousands(change.step)),
        };
        let mut evidence = vec![
            format!(
                "Time per {unit} before and after the change: {}, by the times of `{}`.",
                from_to_ms(change.before_s * 1e3, change.after_s * 1e3),
                self.tag
            ),
            format!("This made the run {} longer.", duration_ms(self.lost_s * 1e3)),
        ];
        if self.restarted {
            evidence.push("The program had restarted just before.".to_owned());
        }
        Words {
            summary: format!(
                "Throughput drop: {} is slower by {slower} {place}, at {}.",
                quoted(&self.run),
                at(change.at_s)
            ),
            evidence,
            advice: lines([
                "Look for what started at that time: other jobs on the machine, throttled clocks (`stepscope monitor`), longer inputs.",
                "Record one profile before and one after the change, then run `stepscope compare BEFORE AFTER`.",
            ]),
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
    use crate::runs::testing::run;

    fn found(seconds: impl IntoIterator<Item = f64>) -> Option<Finding> {
        let run = run(0.2, seconds);
        check(&run, &Course::of(run.pace.as_ref()?))
    }

    #[test]
    fn a_drop_is_found_and_a_smaller_one_is_not() {
        let finding = found((0..300).map(|at| if at >= 200 { 1.18 } else { 1.0 })).unwrap();
        let summary = finding.summary();
        assert!(summary.contains("slower by 1") && summary.contains("from step 2,0"), "{summary}");
        assert_eq!(finding.severity, Severity::Warning);
        assert!(found((0..300).map(|at| if at >= 200 { 1.06 } else { 1.0 })).is_none());
        assert!(found((0..300).map(|at| if at >= 200 { 0.8 } else { 1.0 })).is_none(), "faster");
        let phase = found((0..300).map(|at| if (100..200).contains(&at) { 1.5 } else { 1.0 })).unwrap();
        assert!(phase.summary().contains(" to 2,0"), "{}", phase.summary());
        assert_eq!(phase.severity, Severity::Critical);
    }

    #[test]
    fn it_speaks() {
        let change = Change { step: 4_200, at_s: 1.8e9, before_s: 0.011, after_s: 0.013, p: 1e-6 };
        for until in [None, Some((5_000, 1.9e9))] {
            let (run, tag) = ("train".to_owned(), "loss".to_owned());
            speaks(
                &RULE,
                Drop { run, tag, unit: "step", change, until, lost_s: 30.0, restarted: until.is_some() },
            );
        }
    }
}
