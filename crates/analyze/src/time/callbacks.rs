//! Host callbacks: Python that a compiled program calls in the middle of a step (`jax.pure_callback`,
//! `io_callback`, `tf.py_function`, `tf.numpy_function`). The program waits for the interpreter, whatever the
//! device could do in the meantime, and the compiler can neither fuse across the call nor move it.
//!
//! Callbacks from the input pipeline belong to the pipeline. They may still hold up the loop: only one thread runs
//! Python at a time.

use std::collections::BTreeMap;

use stepscope_trace::{Dur, Form, KindId, LOCK_WAIT, ProcessKind, Span, Time, Trace, Track, TrackKind};

use crate::analysis::Analysis;
use crate::breakdown::Shares;
use crate::context::Context;
use crate::states::lock_waits::LockWaits;
use crate::states::timeline::united;
use crate::states::{State, StateLine, runs_python};
use crate::time::python::user_place;
use crate::time::recurrence::Recurrence;
use crate::vocabulary::names::{framework_op, hlo_opcode, without_number};
use crate::vocabulary::{Keys, Role, is_callback, is_python_frame, op_type};

/// When callbacks run.
#[derive(Default)]
struct Found {
    /// For the steps.
    in_steps: Vec<Span>,
    /// For the input pipeline, at any time.
    in_pipeline: Vec<Span>,
}

/// Partial result: callbacks in the counted steps.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Callbacks {
    /// Time by op type, e.g. `pure_callback`.
    ops: BTreeMap<String, Dur>,
    /// Time by the user's function, if a Python tracer recorded it.
    functions: BTreeMap<String, Dur>,
    /// Number of calls.
    pub calls: u64,
    /// Their breakdown.
    pub shares: Shares,
    /// The breakdown of the time in which the input pipeline runs Python in its own threads.
    #[serde(default)]
    pub beside: Shares,
    /// Time in which the loop's calls wait for the interpreter lock.
    #[serde(default)]
    pub locked: Dur,
    /// Threads that prepare batches hold it then.
    #[serde(default)]
    pub locked_by_input: bool,
    /// The code that holds it, where Python was sampled.
    #[serde(default)]
    lockers: BTreeMap<String, Dur>,
    /// How often a step has one; with several hosts, the first host that has any.
    pub recurrence: Recurrence,
    /// Number of steps analysed.
    pub steps: u64,
}

impl Analysis for Callbacks {
    type Output = Self;

    /// Walks the host's threads; empty if no callback was recorded.
    fn of(context: &Context) -> Self {
        let (trace, breakdown) = (context.trace, context.breakdown());
        let windows: Vec<Span> = breakdown.counted().map(|(_, step)| step.window).collect();
        let mut all = Callbacks { steps: windows.len() as u64, ..Callbacks::default() };
        all.find_lock_waits(context, &windows);
        let kinds: Vec<Option<String>> =
            (0..trace.kinds().len()).map(|index| callback(context, KindId::from_index(index))).collect();
        if kinds.iter().all(Option::is_none) {
            return all;
        }
        let mut found = Found::default();
        let threads = trace.tracks().iter().filter(|track| {
            matches!(track.kind, TrackKind::Thread | TrackKind::Async)
                && trace.process(track.process).kind != ProcessKind::Device
        });
        for track in threads {
            let line = context.states().lines.iter().find(|(id, _)| *id == track.id).map(|(_, line)| line);
            all.walk(context, track, line, &kinds, &windows, &mut found);
        }
        let spans = united(found.in_steps);
        let happens = |window: &Span| {
            let first = spans.partition_point(|span| span.end <= window.start);
            spans.get(first).is_some_and(|span| span.start < window.end)
        };
        all.recurrence = Recurrence::of(windows.iter().map(happens));
        all.shares = breakdown.owned_within(context, &spans);
        all.beside = breakdown.owned_within(context, &united(found.in_pipeline));
        all
    }

