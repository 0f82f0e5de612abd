//! What each thread and stream is doing at any time.
//!
//! Every track becomes a line of states: first it waits for input, then it traces a graph, and so on. Events
//! nest, and the innermost does not always decide: an op inside the input pipeline is input, whatever it
//! computes, and a constant that is created while a graph is being traced is tracing. Therefore some states
//! *hold*: everything inside them keeps the state.
//!
//! One pass with a stack per track, linear in its events. Nothing is assigned to categories here: that is the
//! work of [`crate::breakdown`].

use std::ops::Range;

use hashbrown::HashSet;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{
    DeviceKind, Dur, Form, KindId, ProcessKind, Span, StrId, Time, Trace, Track, TrackId, TrackKind,
};

use crate::absence::{has_device_ops, starts_any_kernel, uses_device_memory};
use crate::activities::Kinds;
use crate::launches::waits_for_copy;
use crate::pieces::pieces;
use crate::steps::median;
use crate::timeline::Mask;
use crate::vocabulary::{
    CopyDirection, Framework, Role, Vocabulary, is_dense, is_python_frame, names_torch_op, op_type,
    starts_kernels,
};
use crate::writing::preparations;

/// The activity of a track. Each is one bit, so that the activities of all tracks fit in a word.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
#[repr(u16)]
pub enum State {
    /// Nothing that was recorded.
    Nothing = 0,
    /// Inside recorded Python or an annotation, with nothing nested.
    Present = 1 << 0,
    /// A stage of the input pipeline works ahead; nothing waits here.
    InputWork = 1 << 1,
    /// The host is blocked until a device is done.
    Sync = 1 << 2,
    /// Framework overhead around ops.
    Dispatch = 1 << 3,
    /// The host launches device work.
    Launch = 1 << 4,
    /// The step waits for its next batch.
    InputWait = 1 << 5,
    /// Checkpoints, summaries, results are written.
    Output = 1 << 6,
    /// A graph is being built.
    Tracing = 1 << 7,
    /// A graph is being compiled.
    Compile = 1 << 8,
    /// The model's ops run on the host.
    HostCompute = 1 << 9,
    /// A device waits for another device or for the host.
    DeviceWait = 1 << 10,
    /// A device copies within or between devices.
    CopyDevice = 1 << 11,
    /// A device's results are copied out.
    CopyOut = 1 << 12,
    /// Data is copied to a device.
    CopyIn = 1 << 13,
    /// A device takes part in a collective.
    Communication = 1 << 14,
    /// A device computes.
    DeviceCompute = 1 << 15,
}

impl State {
    /// Whether nested events keep this state.
    fn holds(self) -> bool {
        matches!(
            self,
            State::InputWait | State::InputWork | State::Output | State::Compile | State::Communication
        )
    }

    /// What an event of this role does by itself, whatever surrounds it. Ops of a host that feeds a device only
    /// dispatch. `None` if the role says nothing about the activity.
    pub fn of_role(role: Role, feeds_device: bool) -> Option<Self> {
        Some(match role {
            Role::Annotation | Role::StepMarker | Role::Bookkeeping | Role::Unknown => return None,
            Role::PythonFrame => State::Present,
            // Beside a device's own work, the host only launches it.
            Role::Op | Role::EagerKernel | Role::HostCollective if feeds_device => State::Dispatch,
            Role::Op | Role::EagerKernel => State::HostCompute,
            Role::HostCollective | Role::Collective => State::Communication,
            Role::FunctionCall | Role::Framework | Role::EagerCall | Role::ExecutorRun => State::Dispatch,
            Role::Tracing => State::Tracing,
            Role::Compile => State::Compile,
            Role::InputWait => State::InputWait,
            Role::InputStage | Role::InputFunction => State::InputWork,
            Role::Output => State::Output,
            Role::Launch | Role::LaunchCopy | Role::DeviceMemory => State::Launch,
            Role::Sync => State::Sync,
            Role::Kernel | Role::Memset => State::DeviceCompute,
            Role::Copy(CopyDirection::In) => State::CopyIn,
            Role::Copy(CopyDirection::Out) => State::CopyOut,
            Role::Copy(CopyDirection::Device) => State::CopyDevice,
            Role::DeviceWait => State::DeviceWait,
        })
    }
}

