//! The loss is not a number, or infinite.
//!
//! # What it means
//! From then on the run most likely learns nothing: one value that is not finite spreads to all weights.
//!
//! # How it is detected
//! A tag whose name has the word `loss`, `nll`, `cost` or `perplexity` has a value that is not finite. If its last value is
//! finite again, the finding is a `warning`, else it is `critical`.
//!
//! # How to fix it
//! Go back to a checkpoint before that step. Lower the learning rate, clip gradients, and inspect the batch of that step.
//! With float16, scale the loss.
//!
//! PyTorch: `torch.autograd.set_detect_anomaly(True)` names the op.
//!
//! TensorFlow and Keras: `tf.debugging.enable_check_numerics()`; the callback `TerminateOnNaN` stops the run.
//!
//! JAX: `jax.config.update("jax_debug_nans", True)`.
//!
//! # How to check
//! `stepscope scalars PATH --tag loss` has no NaN.

use stepscope_analyze::curves::tags::is_loss;
use stepscope_analyze::curves::{RunCurves, TagCurve};
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{plural, quoted, short, thousands};

use super::shared::runs::at;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of};
use crate::runs::Course;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "loss-not-finite",
    about: About::Run { rank: 0 },
    view: "scalars",
    check: Check::Run(check),
    thresholds: &[],
    source: doc_of!("loss_not_finite.rs"),
};

/// Looks at one run.
pub(super) fn check(run: &RunCurves, _: &Course) -> Option<Finding> {
    let losses = run.curves.iter().filter(|curve| is_loss(&curve.tag));
    let odd = losses.filter_map(|curve| Some((curve.curve.not_finite_s?, curve)));
    let (_, first) = odd.min_by(|a, b| a.0.total_cmp(&b.0))?;
    let recovered = first.curve.last.is_some_and(f64::is_finite);
    let severity = if recovered { Severity::Warning } else { Severity::Critical };
    let cause = NotFinite::of(run, first, recovered)?;
    Some(Finding::new(&RULE, severity, cause, Framework::Unknown).about(first.tag.clone()))
}

/// A loss that is not finite.
#[derive(Clone, Debug)]
pub struct NotFinite {
    /// The run.
    pub run: String,
    /// The tag.
    pub tag: String,
    /// The first step at which it is not finite.
    pub step: i64,
    /// When, in seconds since 1970.
    pub at_s: f64,
    /// The value before.
    pub before: Option<f64>,
    /// Values that are not numbers, and infinite ones.
    pub odd: (usize, usize),
    /// Of how many.
    pub points: usize,
    /// Is the last value finite again?
    pub recovered: bool,
}

impl NotFinite {
    fn of(run: &RunCurves, curve: &TagCurve, recovered: bool) -> Option<Self> {
        let of = &curve.curve;
        Some(NotFinite {
            run: run.name.clone(),
            tag: curve.tag.clone(),
            step: of.first_not_finite?,
            at_s: of.not_finite_s?,
            before: of.before_not_finite,
            odd: (of.nan, of.infinite),
            points: of.points,
            recovered,
        })
    }
}

impl Cause for NotFinite {
    fn words(&self, _: &Finding) -> Words {
        let (nan, infinite) = self.odd;
        let what = if nan > 0 { "not a number" } else { "infinite" };
        let then = if self.recovered { "; later values are finite again" } else { " and stays that way" };
        let before = self.before.map_or_else(
            || "It is the first logged value.".to_owned(),
            |value| format!("The previous value was {}.", short(value)),
        );
        Words {
            summary: format!(
                "Loss not finite: {} of {} is {what} at step {}{then}.",
                quoted(&self.tag),
                quoted(&self.run),
                thousands(self.step)
            ),
            evidence: vec![
                format!(
                    "Not finite: {} of {}, the first at {}.",
                    thousands((nan + infinite) as u64),
                    plural(self.points as u64, "point", "points"),
                    at(self.at_s)
                ),
                before,
            ],
            advice: lines([
                "Go back to a checkpoint before that step. Lower the learning rate, clip gradients, and inspect the batch of that step.",
            ]),
        }
    }

    fn verify(&self) -> Option<&'static str> {
        None
    }
}

#[cfg(test)]
mod tests {
    use stepscope_trace::series::{RunLog, Series};

    use super::*;
    use crate::rules::testing::speaks;

    fn run(tag: &str, values: &[f64]) -> RunCurves {
        let steps: Vec<i64> = (0..values.len() as i64).collect();
        let wall_s = steps.iter().map(|step| 1.8e9 + *step as f64).collect();
        let series =
            Series { tag: tag.to_owned(), steps, wall_s, values: values.to_vec(), ..Series::default() };
        RunCurves::of(&RunLog { name: "train".to_owned(), series: vec![series], ..RunLog::default() })
    }

    #[test]
    fn a_loss_that_is_no_number_is_found_and_other_tags_are_not() {
        let found = check(&run("train/loss", &[1.0, 0.5, f64::NAN, f64::NAN]), &Course::default()).unwrap();
        assert_eq!(found.severity, Severity::Critical);
        assert!(found.summary().contains("at step 2 and stays that way"), "{}", found.summary());
        assert_eq!(
            check(&run("loss", &[1.0, f64::INFINITY, 2.0]), &Course::default()).unwrap().severity,
            Severity::Warning
        );
        assert!(check(&run("accuracy", &[f64::NAN]), &Course::default()).is_none());
        assert!(check(&run("loss", &[1.0, 2.0]), &Course::default()).is_none());
    }

    #[test]
    fn it_speaks() {
        for (odd, before) in [((1, 0), Some(0.5)), ((2, 3), None), ((0, 1), Some(1e9))] {
            let (run, tag) = ("train".to_owned(), "loss".to_owned());
            let recovered = odd.0 == 1;
            speaks(&RULE, NotFinite { run, tag, step: 7, at_s: 1.8e9, before, odd, points: 90, recovered });
        }
    }
}