    /// Adds another host.
    fn merge(&mut self, other: Callbacks) {
        self.locked += other.locked;
        self.locked_by_input |= other.locked_by_input;
        other.lockers.into_iter().for_each(|(place, time)| *self.lockers.entry(place).or_default() += time);
        other.ops.into_iter().for_each(|(op, time)| *self.ops.entry(op).or_default() += time);
        other
            .functions
            .into_iter()
            .for_each(|(place, time)| *self.functions.entry(place).or_default() += time);
        self.calls += other.calls;
        self.steps += other.steps;
        self.shares.add_all(&other.shares);
        self.beside.add_all(&other.beside);
        if self.recurrence.steps == 0 {
            self.recurrence = other.recurrence;
        }
    }

    fn finish(self) -> Self {
        self
    }
}

impl Callbacks {
    fn walk(
        &mut self,
        context: &Context,
        track: &Track,
        line: Option<&StateLine>,
        kinds: &[Option<String>],
        windows: &[Span],
        found: &mut Found,
    ) {
        let (mut until, mut named_until) = (Time::MIN, Time::MIN);
        for (index, kind) in track.kinds().iter().enumerate() {
            let span = track.span_of(index);
            if span.start < until {
                // JAX's own frames around the call are in a file whose name users may also have.
                let place = if span.start < named_until { None } else { user_place(context.trace, *kind) };
                if let Some(place) = place.filter(|place| !place.contains("callback.py:")) {
                    *self.functions.entry(place).or_default() += span.dur();
                    named_until = span.end;
                }
                continue;
            }
            let Some(op) = &kinds[kind.index()] else { continue };
            let after = windows.partition_point(|window| window.start <= span.start);
            let counts = after.checked_sub(1).is_some_and(|at| windows[at].contains(span.start));
            let of_input = line.is_some_and(|line| line.at(span.start).has(State::InputWork));
            if of_input && !span.is_empty() {
                found.in_pipeline.push(span);
            } else if counts && !span.is_empty() {
                until = span.end;
                *self.ops.entry(op.clone()).or_default() += span.dur();
                self.calls += 1;
                found.in_steps.push(span);
            }
        }
    }

    fn find_lock_waits(&mut self, context: &Context, windows: &[Span]) {
        let in_steps = |wait: Span| {
            let first = windows.partition_point(|window| window.end <= wait.start);
            let inside = windows[first..].iter().take_while(|window| window.start < wait.end);
            inside.map(|window| window.intersect(wait).dur()).sum::<Dur>()
        };
        let mut waits = Vec::new();
        for (span, kind) in sampled_waits(context.trace) {
            *self.lockers.entry(context.trace.kind_name(kind).to_owned()).or_default() += in_steps(span);
            waits.push(span);
        }
        if let Some(lock) = LockWaits::of(context.trace, context.vocabulary()) {
            self.locked_by_input = lock.by_input;
            let python = |track: &&Track| runs_python(context.trace, context.vocabulary(), track);
            waits.extend(context.trace.tracks().iter().filter(python).flat_map(|track| lock.on(track)));
        }
        self.locked = united(waits).into_iter().map(in_steps).sum();
    }

    /// The code that holds the lock for most of the time in which the loop waits for it, as `file.py:12 f`.
    pub fn locker(&self) -> Option<&str> {
        longest(&self.lockers).filter(|place| place.contains(':'))
    }

    /// Milliseconds per step in which the loop's calls wait for the interpreter lock.
    pub fn locked_ms(&self) -> f64 {
        self.locked.ms() / self.steps.max(1) as f64
    }

    /// The most expensive type of callback.
    pub fn op(&self) -> Option<&str> {
        longest(&self.ops)
    }

    /// The user's most expensive function, as `file.py:12 f`.
    pub fn function(&self) -> Option<&str> {
        longest(&self.functions)
    }
}

/// Waits for the interpreter lock that were seen by sampling.
fn sampled_waits(trace: &Trace) -> Vec<(Span, KindId)> {
    let wanted = trace.kinds_where(|kind| trace.str(trace.kind(kind).category) == LOCK_WAIT);
    let tracks = trace.tracks().iter().filter(|track| track.kind == TrackKind::Derived);
    tracks
        .flat_map(|track| track.events_of(&wanted).map(|(index, kind)| (track.span_of(index), kind)))
        .collect()
}

