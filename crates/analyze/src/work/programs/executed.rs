//! Which instructions ran, how often and how long: one pass over the events of each track.
//!
//! XLA writes the instruction with every event that runs one, in three ways. On CPUs, each thunk is an event on a host thread
//! with `hlo_op` and `program_id`. On GPUs, each kernel has them. On TPUs, the kind of event has them.

use std::borrow::Cow;

use rayon::prelude::*;
use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_hlo::main_memory_bytes;
use stepscope_trace::{
    Args, Dur, Form, KindId, ProcessKind, Span, StrId, Time, Trace, Track, TrackKind, Value,
};

use super::Matched;
use crate::context::Context;
use crate::vocabulary::names::hlo_name;
use crate::vocabulary::{Keys, Role};
use crate::window::Windows;

/// What was recorded about one instruction of one program.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Events: executions on CPUs and TPUs, kernels on GPUs.
    pub events: u64,
    pub total: Dur,
    /// Without instructions inside.
    pub own: Dur,
    /// The part of both in which it went on in the background, after its events.
    pub background: Dur,
    /// Events per kind: one execution may run several kernels.
    pub by_kind: FxHashMap<KindId, u64>,
    /// Whether it ran as kernels of a device that a host launches.
    pub kernels: bool,
    /// What one execution costs, where the profile states it.
    pub stated: Option<Stated>,
    /// How events were joined with it.
    pub matched: Matched,
}

/// What one execution costs by the profile.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) struct Stated {
    pub flops: u64,
    pub bytes: u64,
    /// Those of the bytes that cross the main memory.
    pub main_bytes: Option<u64>,
}

impl Tally {
    pub fn add(&mut self, other: Tally) {
        self.events += other.events;
        self.total += other.total;
        self.own += other.own;
        self.background += other.background;
        self.kernels |= other.kernels;
        self.matched = self.matched.max(other.matched);
        self.stated = self.stated.or(other.stated);
        for (kind, count) in other.by_kind {
            *self.by_kind.entry(kind).or_default() += count;
        }
    }
}

/// A program as events refer to it: its number, or its name where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) enum ProgramRef {
    Number(u64),
    Name(StrId),
    Unknown,
}

/// Kernels of a name that state no instruction: the program and the line of source, as far as they state them. Kernels in CUDA
/// graphs carry the line.
pub(super) type Unnamed = (ProgramRef, KindId, Option<String>);

/// Everything that ran.
#[derive(Debug, Default)]
pub(super) struct Executed {
    pub ops: FxHashMap<ProgramRef, FxHashMap<String, Tally>>,
    /// Kernels that name no instruction: started through a graph, or by a library.
    pub unnamed: FxHashMap<Unnamed, Tally>,
    /// The runs of each program, by run and device.
    pub runs: FxHashMap<ProgramRef, FxHashSet<(u64, u64)>>,
}

impl Executed {
    /// Walks all tracks.
    pub fn of(context: &Context, windows: &Windows) -> Self {
        let trace = context.trace;
        let pass = Pass::new(context, windows);
        let tracks: Vec<&Track> = trace.tracks().iter().filter(|track| pass.holds_work(track)).collect();
        tracks.into_par_iter().map(|track| pass.walk(track)).reduce(Executed::default, Executed::join)
    }

    fn join(mut self, other: Executed) -> Self {
        for (program, ops) in other.ops {
            let own = self.ops.entry(program).or_default();
            for (op, tally) in ops {
                own.entry(op).or_default().add(tally);
            }
        }
        for (key, tally) in other.unnamed {
            self.unnamed.entry(key).or_default().add(tally);
        }
        for (program, runs) in other.runs {
            self.runs.entry(program).or_default().extend(runs);
        }
        self
    }

    fn tally(&mut self, of: &Owner<'_>) -> &mut Tally {
        match &of.op {
            None => self.unnamed.entry((of.program, of.kind, of.source.clone())).or_default(),
            Some(op) => {
                let ops = self.ops.entry(of.program).or_default();
                if !ops.contains_key(op.as_ref()) {
                    ops.insert(op.to_string(), Tally::default());
                }
                // Just inserted if it was missing.
                ops.entry(op.to_string()).or_default()
            }
        }
    }
}

