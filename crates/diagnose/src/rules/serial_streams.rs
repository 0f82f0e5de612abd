//! Kernels on several streams take turns although they could run at the same time.
//!
//! # What it means
//! Each kernel leaves room on the device for another, but the streams do not overlap.
//!
//! # How it is detected
//! Two or more streams each take at least {COMPUTES} of kernel time and overlap for less than {OVERLAP} of the shorter one's
//! kernels. Kernels whose grids fill less than {LEAVES_ROOM} of the device take so much time on more than one of them that running
//! in parallel could save {FUSABLE} of the step. Recorded waits of one stream for another (`cudaStreamWaitEvent` in Kineto
//! and Nsight Systems) and kernels of a CUDA graph do not count. If only the wait calls are recorded, and not the streams
//! that they order, the finding promises nothing. Otherwise a fix saves at most {GAIN} of that time. The finding is always
//! `info`: a recording never shows in full whether one stream needs the other's results.
//!
//! # How to fix it
//! Launch both before waiting for either. Keep work off the default stream between them. Use `cudaStreamNonBlocking`.
//!
//! # How to check
//! `stepscope devices PATH` shows streams that run at the same time.

use stepscope_analyze::Category;
use stepscope_analyze::devices::bottleneck::Waits;
use stepscope_text::{duration_ms, listed, plural};

use super::shared::of_step;
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::FUSABLE;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "serial-streams",
    about: About::Cause,
    view: "devices",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("serial_streams.rs"),
};

thresholds! {
    /// Streams that overlap more already run in parallel.
    OVERLAP: Share = 0.05;
    /// A stream with less kernel time does not count.
    COMPUTES: Share = stepscope_analyze::devices::bottleneck::COMPUTES;
    /// A smaller grid leaves room for another one beside it.
    LEAVES_ROOM: Share = stepscope_analyze::devices::bottleneck::LEAVES_ROOM;
    /// The longest of several streams that run in parallel hides the others.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let detail = facts.detail.as_ref()?;
    let streams = &detail.streams;
    let shorter = streams.computing.iter().map(|stream| stream.kernels).min()?;
    let serial = streams.computing.len() >= 2 && streams.overlap.fraction_of(shorter) < OVERLAP;
    let winnable_ms = detail.per_step(streams.winnable).min(facts.ms(Category::Compute));
    (serial && of_step(facts, winnable_ms) >= FUSABLE).then(|| {
        let each = streams.computing.iter();
        let cause = SerialStreams {
            streams: each.map(|stream| (stream.number, detail.per_step(stream.kernels))).collect(),
            overlap_ms: detail.per_step(streams.overlap),
            winnable_ms,
            waits: streams.waits,
        };
        let finding = Finding::new(&RULE, Severity::Info, cause, facts.framework());
        let claims = vec![(Category::Compute, winnable_ms)];
        match streams.waits {
            Waits::Recorded => finding.owning(claims, Some(GAIN)).sure(0.6),
            Waits::Unrecorded => finding.owning(claims, Some(GAIN)).sure(0.4),
            Waits::CallsOnly => finding.sure(0.3),
        }
    })
}

/// Streams that take turns.
#[derive(Clone, Debug)]
pub struct SerialStreams {
    /// Milliseconds per step of kernels by stream, the busiest first.
    pub streams: Vec<(i64, f64)>,
    /// Milliseconds per step in which two of them run.
    pub overlap_ms: f64,
    /// Milliseconds per step that running in parallel saves at most.
    pub winnable_ms: f64,
    /// What is known of waits of one for another.
    pub waits: Waits,
}

impl Cause for SerialStreams {
    fn words(&self, _: &Finding) -> Words {
        let known = match self.waits {
            Waits::Recorded => "Kernels that a recorded wait puts in order are excluded.",
            Waits::Unrecorded => {
                "No wait of one stream for another is recorded, but many profilers omit them: the streams may still \
                 need each other's results."
            }
            Waits::CallsOnly => {
                "The host makes streams wait for one another (`cudaStreamWaitEvent`), but the recording does not say \
                 which: they may need each other's results, so no gain is stated."
            }
        };
        let each: Vec<String> = self
            .streams
            .iter()
            .take(4)
            .map(|(number, ms)| format!("{} on stream {number}", duration_ms(*ms)))
            .collect();
        Words {
            summary: format!(
                "Serial streams: kernels on {} take turns although they leave room for one another.",
                plural(self.streams.len() as u64, "stream", "streams")
            ),
            evidence: vec![
                format!("Kernels per step: {}.", listed(&each)),
                format!(
                    "They overlap for {} per step; running in parallel saves at most {}.",
                    duration_ms(self.overlap_ms),
                    duration_ms(self.winnable_ms)
                ),
                known.to_owned(),
            ],
            advice: lines([
                "Find what orders them: an event that one stream waits for, work on the default stream between them, or a \
                 wait of the host.",
                "If they do not need each other's results, launch both before waiting for either. Streams created with \
                 `cudaStreamNonBlocking` do not wait for the default one.",
            ]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        for waits in [Waits::Recorded, Waits::Unrecorded, Waits::CallsOnly] {
            let streams = vec![(7, 4.0), (13, 3.0)];
            speaks(&RULE, SerialStreams { streams, overlap_ms: 0.0, winnable_ms: 2.5, waits });
        }
    }
}
