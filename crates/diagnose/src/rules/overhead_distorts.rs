//! The profiler wrote so many events that it slowed the program down.
//!
//! # What it means
//! A Python tracer costs about a microsecond per event. If most events are its frames, Python looks slower than it is.
//!
//! # How it is detected
//! The recording has more than {FRAMES_PER_MS} frames of a Python tracer per millisecond of step time.
//!
//! # How to fix it
//! Record without Python frames, unless you want to know which lines cost time.
//!
//! TensorFlow and Keras: `python_tracer_level=0`.
//!
//! JAX: `options.python_tracer_level = 0`.
//!
//! PyTorch: `with_stack=False`.
//!
//! # How to check
//! Steps get shorter without any change to the program.

use stepscope_text::{decimal, share};

use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::words::frameworks::less_detail;

/// The rule.
pub static RULE: Rule = Rule {
    id: "overhead-distorts",
    about: About::Trust { rank: 5 },
    view: "steps",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("overhead_distorts.rs"),
};

thresholds! {
    /// At about a microsecond each, this many frames per millisecond are a fifth of the step.
    FRAMES_PER_MS: Number = 200.0;
}

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let host = facts.summary.bound()?;
    let recorded: f64 = host.steps.iter().map(|step| step.span.dur().ms()).sum();
    let events_per_ms = if recorded > 0.0 { host.events as f64 / recorded } else { 0.0 };
    let python_frames = facts.tracer_frames;
    (events_per_ms * python_frames > FRAMES_PER_MS).then(|| {
        let cause = Overhead { events_per_ms, python_frames };
        Finding::new(&RULE, Severity::Info, cause, facts.recorder()).sure(0.7)
    })
}

/// The recorder's own cost.
#[derive(Copy, Clone, Debug)]
pub struct Overhead {
    /// Events per millisecond of step time.
    pub events_per_ms: f64,
    /// The share of events that are frames of a Python tracer.
    pub python_frames: f64,
}

impl Cause for Overhead {
    fn words(&self, finding: &Finding) -> Words {
        Words {
            summary: format!(
                "Profiling overhead: the profiler wrote {} events per millisecond, which slows down Python.",
                decimal(self.events_per_ms, 0)
            ),
            evidence: vec![format!(
                "{} of all events are frames of a Python tracer, at about a microsecond each.",
                share(self.python_frames)
            )],
            advice: vec![less_detail(finding.framework).to_owned()],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, Overhead { events_per_ms: 900.0, python_frames: 0.9 });
    }
}