fn longest(times: &BTreeMap<String, Dur>) -> Option<&str> {
    times.iter().max_by_key(|(_, time)| **time).map(|(name, _)| name.as_str())
}

/// The callback type of a kind of event, if it is one.
fn callback(context: &Context, kind: KindId) -> Option<String> {
    let (trace, vocabulary) = (context.trace, context.vocabulary());
    let (name, shape) = (trace.kind_name(kind), trace.kind(kind));
    if shape.form != Form::Slice {
        return None;
    }
    if is_python_frame(name, trace.str(shape.category)) {
        return frame(name).map(str::to_owned);
    }
    // A range that somebody put around code may have any words in its name.
    if vocabulary.role(kind) == Role::Annotation {
        return None;
    }
    let op = if vocabulary.signatures.keys(kind).has(Keys::HloOp) {
        hlo_opcode(name)
    } else if op_type(name).is_some() {
        framework_op(name).1
    } else {
        name.strip_prefix("EagerLocalExecute: ").unwrap_or(without_number(name))
    };
    is_callback(op).then(|| op.to_owned())
}

/// JAX's own frames around a callback, which older versions record where the op has another name.
fn frame(name: &str) -> Option<&'static str> {
    if !name.contains("callback.py") {
        return None;
    }
    let function = name.rsplit([' ', ':']).next().unwrap_or(name);
    match function {
        "pure_callback_impl" => Some("pure_callback"),
        "io_callback_impl" => Some("io_callback"),
        "debug_callback_impl" => Some("debug_callback"),
        "_wrapped_callback" => Some("python_callback"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown::Category;
    use crate::sketch::{Arg, Sketch};

    #[test]
    fn callbacks_in_a_step_are_found_with_the_function_behind_them() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        sketch.steps(thread, 4, 1_000);
        for step in 0..4 {
            let at = step * 1_000;
            let hlo = [("hlo_op", Arg::Text("x")), ("hlo_module", Arg::Text("jit_f"))];
            sketch.event(thread, "pure_callback.1", at + 100, 700, &hlo);
            sketch.event(thread, "$callback.py:815 _wrapped_callback", at + 110, 600, &[]);
            sketch.event(thread, "$train.py:61 slow", at + 120, 500, &[]);
        }
        let trace = sketch.finish();
        let callbacks = Callbacks::of(&Context::new(&trace, "host"));
        assert_eq!((callbacks.calls, callbacks.op()), (4, Some("pure_callback")));
        assert_eq!(callbacks.function(), Some("train.py:61 slow"));
        assert_eq!(callbacks.shares.get(Category::Compute), Dur::from_us(2_800));
        assert_eq!(callbacks.recurrence.every, Some(1));
    }

    #[test]
    fn what_a_pipeline_calls_is_the_pipelines() {
        let mut sketch = Sketch::new();
        let (python, thread) = (sketch.thread("python"), sketch.thread("tf_data_private_threadpool/1"));
        sketch.steps(python, 4, 1_000);
        sketch.event(thread, "map/PyFunc:PyFunc", 100, 700, &[]);
        let trace = sketch.finish();
        assert_eq!(Callbacks::of(&Context::new(&trace, "host")).calls, 0);
    }

    #[test]
    fn what_the_loop_does_while_a_pipeline_runs_python_is_known() {
        let mut sketch = Sketch::new();
        let (python, thread) = (sketch.thread("python"), sketch.thread("tf_data_private_threadpool/1"));
        for step in 0..4 {
            let at = 1_000 * step;
            sketch.event(python, "train", at, 1_000, &[("step_num", Arg::Int(step))]);
            sketch.event(python, "EagerExecute: Mul", at + 100, 800, &[]);
            sketch.event(thread, "map/PyFunc:PyFunc", at, 600, &[]);
        }
        let trace = sketch.finish();
        let callbacks = Callbacks::of(&Context::new(&trace, "host"));
        assert_eq!((callbacks.calls, callbacks.beside.get(Category::Dispatch)), (0, Dur::from_us(4 * 500)));
    }
}
