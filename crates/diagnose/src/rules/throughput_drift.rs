//! The run gets slower little by little.
//!
//! # What it means
//! Each step takes a little longer than the one before. Something grows: a list, a graph, a log, a cache, the memory that
//! the program uses.
//!
//! # How it is detected
//! The time per step, found as for `throughput-drop`, rises over the whole run. A straight line fits it better than a
//! sudden change, the first and the last part differ by the rank test that `compare` uses, and the line rises by at least
//! {RISE}.
//!
//! # How to fix it
//! Look for what grows with the number of steps. Run `stepscope memory` on a late profile. Compare an early and a late
//! profile.
//!
//! # How to check
//! `stepscope scalars PATH` shows the same time per step at both ends.

use stepscope_analyze::curves::RunCurves;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{from_to_ms, quoted, share, thousands};

use super::shared::runs::unit;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::runs::{Course, Drift};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "throughput-drift",
    about: About::Run { rank: 1 },
    view: "scalars",
    check: Check::Run(check),
    thresholds: THRESHOLDS,
    source: doc_of!("throughput_drift.rs"),
};

thresholds! {
    /// Less is within what machines do by themselves over hours.
    RISE: Share = 0.10;
}

/// Looks at one run.
pub(super) fn check(run: &RunCurves, course: &Course) -> Option<Finding> {
    let (pace, drift) = (run.pace.as_ref()?, course.drift?);
    if drift.last_s / drift.first_s - 1.0 < RISE {
        return None;
    }
    let cause = Drifting { run: run.name.clone(), tag: pace.tag.clone(), unit: unit(pace.unit), drift };
    Some(Finding::new(&RULE, Severity::Warning, cause, Framework::Unknown).about(run.name.clone()).sure(0.7))
}

/// Steps that get slower little by little.
#[derive(Clone, Debug)]
pub struct Drifting {
    /// The run.
    pub run: String,
    /// The tag that shows it.
    pub tag: String,
    /// What it counts: `step` or `epoch`.
    pub unit: &'static str,
    /// From where to where.
    pub drift: Drift,
}

impl Cause for Drifting {
    fn words(&self, _: &Finding) -> Words {
        let (drift, unit) = (&self.drift, self.unit);
        Words {
            summary: format!(
                "Throughput drift: {} gets slower little by little, by {} from {unit} {} to {}.",
                quoted(&self.run),
                share(drift.last_s / drift.first_s - 1.0),
                thousands(drift.from_step),
                thousands(drift.step)
            ),
            evidence: vec![format!(
                "Time per {unit} at the start and at the end: {}, by the times of `{}`.",
                from_to_ms(drift.first_s * 1e3, drift.last_s * 1e3),
                self.tag
            )],
            advice: lines([
                "Look for what grows with the number of steps: lists of results, a graph that is extended in the loop, logs, caches.",
                "Record an early and a late profile and run `stepscope compare EARLY LATE`.",
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

    #[test]
    fn a_drift_is_found_and_a_smaller_one_is_not() {
        let found = |by: f64| {
            let run = run(0.1, (0..400).map(|at| 1.0 + by * f64::from(at) / 400.0));
            check(&run, &Course::of(run.pace.as_ref()?))
        };
        assert!(found(0.5).unwrap().summary().contains("little by little"));
        assert!(found(0.07).is_none());
        assert!(found(-0.3).is_none(), "faster");
    }

    #[test]
    fn it_speaks() {
        let drift = Drift { first_s: 0.1, last_s: 0.15, from_step: 0, step: 4_000 };
        speaks(&RULE, Drifting { run: "train".to_owned(), tag: "loss".to_owned(), unit: "step", drift });
    }
}
