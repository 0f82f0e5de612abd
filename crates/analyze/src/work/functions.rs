//! Compiled functions: how often every tf.function and jitted function was called, traced and compiled, what it
//! cost, and what it indicates.
//!
//! Only outermost calls count: a nested call happens while the outer one is being traced (and JAX records every
//! call twice, nested). Calls are counted over the whole capture, because the tracing of a first call is worth
//! knowing; the lost time per step covers the counted steps.
//!
//! One partial result per host ([`FunctionsPartial::of`]) → [`FunctionsPartial::merge`] →
//! [`FunctionsPartial::finish`].

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use stepscope_trace::{Dur, KindId, KindSet, ProcessKind, Span, StrId, Time, Trace, Track, TrackKind};

use crate::analysis::Analysis;
use crate::context::Context;
use crate::vocabulary::names::concrete_function;
use crate::vocabulary::{Role, Vocabulary};
use crate::window::{Window, Windows};

/// What repeated tracing or compiling indicates.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// Retraced as one function with an increasing trace count: its arguments vary.
    ArgumentsVary,
    /// Retraced, each time as a function traced once: it is re-created in a loop.
    Recreated,
    /// Recompiled under one name: the shapes of its arguments vary.
    ShapesVary,
    /// Recompiled under one name; it is unknown whether it is re-created.
    ShapesVaryOrRecreated,
    /// Recompiled without being retraced.
    CompilesEachCall,
    /// Traced or compiled once.
    FirstCallOnly,
}

impl Sign {
    /// Its public key.
    pub fn key(self) -> &'static str {
        match self {
            Sign::ArgumentsVary => "arguments-vary",
            Sign::Recreated => "re-created",
            Sign::ShapesVary => "shapes-vary",
            Sign::ShapesVaryOrRecreated => "shapes-vary-or-re-created",
            Sign::CompilesEachCall => "compiles-each-call",
            Sign::FirstCallOnly => "first-call-only",
        }
    }
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Entry {
    calls: u64,
    traces: u64,
    compiles: u64,
    time: Dur,
    /// Time of the calls that traced or compiled.
    slow: Dur,
    tracing: Dur,
    compiling: Dur,
    /// Tracing and compiling in counted steps.
    lost_in_steps: Dur,
    /// If the framework counts traces: the smallest and largest count of traced calls.
    counts: Option<(i64, i64)>,
    jitted: bool,
    /// Calls that built their function right after a Python frame created it.
    fresh: u64,
    /// True if a Python tracer ran, so that the creation of a function would be visible.
    frames: bool,
    modules: BTreeSet<String>,
    concrete: BTreeSet<String>,
}

impl Entry {
    fn add(&mut self, other: Entry) {
        self.calls += other.calls;
        self.traces += other.traces;
        self.compiles += other.compiles;
        self.time += other.time;
        self.slow += other.slow;
        self.tracing += other.tracing;
        self.compiling += other.compiling;
        self.lost_in_steps += other.lost_in_steps;
        self.counts = match (self.counts, other.counts) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (one, other) => one.or(other),
        };
        self.jitted |= other.jitted;
        self.fresh += other.fresh;
        self.frames |= other.frames;
        self.modules.extend(other.modules);
        self.concrete.extend(other.concrete);
    }

    fn sign(&self) -> Option<Sign> {
        match (self.traces, self.compiles, self.counts) {
            (0, 0, _) => None,
            (2.., _, Some((_, highest))) => {
                Some(if highest > 1 { Sign::ArgumentsVary } else { Sign::Recreated })
            }
            (_, 2.., _) if self.jitted && self.fresh * 2 >= self.traces => Some(Sign::Recreated),
            (_, 2.., _) if self.jitted && !self.frames => Some(Sign::ShapesVaryOrRecreated),
            (_, 2.., _) if self.jitted => Some(Sign::ShapesVary),
            (0, 2.., _) => Some(Sign::CompilesEachCall),
            (2.., _, None) => Some(Sign::ShapesVary),
            _ => Some(Sign::FirstCallOnly),
        }
    }
}

/// The functions of one host, or of several merged.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct FunctionsPartial {
    window: Window,
    entries: BTreeMap<String, Entry>,
}

impl Analysis for FunctionsPartial {
    type Output = Functions;

