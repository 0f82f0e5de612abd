//! One pass over a track with a stack of open events: from events to states.

use std::ops::Range;

use hashbrown::HashSet;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Form, KindId, KindSet, ProcessKind, StrId, Time, Trace, Track};

use super::activities::Kinds;
use super::launches::waits_for_copy;
use super::output::preparations;
use super::track_chunks::chunks;
use super::{State, StateLine, has_kind, is_code, runs_python};
use crate::vocabulary::{Framework, Role, Vocabulary, is_dense, is_python_frame, op_type, starts_kernels};

/// Number of events that are walked together. The states of a piece are freed when they are appended to those before it: with
/// one piece per core, half of all states existed twice, which was a tenth of the peak of a report.
const EVENTS_PER_WALK: usize = 1 << 19;

/// Facts about the whole trace that are needed before its tracks are walked.
pub(super) struct Facts<'t> {
    trace: &'t Trace,
    vocabulary: &'t Vocabulary,
    has_device: bool,
    /// By kind: its role on a host thread; `None` if it says nothing about what the thread does.
    host_roles: Vec<Option<Role>>,
    /// The same on a device.
    device_roles: Vec<Option<Role>>,
    /// Numbers of graph runs that belong to the input pipeline.
    input_runs: HashSet<i64, FxBuildHasher>,
    /// True if device calls were recorded, but nothing of the framework that makes them.
    only_calls: bool,
    /// True if batches are fetched by eager ops, so that eager calls have to be examined.
    fetches_eagerly: bool,
    /// What eager ops do.
    activities: Kinds,
    /// Python frames that may fetch a batch, by their names alone.
    fetching_frames: KindSet,
    /// The model's work; empty unless such frames exist.
    model: KindSet,
    compiles: KindSet,
    id_key: Option<StrId>,
    call_key: Option<StrId>,
}

impl<'t> Facts<'t> {
    pub(super) fn of(trace: &'t Trace, vocabulary: &'t Vocabulary, has_device: bool) -> Self {
        let id_key = trace.strings().find("id");
        let call_key = trace.strings().find("tf_function_call");
        let fetches_eagerly = has_kind(trace, |kind| {
            vocabulary.role(kind) == Role::InputWait
                && trace.kind_name(kind).starts_with("EagerLocalExecute: ")
        });
        let slices = |kind: KindId| trace.kind(kind).form == Form::Slice;
        let on_host = |kind| Some(vocabulary.host_role(kind)).filter(|role| *role != Role::Bookkeeping);
        // User annotations of device work do not say whether the device works.
        let on_device = |kind| {
            Some(vocabulary.role(kind)).filter(|role| !matches!(role, Role::Bookkeeping | Role::Annotation))
        };
        let kinds = || (0..trace.kinds().len()).map(KindId::from_index);
        let mut facts = Facts {
            trace,
            vocabulary,
            has_device,
            host_roles: kinds().map(|kind| on_host(kind).filter(|_| slices(kind))).collect(),
            device_roles: kinds().map(|kind| on_device(kind).filter(|_| slices(kind))).collect(),
            input_runs: HashSet::default(),
            only_calls: vocabulary.framework == Framework::Unknown,
            fetches_eagerly,
            activities: Kinds::of(trace, vocabulary),
            fetching_frames: fetching_frames(trace, vocabulary),
            model: KindSet::default(),
            compiles: trace.kinds_where(|kind| vocabulary.role(kind) == Role::Compile),
            id_key,
            call_key,
        };
        facts.input_runs = facts.find_input_runs();
        if !facts.fetching_frames.is_empty() {
            facts.model = model_kinds(trace, vocabulary);
        }
        facts
    }

    fn find_input_runs(&self) -> HashSet<i64, FxBuildHasher> {
        let mut runs = HashSet::default();
        let functions = self.trace.kinds_where(|kind| self.vocabulary.role(kind) == Role::InputFunction);
        let Some(key) = self.id_key.filter(|_| !functions.is_empty()) else { return runs };
        for track in self.trace.tracks() {
            for (index, _) in track.events_of(&functions) {
                let id = self.trace.args_at(track, index).get(key);
                runs.extend(id.and_then(|id| id.as_i64()));
            }
        }
        runs
    }

    pub(super) fn line_of(&self, track: &Track) -> StateLine {
        let wanted = (track.len() / EVENTS_PER_WALK).max(rayon::current_num_threads());
        let lines: Vec<StateLine> = chunks(track, wanted)
            .into_par_iter()
            .map(|chunk| {
                let mut walk = Walk::new(self, track, chunk.clone());
                chunk.for_each(|index| walk.event(index));
                walk.finish()
            })
            .collect();
        let mut line = StateLine::joined(lines);
        if self.only_calls && self.trace.process(track.process).kind != ProcessKind::Device {
            line.bridge_launches();
        }
        if runs_python(self.trace, self.vocabulary, track) {
            line.cover(&preparations(&self.activities, self.vocabulary, track), State::Output);
        }
        line
    }
}