/// The states of one track over time.
#[derive(Debug, Default)]
pub struct StateLine {
    /// Start of each state; it lasts until the next one starts.
    pub times: Vec<Time>,
    /// The states. The last is always [`State::Nothing`].
    pub states: Vec<Mask>,
}

impl StateLine {
    /// This line followed by one that starts after its end.
    fn then(mut self, later: StateLine) -> StateLine {
        if self.times.last() == later.times.first() {
            self.times.pop();
            self.states.pop();
        }
        self.times.extend_from_slice(&later.times);
        self.states.extend_from_slice(&later.states);
        self
    }

    /// Fills the pauses between launching calls, if a profiler recorded device calls but nothing of the
    /// framework that makes them. A launching loop has pauses of similar length between calls; a much longer
    /// pause is something else, and stays unknown.
    fn bridge_launches(&mut self) {
        const LEAST_CALLS: usize = 20;
        const LONG_PAUSE: i64 = 10;
        /// The pause between two launches is of the order of a launch: if most pauses are much longer, the loop
        /// does something else.
        const LONG_FOR_A_CALL: i64 = 20;
        let launch = Mask::of(State::Launch);
        // An annotation around the loop says nothing about what happens inside.
        let quiet = |state: Mask| state == Mask::default() || state == Mask::of(State::Present);
        let is_pause =
            |states: &[Mask], index: usize| quiet(states[index]) && index > 0 && index + 1 < states.len();
        let pauses = (0..self.states.len()).filter(|&index| is_pause(&self.states, index));
        let lengths: Vec<Dur> = pauses.map(|index| self.times[index + 1] - self.times[index]).collect();
        if lengths.len() < LEAST_CALLS || !self.states.contains(&launch) {
            return;
        }
        let calls = (0..self.states.len().saturating_sub(1)).filter(|&index| self.states[index] == launch);
        let call = median(calls.map(|index| self.times[index + 1] - self.times[index]));
        let usual = median(lengths.into_iter()).ps().saturating_mul(LONG_PAUSE);
        let longest = Dur::from_ps(usual.min(call.ps().saturating_mul(LONG_FOR_A_CALL)));
        for index in 1..self.states.len().saturating_sub(1) {
            let length = self.times[index + 1] - self.times[index];
            let between = self.states[index - 1] == launch || self.states[index + 1] == launch;
            if quiet(self.states[index]) && between && length <= longest {
                self.states[index] = launch;
            }
        }
    }

    /// What the track does at an instant.
    pub(crate) fn at(&self, at: Time) -> Mask {
        let after = self.times.partition_point(|time| *time <= at);
        after.checked_sub(1).and_then(|index| self.states.get(index)).copied().unwrap_or_default()
    }

    /// Whether the track is in one state for a whole span.
    pub(crate) fn all_in(&self, span: Span, state: State) -> bool {
        let after = self.times.partition_point(|time| *time <= span.start);
        self.at(span.start).has(state) && self.times.get(after).is_none_or(|next| *next >= span.end)
    }

    /// Overrides some spans, which are in time order and do not overlap, with one state.
    fn cover(&mut self, spans: &[Span], state: State) {
        if spans.is_empty() {
            return;
        }
        let old = std::mem::take(self);
        let mut changes = old.times.iter().copied().zip(old.states.iter().copied()).peekable();
        let mut current = Mask::default();
        for span in spans {
            while let Some((at, next)) = changes.next_if(|(at, _)| *at < span.start) {
                self.put(at, next);
                current = next;
            }
            self.put(span.start, Mask::of(state));
            while let Some((_, next)) = changes.next_if(|(at, _)| *at <= span.end) {
                current = next;
            }
            self.put(span.end, current);
        }
        changes.for_each(|(at, next)| self.put(at, next));
    }

