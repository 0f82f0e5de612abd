//! The recording is damaged, or the profiler dropped events.
//!
//! # What it means
//! The file breaks off, or the profiler dropped events. The rest of the report describes what could be read: times may be
//! too short, and ops may be missing.
//!
//! # How it is detected
//! One of three things happened: a reader met something impossible (the report names the byte); the profiler noted that
//! it dropped events; or the number of events is exactly the limit of a known profiler.
//!
//! # How to fix it
//! For a damaged file: copy it again, or record again and stop the profiler before the program ends.
//!
//! For dropped events: record fewer steps, or with less detail.
//!
//! TensorFlow and Keras: `ProfilerOptions(host_tracer_level=1, python_tracer_level=0)`.
//!
//! JAX: `options.python_tracer_level = 0` in `jax.profiler.ProfileOptions`.
//!
//! PyTorch: `profile(with_stack=False, record_shapes=False, profile_memory=False)`.
//!
//! # How to check
//! `stepscope health PATH` reports no damage.

use stepscope_text::{plural, quoted, thousands};

use crate::facts::{Facts, Recording};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of};
use crate::words::frameworks::{capture, less_detail};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "truncated-trace",
    // Everything else is said of what could be read.
    about: About::Trust { rank: 0 },
    view: "health",
    check: Check::Profile(check),
    thresholds: &[],
    source: doc_of!("truncated_trace.rs"),
};

fn check(facts: &Facts) -> Option<Finding> {
    let new = |cause| Finding::new(&RULE, Severity::Warning, cause, facts.recorder());
    let recording = facts.get::<Recording>();
    match (&recording.damage, recording.dropped) {
        (Some((what, offset)), _) => Some(new(Truncated::Damage { what: what.clone(), offset: *offset })),
        (None, Some(count)) => Some(new(Truncated::Dropped { count })),
        (None, None) => None,
    }
}

/// Why the recording is incomplete.
#[derive(Clone, Debug)]
pub enum Truncated {
    /// The file is damaged.
    Damage {
        /// What broke.
        what: String,
        /// At which byte.
        offset: Option<u64>,
    },
    /// The profiler dropped events.
    Dropped {
        /// How many; 0 or 1 if the profiler does not say.
        count: u64,
    },
}

impl Cause for Truncated {
    fn words(&self, finding: &Finding) -> Words {
        match self {
            Truncated::Damage { what, offset } => damage(what, *offset),
            Truncated::Dropped { count } => dropped(*count, finding),
        }
    }
}

fn damage(what: &str, offset: Option<u64>) -> Words {
    let at = offset.map_or(String::new(), |offset| format!(" at byte {}", thousands(offset)));
    Words {
        summary: format!(
            "Truncated trace: the file is damaged{at}; the report covers only what comes before."
        ),
        evidence: vec![format!("The reader stopped at: {}.", quoted(what))],
        advice: lines([
            "Copy the file again (a full disk or a killed program cuts it off), or record again and stop the profiler \
             before the program ends.",
        ]),
    }
}

fn dropped(count: u64, finding: &Finding) -> Words {
    let (events, how_many) = match count {
        0 | 1 => ("events".to_owned(), "The profiler does not say how many."),
        many => (
            plural(many, "event", "events"),
            "The profiler noted this, or the number of events is exactly its limit.",
        ),
    };
    Words {
        summary: format!("Truncated trace: the profiler dropped {events}; the times below are too short."),
        evidence: lines([how_many]),
        advice: vec![
            format!("Record fewer steps: {}.", capture(finding.framework)),
            less_detail(finding.framework).to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, Truncated::Damage { what: "a tag".into(), offset: Some(1_234) });
        speaks(&RULE, Truncated::Dropped { count: 9_000 });
        speaks(&RULE, Truncated::Dropped { count: 0 });
    }
}
