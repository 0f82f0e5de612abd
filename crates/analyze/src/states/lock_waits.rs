//! Waits for the interpreter lock. Only one thread runs Python at a time. A call of the framework gives the lock up while it
//! works, and needs it again before it can return: if another thread is busy in Python, the call ends long after everything
//! inside it.
//!
//! Without contention the rest of a call takes microseconds. An interpreter hands the lock over after 5 ms.

use stepscope_trace::{Dur, KindSet, Span, Time, Trace, Track, TrackKind};

use super::timeline::united;
use crate::vocabulary::{Role, Vocabulary, blocks, is_python_frame, iterator_path, puts_into_queue};

/// The rest of a call that did not wait for the lock is shorter.
const LEAST: Dur = Dur::from_us(1_000);

/// Where threads may wait for the interpreter lock.
#[derive(Debug)]
pub(crate) struct LockWaits {
    /// Calls of TensorFlow that give the lock up for nothing but the op that they run.
    ops: KindSet,
    /// Calls of JAX, whose rest may be their own work: it is a wait only beside a busy thread.
    calls: KindSet,
    /// When threads that only run Python are busy.
    busy: Vec<Span>,
    /// Threads that prepare batches run Python.
    pub(crate) by_input: bool,
}

impl LockWaits {
    /// `None` if the recording cannot show any.
    pub(crate) fn of(trace: &Trace, vocabulary: &Vocabulary) -> Option<Self> {
        let ops = trace.kinds_where(|kind| trace.kind_name(kind).starts_with("TFE_Py_Execute"));
        let calls = trace.kinds_where(|kind| {
            let name = trace.kind_name(kind);
            name.starts_with("PjitFunction(") || name == "DevicePut"
        });
        if ops.is_empty() && calls.is_empty() {
            return None;
        }
        let frames = trace.kinds_where(|kind| {
            let shape = trace.kind(kind);
            is_python_frame(trace.kind_name(kind), trace.str(shape.category))
        });
        let steps = trace.kinds_where(|kind| {
            matches!(vocabulary.role(kind), Role::StepMarker | Role::FunctionCall)
                || ops.has(kind)
                || calls.has(kind)
        });
        let blocking = trace.kinds_where(|kind| frames.has(kind) && blocks(trace.kind_name(kind)));
        let beside = trace.tracks().iter().filter(|track| {
            track.kind == TrackKind::Thread && track.has_any(&frames) && !track.has_any(&steps)
        });
        let busy = united(beside.clone().flat_map(|track| outside(track, &blocking)).collect());
        let puts = trace.kinds_where(|kind| frames.has(kind) && puts_into_queue(trace.kind_name(kind)));
        let generates = trace.kinds_where(|kind| {
            let stage = iterator_path(trace.kind_name(kind)).and_then(Iterator::last);
            stage.is_some_and(|stage| stage.starts_with("Generator"))
        });
        let by_input = !generates.is_empty() || beside.into_iter().any(|track| track.has_any(&puts));
        Some(LockWaits { ops, calls, busy, by_input })
    }

    /// The waits on a thread, in time order.
    pub(crate) fn on(&self, track: &Track) -> Vec<Span> {
        let mut waits = Vec::new();
        if track.has_any(&self.ops) {
            waits.extend(rests(track, &self.ops));
        }
        if !self.busy.is_empty() && track.has_any(&self.calls) {
            waits.extend(rests(track, &self.calls).into_iter().filter(|rest| self.is_beside(*rest)));
        }
        united(waits)
    }

    /// Whether other threads are busy in Python for at least half of a span.
    fn is_beside(&self, span: Span) -> bool {
        let first = self.busy.partition_point(|busy| busy.end <= span.start);
        let inside = self.busy[first..].iter().take_while(|busy| busy.start < span.end);
        let beside: Dur = inside.map(|busy| busy.intersect(span).dur()).sum();
        beside.fraction_of(span.dur()) >= 0.5
    }
}