    /// Adds a change at or after the last one.
    fn put(&mut self, at: Time, state: Mask) {
        if self.times.last().is_some_and(|last| *last == at) {
            self.times.pop();
            self.states.pop();
        }
        if self.states.last().copied().unwrap_or_default() != state {
            self.times.push(at);
            self.states.push(state);
        }
    }

    fn change(&mut self, at: Time, state: State) {
        let (state, nothing) = (Mask::of(state), Mask::default());
        match (self.times.last(), self.states.last()) {
            (Some(&last), Some(&current)) => {
                if current == state {
                    return;
                }
                if at <= last {
                    // A zero-length state is replaced by the newer one.
                    if let Some(slot) = self.states.last_mut() {
                        *slot = state;
                    }
                    let repeats = self.states.len() >= 2 && self.states[self.states.len() - 2] == state;
                    if repeats {
                        self.times.pop();
                        self.states.pop();
                    }
                    return;
                }
            }
            _ if state == nothing => return,
            _ => {}
        }
        self.times.push(at);
        self.states.push(state);
    }
}

/// The states of all tracks that do work.
#[derive(Debug)]
pub struct States {
    /// By track, in the trace's order.
    pub lines: Vec<(TrackId, StateLine)>,
    /// Whether any device did something. Then ops on the host only feed it.
    pub has_device: bool,
    /// Whether a device was working whose side was not recorded: the meaning of the host's waits is unknown
    /// then.
    pub device_unseen: bool,
}

impl States {
    /// Walks all tracks, on all cores.
    pub fn of(trace: &Trace, vocabulary: &Vocabulary) -> Self {
        let has_device = has_device_work(trace, vocabulary);
        let device_unseen = !has_device && uses_unseen_device(trace);
        let facts = Facts::of(trace, vocabulary, has_device || device_unseen);
        let lines = trace
            .tracks()
            .par_iter()
            .filter(|track| matches!(track.kind, TrackKind::Thread | TrackKind::Stream | TrackKind::Async))
            .filter(|track| !track.is_empty())
            .map(|track| (track.id, facts.line_of(track)))
            .filter(|(_, line)| !line.times.is_empty())
            .collect();
        States { lines, has_device, device_unseen }
    }
}

fn has_kind(trace: &Trace, wanted: impl Fn(KindId) -> bool) -> bool {
    (0..trace.kinds().len()).any(|index| wanted(KindId::from_index(index)))
}

fn has_device_work(trace: &Trace, vocabulary: &Vocabulary) -> bool {
    trace.tracks().iter().any(|track| {
        track.kind == TrackKind::Stream
            && trace.process(track.process).kind == ProcessKind::Device
            && track.kinds().iter().any(|&kind| {
                matches!(
                    vocabulary.role(kind),
                    Role::Kernel | Role::Collective | Role::Copy(_) | Role::Memset
                )
            })
    })
}

/// A GPU is listed, and calls of its runtime or allocator were recorded, but no work on it.
fn uses_unseen_device(trace: &Trace) -> bool {
    let listed =
        trace.devices().iter().any(|device| matches!(device.kind, DeviceKind::Gpu | DeviceKind::Tpu))
            || trace.processes().iter().any(|process| process.kind == ProcessKind::Device);
    (listed && uses_device_memory(trace)) || starts_any_kernel(trace) || has_device_ops(trace)
}