struct OpenEvent {
    end: Time,
    state: State,
    /// Inside a call that traces its function: ops still count, the rest is tracing.
    traced_call: bool,
}

struct Walk<'f, 't> {
    facts: &'f Facts<'t>,
    track: &'t Track,
    on_device: bool,
    roles: &'f [Option<Role>],
    in_pipeline: bool,
    on_python: bool,
    /// Starts of compilations on this track, to identify calls that compile.
    compiles: Vec<Time>,
    /// Starts of the model's work on this track, to distinguish iterators that run the model from loaders.
    model: Vec<Time>,
    open: Vec<OpenEvent>,
    line: StateLine,
}

impl<'f, 't> Walk<'f, 't> {
    fn new(facts: &'f Facts<'t>, track: &'t Track, piece: Range<usize>) -> Self {
        let trace = facts.trace;
        let name = trace.str(track.name);
        let on_device = trace.process(track.process).kind == ProcessKind::Device;
        let starts_of = |kinds| track.events_in(piece.clone(), kinds).map(|(index, _)| track.start(index));
        let compiles = starts_of(&facts.compiles).collect();
        let fetches = track.has_any(&facts.fetching_frames);
        let model = if fetches { starts_of(&facts.model).collect() } else { Vec::new() };
        Walk {
            facts,
            track,
            on_device,
            roles: if on_device { &facts.device_roles } else { &facts.host_roles },
            in_pipeline: name.starts_with("tf_data_") && !name.starts_with("tf_data_iterator_get_next"),
            on_python: runs_python(trace, facts.vocabulary, track),
            compiles,
            model,
            open: Vec::new(),
            line: StateLine::default(),
        }
    }

    fn event(&mut self, index: usize) {
        let Some(role) = self.roles[self.track.kind_of(index).index()] else { return };
        let dur = self.track.dur(index);
        if dur.is_zero() {
            return;
        }
        let start = self.track.start(index);
        self.close_until(start);
        let (state, traced_call) = self.state_within(role, index);
        self.line.change(start, state);
        self.open.push(OpenEvent { end: start + dur, state, traced_call });
    }

    /// Closes what has ended by `now`; enclosing events continue. Kernels of one stream may overlap: an event
    /// that ended while a later one ran encloses nothing, and its end changes nothing.
    fn close_until(&mut self, now: Time) {
        while let Some(ended) = self.open.pop_if(|open| open.end <= now) {
            while self.open.pop_if(|open| open.end <= ended.end).is_some() {}
            let outer = self.open.last().map_or(State::Nothing, |open| open.state);
            self.line.change(ended.end, outer);
        }
    }

    fn finish(mut self) -> StateLine {
        self.close_until(Time::MAX);
        self.line.times.shrink_to_fit();
        self.line.states.shrink_to_fit();
        self.line
    }

    /// The state of an event, given what encloses it.
    fn state_within(&self, role: Role, index: usize) -> (State, bool) {
        let (outer, traced) =
            self.open.last().map_or((State::Nothing, false), |open| (open.state, open.traced_call));
        if outer.holds() {
            return (outer, false);
        }
        if outer == State::HostCompute && matches!(role, Role::Framework | Role::Unknown | Role::EagerCall) {
            // Everything inside an op belongs to it: parallel loops, library calls.
            return (outer, false);
        }
        if outer == State::Tracing && !(traced && matches!(role, Role::Op | Role::EagerKernel)) {
            // Only compilers interrupt tracing; a call inside a traced call is part of it.
            return match role {
                Role::Compile => (State::Compile, false),
                _ => (State::Tracing, traced && role != Role::Tracing),
            };
        }
        let own = self.own_state(role, index);
        match own {
            // Annotations do not change what a thread is doing.
            State::Present if outer != State::Nothing => (outer, false),
            own => (own, own == State::Tracing && role == Role::FunctionCall),
        }
    }

    fn own_state(&self, role: Role, index: usize) -> State {
        let usual = State::of_role(role, self.facts.has_device);
        match role {
            Role::FunctionCall if self.traces(index) => State::Tracing,
            Role::EagerCall if self.fetches_input(index) => State::InputWait,
            Role::Unknown => self.unknown(index),
            Role::EagerKernel if self.runs_function(index) => self.pipeline_or(State::Dispatch),
            Role::ExecutorRun if self.is_input_run(index) => State::InputWork,
            Role::InputWait if self.in_pipeline => State::InputWork,
            // Generators that run the model return results; what they load is visible inside them.
            Role::InputWait if self.runs_model(index) => State::Present,
            Role::LaunchCopy if self.blocks(index) => State::Sync,
            // Ops and calls on a thread of the input pipeline belong to the pipeline.
            Role::FunctionCall
            | Role::Framework
            | Role::EagerCall
            | Role::Op
            | Role::EagerKernel
            | Role::ExecutorRun => usual.map_or(State::Present, |state| self.pipeline_or(state)),
            _ => usual.unwrap_or(State::Present),
        }
    }

