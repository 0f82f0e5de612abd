//! The program started again and repeated steps.
//!
//! # What it means
//! The program stopped, began again from an older checkpoint, and did some steps twice. That time is lost.
//!
//! # How it is detected
//! A later event file of the same run, or a session start, repeats steps that were logged before. The newer points count.
//!
//! # How to fix it
//! Find out why it stopped: preemption, memory, an exception. Save checkpoints more often, so that less is repeated.
//!
//! # How to check
//! `stepscope scalars PATH` shows no further restart.

use stepscope_analyze::curves::RunCurves;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{duration_ms, plural, quoted, thousands, times};
use stepscope_trace::series::Restart;

use super::shared::runs::at;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of};
use crate::runs::Course;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "restarted-run",
    about: About::Run { rank: 3 },
    view: "scalars",
    check: Check::Run(check),
    thresholds: &[],
    source: doc_of!("restarted_run.rs"),
};

/// So many restarts are named.
const NAMED: usize = 4;

/// Looks at one run.
pub(super) fn check(run: &RunCurves, _: &Course) -> Option<Finding> {
    if run.restarts.is_empty() {
        return None;
    }
    let cause = Restarts { run: run.name.clone(), restarts: run.restarts.clone() };
    Some(Finding::new(&RULE, Severity::Info, cause, Framework::Unknown).about(run.name.clone()))
}

/// A run that began again.
#[derive(Clone, Debug)]
pub struct Restarts {
    /// The run.
    pub run: String,
    /// Where.
    pub restarts: Vec<Restart>,
}

impl Cause for Restarts {
    fn words(&self, _: &Finding) -> Words {
        let repeated: i64 = self
            .restarts
            .iter()
            .map(|it| it.last_step.saturating_sub(it.step).saturating_add(1).max(0))
            .sum();
        let lost: f64 = self.restarts.iter().map(|it| (it.wall_s - it.from_s).max(0.0)).sum();
        let one = |restart: &Restart| {
            format!(
                "At {} it began again at step {}, after step {}; {} lay between.",
                at(restart.wall_s),
                thousands(restart.step),
                thousands(restart.last_step),
                duration_ms((restart.wall_s - restart.until_s).max(0.0) * 1e3)
            )
        };
        Words {
            summary: format!(
                "Restarted run: {} started again {} and lost {}, as it repeated {}.",
                quoted(&self.run),
                times(self.restarts.len() as u64),
                duration_ms(lost * 1e3),
                plural(repeated.unsigned_abs(), "step", "steps")
            ),
            evidence: self.restarts.iter().take(NAMED).map(one).collect(),
            advice: lines([
                "Find out why it stopped, and save checkpoints more often, so that less is repeated.",
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
    use crate::runs::testing::log;

    const RESTART: Restart =
        Restart { step: 80, wall_s: 1.8e9, last_step: 99, from_s: 1.8e9 - 90.0, until_s: 1.8e9 - 60.0 };

    #[test]
    fn a_restart_costs_the_time_since_its_first_repeated_step() {
        let mut log = log(0.0, [1.0; 20]);
        assert!(check(&RunCurves::of(&log), &Course::default()).is_none());
        log.restarts = vec![RESTART];
        let summary = check(&RunCurves::of(&log), &Course::default()).unwrap().summary();
        assert!(
            summary.contains("once") && summary.contains("90.0 s") && summary.contains("20 steps"),
            "{summary}"
        );
    }

    #[test]
    fn it_speaks() {
        speaks(&RULE, Restarts { run: "train".to_owned(), restarts: vec![RESTART, RESTART] });
    }
}