/// Facts about the whole trace that are needed before its tracks are walked.
struct Facts<'t> {
    trace: &'t Trace,
    vocabulary: &'t Vocabulary,
    has_device: bool,
    /// Numbers of graph runs that belong to the input pipeline.
    input_runs: HashSet<i64, FxBuildHasher>,
    /// True if device calls were recorded, but nothing of the framework that makes them.
    only_calls: bool,
    /// True if batches are fetched by eager ops, so that eager calls have to be examined.
    fetches_eagerly: bool,
    /// What eager ops do.
    activities: Kinds,
    /// By kind: whether it is a Python frame that may fetch a batch, by its name alone.
    fetching_frames: Vec<bool>,
    /// By kind: whether it is the model's work.
    model: Vec<bool>,
    id_key: Option<StrId>,
    call_key: Option<StrId>,
}

impl<'t> Facts<'t> {
    fn of(trace: &'t Trace, vocabulary: &'t Vocabulary, has_device: bool) -> Self {
        let id_key = trace.strings().find("id");
        let call_key = trace.strings().find("tf_function_call");
        let fetches_eagerly = has_kind(trace, |kind| {
            vocabulary.role(kind) == Role::InputWait
                && trace.kind_name(kind).starts_with("EagerLocalExecute: ")
        });
        let mut facts = Facts {
            trace,
            vocabulary,
            has_device,
            input_runs: HashSet::default(),
            only_calls: vocabulary.framework == Framework::Unknown,
            fetches_eagerly,
            activities: Kinds::of(trace, vocabulary),
            fetching_frames: fetching_frames(trace, vocabulary),
            model: Vec::new(),
            id_key,
            call_key,
        };
        facts.input_runs = facts.find_input_runs();
        if facts.fetching_frames.contains(&true) {
            facts.model = model_kinds(trace, vocabulary);
        }
        facts
    }

    fn find_input_runs(&self) -> HashSet<i64, FxBuildHasher> {
        let mut runs = HashSet::default();
        let used = self
            .trace
            .kinds()
            .iter()
            .enumerate()
            .any(|(index, _)| self.vocabulary.role(KindId::from_index(index)) == Role::InputFunction);
        let Some(key) = self.id_key.filter(|_| used) else { return runs };
        for track in self.trace.tracks() {
            for (index, &kind) in track.kinds().iter().enumerate() {
                if self.vocabulary.role(kind) == Role::InputFunction {
                    let id = self.trace.args_at(track, index).get(key);
                    runs.extend(id.and_then(|id| id.as_i64()));
                }
            }
        }
        runs
    }

    fn line_of(&self, track: &Track) -> StateLine {
        let lines: Vec<StateLine> = pieces(track, rayon::current_num_threads())
            .into_par_iter()
            .map(|piece| {
                let mut walk = Walk::new(self, track, piece.clone());
                piece.for_each(|index| walk.event(index));
                walk.finish()
            })
            .collect();
        let mut line = lines.into_iter().reduce(StateLine::then).unwrap_or_default();
        if runs_python(self.trace, self.vocabulary, track) {
            line.cover(&preparations(&self.activities, self.vocabulary, track), State::Output);
        }
        line
    }
}

struct Open {
    end: Time,
    state: State,
    /// Inside a call that traces its function: ops still count, the rest is tracing.
    traced_call: bool,
}

struct Walk<'f, 't> {
    facts: &'f Facts<'t>,
    track: &'t Track,
    on_device: bool,
    in_pipeline: bool,
    on_python: bool,
    /// Starts of compilations on this track, to identify calls that compile.
    compiles: Vec<Time>,
    /// Starts of the model's work on this track, to distinguish iterators that run the model from loaders.
    model: Vec<Time>,
    open: Vec<Open>,
    line: StateLine,
}