/// The time between the end of the last event inside a call and the end of the call, where that is long.
fn rests(track: &Track, calls: &KindSet) -> Vec<Span> {
    let mut rests = Vec::new();
    for (index, _) in track.events_of(calls) {
        let call = track.span_of(index);
        if call.dur() < LEAST {
            continue;
        }
        let (mut last, mut at) = (call.start, index + 1);
        while at < track.len() && track.start(at) < call.end {
            last = last.max(track.end(at));
            at += 1;
        }
        if call.end - last >= LEAST {
            rests.push(Span::new(last, call.end));
        }
    }
    rests
}

/// The time of a track outside of some events.
fn outside(track: &Track, blocking: &KindSet) -> Vec<Span> {
    let Some(last) = track.len().checked_sub(1) else { return Vec::new() };
    let (mut at, end) = (track.start(0), (0..=last).map(|index| track.end(index)).max().unwrap_or(Time::MIN));
    let mut free = Vec::new();
    for (index, _) in track.events_of(blocking) {
        let span = track.span_of(index);
        if span.start > at {
            free.push(Span::new(at, span.start));
        }
        at = at.max(span.end);
    }
    if end > at {
        free.push(Span::new(at, end));
    }
    free
}

#[cfg(test)]
mod tests {
    use crate::breakdown::Category;
    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};
    use stepscope_trace::Dur;

    /// Four steps of 10 ms, in each of which a call returns `rest` µs after the op inside it. `feeds` adds a pipeline that
    /// runs Python.
    fn owned(rest: i64, feeds: bool, category: Category) -> Dur {
        let mut sketch = Sketch::new();
        let (python, input) = (sketch.thread("python"), sketch.thread("tf_data_iterator_get_next/1"));
        for step in 0..4 {
            let at = 10_000 * step;
            sketch.event(python, "train", at, 10_000, &[("step_num", Arg::Int(step))]);
            sketch.event(python, "TFE_Py_ExecuteCancelable", at, 4_000 + rest, &[]);
            sketch.event(python, "EagerExecute", at + 10, 3_990, &[("eager_op", Arg::Text("f"))]);
            if feeds {
                sketch.event(input, "Iterator::Root::FlatMap[0]::Generator", at + 100, 10, &[]);
            }
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        context.breakdown().counted().map(|(_, step)| step.shares.get(category)).sum()
    }

    #[test]
    fn a_call_that_cannot_return_waits_for_the_lock() {
        assert_eq!(owned(5_000, false, Category::Dispatch), Dur::from_us(4 * 4_000));
        assert_eq!(owned(5_000, false, Category::Python), Dur::from_us(4 * 6_000));
        assert_eq!(owned(500, false, Category::Dispatch), Dur::from_us(4 * 4_500), "its own work");
    }

    #[test]
    fn the_python_of_a_pipeline_makes_it_input() {
        assert_eq!(owned(5_000, true, Category::Input), Dur::from_us(4 * 5_000));
    }

    #[test]
    fn calls_of_jax_wait_only_beside_a_busy_thread() {
        let dispatched = |blocked: bool| {
            let mut sketch = Sketch::new();
            let (python, loader) = (sketch.thread("python"), sketch.thread("loader"));
            for step in 0..4 {
                let at = 10_000 * step;
                sketch.event(python, "train", at, 10_000, &[("step_num", Arg::Int(step))]);
                sketch.event(python, "PjitFunction(f)", at, 9_000, &[]);
                sketch.event(python, "DevicePut", at, 6_000, &[]);
                let frame = if blocked { "$<unknown> acquire" } else { "$load.py:7 augment" };
                sketch.event(loader, frame, at, 10_000, &[]);
                sketch.event(loader, "$queue.py:122 put", at, 1, &[]);
            }
            let trace = sketch.finish();
            let context = Context::new(&trace, "host");
            context.breakdown().counted().map(|(_, step)| step.shares.get(Category::Input)).sum::<Dur>()
        };
        assert_eq!(dispatched(false), Dur::from_us(4 * 9_000), "of the call, not of what follows it");
        assert_eq!(dispatched(true), Dur::ZERO);
    }
}