    /// The functions of one host.
    fn of(context: &Context) -> Self {
        let (trace, vocabulary) = (context.trace, context.vocabulary());
        let windows = Windows::of(context);
        let keys = Keys::of(trace, vocabulary);
        let threads: Vec<Thread> = trace
            .tracks()
            .par_iter()
            .filter(|track| matches!(track.kind, TrackKind::Thread | TrackKind::Async))
            .filter(|track| trace.process(track.process).kind != ProcessKind::Device)
            .map(|track| Thread::walk(trace, vocabulary, &keys, track))
            .collect();
        let elsewhere: Vec<Compile> = threads.iter().flat_map(|thread| thread.outside.clone()).collect();
        let mut calls: Vec<Call> = threads.into_iter().flat_map(|thread| thread.calls).collect();
        calls.sort_by_key(|call| call.span.start);
        charge_compiles_elsewhere(&mut calls, elsewhere);
        let mut entries: BTreeMap<String, Entry> = BTreeMap::new();
        let mut counted = windows.of_host();
        for call in calls {
            let in_step = counted.counts(call.span.start);
            entries.entry(name_of(trace, call.kind)).or_default().add(call.into_entry(in_step));
        }
        name_concrete_functions(trace, vocabulary, &mut entries);
        FunctionsPartial { window: windows.window, entries }
    }

    /// Adds another host.
    fn merge(&mut self, other: FunctionsPartial) {
        self.window = self.window.merge(other.window);
        for (name, entry) in other.entries {
            self.entries.entry(name).or_default().add(entry);
        }
    }

    /// Keeps the functions that take longest to build, and a bounded number of their versions.
    fn bound(&mut self) {
        const FUNCTIONS: usize = 512;
        const VERSIONS: usize = 128;
        let cut = |names: &mut BTreeSet<String>| {
            if let Some(after) = names.iter().nth(VERSIONS).cloned() {
                drop(names.split_off(&after));
            }
        };
        let all = std::mem::take(&mut self.entries).into_iter();
        let longest = |entry: &Entry| (entry.tracing + entry.compiling, entry.time);
        self.entries = crate::stored::keep_largest(all, FUNCTIONS, longest).0.into_iter().collect();
        for entry in self.entries.values_mut() {
            cut(&mut entry.modules);
            cut(&mut entry.concrete);
        }
    }

    /// Ranks the functions by lost time, then by total time.
    fn finish(self) -> Functions {
        let window = self.window;
        let mut rows: Vec<FunctionRow> = self
            .entries
            .into_iter()
            .map(|(name, entry)| FunctionRow {
                name,
                sign: entry.sign(),
                calls: entry.calls,
                traces: entry.traces,
                compiles: entry.compiles,
                total_ms: entry.time.ms(),
                slow_calls_ms: entry.slow.ms(),
                tracing_ms: entry.tracing.ms(),
                compile_ms: entry.compiling.ms(),
                lost_ms_per_step: window.per_step(entry.lost_in_steps.ms()),
                concrete_functions: entry.concrete.len(),
                modules: entry.modules.into_iter().collect(),
            })
            .collect();
        rows.sort_by(|a, b| {
            let lost = |row: &FunctionRow| row.tracing_ms + row.compile_ms;
            lost(b)
                .total_cmp(&lost(a))
                .then_with(|| b.total_ms.total_cmp(&a.total_ms))
                .then_with(|| a.name.cmp(&b.name))
        });
        Functions { window, rows }
    }
}

/// One function.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionRow {
    /// Its name in the program.
    pub name: String,
    /// Calls in the whole capture.
    pub calls: u64,
    /// Calls that traced it.
    pub traces: u64,
    /// Number of compilations that its calls waited for.
    pub compiles: u64,
    /// Time in its calls, in milliseconds.
    pub total_ms: f64,
    /// Time in those calls that traced or compiled, in milliseconds.
    pub slow_calls_ms: f64,
    /// Time spent tracing, in milliseconds.
    pub tracing_ms: f64,
    /// Time spent compiling, in milliseconds.
    pub compile_ms: f64,
    /// Tracing and compiling per counted step, in milliseconds; `None` without steps.
    pub lost_ms_per_step: Option<f64>,
    /// What the tracing or compiling indicates; `None` if there was none.
    pub sign: Option<Sign>,
    /// Number of its graphs that ran, as far as their names show.
    pub concrete_functions: usize,
    /// XLA modules that its calls compiled.
    pub modules: Vec<String>,
}

/// All functions, most lost time first.
#[derive(Clone, Debug)]
pub struct Functions {
    /// What per-step figures cover.
    pub window: Window,
    /// One row per function.
    pub rows: Vec<FunctionRow>,
}

