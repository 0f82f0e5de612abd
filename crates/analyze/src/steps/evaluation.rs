//! Evaluation inside training: batches that are only evaluated are not steps of the training loop, although a
//! framework may call both by one name. Keras runs training and validation as `multi_step_on_iterator`.

use stepscope_trace::{Span, Time, TrackKind};

use super::{Candidate, How, words};
use crate::host_trace::HostTrace;
use crate::vocabulary::Role;

/// Fewer calls with gradients are not a training loop.
const TRAINED: usize = 3;

/// Words for markers around evaluated batches.
const EVALUATION: &[&str] =
    &["test", "eval", "evaluate", "evaluation", "val", "valid", "validate", "validation"];

/// Whether it is a name for evaluated batches.
pub(super) fn is_evaluation(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    words(&name).any(|word| EVALUATION.contains(&word))
}

/// Parts of the names of ops that compute gradients.
const GRADIENTS: &[&str] = &["gradient_tape/", "gradients/"];

/// Without the calls in which no gradient is computed, if it is computed in others. They become `breaks`.
pub(super) fn without(recorded: &HostTrace, candidate: Candidate) -> Candidate {
    if !matches!(candidate.how, How::FunctionCalls(_)) {
        return candidate;
    }
    let gradients = gradients(recorded);
    let ends = candidate.marks.iter().skip(1).map(|(_, next)| next.start);
    let trains: Vec<bool> = candidate
        .marks
        .iter()
        .zip(ends.chain([Time::MAX]))
        .map(|((_, span), end)| {
            let first = gradients.partition_point(|&at| at < span.start);
            gradients.get(first).is_some_and(|&at| at < end)
        })
        .collect();
    let trained = trains.iter().filter(|trains| **trains).count();
    // The last call may have been cut off before its gradients.
    let evaluated = trains.iter().rev().skip(1).filter(|trains| !**trains).count();
    if trained < TRAINED || evaluated == 0 {
        return candidate;
    }
    let (kept, left): (Vec<_>, Vec<_>) =
        candidate.marks.into_iter().zip(trains).partition(|(_, trains)| *trains);
    let breaks: Vec<Span> = left.into_iter().map(|((_, span), _)| span).collect();
    let marks = kept.into_iter().map(|(mark, _)| mark);
    let marks = marks.enumerate().map(|(number, (_, span))| (number as i64, span)).collect();
    Candidate { marks, breaks, ..candidate }
}

/// When ops start that compute gradients, in time order.
fn gradients(recorded: &HostTrace) -> Vec<Time> {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let kinds = trace.kinds_where(|kind| {
        let name = trace.kind_name(kind);
        vocabulary.role(kind) == Role::Op && GRADIENTS.iter().any(|part| name.contains(part))
    });
    let mut starts = Vec::new();
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
        starts.extend(track.events_of(&kinds).map(|(index, _)| track.start(index)));
    }
    starts.sort_unstable();
    starts
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};
    use crate::steps::{Origin, Steps};

    /// Epochs of four trained batches, each followed by `evaluated` batches; all are calls of one function.
    fn fit(evaluated: i64) -> Steps {
        let mut sketch = Sketch::new();
        let (thread, worker) = (sketch.thread("python"), sketch.thread("tf_Compute/1"));
        let mut at = 0;
        for _ in 0..3 {
            for batch in 0..4 + evaluated {
                let (trains, length) = if batch < 4 { (true, 900) } else { (false, 300) };
                let call = [("tf_function_call", Arg::Text("notTraced-nonXla"))];
                sketch.event(thread, "multi_step_on_iterator", at, length, &call);
                sketch.event(worker, "model/MatMul:MatMul", at + 20, 200, &[]);
                if trains {
                    sketch.event(worker, "gradient_tape/model/MatMul:MatMul", at + 300, 500, &[]);
                }
                at += length + 100;
            }
        }
        let trace = sketch.finish();
        Steps::of(&Context::new(&trace, "host"))
    }

    #[test]
    fn evaluated_batches_are_no_steps_and_take_no_time_from_them() {
        let steps = fit(6);
        assert_eq!((steps.origin, steps.all.len()), (Origin::Inferred, 12));
        let mut counted = steps.counted().map(|step| step.span.dur());
        assert!(counted.all(|length| length == Dur::from_us(1_000)), "{:?}", steps.all);
    }

    #[test]
    fn calls_that_all_train_are_all_steps() {
        assert_eq!(fit(0).all.len(), 12);
    }

    #[test]
    fn markers_around_evaluated_batches_do_not_outweigh_those_of_training() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        for step in 0..12 {
            let name = if step % 4 < 2 { "train" } else { "eval" };
            let length = if step % 4 < 2 { 100 } else { 900 };
            sketch.event(thread, name, 1_000 * step, length, &[("step_num", Arg::Int(step))]);
            sketch.event(thread, "a/MatMul:MatMul", 1_000 * step, length, &[]);
        }
        let trace = sketch.finish();
        let steps = Steps::of(&Context::new(&trace, "host"));
        assert_eq!(steps.all.len(), 6);
        assert!(steps.all.iter().all(|step| step.number % 4 < 2), "{steps:?}");
    }
}
