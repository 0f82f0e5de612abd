//! Evaluation inside training: batches that are only evaluated are not steps of the training loop, although a
//! framework may call both by one name. Keras runs training and validation as `multi_step_on_iterator`. Others compile a
//! function for each, and the evaluation may well do most of the work.

use stepscope_trace::{Dur, Span, Time, TrackKind};

use super::repetition::{Repeats, compiled_calls};
use super::{Candidate, How, has_word};
use crate::host_trace::HostTrace;
use crate::vocabulary::Role;

/// Fewer calls with gradients are not a training loop.
const TRAINED: usize = 3;

/// Words for markers around evaluated batches.
const EVALUATION: &[&str] =
    &["test", "eval", "evaluate", "evaluation", "val", "valid", "validate", "validation"];

/// Whether it is a name for evaluated batches.
pub(super) fn is_evaluation(name: &str) -> bool {
    has_word(name, EVALUATION)
}

/// Words for functions that only measure a model.
const MEASURES: &[&str] = &["loss", "metric", "metrics", "accuracy", "score", "perplexity"];
/// Words for functions that train.
const TRAINING: &[&str] = &["train", "training"];
/// Words for functions that change parameters …
const UPDATES: &[&str] = &["update", "updates", "apply", "optimizer", "optimize", "optimise"];
/// … and for those that change something else.
const OTHER_UPDATES: &[&str] = &["target", "targets", "ema", "stats", "metric", "metrics", "buffer"];
/// This many calls of one function in a row are a loop.
const LOOP: usize = 3;

/// Whether a function of this name changes the parameters of a model, once per step.
pub(super) fn is_update(name: &str) -> bool {
    has_word(name, UPDATES) && !has_word(name, OTHER_UPDATES) && !is_evaluation(name)
}

fn is_training(name: &str) -> bool {
    has_word(name, TRAINING) && !has_word(name, MEASURES) && !is_evaluation(name)
}

/// Steps by the function that trains, if its name says so and another one was taken for the step: one that evaluates, or that
/// chooses actions.
fn of_training(candidate: Candidate, calls: &Repeats) -> Candidate {
    let How::FunctionCalls(name) = &candidate.how else { return candidate };
    let is_call = calls.keys().any(|(known, _)| known == name);
    if is_training(name) || is_update(name) || !is_call {
        return candidate;
    }
    let (count, track) = (candidate.marks.len(), candidate.track);
    let fits = |((name, on), spans): &(&(String, u32), &Vec<Span>)| {
        track.is_some_and(|track| track.0 == *on)
            && spans.len() >= TRAINED
            && (is_training(name) || is_update(name) && spans.len() <= count)
    };
    let Some(((name, _), spans)) = calls.iter().filter(fits).max_by_key(|(_, spans)| spans.len()) else {
        return candidate;
    };
    let marks = spans.iter().enumerate().map(|(number, &span)| (number as i64, span)).collect();
    Candidate { how: How::FunctionCalls(name.clone()), marks, ends_known: false, ..candidate }
}

/// Calls of other functions that are a loop of their own between a few of the steps: in a row, and not in most gaps. If no
/// name says that they evaluate, they must take less time than the steps.
fn other_loops(candidate: &Candidate, calls: &Repeats) -> Vec<Span> {
    let How::FunctionCalls(own) = &candidate.how else { return Vec::new() };
    let Some(track) = candidate.track.filter(|_| calls.keys().any(|(name, _)| name == own)) else {
        return Vec::new();
    };
    let starts: Vec<Time> = candidate.marks.iter().map(|(_, span)| span.start).collect();
    let mut found: Vec<Span> = Vec::new();
    for ((name, on), spans) in calls {
        if *on != track.0 || name == own || is_training(name) || is_update(name) {
            continue;
        }
        let step_of = |span: &Span| starts.partition_point(|start| *start <= span.start);
        let runs: Vec<&[Span]> = spans.chunk_by(|a, b| step_of(a) == step_of(b)).collect();
        let loops: Vec<&[Span]> = runs.iter().copied().filter(|run| run.len() >= LOOP).collect();
        let time = |run: &&[Span]| run.last().map_or(Dur::ZERO, |last| last.end - run[0].start);
        let taken: Dur = loops.iter().map(time).sum();
        let all = starts.last().zip(starts.first()).map_or(Dur::ZERO, |(last, first)| *last - *first);
        let measures = is_evaluation(name) || has_word(name, MEASURES);
        if runs.len() * 2 < starts.len() && (measures || taken.ps() < all.ps() / 2) {
            found.extend(loops.into_iter().flatten());
        }
    }
    found
}