struct Keys {
    /// What says anything about calls.
    read: KindSet,
    /// By kind: whether it is a Python frame that creates a jitted function.
    makes_jitted: Vec<bool>,
    /// By kind: whether it is a frame in which JAX itself creates a jitted function, for an op outside all
    /// others.
    jits_primitive: Vec<bool>,
    how: Option<StrId>,
    count: Option<StrId>,
    module: Vec<StrId>,
}

impl Keys {
    fn of(trace: &Trace, vocabulary: &Vocabulary) -> Self {
        let find = |key: &str| trace.strings().find(key);
        let tells =
            |role| matches!(role, Role::PythonFrame | Role::FunctionCall | Role::Tracing | Role::Compile);
        let names = || (0..trace.kinds().len()).map(|index| trace.kind_name(KindId::from_index(index)));
        Keys {
            read: trace.kinds_where(|kind| tells(vocabulary.role(kind))),
            makes_jitted: names().map(makes_jitted).collect(),
            jits_primitive: names().map(|name| name.ends_with(" xla_primitive_callable")).collect(),
            how: find("tf_function_call"),
            count: find("tracing_count"),
            module: ["module", "name", "hlo_module"].iter().filter_map(|key| find(key)).collect(),
        }
    }
}

/// Whether it is a frame of `jax.jit` or `jax.pmap` itself, in which a function is wrapped.
fn makes_jitted(name: &str) -> bool {
    let Some((place, function)) = name.strip_prefix('$').and_then(|frame| frame.split_once(' ')) else {
        return false;
    };
    let file = place.split(':').next().unwrap_or(place);
    let file = file.rsplit('/').next().unwrap_or(file);
    match function {
        "make_jit" => file == "pjit.py",
        "jit" | "pmap" => matches!(file, "api.py" | "pjit.py" | "pmap.py"),
        _ => false,
    }
}

#[derive(Clone, Debug)]
struct Compile {
    span: Span,
    module: Option<String>,
}

/// One outermost call.
#[derive(Debug)]
struct Call {
    kind: KindId,
    span: Span,
    /// True if the framework reports that the call traced.
    traced: bool,
    count: Option<i64>,
    jitted: bool,
    /// True if Python created a jitted function since the previous call.
    fresh: bool,
    /// A Python tracer ran on its thread.
    frames: bool,
    compiles: u64,
    compiling: Dur,
    /// When the last compilation inside ended.
    compiled_until: Option<Time>,
    tracing: Dur,
    modules: BTreeSet<String>,
}

impl Call {
    fn compile(&mut self, compile: Compile) {
        self.compiles += 1;
        self.compiling += compile.span.intersect(self.span).dur();
        self.compiled_until = self.compiled_until.max(Some(compile.span.end.min(self.span.end)));
        self.modules.extend(compile.module);
    }

    fn into_entry(self, in_step: bool) -> Entry {
        let jit_traced = self.jitted && (self.compiles > 0 || !self.tracing.is_zero());
        // Everything that a jitted call does before its program is compiled is tracing and lowering.
        let before = match self.compiled_until.filter(|_| self.jitted) {
            Some(until) => (until - self.span.start - self.compiling).at_least_zero(),
            None => self.tracing,
        };
        let tracing = if self.traced || jit_traced { before } else { Dur::ZERO };
        let lost = tracing + self.compiling;
        let slow = self.traced || jit_traced || self.compiles > 0;
        Entry {
            calls: 1,
            traces: u64::from(self.traced || jit_traced),
            compiles: self.compiles,
            time: self.span.dur(),
            slow: if slow { self.span.dur() } else { Dur::ZERO },
            tracing,
            compiling: self.compiling,
            lost_in_steps: if in_step { lost } else { Dur::ZERO },
            counts: self.count.filter(|_| self.traced).map(|count| (count, count)),
            jitted: self.jitted,
            fresh: u64::from(jit_traced && self.fresh),
            frames: self.frames,
            modules: self.modules,
            concrete: BTreeSet::new(),
        }
    }
}

/// The calls of one thread.
#[derive(Default)]
struct Thread {
    calls: Vec<Call>,
    /// Compilations outside any call: another thread waits for them.
    outside: Vec<Compile>,
}

