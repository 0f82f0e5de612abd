//! Nothing is marked and nothing repeats, so there are no steps.
//!
//! # What it means
//! There is no step time. The breakdown describes the whole capture.
//!
//! # How it is detected
//! The recording has no step marker, no repeated function, program, optimizer step or batch, and no period in the ops of
//! the busiest track. A period counts only if something shows that it is a step and not a layer of one: input, a loss, an
//! update of parameters, a result or a wait for the device in each repetition, a long pause between them, or layers
//! inside. No annotation or NVTX range repeats with most of the device's work launched inside it. Recordings
//! of single kernels with counters have no steps by nature and do not get this finding.
//!
//! # How to fix it
//! Mark the steps.
//!
//! TensorFlow: `with tf.profiler.experimental.Trace("train", step_num=step, _r=1):`. Keras marks steps in `fit`.
//!
//! JAX: `with jax.profiler.StepTraceAnnotation("train", step_num=step):`.
//!
//! PyTorch: `prof.step()` inside `torch.profiler.profile`.
//!
//! # How to check
//! `stepscope steps PATH` lists the steps.

use stepscope_analyze::steps::{How, Origin};
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::plural;

use super::shared::ranges::Ranges;
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of};
use crate::words::frameworks::capture;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "no-steps",
    about: About::Trust { rank: 2 },
    view: "health",
    check: Check::Profile(check),
    thresholds: &[],
    source: doc_of!("no_steps.rs"),
};

fn check(facts: &Facts) -> Option<Finding> {
    let none = facts.timeline
        && facts.summary.bound().is_none_or(|host| host.whole_capture && host.origin == Origin::None);
    let unclear = facts.summary.bound().and_then(|host| match host.how {
        How::Unclear { parts, ops } => Some((parts, ops)),
        _ => None,
    });
    // Where the device's side is missing, that finding names the ranges.
    let ranges = match super::no_device_trace::check(facts).is_some() {
        true => Ranges::default(),
        false => Ranges::of(facts),
    };
    none.then(|| Finding::new(&RULE, Severity::Warning, NoSteps { unclear, ranges }, facts.recorder()))
}

/// Nothing repeats, or only what may be layers.
#[derive(Clone, Debug)]
pub struct NoSteps {
    /// How many parts repeat and the ops in each, if they may be layers of one step.
    pub unclear: Option<(usize, usize)>,
    /// The program's own ranges around time of which nothing else is known.
    pub ranges: Ranges,
}

impl Cause for NoSteps {
    fn words(&self, finding: &Finding) -> Words {
        let largest = self.ranges.largest();
        let (summary, mut evidence) = match self.unclear {
            Some((parts, ops)) => (
                format!(
                    "No steps: {parts} equal parts repeat, which may be layers of one step or steps, so the breakdown \
                     covers the whole capture{largest}."
                ),
                vec![format!(
                    "A sequence of {} repeats {parts} times. Nothing comes once per repetition that only a loop does: \
                     no new input, no loss, no update, no result, no wait.",
                    plural(ops as u64, "op", "ops")
                )],
            ),
            None => (
                format!(
                    "No steps: nothing is marked and nothing repeats, so the breakdown covers the whole capture{largest}."
                ),
                lines(["There is no step marker, no repeated function and no period in the ops."]),
            ),
        };
        evidence.extend(self.ranges.evidence());
        Words {
            summary,
            evidence,
            advice: vec![
                format!("Mark the steps: {}.", marker(finding.framework)),
                format!("Record at least ten of them: {}.", capture(finding.framework)),
            ],
        }
    }
}

/// How to mark steps.
fn marker(framework: Framework) -> &'static str {
    match framework {
        Framework::TensorFlow | Framework::Keras => {
            "`with tf.profiler.experimental.Trace(\"train\", step_num=step, _r=1):` around the body of the loop"
        }
        Framework::Jax => {
            "`with jax.profiler.StepTraceAnnotation(\"train\", step_num=step):` around the body of the loop"
        }
        Framework::PyTorch => {
            "`prof.step()` at the end of the loop's body, inside `torch.profiler.profile(...)`"
        }
        Framework::Unknown => "put a range with a fixed name and the step number around the body of the loop",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, NoSteps { unclear: None, ranges: Ranges::default() });
        speaks(&RULE, NoSteps { unclear: Some((8, 96)), ranges: Ranges::sample() });
    }
}