/// What an event says about the instruction behind it.
struct Owner<'t> {
    program: ProgramRef,
    op: Option<Cow<'t, str>>,
    kind: KindId,
    run: Option<(u64, u64)>,
    stated: Option<Stated>,
    /// The line of source, of kernels that state no instruction.
    source: Option<String>,
    /// When it began and how long it took by the device's own clock, which is exact where the host's view of it is not.
    began: Option<Time>,
    measured: Option<Dur>,
}

impl Owner<'_> {
    /// By the device's own clock, if that is known.
    fn span(&self, track: &Track, index: usize) -> Span {
        match self.began.zip(self.measured) {
            Some((began, measured)) => Span::new(began, began + measured),
            None => track.span_of(index),
        }
    }
}

struct Open<'t> {
    start: Time,
    end: Time,
    dur: Dur,
    inside: Dur,
    late: Dur,
    owner: Owner<'t>,
}

struct Pass<'c, 't> {
    context: &'c Context<'t>,
    trace: &'t Trace,
    windows: &'c Windows,
    op: Option<StrId>,
    program: Option<StrId>,
    module: Option<StrId>,
    run: Option<StrId>,
    device: Option<StrId>,
    category: Option<StrId>,
    source: Option<StrId>,
    began: Option<StrId>,
    measured: Option<StrId>,
    flops: Vec<StrId>,
    bytes: Option<StrId>,
    by_level: Option<StrId>,
}

impl<'c, 't> Pass<'c, 't> {
    fn new(context: &'c Context<'t>, windows: &'c Windows) -> Self {
        let trace = context.trace;
        let find = |key: &str| trace.strings().find(key);
        Pass {
            context,
            trace,
            windows,
            op: find("hlo_op"),
            program: find("program_id"),
            module: find("hlo_module"),
            run: find("run_id"),
            device: find("device_ordinal"),
            category: find("hlo_category"),
            source: find("source"),
            began: find("device_offset_ps"),
            measured: find("device_duration_ps"),
            flops: ["model_flops", "flops"].iter().filter_map(|key| find(key)).collect(),
            bytes: find("bytes_accessed"),
            by_level: find("memory_access_breakdown"),
        }
    }

    /// Threads of the host, and streams of devices. What devices copy on the side is not in the way of anything.
    fn holds_work(&self, track: &Track) -> bool {
        let is_device = self.trace.process(track.process).kind == ProcessKind::Device;
        !track.is_empty()
            && match track.kind {
                TrackKind::Thread => !is_device,
                TrackKind::Stream => is_device,
                _ => false,
            }
    }

    fn walk(&self, track: &'t Track) -> Executed {
        let on_device = track.kind == TrackKind::Stream;
        let mut windows = self.windows.of_track(self.trace, track);
        let mut found = Executed::default();
        let mut open: Vec<Open<'t>> = Vec::new();
        for index in 0..track.len() {
            let kind = track.kind_of(index);
            let start = track.start(index);
            if !self.may_be_work(kind, on_device) || !windows.counts(start) {
                continue;
            }
            let Some(owner) = self.owner(track, index, kind, on_device) else { continue };
            let span = owner.span(track, index);
            // The device's clock may be set back: what began later is not around it.
            let is_over = |open: &mut Open<'_>| open.end <= span.start || span.start < open.start;
            while let Some(ended) = open.pop_if(is_over) {
                close(&mut found, ended, on_device);
            }
            let (start, dur, end) = (span.start, span.dur(), span.end);
            if let Some(outer) = open.last_mut().filter(|outer| end <= outer.end) {
                outer.inside += dur;
            }
            // What goes on in the background is part of it, but not around anything.
            let late =
                if on_device { Dur::ZERO } else { self.context.states().background.after(track, index) };
            open.push(Open { start, end, dur, inside: Dur::ZERO, late, owner });
        }
        while let Some(ended) = open.pop() {
            close(&mut found, ended, on_device);
        }
        found
    }