/// Parts of the names of ops that compute gradients.
const GRADIENTS: &[&str] = &["gradient_tape/", "gradients/"];

/// Without evaluation: by the function that trains, and without the calls in which no gradient is computed, if it is computed
/// in others. What else loops between the steps becomes `breaks`.
pub(super) fn without(recorded: &HostTrace, candidate: Candidate) -> Candidate {
    if !matches!(candidate.how, How::FunctionCalls(_)) {
        return candidate;
    }
    let calls = compiled_calls(recorded);
    let mut candidate = without_gradients(recorded, of_training(candidate, &calls));
    candidate.breaks.extend(other_loops(&candidate, &calls));
    candidate.breaks.sort_unstable_by_key(|span| span.start);
    candidate
}

/// Without the calls in which no gradient is computed, if it is computed in others.
fn without_gradients(recorded: &HostTrace, candidate: Candidate) -> Candidate {
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
    use crate::steps::{Filling, How, Origin, Steps};

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
    fn evaluated_batches_are_no_steps_and_what_they_take_after_each_epoch_is_known() {
        let steps = fit(6);
        assert_eq!((steps.origin, steps.all.len()), (Origin::Inferred, 12));
        let lengths: Vec<Dur> = steps.counted().map(|step| step.span.dur()).collect();
        let epoch = [1_000, 1_000, 1_000, 1_000 + 6 * 400].map(Dur::from_us);
        assert_eq!(lengths, [epoch, epoch].concat(), "the last epoch lacks its evaluation");
        assert!(steps.pauses.iter().all(|pause| pause.filling == Filling::AnotherLoop), "{:?}", steps.pauses);
        assert_eq!(steps.pauses.len(), 2);
    }

    #[test]
    fn calls_that_all_train_are_all_steps() {
        assert_eq!(fit(0).all.len(), 12);
    }

    /// Steps of `functions`, called in turn on one thread: (name, how often in a row). All calls take 1 ms.
    fn called(turn: &[(&str, usize)], turns: usize) -> Steps {
        let mut sketch = Sketch::new();
        let (thread, pool) = (sketch.thread("python"), sketch.thread("tf_XLAPjRtCpuClient/1"));
        let mut at = 0;
        for (name, often) in std::iter::repeat_n(turn, turns).flatten() {
            for _ in 0..*often {
                sketch.event(thread, &format!("PjitFunction({name})"), at, 900, &[]);
                sketch.event(pool, "dot.1", at, 850, &[("hlo_op", Arg::Text("dot.1"))]);
                at += 1_000;
            }
        }
        let trace = sketch.finish();
        Steps::of(&Context::new(&trace, "host"))
    }

    #[test]
    fn a_function_that_trains_makes_the_steps_whatever_its_evaluation_does() {
        let steps = called(&[("train_step", 5), ("loss", 12)], 4);
        assert_eq!(steps.how, How::FunctionCalls("train_step".to_owned()));
        assert_eq!(steps.all.len(), 20);
        let long = steps.counted().filter(|step| step.span.dur() > Dur::from_us(1_000));
        assert_eq!(long.map(|step| step.span.dur()).collect::<Vec<_>>(), [Dur::from_us(13_000); 3]);
        let acting = called(&[("policy", 15), ("train_step", 1)], 6);
        assert_eq!((acting.how, acting.all.len()), (How::FunctionCalls("train_step".to_owned()), 6));
        assert_eq!(acting.all[0].span.dur(), Dur::from_us(16_000), "acting is part of the step");
    }

    #[test]
    fn gradients_that_are_summed_up_make_one_step_with_their_update() {
        let steps = called(&[("loss", 8), ("apply_updates", 1)], 6);
        assert_eq!((&steps.how, steps.all.len()), (&How::FunctionCalls("apply_updates".to_owned()), 6));
        assert_eq!(steps.all[0].span.dur(), Dur::from_us(9_000));
        let targets = called(&[("step", 8), ("update_target", 1)], 6);
        assert_eq!(targets.how, How::FunctionCalls("step".to_owned()));
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
