//! Variables that are read into Python one after the other, as `model.save`, `save_weights` and `ModelCheckpoint` do for
//! files that TensorFlow does not write itself (`.keras`, `.h5`): no op writes, and the time between the reads goes into the
//! file. A loop that reads all variables passes the model's state on to something else.
//!
//! Copying weights from one model to another reads them as well, and then assigns as many. A loop that reads them after most
//! of its calls looks at them, to log a norm for example: nobody writes a checkpoint that often.

use stepscope_trace::{Dur, Span, Time, Track};

use super::activities::{Activity, Does, Kinds, activities};
use super::output::{SHORT, head_of, step_end, tail_of};
use crate::vocabulary::Vocabulary;

/// Fewer reads are values that somebody looks at: a learning rate, a metric.
const LEAST: usize = 4;

/// Variables that were read one after the other.
#[derive(Copy, Clone, Debug)]
pub(crate) struct ReadOut {
    /// From the walk over the model's objects to the closing of the file, as far as nothing else runs.
    pub(crate) span: Span,
    /// How many reads.
    pub(crate) reads: usize,
    /// The end of what came before it.
    free: Time,
    /// How many variables were assigned right after it.
    assigned: usize,
    /// No more reads belong to it.
    closed: bool,
}

/// All of them on a Python thread, in time order.
pub(crate) fn read_out(kinds: &Kinds, vocabulary: &Vocabulary, track: &Track) -> Vec<ReadOut> {
    let mut all: Vec<ReadOut> = Vec::new();
    if !may_read_out(kinds, track) {
        return all;
    }
    let (mut before, mut calls) = (Time::MIN, 0);
    for Activity { span, does } in activities(kinds, track, 0) {
        let is_other = is_other(does);
        let reads = does.has(Does::READS) && !is_other;
        calls += usize::from(does.has(Does::MODEL) && !does.has(Does::ASSIGNS));
        match all.last_mut() {
            Some(last) if !last.closed && reads => {
                last.span.end = span.end;
                last.reads += 1;
            }
            // Releasing what was read.
            Some(last) if !last.closed && !is_other => {
                let near = span.start - last.span.end <= SHORT;
                last.span.end = if near { span.end } else { last.span.end };
            }
            Some(last) if !last.closed => {
                last.closed = true;
                last.assigned += usize::from(does.has(Does::ASSIGNS));
                close(last, span.start, vocabulary, track);
            }
            Some(last) if does.has(Does::ASSIGNS) => last.assigned += 1,
            _ => {}
        }
        if reads && all.last().is_none_or(|last| last.closed) {
            drop_if_short(&mut all);
            all.push(ReadOut { span, reads: 1, free: before, assigned: 0, closed: false });
        }
        before = span.end;
    }
    if let Some(last) = all.last_mut().filter(|last| !last.closed) {
        close(last, last.span.end, vocabulary, track);
    }
    drop_if_short(&mut all);
    if all.len() * 2 > calls {
        all.clear();
    }
    all
}

fn is_other(does: Does) -> bool {
    let other = [Does::MODEL, Does::COMPUTES, Does::FETCHES, Does::SETS_UP, Does::WRITES];
    other.iter().any(|other| does.has(*other))
}

/// Whether there are enough reads with nothing else between them. Most threads have none, and finding activities takes ten
/// times as long as looking at kinds.
fn may_read_out(kinds: &Kinds, track: &Track) -> bool {
    let mut reads = 0;
    (0..track.len()).any(|index| {
        match kinds.does(track.kind_of(index)) {
            Some(does) if is_other(does) && track.dur(index) > Dur::ZERO => reads = 0,
            Some(does) if does.has(Does::READS) => reads += 1,
            _ => {}
        }
        reads >= LEAST
    })
}

/// The time until something else starts belongs to it, up to its own length and to the end of the step; and a short walk over
/// the model before the first read.
fn close(last: &mut ReadOut, until: Time, vocabulary: &Vocabulary, track: &Track) {
    if last.reads >= LEAST {
        last.span.start = head_of(last.span, last.free, SHORT);
        last.span.end = tail_of(last.span, until.min(step_end(last.span.end, vocabulary, track)));
    }
}