    /// A copy call that waits until the copy is done.
    fn blocks(&self, index: usize) -> bool {
        waits_for_copy(self.facts.trace.kind_name(self.track.kind_of(index)), self.track.dur(index))
    }

    fn pipeline_or(&self, state: State) -> State {
        if self.in_pipeline { State::InputWork } else { state }
    }

    /// On a Python thread an unknown name is most likely the user's own annotation, unless it looks like C++.
    fn unknown(&self, index: usize) -> State {
        if self.on_device {
            return State::DeviceCompute;
        }
        let name = self.facts.trace.kind_name(self.track.kind_of(index));
        if self.on_python && !is_code(name) { State::Present } else { self.pipeline_or(State::Dispatch) }
    }

    /// Whether this call traces or compiles its function first.
    fn traces(&self, index: usize) -> bool {
        let args = self.facts.trace.args_at(self.track, index);
        let how = self.facts.call_key.and_then(|key| args.get(key));
        if let Some(how) = how.as_ref().and_then(|how| how.as_str()) {
            return how.starts_with("traced");
        }
        let span = self.track.span_of(index);
        let first = self.compiles.partition_point(|&at| at < span.start);
        self.compiles.get(first).is_some_and(|&at| at < span.end)
    }

    /// Whether the model runs inside a frame that looks like a loader's.
    fn runs_model(&self, index: usize) -> bool {
        if !self.facts.fetching_frames.has(self.track.kind_of(index)) {
            return false;
        }
        let span = self.track.span_of(index);
        let first = self.model.partition_point(|&at| at < span.start);
        self.model.get(first).is_some_and(|&at| at < span.end)
    }

    fn is_input_run(&self, index: usize) -> bool {
        if self.facts.input_runs.is_empty() {
            return false;
        }
        let id = self.facts.id_key.and_then(|key| self.facts.trace.args_at(self.track, index).get(key));
        id.and_then(|id| id.as_i64()).is_some_and(|id| self.facts.input_runs.contains(&id))
    }

    /// The role of the first event inside the `index`th that is not bookkeeping.
    fn first_inside(&self, index: usize) -> Option<Role> {
        /// Number of bookkeeping events skipped before giving up: they come in short sequences.
        const SKIP: usize = 64;
        let end = self.track.end(index);
        (index + 1..self.track.len().min(index + SKIP))
            .take_while(|&inside| self.track.start(inside) < end)
            .map(|inside| self.facts.vocabulary.role(self.track.kind_of(inside)))
            .find(|&role| role != Role::Bookkeeping)
    }

    /// An eager call that only gets the next batch.
    fn fetches_input(&self, index: usize) -> bool {
        /// The batch is fetched at most this many events further inside.
        const WITHIN: usize = 4;
        let end = self.track.end(index);
        self.facts.fetches_eagerly
            && (index + 1..self.track.len())
                .take(WITHIN)
                .take_while(|&inside| self.track.start(inside) < end)
                .any(|inside| self.facts.vocabulary.role(self.track.kind_of(inside)) == Role::InputWait)
    }

    fn runs_function(&self, index: usize) -> bool {
        self.first_inside(index).is_some_and(|role| role != Role::Op)
    }
}

/// Python frames that look like loaders by name alone. PyTorch's own loader is one whatever runs inside it.
fn fetching_frames(trace: &Trace, vocabulary: &Vocabulary) -> KindSet {
    trace.kinds_where(|kind| {
        let name = trace.kind_name(kind);
        vocabulary.role(kind) == Role::InputWait
            && is_python_frame(name, trace.str(trace.kind(kind).category))
            && !name.contains("utils/data/")
    })
}

/// The kinds that are the model's work: compiled functions and dense ops; if there are none, kernel launches.
/// Other ops and modules also prepare batches.
fn model_kinds(trace: &Trace, vocabulary: &Vocabulary) -> KindSet {
    let dense = |kind: KindId| match vocabulary.role(kind) {
        Role::FunctionCall => true,
        Role::Op => {
            let name = trace.kind_name(kind);
            is_dense(op_type(name).unwrap_or(name))
        }
        _ => false,
    };
    let found = trace.kinds_where(dense);
    if !found.is_empty() {
        return found;
    }
    trace.kinds_where(|kind| vocabulary.role(kind) == Role::Launch && starts_kernels(trace.kind_name(kind)))
}