    fn may_be_work(&self, kind: KindId, on_device: bool) -> bool {
        let vocabulary = self.context.vocabulary();
        if self.trace.kind(kind).form != Form::Slice {
            return false;
        }
        if !on_device {
            // Calls that launch a kernel name its instruction too.
            let keys = vocabulary.signatures.keys(kind);
            return keys.has(Keys::HloOp) && !keys.has(Keys::Correlation);
        }
        matches!(vocabulary.role(kind), Role::Kernel | Role::Collective | Role::Copy(_) | Role::Unknown)
    }

    fn owner(&self, track: &'t Track, index: usize, kind: KindId, on_device: bool) -> Option<Owner<'t>> {
        let program = ProgramRef::Unknown;
        let mut owner = Owner {
            program,
            op: None,
            kind,
            run: None,
            stated: None,
            source: None,
            began: None,
            measured: None,
        };
        let (mut run, mut device) = (None, 0);
        let (mut flops, mut bytes, mut main_bytes, mut category) = (None, None, None, false);
        let mut name = None;
        let args: Args<'t> = self.trace.args_at(track, index);
        args.visit(|key, value| {
            let key = Some(key);
            if key == self.op {
                owner.op = text(value);
            } else if key == self.program {
                owner.program = value.as_u64().map_or(owner.program, ProgramRef::Number);
            } else if key == self.module {
                name = text(value);
            } else if key == self.run {
                run = value.as_u64();
            } else if key == self.device {
                device = value.as_u64().unwrap_or(0);
            } else if key == self.began {
                owner.began = picoseconds(&value).map(Time::from_ps);
            } else if key == self.measured {
                owner.measured = picoseconds(&value).map(Dur::from_ps);
            } else if key == self.source && on_device {
                owner.source = text(value).map(Cow::into_owned).filter(|source| !source.is_empty());
            } else if key == self.category {
                category = true;
            } else if key == self.bytes {
                bytes = value.as_u64();
            } else if key == self.by_level {
                main_bytes = match value {
                    Value::Bytes(accesses) => main_memory_bytes(accesses),
                    _ => None,
                };
            } else if key.is_some_and(|key| self.flops.contains(&key)) {
                flops = flops.or(value.as_u64());
            }
        });
        if owner.program == ProgramRef::Unknown
            && let Some(name) = name.and_then(|name| self.trace.strings().find(&name))
        {
            owner.program = ProgramRef::Name(name);
        }
        if category {
            // A TPU's kind is an instruction; its name is the whole line of text.
            owner.op = Some(Cow::Borrowed(hlo_name(self.trace.kind_name(kind))));
            owner.stated = flops.zip(bytes).map(|(flops, bytes)| Stated { flops, bytes, main_bytes });
        }
        // TensorFlow does not number its runs: every one is -1.
        owner.run = run.filter(|run| *run != u64::MAX).map(|run| (run, device));
        owner.op = owner.op.map(innermost).filter(|op| !op.is_empty() && !is_graph(op));
        let known = owner.op.is_some() || (on_device && !category);
        known.then_some(owner)
    }
}

fn picoseconds(value: &Value<'_>) -> Option<i64> {
    value.as_u64().and_then(|ps| i64::try_from(ps).ok())
}

fn text(value: Value<'_>) -> Option<Cow<'_, str>> {
    match value {
        Value::Str(text) => Some(text),
        _ => None,
    }
}

/// Annotations stack as `outer::inner`; the inner one is the instruction.
fn innermost(op: Cow<'_, str>) -> Cow<'_, str> {
    match op.rfind("::") {
        None => op,
        Some(at) => Cow::Owned(op[at + 2..].to_owned()),
    }
}

/// A graph of kernels is no instruction of the program.
fn is_graph(op: &str) -> bool {
    op.starts_with("command_buffer")
}

fn close(found: &mut Executed, ended: Open<'_>, on_device: bool) {
    if let Some(run) = ended.owner.run {
        found.runs.entry(ended.owner.program).or_default().insert(run);
    }
    let tally = found.tally(&ended.owner);
    tally.events += 1;
    tally.total += ended.dur + ended.late;
    tally.own += (ended.dur - ended.inside).at_least_zero() + ended.late;
    tally.background += ended.late;
    tally.kernels |= on_device && ended.owner.stated.is_none();
    tally.stated = tally.stated.or(ended.owner.stated);
    *tally.by_kind.entry(ended.owner.kind).or_default() += 1;
}