/// Removes the last one if it is too short, or only copied weights.
fn drop_if_short(all: &mut Vec<ReadOut>) {
    if all.last().is_some_and(|last| last.reads < LEAST || last.assigned * 2 >= last.reads) {
        all.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::{Arg, Sketch};

    /// After `steps` steps of 10 ms together, `reads` reads of 1 ms each with pauses of 4 ms, `then` as often as the number
    /// says, and a step after another 8 ms.
    fn read_after(steps: i64, reads: i64, then: (&str, i64)) -> Vec<(i64, i64, usize)> {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let call = || [("tf_function_call", Arg::Text("notTraced-nonXla"))];
        let mut at = 0;
        for _ in 0..steps {
            sketch.event(thread, "train_step", at, 10_000 / steps, &call());
            at += 10_000 / steps;
        }
        for _ in 0..reads {
            sketch.event(thread, "TFE_Py_FastPathExecute_C", at + 500, 1_000, &[]);
            sketch.event(thread, "EagerLocalExecute: ReadVariableOp", at + 600, 800, &[]);
            sketch.event(thread, "TFE_DeleteTensorHandle", at + 1_500, 1, &[]);
            at += 5_000;
        }
        for _ in 0..then.1 {
            sketch.event(thread, then.0, at, 100, &[]);
            at += 200;
        }
        sketch.event(thread, "train_step", at + 8_000, 10_000, &call());
        let trace = sketch.finish();
        let vocabulary = Vocabulary::of(&trace);
        let us = |time: Time| time.ps() / 1_000_000;
        let found = read_out(&Kinds::of(&trace, &vocabulary), &vocabulary, &trace.tracks()[0]);
        found.iter().map(|found| (us(found.span.start), us(found.span.end), found.reads)).collect()
    }

    fn read(reads: i64, then: (&str, i64)) -> Vec<(i64, i64, usize)> {
        read_after(4, reads, then)
    }

    #[test]
    fn variables_that_are_read_one_after_the_other_are_output_until_something_else_runs() {
        assert_eq!(read(12, ("none", 0)), [(10_000, 78_000, 12)]);
        assert_eq!(read(12, ("EagerLocalExecute: AssignVariableOp", 2)), [(10_000, 70_000, 12)]);
    }

    #[test]
    fn a_few_values_or_weights_that_are_copied_are_no_output() {
        assert_eq!(read(3, ("none", 0)), []);
        let each = std::iter::repeat_n(("EagerLocalExecute: ReadVariableOp", 500), 6);
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        for step in 0..4 {
            let call = [("tf_function_call", Arg::Text("notTraced-nonXla"))];
            sketch.event(thread, "train_step", 10_000 * step, 1_000, &call);
            for (at, (name, dur)) in each.clone().enumerate() {
                sketch.event(thread, name, 10_000 * step + 1_000 * (at as i64 + 1), dur, &[]);
            }
        }
        let trace = sketch.finish();
        let vocabulary = Vocabulary::of(&trace);
        let found = read_out(&Kinds::of(&trace, &vocabulary), &vocabulary, &trace.tracks()[0]);
        assert!(found.is_empty(), "after every step: {found:?}");
        assert_eq!(read(12, ("EagerLocalExecute: AssignVariableOp", 12)), []);
    }

    #[test]
    fn the_reads_of_an_eager_model_are_no_output() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        for layer in 0..10 {
            let at = 1_000 * layer;
            sketch.event(thread, "EagerLocalExecute: ReadVariableOp", at, 100, &[]);
            sketch.event(thread, "EagerLocalExecute: MatMul", at + 200, 100, &[]);
            sketch.event(thread, "EagerLocalExecute: ReadVariableOp", at + 400, 100, &[]);
            sketch.event(thread, "EagerLocalExecute: BiasAdd", at + 600, 100, &[]);
        }
        let trace = sketch.finish();
        let vocabulary = Vocabulary::of(&trace);
        let found = read_out(&Kinds::of(&trace, &vocabulary), &vocabulary, &trace.tracks()[0]);
        assert!(found.is_empty(), "{found:?}");
    }
}
