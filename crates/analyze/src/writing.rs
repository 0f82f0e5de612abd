//! What surrounds output: a checkpoint is more than the op that writes it. The framework walks its objects in
//! Python and launches small ops to join names and merge files, and all of that disappears with the checkpoint.
//!
//! Between two function calls or two batch fetches, the loop does things one by one. If one of them writes, the
//! whole stretch counts as its surroundings.

use std::collections::VecDeque;

use rayon::prelude::*;
use stepscope_trace::{Dur, Span, Time, Track, TrackKind};

use crate::activities::{Activity, Does, Kinds, activities};
use crate::breakdown::united;
use crate::context::Context;
use crate::states::runs_python;
use crate::steps::median;
use crate::vocabulary::{Role, Vocabulary};

/// Maximum number of events to prepare one write: a histogram of `tf.summary` launches some 60 eager ops, each
/// creating and dropping its tensors. Earlier events were not done for it.
const MOST_EVENTS: usize = 400;
/// A pause this many times longer than usual between eager ops is something else …
const LONG_PAUSE: i64 = 10;
/// … unless it is shorter than this: a thread that loses its processor pauses for some slices of 4 ms.
const SHORT: Dur = Dur::from_us(20_000);

/// When a Python thread prepares and writes something: from the first eager op for it to the end of the op that
/// writes. `tf.summary` computes its histograms and images with eager ops, which count as output. Model work, a
/// fetched batch and a long pause end what belongs to a write. A checkpoint ends with Python that records what
/// was written and removes old files: the time until the next activity or the end of the step belongs to it, up
/// to its own length.
pub(crate) fn preparations(kinds: &Kinds, vocabulary: &Vocabulary, track: &Track) -> Vec<Span> {
    if !kinds.any_on(track, Does::WRITES) {
        return Vec::new();
    }
    let all = || activities(kinds, track, 0);
    let pauses = all().zip(all().skip(1)).map(|(before, after)| after.span.start - before.span.end);
    let longest = SHORT.max(Dur::from_ps(median(pauses).ps().saturating_mul(LONG_PAUSE)));
    let mut spans: Vec<Span> = Vec::new();
    let mut starts: VecDeque<Time> = VecDeque::new();
    let mut before = Time::MIN;
    // Until when the time after a checkpoint may belong to it.
    let mut saved: Option<Time> = None;
    for Activity { span, does } in all() {
        let ends = does.has(Does::MODEL) || does.has(Does::FETCHES) || does.has(Does::SETS_UP);
        if let (Some(limit), Some(last)) = (saved, spans.last_mut()) {
            let goes_on = !ends && span.start < limit;
            last.end = if goes_on { span.end.min(limit) } else { tail_of(*last, span.start.min(limit)) };
            saved = saved.filter(|_| goes_on);
        }
        if does.has(Does::WRITES) {
            let from =
                starts.front().copied().filter(|_| span.start - before <= longest).unwrap_or(span.start);
            spans.push(Span::new(from, span.end));
            starts.clear();
            starts.push_back(span.end);
            saved = if does.has(Does::SAVES) { Some(step_end(span.end, vocabulary, track)) } else { None };
        } else if ends {
            starts.clear();
        } else if starts.is_empty() && does == Does::DELETES {
            // Releasing the model's results comes before the preparation, and is not part of it.
        } else {
            if span.start - before > longest {
                starts.clear();
            }
            if starts.len() == MOST_EVENTS {
                starts.pop_front();
            }
            starts.push_back(span.start);
        }
        before = span.end;
    }
    if let (Some(limit), Some(last)) = (saved.filter(|limit| *limit < Time::MAX), spans.last_mut()) {
        last.end = tail_of(*last, limit);
    }
    united(spans)
}

/// How much time after a checkpoint belongs to it: until something else starts or the step ends, and no longer
/// than the checkpoint itself.
fn tail_of(saved: Span, until: Time) -> Time {
    until.min(saved.end + saved.dur()).max(saved.end)
}

/// The end of the marked step that contains a time; the end of time if there is none.
fn step_end(at: Time, vocabulary: &Vocabulary, track: &Track) -> Time {
    let before = (0..track.first_from(at)).rev();
    let marker = before.take(NEAR).find(|&index| vocabulary.role(track.kind_of(index)) == Role::StepMarker);
    marker.map(|index| track.end(index)).filter(|end| *end > at).unwrap_or(Time::MAX)
}

/// Number of events of one step on its Python thread that are searched for its marker.
const NEAR: usize = 20_000;

/// Partial result: stretches of the loop in which something was written, in the counted steps.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Writing {
    /// The stretches.
    pub stretches: Dur,
    /// Number of steps analysed.
    pub steps: u64,
}

impl Writing {
    /// Walks the Python threads; nothing if nothing writes.
    pub fn of(context: &Context) -> Self {
        let trace = context.trace;
        let windows: Vec<Span> = context.breakdown().counted().map(|(_, shares)| shares.window).collect();
        let mut all = Writing { steps: windows.len() as u64, ..Writing::default() };
        let writes = |track: &&Track| {
            track.kind == TrackKind::Thread
                && runs_python(trace, context.vocabulary(), track)
                && track.kinds().iter().any(|&kind| context.vocabulary().role(kind) == Role::Output)
        };
        for track in trace.tracks().iter().filter(writes) {
            let walked: Vec<Stretches> =
                windows.par_iter().map(|&window| Stretches::of(context, track, window)).collect();
            all.stretches += walked.iter().map(|walked| walked.length).sum::<Dur>();
        }
        all
    }

