//! What belongs to a write: a summary or a checkpoint is more than the op that writes it. The framework walks its objects
//! in Python and launches small ops before it, and records what was written after it.

use std::collections::VecDeque;

use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, Span, Time, Track};

use super::activities::{Activity, Does, Kinds, activities};
use super::timeline::united;
use crate::vocabulary::{Role, Vocabulary};

/// Maximum number of events to prepare one write: a histogram of `tf.summary` launches some 60 eager ops, each
/// creating and dropping its tensors. Earlier events were not done for it.
const MOST_EVENTS: usize = 400;
/// A pause this many times longer than usual between eager ops is something else …
const LONG_PAUSE: i64 = 10;
/// … unless it is shorter than this: a thread that loses its processor pauses for some slices of 4 ms.
pub(super) const SHORT: Dur = Dur::from_us(20_000);

/// When a Python thread prepares and writes something: from the first eager op for it to the end of the op that
/// writes. `tf.summary` computes its histograms and images with eager ops, which count as output. Model work, a
/// fetched batch and a long pause end what belongs to a write. A checkpoint ends with Python that records what
/// was written and removes old files: the time until the next activity or the end of the step belongs to it, up
/// to its own length.
pub(crate) fn preparations(kinds: &Kinds, vocabulary: &Vocabulary, track: &Track) -> Vec<Span> {
    let all = || activities(kinds, track, 0);
    let pauses = all().zip(all().skip(1)).map(|(before, after)| after.span.start - before.span.end);
    let longest = SHORT.max(Dur::from_ps(median_duration(pauses).ps().saturating_mul(LONG_PAUSE)));
    let mut spans: Vec<Span> = Vec::new();
    let mut starts: VecDeque<Time> = VecDeque::new();
    let mut before = Time::MIN;
    // The end of what came before the first of `starts`.
    let mut free = Time::MIN;
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
            let free_from = if from == span.start { before } else { free };
            let all = Span::new(from, span.end);
            let from = if does.has(Does::SAVES) { head_of(all, free_from, longest) } else { from };
            spans.push(Span::new(from, span.end));
            starts.clear();
            starts.push_back(span.end);
            free = span.end;
            saved = if does.has(Does::SAVES) { Some(step_end(span.end, vocabulary, track)) } else { None };
        } else if ends {
            starts.clear();
        } else if starts.is_empty() && does == Does::DELETES {
            // Releasing the model's results comes before the preparation, and is not part of it.
        } else {
            if span.start - before > longest {
                starts.clear();
            }
            if starts.is_empty() {
                free = before;
            }
            if starts.len() == MOST_EVENTS {
                free = starts.pop_front().unwrap_or(free);
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

/// Where a checkpoint starts: the framework walks its objects in Python before its first op, after `free`. A longer pause than
/// the usual ones, or than the checkpoint itself, is something else.
pub(super) fn head_of(saved: Span, free: Time, longest: Dur) -> Time {
    let pause = if free > Time::MIN { saved.start - free } else { longest };
    if pause < longest.min(saved.dur()) { saved.start.min(free) } else { saved.start }
}

/// How much time after a checkpoint belongs to it: until something else starts or the step ends, and no longer
/// than the checkpoint itself.
pub(super) fn tail_of(saved: Span, until: Time) -> Time {
    until.min(saved.end + saved.dur()).max(saved.end)
}

/// The end of the marked step that contains a time; the end of time if there is none.
pub(super) fn step_end(at: Time, vocabulary: &Vocabulary, track: &Track) -> Time {
    let before = (0..track.first_from(at)).rev();
    let marker = before.take(NEAR).find(|&index| vocabulary.role(track.kind_of(index)) == Role::StepMarker);
    marker.map(|index| track.end(index)).filter(|end| *end > at).unwrap_or(Time::MAX)
}

/// Number of events of one step on its Python thread that are searched for its marker.
const NEAR: usize = 20_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{Arg, Sketch};

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
    fn the_walk_before_a_checkpoint_belongs_to_it_and_a_longer_pause_does_not() {
        let saved = |pause: i64| {
            let (op, save) = (1_000 + pause, 2_000 + pause);
            spans(&[
                ("TFE_Py_FastPathExecute_C", 0, 1_000),
                ("EagerLocalExecute: MatMul", 10, 900),
                ("TFE_Py_FastPathExecute_C", op, 100),
                ("TFE_Py_ExecuteCancelable", save, 9_000),
                ("EagerLocalExecute: SaveV2", save + 10, 8_000),
            ])
        };
        assert_eq!(saved(5_000), [(1_000, 16_000)]);
        assert_eq!(saved(15_000), [(16_000, 26_000)]);
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
