//! Steps of loops that set up an input pipeline each time: `model.fit`, `evaluate` or `predict` called again and again, for a
//! few batches each. There, a batch takes a small part of the time, and an iteration of the loop is one such call, or
//! several in turn: a model after the other, training and evaluation.
//!
//! An epoch creates an iterator as well, but no dataset. A call with many batches is a training loop of its own, and its
//! batches are the steps.

use stepscope_trace::{Dur, KindSet, Span, Time, Track};

use super::{Candidate, How};
use crate::host_trace::HostTrace;
use crate::states::activities::{Does, Kinds, activities};
use crate::states::runs_python;
use crate::vocabulary::names::concrete_function;
use crate::vocabulary::{Role, is_library_function};

/// Fewer pipelines are not a loop.
const REPEATS: usize = 3;
/// More pipelines than this take turns nowhere.
const MOST_IN_TURN: usize = 8;

/// The calls that one pipeline feeds.
struct Fed {
    /// From the first op that sets it up to the end of the last call.
    span: Span,
    /// The start of the first call.
    called: Time,
    /// The compiled functions that ran, by their numbers among all kinds.
    functions: Vec<u32>,
}

pub(super) fn find(recorded: &HostTrace) -> Option<Candidate> {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let kinds = Kinds::of(trace, vocabulary);
    if !kinds.any(Does::MAKES_DATASET) {
        return None;
    }
    let makes = kinds.that_do(Does::MAKES_DATASET);
    let calls = trace.kinds_where(|kind| {
        vocabulary.role(kind) == Role::FunctionCall && !is_library_function(trace.kind_name(kind))
    });
    let threads = trace.tracks().iter().filter(|track| {
        super::repetition::host_thread(track)
            && runs_python(trace, vocabulary, track)
            && track.has_any(&makes)
            && track.has_any(&calls)
    });
    let track = threads.max_by_key(|track| track.events_of(&calls).count())?;
    let fed = fed(recorded, &kinds, &calls, track);
    let (first, last) = (fed.first()?, fed.last()?);
    let feeding: Dur = fed.iter().map(|fed| fed.span.end - fed.called).sum();
    // Most of the time must go into setting up: else the batches are the loop.
    if fed.len() < REPEATS || feeding.ps() >= (last.span.end - first.span.start).ps() / 2 {
        return None;
    }
    let turn = in_turn(&fed);
    let marks = fed.chunks(turn).enumerate().filter_map(|(number, turn)| {
        let span = Span::new(turn.first()?.span.start, turn.last()?.span.end);
        Some((number as i64, span))
    });
    let (_, called) = track.events_of(&calls).next()?;
    Some(Candidate {
        how: How::Pipelines(super::called_function(trace.kind_name(called)), turn),
        marks: marks.collect(),
        track: Some(track.id),
        on_host: true,
        ends_known: false,
        breaks: Vec::new(),
    })
}

/// What each new pipeline feeds. Calls before the first one belong to a pipeline that is older than the recording.
fn fed(recorded: &HostTrace, kinds: &Kinds, calls: &KindSet, track: &Track) -> Vec<Fed> {
    let trace = recorded.trace;
    let functions = trace.kinds_where(|kind| {
        let op = trace.kind_name(kind).strip_prefix("EagerLocalExecute: ");
        op.is_some_and(|op| concrete_function(op).is_some())
    });
    let made: Vec<Time> = activities(kinds, track, 0)
        .filter(|activity| activity.does.has(Does::MAKES_DATASET) && !activity.does.has(Does::MODEL))
        .map(|activity| activity.span.start)
        .collect();
    let mut all: Vec<Fed> = Vec::new();
    let mut before = Time::MIN;
    for (index, _) in track.events_of(calls) {
        let span = track.span_of(index);
        if span.start < before {
            continue;
        }
        let next = made.partition_point(|&at| at < before);
        match (made.get(next).filter(|&&at| at < span.start), all.last_mut()) {
            (Some(&from), _) => {
                all.push(Fed { span: Span::new(from, span.end), called: span.start, functions: Vec::new() });
            }
            (None, Some(last)) => last.span.end = span.end,
            (None, None) => {}
        }
        before = span.end;
    }
    for (index, kind) in track.events_of(&functions) {
        let after = all.partition_point(|fed| fed.span.start <= track.start(index));
        if let Some(fed) = after.checked_sub(1).and_then(|last| all.get_mut(last))
            && !fed.functions.contains(&kind.0)
            && fed.functions.len() < MOST_IN_TURN
        {
            fed.functions.push(kind.0);
        }
    }
    all
}

/// How many pipelines an iteration sets up: the shortest period in what they feed.
fn in_turn(fed: &[Fed]) -> usize {
    let repeats = |turn: usize| {
        let later = fed.iter().skip(turn);
        fed.iter().zip(later).all(|(a, b)| a.functions == b.functions)
    };
    let periods = (1..=MOST_IN_TURN).take_while(|turn| fed.len() >= REPEATS * turn);
    periods.into_iter().find(|&turn| repeats(turn)).unwrap_or(1)
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};
    use crate::steps::{How, Steps};

    /// Calls of `fit` for models in turn, each with `batches` batches of 1 ms after a set-up of 40 ms.
    fn fits(turns: i64, models: i64, batches: i64) -> Steps {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let mut at = 0;
        for fit in 0..turns * models {
            sketch.event(thread, "EagerLocalExecute: TensorSliceDataset", at, 500, &[]);
            sketch.event(thread, "EagerLocalExecute: PrefetchDataset", at + 600, 500, &[]);
            sketch.event(thread, "EagerLocalExecute: MakeIterator", at + 2_000, 30_000, &[]);
            at += 40_000;
            for _ in 0..batches {
                let call = [("tf_function_call", Arg::Text("notTraced-nonXla"))];
                let run =
                    format!("EagerLocalExecute: __inference_multi_step_on_iterator_{}", 100 + fit % models);
                sketch.event(thread, "multi_step_on_iterator", at, 900, &call);
                sketch.event(thread, &run, at + 50, 800, &[]);
                sketch.event(thread, "gradient_tape/model/MatMul:MatMul", at + 100, 500, &[]);
                at += 1_000;
            }
        }
        let trace = sketch.finish();
        Steps::of(&Context::new(&trace, "host"))
    }

    #[test]
    fn a_call_of_fit_for_a_few_batches_is_the_step() {
        let steps = fits(8, 1, 4);
        assert_eq!(steps.how, How::Pipelines("multi_step_on_iterator".to_owned(), 1));
        assert_eq!((steps.all.len(), steps.all[0].span.dur()), (8, Dur::from_us(44_000)));
    }

    #[test]
    fn calls_of_fit_for_one_model_after_the_other_are_one_step() {
        let steps = fits(5, 3, 2);
        assert_eq!(steps.how, How::Pipelines("multi_step_on_iterator".to_owned(), 3));
        assert_eq!((steps.all.len(), steps.all[0].span.dur()), (5, Dur::from_us(3 * 42_000)));
    }

    #[test]
    fn the_batches_of_a_long_call_stay_the_steps() {
        let steps = fits(4, 1, 200);
        assert_eq!(steps.how, How::FunctionCalls("multi_step_on_iterator".to_owned()));
        assert_eq!(steps.all.len(), 800);
    }
}