impl Thread {
    fn walk(trace: &Trace, vocabulary: &Vocabulary, keys: &Keys, track: &Track) -> Self {
        let mut thread = Thread::default();
        let (mut busy_until, mut traced_until) = (Time::MIN, Time::MIN);
        let (mut made, mut frames): (Option<Time>, bool) = (None, false);
        let mut own_until = Time::MIN;
        for (index, kind) in track.events_of(&keys.read) {
            let role = vocabulary.role(kind);
            if role == Role::PythonFrame {
                frames = true;
                if keys.jits_primitive[kind.index()] {
                    own_until = track.end(index);
                }
                let start = track.start(index);
                let outside = thread.calls.last().is_none_or(|call| start >= call.span.end);
                if outside && start >= own_until && keys.makes_jitted[kind.index()] {
                    made = Some(start);
                }
                continue;
            }
            let span = track.span_of(index);
            let inside = thread.calls.last_mut().filter(|call| span.start < call.span.end);
            match (role, inside) {
                (Role::FunctionCall, None) => {
                    // Everything created before the last building call is built.
                    let built =
                        thread.calls.last().filter(|call| call.compiles > 0).map(|call| call.span.start);
                    made = made.filter(|made| built.is_none_or(|built| built < *made));
                    let call = Call { fresh: made.is_some(), frames, ..call(trace, keys, track, index) };
                    thread.calls.push(call);
                }
                (Role::Compile, _) if span.start < busy_until => {}
                (Role::Compile, inside) => {
                    busy_until = span.end;
                    let compile = Compile { span, module: module(trace, keys, track, index) };
                    match inside {
                        Some(call) => call.compile(compile),
                        None => thread.outside.push(compile),
                    }
                }
                (Role::Tracing, Some(call)) if span.start >= traced_until => {
                    traced_until = span.end;
                    call.tracing += span.intersect(call.span).dur();
                }
                _ => {}
            }
        }
        thread
    }
}

fn call(trace: &Trace, keys: &Keys, track: &Track, index: usize) -> Call {
    let (mut how, mut count) = (None, None);
    trace.args_at(track, index).visit(|key, value| {
        if Some(key) == keys.how {
            how = value.as_str().map(|how| how.starts_with("traced"));
        } else if Some(key) == keys.count {
            count = value.as_i64();
        }
    });
    Call {
        kind: track.kind_of(index),
        span: track.span_of(index),
        traced: how.unwrap_or(false),
        count,
        jitted: how.is_none(),
        fresh: false,
        frames: false,
        compiles: 0,
        compiling: Dur::ZERO,
        compiled_until: None,
        tracing: Dur::ZERO,
        modules: BTreeSet::new(),
    }
}

fn module(trace: &Trace, keys: &Keys, track: &Track, index: usize) -> Option<String> {
    let mut module = None;
    trace.args_at(track, index).visit(|key, value| {
        if keys.module.contains(&key) && module.is_none() {
            module = value.as_str().filter(|name| !name.is_empty()).map(str::to_owned);
        }
    });
    module
}

/// A compilation on another thread is charged to the call that started last before it and is still running. If
/// that call's own thread shows its compilations, it only provides the module name.
fn charge_compiles_elsewhere(calls: &mut [Call], elsewhere: Vec<Compile>) {
    /// Number of calls of other threads that are examined: few threads call functions at the same time.
    const NEAR: usize = 32;
    for compile in elsewhere {
        let after = calls.partition_point(|call| call.span.start <= compile.span.start);
        let near = &mut calls[after.saturating_sub(NEAR)..after];
        let Some(call) = near.iter_mut().rev().find(|call| call.span.contains(compile.span.start)) else {
            continue;
        };
        let shown = call.compiled_until.is_some_and(|until| until >= compile.span.end);
        if shown {
            call.modules.extend(compile.module);
        } else {
            call.compile(compile);
        }
    }
}

/// The function's own name: `PjitFunction(f)` is `f`.
pub(crate) fn name_of(trace: &Trace, kind: KindId) -> String {
    let name = trace.kind_name(kind);
    let jitted = name.strip_prefix("PjitFunction(").and_then(|name| name.strip_suffix(')'));
    jitted.unwrap_or(name).to_owned()
}

/// Counts the graphs `__inference_<function>_<number>` that ran.
fn name_concrete_functions(trace: &Trace, vocabulary: &Vocabulary, entries: &mut BTreeMap<String, Entry>) {
    for index in 0..trace.kinds().len() {
        let kind = KindId::from_index(index);
        let name = trace.kind_name(kind);
        let run = name.strip_prefix("EagerLocalExecute: ").filter(|_| vocabulary.signatures.events(kind) > 0);
        if let Some((function, run)) = run.and_then(|run| Some((concrete_function(run)?, run)))
            && let Some(entry) = entries.get_mut(function)
        {
            entry.concrete.insert(run.to_owned());
        }
    }
}

#[cfg(test)]
mod tests;
