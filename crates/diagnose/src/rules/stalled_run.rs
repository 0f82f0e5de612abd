//! The run stood still for long.
//!
//! # What it means
//! No step ended for much longer than usual. Either the program waited (for data, for another process, for a device that
//! hung), or it did something that it does not log.
//!
//! # How it is detected
//! Between two points, at least {TIMES} times the usual time passed beyond what the steps take, and at least {PART} of the
//! run's time, and at least {LEAST}. The log shows neither an evaluation nor a checkpoint nor a restart at the time, and no other pause of the run
//! is half as long. Or steps no longer went on while the program still logged other values.
//!
//! # How to fix it
//! Look at what the program does at that step. If it still stands still: `py-spy dump --pid PID` shows where. Set a timeout
//! for collectives and for data loaders. If it is a checkpoint or an evaluation, log it.
//!
//! # How to check
//! `stepscope scalars PATH` no longer shows the gap.

use stepscope_analyze::curves::RunCurves;
use stepscope_analyze::curves::pace::{Pace, Pause, Why};
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{duration_ms, quoted, share, thousands};

use super::shared::runs::{at, unit};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::runs::Course;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "stalled-run",
    about: About::Run { rank: 2 },
    view: "scalars",
    check: Check::Run(check),
    thresholds: THRESHOLDS,
    source: doc_of!("stalled_run.rs"),
};

thresholds! {
    /// Shorter gaps are common: checkpoints, evaluations, a slow disk.
    TIMES: Number = 20.0;
    /// Shorter gaps are not worth investigating.
    LEAST: Milliseconds = 30_000.0;
    /// A gap of less than this share of the run does not matter.
    PART: Share = 0.05;
}

/// Looks at one run.
pub(super) fn check(run: &RunCurves, _: &Course) -> Option<Finding> {
    let pace = run.pace.as_ref()?;
    let (from, until) = pace.covers_s();
    let last = run.last_s.unwrap_or(until).max(until);
    let long = |seconds: f64| {
        seconds >= TIMES * pace.interval_s && seconds >= PART * (last - from) && seconds * 1e3 >= LEAST
    };
    let stands = Some(last - until).filter(|seconds| long(*seconds)).map(|seconds| Stall {
        run: run.name.clone(),
        unit: unit(pace.unit),
        step: last_step(pace),
        at_s: until,
        seconds,
        of_run: seconds / (last - from),
        ended: false,
    });
    let gap = || {
        let gap = longest(&pace.pauses).filter(|pause| long(pause.seconds))?;
        Some(Stall {
            run: run.name.clone(),
            unit: unit(pace.unit),
            step: gap.step,
            at_s: gap.from_s,
            seconds: gap.seconds,
            of_run: gap.seconds / (last - from),
            ended: true,
        })
    };
    let cause = stands.or_else(gap)?;
    Some(Finding::new(&RULE, Severity::Warning, cause, Framework::Unknown).about(run.name.clone()).sure(0.7))
}

fn last_step(pace: &Pace) -> i64 {
    let pauses = pace.pauses.iter().map(|pause| pause.step);
    pace.pieces.iter().map(|piece| piece.step).chain(pauses).max().unwrap_or_default()
}

/// The longest pause that nothing explains, if it is no habit.
fn longest(pauses: &[Pause]) -> Option<&Pause> {
    let longest = pauses
        .iter()
        .filter(|pause| pause.why == Why::Unknown)
        .max_by(|a, b| a.seconds.total_cmp(&b.seconds))?;
    let alike = pauses.iter().filter(|pause| pause.seconds >= longest.seconds / 2.0).count();
    (alike == 1).then_some(longest)
}

/// A gap in a run.
#[derive(Clone, Debug)]
pub struct Stall {
    /// The run.
    pub run: String,
    /// What it counts: `step` or `epoch`.
    pub unit: &'static str,
    /// The step before it.
    pub step: i64,
    /// When it began, in seconds since 1970.
    pub at_s: f64,
    /// How long it was.
    pub seconds: f64,
    /// Its share of the run's time.
    pub of_run: f64,
    /// Did steps go on afterwards?
    pub ended: bool,
}

impl Cause for Stall {
    fn words(&self, _: &Finding) -> Words {
        let (length, unit) = (duration_ms(self.seconds * 1e3), self.unit);
        let (run, step) = (quoted(&self.run), thousands(self.step));
        let summary = if self.ended {
            format!("Stalled run: {run} stood still for {length} after {unit} {step}.")
        } else {
            format!(
                "Stalled run: {run} finishes no {unit} after {step}, but logged other values for {length}."
            )
        };
        Words {
            summary,
            evidence: vec![
                format!("It began at {}.", at(self.at_s)),
                format!(
                    "It is {} of the run's time; the log does not show what happened.",
                    share(self.of_run)
                ),
            ],
            advice: lines([
                "Look at what the program does there. If it still stands still, `py-spy dump --pid PID` shows where.",
                "If it is a checkpoint or an evaluation, log its duration; then it is not reported.",
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
    use crate::runs::testing::{log, run};

    #[test]
    fn a_long_gap_is_found_and_what_recurs_or_is_explained_is_not() {
        let gap = |length: f64| {
            check(&run(0.1, (0..200).map(move |at| if at == 120 { length } else { 1.0 })), &Course::default())
        };
        let finding = gap(60.0).unwrap();
        assert!(finding.summary().contains("after step 1,200"), "{}", finding.summary());
        assert!(gap(9.0).is_none(), "too short");
        assert!(
            check(&run(0.1, (0..400).map(|at| if at % 100 == 50 { 60.0 } else { 1.0 })), &Course::default())
                .is_none(),
            "a habit"
        );
        let mut saved = log(0.1, (0..200).map(|at| if at == 120 { 60.0 } else { 1.0 }));
        saved.saved_s = vec![saved.series[0].wall_s[120] + 30.0];
        assert!(check(&RunCurves::of(&saved), &Course::default()).is_none(), "a checkpoint");
    }

    #[test]
    fn steps_that_end_while_other_values_go_on_are_found() {
        let mut log = log(0.1, [1.0; 100]);
        assert!(check(&RunCurves::of(&log), &Course::default()).is_none(), "it just ended");
        log.last_s = log.last_s.map(|last| last + 300.0);
        assert!(
            check(&RunCurves::of(&log), &Course::default())
                .unwrap()
                .summary()
                .contains("finishes no step after 1,000")
        );
    }

    #[test]
    fn it_speaks() {
        for ended in [true, false] {
            let run = "train".to_owned();
            speaks(
                &RULE,
                Stall { run, unit: "step", step: 9, at_s: 1.8e9, seconds: 900.0, of_run: 0.3, ended },
            );
        }
    }
}
