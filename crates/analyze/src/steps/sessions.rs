//! Steps by the calls that run a model: `Session.run` of TensorFlow 1, a run of ONNX Runtime.
//!
//! A loop may run several graphs per step, such as those of a generator and a discriminator, and another one every few
//! steps. The runs that take most of the time begin the steps; a run is known by the number of different ops in it.

use std::collections::{BTreeMap, BTreeSet};

use stepscope_trace::{Dur, KindId, Span, Track};

use super::repetition::{host_thread, outermost};
use super::{Candidate, How};
use crate::host_trace::HostTrace;
use crate::vocabulary::{Role, is_prediction_run, is_session_run};

/// Fewer runs are not a loop.
const REPEATS: usize = 3;
/// With more sorts of runs, their ops do not tell them apart: what a graph executes depends on its data.
const MOST_SORTS: usize = 8;

/// Runs of one thread, and how many different ops each executes.
struct Runs<'t> {
    track: &'t Track,
    name: &'t str,
    /// Fewer are no loop.
    least: usize,
    spans: Vec<Span>,
    ops: Vec<usize>,
}

pub(super) fn find(recorded: &HostTrace) -> Option<Candidate> {
    let trace = recorded.trace;
    let is_run = |kind: KindId| is_session_run(trace.kind_name(kind), trace.str(trace.kind(kind).category));
    let kinds = trace.kinds_where(is_run);
    if kinds.is_empty() {
        return None;
    }
    let threads = trace.tracks().iter().filter(|track| host_thread(track));
    // Other threads may feed queues, with graphs of a few ops.
    let runs = threads.filter_map(|track| {
        let spans = outermost(track, &kinds);
        let (_, kind) = track.events_of(&kinds).next()?;
        let least = least_runs(trace.kind_name(kind), trace.str(trace.kind(kind).category));
        if spans.len() < least {
            return None;
        }
        let ops = ops_within(recorded, &spans);
        Some(Runs { track, name: trace.kind_name(kind), least, spans, ops })
    });
    let Runs { track, name, least, spans, ops } =
        runs.max_by_key(|runs| (middle(&runs.ops), runs.spans.len()))?;
    let marks = leading(&spans, &ops).into_iter().enumerate();
    let marks: Vec<(i64, Span)> = marks.map(|(number, span)| (number as i64, span)).collect();
    (marks.len() >= least).then(|| Candidate {
        how: How::FunctionCalls(name.to_owned()),
        marks,
        track: Some(track.id),
        on_host: true,
        // It returns results.
        ends_known: true,
        breaks: Vec::new(),
    })
}

/// A recorder that only knows predictions shows one by a single run.
fn least_runs(name: &str, category: &str) -> usize {
    if is_prediction_run(name, category) { 1 } else { REPEATS }
}

/// The runs of the sort that takes most time; all of them if sorts cannot be told apart.
fn leading(spans: &[Span], ops: &[usize]) -> Vec<Span> {
    let mut sorts: BTreeMap<usize, (Dur, usize)> = BTreeMap::new();
    for (span, ops) in spans.iter().zip(ops) {
        let (time, count) = sorts.entry(*ops).or_default();
        *time += span.dur();
        *count += 1;
    }
    // The first run may do more, and the recording may have cut off the last.
    let often = sorts.iter().filter(|(_, (_, count))| *count >= REPEATS);
    let leader = often.max_by_key(|(_, (time, _))| *time).map(|(&ops, _)| ops);
    match leader {
        Some(leader) if sorts.len() <= MOST_SORTS => {
            spans.iter().zip(ops).filter(|(_, ops)| **ops == leader).map(|(span, _)| *span).collect()
        }
        _ => spans.to_vec(),
    }
}

/// How many different ops start within each of `spans`, on any thread.
fn ops_within(recorded: &HostTrace, spans: &[Span]) -> Vec<usize> {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let ops = trace.kinds_where(|kind| vocabulary.role(kind) == Role::Op);
    let mut seen: BTreeSet<(usize, KindId)> = BTreeSet::new();
    for track in trace.tracks().iter().filter(|track| host_thread(track)) {
        for (index, kind) in track.events_of(&ops) {
            let at = track.start(index);
            let run = spans.partition_point(|span| span.start <= at).checked_sub(1);
            if let Some(run) = run.filter(|&run| at < spans[run].end) {
                seen.insert((run, kind));
            }
        }
    }
    let mut counts = vec![0; spans.len()];
    seen.into_iter().for_each(|(run, _)| counts[run] += 1);
    counts
}

fn middle(counts: &[usize]) -> usize {
    let mut sorted = counts.to_vec();
    sorted.sort_unstable();
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use crate::context::Context;
    use crate::sketch::Sketch;
    use crate::steps::{How, Origin, StepKind, Steps};

    /// A loop whose turns are `runs`: (ops, length) in µs, each after 1 ms of Python; queues are fed on another thread.
    fn sessions(runs: &[(i64, i64)], turns: i64) -> Steps {
        let mut sketch = Sketch::new();
        let (thread, worker, feeder) =
            (sketch.thread("python"), sketch.thread("tf_Compute/1"), sketch.thread("python-2"));
        let mut at = 0;
        for turn in 0..turns {
            for &(ops, length) in runs {
                at += 1_000;
                sketch.event(thread, "SessionRun", at, length, &[]);
                for op in 0..ops {
                    let name = format!("layer{op}/MatMul:MatMul");
                    sketch.event(worker, &name, at + 10 + op * length / ops / 2, length / ops / 2, &[]);
                }
                at += length;
            }
            for feed in 0..5 {
                sketch.event(feeder, "SessionRun", turn * 1_500 + 300 * feed, 250, &[]);
            }
        }
        let trace = sketch.finish();
        Steps::of(&Context::new(&trace, "host"))
    }

    #[test]
    fn runs_of_a_session_are_steps_with_the_python_between_them() {
        let steps = sessions(&[(9, 500)], 14);
        assert_eq!(
            (steps.origin, &steps.how),
            (Origin::Inferred, &How::FunctionCalls("SessionRun".to_owned()))
        );
        assert_eq!((steps.kind, steps.all.len()), (StepKind::Training, 14));
        assert_eq!(steps.all[0].span.dur(), Dur::from_us(1_500));
    }

    #[test]
    fn several_runs_make_one_step_together() {
        let steps = sessions(&[(9, 500), (6, 300)], 8);
        assert_eq!(steps.all.len(), 8);
        assert_eq!(steps.all[0].span.dur(), Dur::from_us(2_800));
    }

    #[test]
    fn runs_of_a_model_in_onnx_runtime_are_predictions() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("");
        sketch.event_of(thread, "Session", "session_initialization", 0, 900_000, &[]);
        for run in 0..20 {
            let at = 900_000 + run * 1_300;
            sketch.event_of(thread, "Session", "model_run", at, 1_100, &[]);
            sketch.event_of(thread, "Session", "SequentialExecutor::Execute", at + 20, 1_050, &[]);
            sketch.event_of(thread, "Node", "Conv_1_kernel_time", at + 30, 1_000, &[]);
        }
        let trace = sketch.finish();
        let steps = Steps::of(&Context::new(&trace, "host"));
        assert_eq!((steps.kind, steps.all.len()), (StepKind::Inference, 20));
        assert!(steps.all.iter().all(|step| step.span.dur() == Dur::from_us(1_100)), "from call to answer");
    }
}