    /// Adds another host's.
    pub fn merge(&mut self, other: &Writing) {
        self.stretches += other.stretches;
        self.steps += other.steps;
    }

    /// Milliseconds per step from the model's work, or a batch, to the next one, if something is written in
    /// between.
    pub fn stretches_ms(&self) -> f64 {
        self.stretches.ms() / self.steps.max(1) as f64
    }
}

/// The stretches of one step in which something was written.
#[derive(Default)]
struct Stretches {
    length: Dur,
}

impl Stretches {
    fn of(context: &Context, track: &Track, window: Span) -> Self {
        let mut all = Stretches::default();
        let (mut from, mut written) = (window.start, Dur::ZERO);
        let (mut call_until, mut write_until) = (Time::MIN, Time::MIN);
        for index in track.first_from(window.start)..track.len() {
            let span = track.span_of(index);
            if span.start >= window.end {
                break;
            }
            if span.start < call_until || span.start < write_until {
                continue;
            }
            match context.vocabulary().role(track.kind_of(index)) {
                Role::Output => {
                    written += span.dur();
                    write_until = span.end;
                }
                Role::FunctionCall | Role::InputWait => {
                    all.close(Span::new(from, span.start), written);
                    (from, call_until, written) = (span.end, span.end, Dur::ZERO);
                }
                _ => {}
            }
        }
        all.close(Span::new(from, window.end), written);
        all
    }

    fn close(&mut self, stretch: Span, written: Dur) {
        if !written.is_zero() {
            self.length += stretch.dur();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{Arg, Sketch};

    #[test]
    fn the_stretch_around_a_checkpoint_is_its_own_and_the_step_function_is_not() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        for number in 0..4 {
            let start = number * 1_000;
            sketch.event(thread, "train", start, 1_000, &[("step_num", Arg::Int(number))]);
            sketch.event(thread, "run", start, 300, &[("tf_function_call", Arg::Text("notTraced-nonXla"))]);
            sketch.event(thread, "EagerLocalExecute: SaveV2", start + 500, 200, &[]);
        }
        let trace = sketch.finish();
        let writing = Writing::of(&Context::new(&trace, "host"));
        assert_eq!(writing.steps, 4);
        assert_eq!(writing.stretches, Dur::from_us(2_800));
        assert!((writing.stretches_ms() - 0.7).abs() < 1e-9);
    }

    fn spans(events: &[(&str, i64, i64)]) -> Vec<(i64, i64)> {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        events.iter().for_each(|&(name, start, dur)| sketch.event(thread, name, start, dur, &[]));
        let trace = sketch.finish();
        let vocabulary = Vocabulary::of(&trace);
        let us = |time: Time| time.ps() / 1_000_000;
        let found = preparations(&Kinds::of(&trace, &vocabulary), &vocabulary, &trace.tracks()[0]);
        found.into_iter().map(|span| (us(span.start), us(span.end))).collect()
    }

    #[test]
    fn eager_ops_that_lead_to_a_summary_are_output_and_the_models_are_not() {
        let found = spans(&[
            ("TFE_Py_FastPathExecute_C", 0, 50),
            ("EagerLocalExecute: MatMul", 10, 30),
            ("TFE_Py_FastPathExecute_C", 60, 50),
            ("EagerLocalExecute: Sum", 70, 30),
            ("TFE_Py_FastPathExecute_C", 120, 50),
            ("EagerLocalExecute: WriteSummary", 130, 30),
            ("TFE_Py_FastPathExecute_C", 180, 50),
            ("EagerLocalExecute: Sum", 190, 30),
        ]);
        assert_eq!(found, [(60, 170)], "not the product before it, nor the op after it");
    }

    #[test]
    fn a_long_pause_before_a_write_is_something_else() {
        let found = spans(&[
            ("TFE_Py_FastPathExecute_C", 0, 50),
            ("TFE_Py_FastPathExecute_C", 60, 50),
            ("TFE_Py_FastPathExecute_C", 120, 50),
            ("TFE_Py_FastPathExecute_C", 90_000, 50),
            ("EagerLocalExecute: WriteSummary", 90_010, 30),
        ]);
        assert_eq!(found, [(90_000, 90_050)]);
    }

    #[test]
    fn what_follows_a_checkpoint_in_its_step_is_its_own_up_to_its_length() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        sketch.event(thread, "train", 0, 1_000, &[("step_num", Arg::Int(1))]);
        sketch.event(thread, "TFE_Py_ExecuteCancelable", 100, 400, &[]);
        sketch.event(thread, "EagerLocalExecute: SaveV2", 110, 100, &[]);
        sketch.event(thread, "EagerLocalExecute: MergeV2Checkpoints", 250, 200, &[]);
        sketch.event(thread, "TFE_Py_FastPathExecute_C", 600, 100, &[]);
        sketch.event(thread, "train", 1_000, 1_000, &[("step_num", Arg::Int(2))]);
        sketch.event(thread, "TFE_Py_FastPathExecute_C", 1_010, 100, &[]);
        let trace = sketch.finish();
        let vocabulary = Vocabulary::of(&trace);
        let found = preparations(&Kinds::of(&trace, &vocabulary), &vocabulary, &trace.tracks()[0]);
        let us = |time: Time| time.ps() / 1_000_000;
        assert_eq!(
            found.iter().map(|span| (us(span.start), us(span.end))).collect::<Vec<_>>(),
            [(100, 1_000)]
        );
    }
}