impl<'f, 't> Walk<'f, 't> {
    fn new(facts: &'f Facts<'t>, track: &'t Track, piece: Range<usize>) -> Self {
        let trace = facts.trace;
        let name = trace.str(track.name);
        let on_device = trace.process(track.process).kind == ProcessKind::Device;
        let compiles = piece
            .clone()
            .filter(|&index| facts.vocabulary.role(track.kind_of(index)) == Role::Compile)
            .map(|index| track.start(index))
            .collect();
        let fetches = track.kinds().iter().any(|kind| facts.fetching_frames[kind.index()]);
        let is_model = |index: &usize| facts.model[track.kind_of(*index).index()];
        let model = if fetches {
            piece.filter(is_model).map(|index| track.start(index)).collect()
        } else {
            Vec::new()
        };
        Walk {
            facts,
            track,
            on_device,
            in_pipeline: name.starts_with("tf_data_") && !name.starts_with("tf_data_iterator_get_next"),
            on_python: runs_python(trace, facts.vocabulary, track),
            compiles,
            model,
            open: Vec::new(),
            line: StateLine::default(),
        }
    }

    fn event(&mut self, index: usize) {
        let kind = self.track.kind_of(index);
        let vocabulary = self.facts.vocabulary;
        let role = if self.on_device { vocabulary.role(kind) } else { vocabulary.host_role(kind) };
        let dur = self.track.dur(index);
        // User annotations of device work do not say whether the device works.
        let ignored = role == Role::Bookkeeping || (self.on_device && role == Role::Annotation);
        if ignored || dur.is_zero() || self.facts.trace.kind(kind).form != Form::Slice {
            return;
        }
        let start = self.track.start(index);
        self.close_until(start);
        let (state, traced_call) = self.state_within(role, index);
        self.line.change(start, state);
        self.open.push(Open { end: start + dur, state, traced_call });
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
        if self.facts.only_calls && !self.on_device {
            self.line.bridge_launches();
        }
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
        if !self.facts.fetching_frames[self.track.kind_of(index).index()] {
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

/// Whether it is a user-defined range around a part of the program. Framework ops and steps are not.
pub(crate) fn is_range(trace: &Trace, vocabulary: &Vocabulary, kind: KindId) -> bool {
    let name = trace.kind_name(kind);
    match vocabulary.host_role(kind) {
        Role::Annotation => !name.contains("::") && !name.starts_with('#'),
        Role::Unknown => !name.contains("::") && !looks_like_a_type(name),
        Role::Op => trace.str(trace.kind(kind).category) == "cpu_op" && !names_torch_op(name),
        _ => false,
    }
}

/// Whether this thread runs the user's Python.
///
/// Not every system names its threads. Among unnamed threads, it is the one on which functions are called from
/// Python; frameworks name their own.
pub fn runs_python(trace: &Trace, vocabulary: &Vocabulary, track: &Track) -> bool {
    let name = trace.str(track.name);
    let from_python = |&kind: &KindId| {
        let role = vocabulary.role(kind);
        matches!(role, Role::FunctionCall | Role::PythonFrame | Role::StepMarker)
            || (role == Role::EagerCall && trace.kind_name(kind).starts_with("TFE_Py_"))
    };
    let nameless = name.bytes().all(|byte| byte.is_ascii_digit());
    is_python_thread(name) || (nameless && track.kinds().iter().any(from_python))
}

/// Python frames that look like loaders by name alone. PyTorch's own loader is one whatever runs inside it.
fn fetching_frames(trace: &Trace, vocabulary: &Vocabulary) -> Vec<bool> {
    let fetches = |kind: KindId| {
        let name = trace.kind_name(kind);
        vocabulary.role(kind) == Role::InputWait
            && is_python_frame(name, trace.str(trace.kind(kind).category))
            && !name.contains("utils/data/")
    };
    (0..trace.kinds().len()).map(KindId::from_index).map(fetches).collect()
}

/// The kinds that are the model's work: compiled functions and dense ops; if there are none, kernel launches.
/// Other ops and modules also prepare batches.
fn model_kinds(trace: &Trace, vocabulary: &Vocabulary) -> Vec<bool> {
    let kinds = || (0..trace.kinds().len()).map(KindId::from_index);
    let dense = |kind: KindId| match vocabulary.role(kind) {
        Role::FunctionCall => true,
        Role::Op => {
            let name = trace.kind_name(kind);
            is_dense(op_type(name).unwrap_or(name))
        }
        _ => false,
    };
    let found: Vec<bool> = kinds().map(dense).collect();
    if found.contains(&true) {
        return found;
    }
    kinds()
        .map(|kind| vocabulary.role(kind) == Role::Launch && starts_kernels(trace.kind_name(kind)))
        .collect()
}

/// Names of threads that run the user's Python.
fn is_python_thread(name: &str) -> bool {
    let name = name.rsplit('/').next_back().unwrap_or(name);
    name.starts_with("python")
        || name.starts_with("main")
        || name.starts_with("MainThread")
        || name.starts_with("thread ")
}

/// Whether a name looks like C++ instead of a user's range.
pub(crate) fn is_code(name: &str) -> bool {
    name.contains("::") || looks_like_a_type(name)
}

/// `CommonPjRtLoadedExecutable`, `BufferSequencingEvent`: camel case.
fn looks_like_a_type(name: &str) -> bool {
    let bytes = name.as_bytes();
    let capitals = bytes.iter().filter(|byte| byte.is_ascii_uppercase()).count();
    bytes.first().is_some_and(u8::is_ascii_uppercase)
        && capitals >= 2
        && bytes.iter().any(u8::is_ascii_lowercase)
        && !name.contains([' ', '_', '#'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{Kind, TraceBuilder};

    fn line(changes: &[(i64, State)]) -> Vec<(i64, Mask)> {
        let mut line = StateLine::default();
        changes.iter().for_each(|&(at, state)| line.change(Time::from_ps(at), state));
        line.times.iter().map(|time| time.ps()).zip(line.states).collect()
    }

    #[test]
    fn a_line_holds_only_changes() {
        use State::{Dispatch, HostCompute, Nothing};
        assert_eq!(
            line(&[
                (0, Nothing),
                (1, Dispatch),
                (2, Dispatch),
                (3, HostCompute),
                (3, Dispatch),
                (4, Nothing)
            ]),
            [(1, Mask::of(Dispatch)), (4, Mask::of(Nothing))]
        );
        let line = line(&[(1, Dispatch), (1, HostCompute), (2, Nothing)]);
        assert_eq!(line, [(1, Mask::of(HostCompute)), (2, Mask::of(Nothing))]);
    }

    #[test]
    fn kernels_that_overlap_on_their_stream_keep_it_busy_until_the_last_one_ends() {
        let mut builder = TraceBuilder::new();
        let [kernel, block] = ["gemm", "block"].map(|name| builder.strings.intern(name));
        let category = builder.strings.intern("gpu_user_annotation");
        let kernel = builder.kind(Kind::slice(kernel));
        let block = builder.kind(Kind { category, ..Kind::slice(block) });
        let name = builder.strings.intern("stream 7");
        let process = builder.process(name, ProcessKind::Device, 0);
        let track = builder.track(process, name, TrackKind::Stream, 7, TraceBuilder::ARENA);
        let mut add = |start, end, kind| {
            builder.event(track, Time::from_ps(start), Dur::from_ps(end - start), kind, None);
        };
        // The second begins before the first has ended, as programmatic dependent launches do.
        add(0, 1_000, block);
        add(100, 200, kernel);
        add(195, 600, block);
        add(195, 500, kernel);
        add(700, 800, kernel);
        let trace = builder.finish();
        let states = States::of(&trace, &Vocabulary::of(&trace));
        let [(_, line)] = &states.lines[..] else { panic!("one line") };
        let times: Vec<i64> = line.times.iter().map(|time| time.ps()).collect();
        assert_eq!(times, [100, 500, 700, 800]);
    }

    #[test]
    fn what_covers_a_line_leaves_the_rest_as_it_was() {
        use State::{Dispatch, HostCompute, Nothing, Output};
        let mut line = StateLine::default();
        for (at, state) in [(0, Dispatch), (10, HostCompute), (20, Dispatch), (30, Nothing)] {
            line.change(Time::from_ps(at), state);
        }
        line.cover(&[Span::new(Time::from_ps(5), Time::from_ps(15))], Output);
        let found: Vec<(i64, Mask)> = line.times.iter().map(|time| time.ps()).zip(line.states).collect();
        let want = [(0, Dispatch), (5, Output), (15, HostCompute), (20, Dispatch), (30, Nothing)];
        assert_eq!(found, want.map(|(at, state)| (at, Mask::of(state))));
    }

    #[test]
    fn short_pauses_between_launches_are_launching_and_long_ones_are_not() {
        let mut line = StateLine::default();
        let mut at = 0;
        for call in 0..40 {
            line.change(Time::from_ps(at), State::Launch);
            line.change(Time::from_ps(at + 5), State::Nothing);
            at += if call == 20 { 10_000 } else { 20 };
        }
        line.bridge_launches();
        let quiet = |index: usize| line.states[index] == Mask::default();
        let pauses: Vec<usize> = (0..line.states.len() - 1).filter(|&index| quiet(index)).collect();
        assert_eq!(pauses, [41], "only the long pause stays");
    }

    #[test]
    fn pauses_that_are_all_long_are_something_else() {
        let mut line = StateLine::default();
        for call in 0..40 {
            line.change(Time::from_ps(call * 1_000), State::Launch);
            line.change(Time::from_ps(call * 1_000 + 5), State::Present);
        }
        let before = line.states.clone();
        line.bridge_launches();
        assert_eq!(line.states, before);
    }

    #[test]
    fn an_iterator_that_runs_the_model_is_no_wait_and_the_loader_inside_it_is() {
        let mut sketch = crate::sketch::Sketch::new();
        let thread = sketch.thread("thread 1 (python)");
        let mut frame = |name: &str, start: i64, dur: i64| {
            sketch.event_of(thread, "python_function", name, start, dur, &[]);
        };
        frame("pipelines/base.py(10): __next__", 0, 100);
        frame("data.py(7): __next__", 10, 30);
        frame("model.py(9): forward", 50, 40);
        sketch.event_of(thread, "cpu_op", "aten::addmm", 60, 20, &[]);
        let trace = sketch.finish();
        let states = States::of(&trace, &Vocabulary::of(&trace));
        let line = &states.lines[0].1;
        let at = |us: i64| line.at(Time::from_ns(us * 1_000));
        assert_eq!(at(5), Mask::of(State::Present));
        assert_eq!(at(20), Mask::of(State::InputWait));
        assert_eq!(at(70), Mask::of(State::HostCompute));
        assert_eq!(at(95), Mask::of(State::Present));
    }

    #[test]
    fn collectives_of_processors_are_communication() {
        let mut sketch = crate::sketch::Sketch::new();
        let thread = sketch.thread("tf_XLAPjRtCpuClient/1");
        let hlo = || [("hlo_op", crate::sketch::Arg::Text("psum.14"))];
        sketch.event(thread, "psum.14", 0, 100, &hlo());
        sketch.event(thread, "Rendezvous", 10, 50, &[]);
        let trace = sketch.finish();
        let states = States::of(&trace, &Vocabulary::of(&trace));
        let line = &states.lines[0].1;
        assert_eq!(line.states, [Mask::of(State::Communication), Mask::default()]);
    }

    #[test]
    fn types_are_told_from_phrases() {
        assert!(looks_like_a_type("BufferSequencingEvent"));
        assert!(!looks_like_a_type("Handle inputs"));
        assert!(!looks_like_a_type("load_batch"));
        assert!(!looks_like_a_type("Evaluate"));
    }
}
