//! One pass over a track with a stack of open events: from events to states.

use std::ops::Range;
use std::sync::OnceLock;

use hashbrown::HashSet;
use rayon::prelude::*;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Form, KindId, KindSet, ProcessKind, Span, StrId, Time, Trace, Track};

use super::activities::{Does, Kinds};
use super::launches::waits_for_copy;
use super::line::Joining;
use super::loaders::{fetching_frames, is_queue_frame, loop_kinds, model_kinds};
use super::lock_waits::LockWaits;
use super::output::preparations;
use super::read_out::read_out;
use super::remote::RemoteCalls;
use super::track_chunks::chunks;
use super::{State, StateLine, has_kind, is_code, runs_python};
use crate::vocabulary::names::concrete_function;
use crate::vocabulary::{Framework, Role, Vocabulary, awaits_results, op_type};

/// Number of events that are walked together: few enough that their states are still in the core's own cache when they are
/// appended to those before them.
const EVENTS_PER_WALK: usize = 1 << 17;

/// Facts about the whole trace that are needed before its tracks are walked.
pub(super) struct Facts<'t> {
    trace: &'t Trace,
    vocabulary: &'t Vocabulary,
    pub(super) has_device: bool,
    /// What its kinds do on each sort of track that it has, by [`Place::number`].
    known: [OnceLock<Vec<Option<Known>>>; Place::NUMBERS],
    /// Numbers of graph runs that belong to the input pipeline.
    pub(super) input_runs: HashSet<i64, FxBuildHasher>,
    /// True if device calls were recorded, but nothing of the framework that makes them.
    only_calls: bool,
    /// True if batches are fetched by eager ops, so that eager calls have to be examined.
    fetches_eagerly: bool,
    /// Calls of eager ops that another process may run.
    remote: RemoteCalls,
    /// Waits for the interpreter lock.
    lock: Option<LockWaits>,
    /// What eager ops do.
    activities: Kinds,
    /// Those that write something.
    writes: KindSet,
    /// Those that read variables.
    reads: KindSet,
    /// Python frames that may fetch a batch, by their names alone.
    fetching_frames: KindSet,
    /// Python frames that take the next item from a queue between threads or processes.
    queue_frames: KindSet,
    /// Python frames that wait for results of a runtime that works on this host: what it does shows on its own threads, and
    /// the rest is its overhead. Empty if there is a device.
    awaiting: KindSet,
    /// Calls of compiled functions and markers of steps: a thread with these runs the loop. Empty unless such frames
    /// exist.
    looping: KindSet,
    /// Python frames of context managers, which also call `next`; empty unless such frames exist.
    context_managers: KindSet,
    /// The model's work; empty unless such frames exist.
    model: KindSet,
    /// Markers and the model's work, if a thread that runs Python has them: what other threads fetch, they fetch ahead.
    of_the_loop: KindSet,
    compiles: KindSet,
    /// Ops that are whole functions, which XLA may compile first; empty unless something was compiled.
    whole_functions: KindSet,
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
        let activities = Kinds::of(trace, vocabulary);
        let mut facts = Facts {
            trace,
            vocabulary,
            has_device,
            known: [const { OnceLock::new() }; Place::NUMBERS],
            input_runs: HashSet::default(),
            only_calls: vocabulary.framework == Framework::Unknown,
            fetches_eagerly,
            remote: RemoteCalls::of(trace),
            lock: LockWaits::of(trace, vocabulary),
            writes: activities.that_do(Does::WRITES),
            reads: activities.that_do(Does::READS),
            activities,
            fetching_frames: fetching_frames(trace, vocabulary),
            queue_frames: trace.kinds_where(|kind| is_queue_frame(trace.kind_name(kind))),
            awaiting: KindSet::default(),
            looping: KindSet::default(),
            context_managers: KindSet::default(),
            model: KindSet::default(),
            of_the_loop: KindSet::default(),
            compiles: trace.kinds_where(|kind| vocabulary.role(kind) == Role::Compile),
            whole_functions: KindSet::default(),
            id_key,
            call_key,
        };
        facts.input_runs = facts.find_input_runs();
        if !has_device {
            facts.awaiting = trace.kinds_where(|kind| awaits_results(trace.kind_name(kind)));
        }
        if !facts.compiles.is_empty() {
            facts.whole_functions = trace.kinds_where(|kind| {
                vocabulary.role(kind) == Role::Op
                    && op_type(trace.kind_name(kind)).is_some_and(|op| concrete_function(op).is_some())
            });
        }
        if !facts.queue_frames.is_empty() {
            facts.looping = trace
                .kinds_where(|kind| matches!(vocabulary.role(kind), Role::FunctionCall | Role::StepMarker));
        }
        if !facts.fetching_frames.is_empty() {
            facts.model = model_kinds(trace, vocabulary);
            facts.of_the_loop = loop_kinds(trace, vocabulary, &facts.model);
            facts.context_managers =
                trace.kinds_where(|kind| trace.kind_name(kind).contains("contextlib.py"));
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
        let place = Place::of(self.trace, self.vocabulary, track);
        let wanted = (track.len() / EVENTS_PER_WALK).max(rayon::current_num_threads());
        let pieces = chunks(track, wanted);
        let walk = |piece: Range<usize>, line: StateLine| {
            let mut walk = Walk::new(self, track, place, piece.clone(), line);
            piece.for_each(|index| walk.event(index));
            walk.finish()
        };
        let mut line = if let [only] = &pieces[..] {
            let mut line = walk(only.clone(), StateLine::default());
            line.shrink();
            line
        } else {
            // In order, so that what is walked can be appended at once and its memory be used again.
            let joining = Joining::new(track.len());
            let pieces = pieces.into_iter().enumerate().par_bridge();
            pieces.for_each_init(StateLine::default, |line, (number, piece)| {
                *line = walk(piece, std::mem::take(line));
                joining.add(number, line);
            });
            joining.finish()
        };
        if self.only_calls && !place.on_device {
            line.bridge_launches();
        }
        if let Some(lock) = self.lock.as_ref().filter(|_| place.on_python) {
            line.cover(&lock.on(track), if lock.by_input { State::InputWait } else { State::Present });
        }
        if place.on_python && track.has_any(&self.writes) {
            line.cover(&preparations(&self.activities, self.vocabulary, track), State::Output);
        }
        if place.on_python && track.has_any(&self.reads) {
            let all = read_out(&self.activities, self.vocabulary, track);
            line.cover(&all.iter().map(|read| read.span).collect::<Vec<_>>(), State::Output);
        }
        line
    }

    /// What the kinds do on a track in this place.
    fn known(&self, place: Place) -> &[Option<Known>] {
        self.known[place.number()].get_or_init(|| {
            let kinds = (0..self.trace.kinds().len()).map(KindId::from_index);
            kinds.map(|kind| self.known_of(kind, place)).collect()
        })
    }

    fn known_of(&self, kind: KindId, place: Place) -> Option<Known> {
        if self.trace.kind(kind).form != Form::Slice {
            return None;
        }
        let role = if place.on_device { self.vocabulary.role(kind) } else { self.vocabulary.host_role(kind) };
        match role {
            Role::Bookkeeping => return None,
            // User annotations of device work do not say whether the device works.
            Role::Annotation if place.on_device => return None,
            _ => {}
        }
        Some(Known { role, own: self.own_state(kind, role, place) })
    }

    /// What an event of this kind does by itself; `None` if that differs from event to event.
    fn own_state(&self, kind: KindId, role: Role, place: Place) -> Option<State> {
        let usual = State::of_role(role, self.has_device).unwrap_or(State::Present);
        let differs = match role {
            Role::FunctionCall => self.call_key.is_some() || !self.compiles.is_empty(),
            Role::EagerCall => self.fetches_eagerly || self.remote.may_be(kind),
            Role::EagerKernel | Role::LaunchCopy => true,
            Role::ExecutorRun => !self.input_runs.is_empty(),
            Role::InputWait => !place.in_pipeline && self.fetching_frames.has(kind),
            Role::PythonFrame => self.queue_frames.has(kind),
            _ => false,
        };
        let state = match role {
            Role::Unknown => self.unknown(kind, place),
            Role::PythonFrame if self.awaiting.has(kind) => State::Dispatch,
            Role::InputWait if place.in_pipeline => State::InputWork,
            _ => place.pipeline_or(role, usual),
        };
        (!differs).then_some(state)
    }

    /// On a Python thread an unknown name is most likely the user's own annotation, unless it looks like C++. Elsewhere it is
    /// the framework's.
    fn unknown(&self, kind: KindId, place: Place) -> State {
        if place.on_device {
            return State::DeviceCompute;
        }
        // Where no framework is known, nobody knows whose overhead it would be.
        let foreign = self.vocabulary.framework == Framework::Unknown;
        let annotates = foreign || (place.on_python && !is_code(self.trace.kind_name(kind)));
        if annotates { State::Present } else { place.pipeline_or(Role::Framework, State::Dispatch) }
    }
}

/// What is known about a kind on a sort of track. Looked up for every event; the rest is asked only where it matters.
#[derive(Copy, Clone)]
struct Known {
    role: Role,
    /// What its events do by themselves; `None` if that differs from event to event.
    own: Option<State>,
}

/// The sort of a track, as far as it matters for what its events do.
#[derive(Copy, Clone)]
struct Place {
    on_device: bool,
    in_pipeline: bool,
    on_python: bool,
}

impl Place {
    const NUMBERS: usize = 8;

    fn of(trace: &Trace, vocabulary: &Vocabulary, track: &Track) -> Self {
        let name = trace.str(track.name);
        Place {
            on_device: trace.process(track.process).kind == ProcessKind::Device,
            in_pipeline: is_pipeline_thread(name),
            on_python: runs_python(trace, vocabulary, track),
        }
    }

    fn number(self) -> usize {
        usize::from(self.on_device) | usize::from(self.in_pipeline) << 1 | usize::from(self.on_python) << 2
    }

    /// Ops and calls on a thread of the input pipeline belong to the pipeline.
    fn pipeline_or(self, role: Role, state: State) -> State {
        let calls = matches!(
            role,
            Role::FunctionCall
                | Role::Framework
                | Role::EagerCall
                | Role::Op
                | Role::EagerKernel
                | Role::ExecutorRun
        );
        if self.in_pipeline && calls { State::InputWork } else { state }
    }
}

struct OpenEvent {
    end: Time,
    kind: KindId,
    state: State,
    /// Inside a call that traces its function: ops still count, the rest is tracing.
    traced_call: bool,
}

struct Walk<'f, 't> {
    facts: &'f Facts<'t>,
    track: &'t Track,
    place: Place,
    known: &'f [Option<Known>],
    /// Compilations on this track, outermost only, to identify calls that compile.
    compiles: Vec<Span>,
    /// Starts of the model's work on this track, to distinguish iterators that run the model from loaders.
    model: Vec<Time>,
    /// Whether the training loop runs here. Any other thread may wait for its queue as long as it likes.
    loops: bool,
    /// Whether another thread runs the loop, and this one only prepares its batches.
    feeds: bool,
    open: Vec<OpenEvent>,
    line: StateLine,
}

impl<'f, 't> Walk<'f, 't> {
    fn new(
        facts: &'f Facts<'t>,
        track: &'t Track,
        place: Place,
        piece: Range<usize>,
        line: StateLine,
    ) -> Self {
        let starts_of = |kinds| track.events_in(piece.clone(), kinds).map(|(index, _)| track.start(index));
        let mut compiles: Vec<Span> = Vec::new();
        for (index, _) in track.events_in(piece.clone(), &facts.compiles) {
            let span = track.span_of(index);
            if compiles.last().is_none_or(|last| last.end <= span.start) {
                compiles.push(span);
            }
        }
        let fetches = track.has_any(&facts.fetching_frames);
        let model = if fetches { starts_of(&facts.model).collect() } else { Vec::new() };
        let known = facts.known(place);
        let loops = track.has_any(&facts.looping);
        let feeds = fetches && !facts.of_the_loop.is_empty() && !track.has_any(&facts.of_the_loop);
        Walk { facts, track, place, known, compiles, model, loops, feeds, open: Vec::new(), line }
    }

    fn event(&mut self, index: usize) {
        let kind = self.track.kind_of(index);
        let Some(known) = self.known[kind.index()] else { return };
        let dur = self.track.dur(index);
        if dur.is_zero() {
            return;
        }
        let start = self.track.start(index);
        self.close_until(start);
        let (state, traced_call) = self.state_within(known, index);
        self.line.change(start, state);
        self.open.push(OpenEvent { end: start + dur, kind, state, traced_call });
        if matches!(state, State::HostCompute | State::Dispatch)
            && self.facts.whole_functions.has(kind)
            && let Some(end) = self.compiled_until(Span::new(start, start + dur))
        {
            self.line.change(start, State::Compile);
            self.open.push(OpenEvent { end, kind, state: State::Compile, traced_call: false });
        }
    }

    /// The end of the last compilation inside; the function's program is translated and compiled until then.
    fn compiled_until(&self, span: Span) -> Option<Time> {
        let last = self.compiles.partition_point(|compile| compile.start < span.end).checked_sub(1)?;
        let compile = self.compiles[last];
        (compile.start >= span.start).then_some(compile.end.min(span.end))
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
        self.line
    }

    /// The state of an event, given what encloses it.
    fn state_within(&self, Known { role, own }: Known, index: usize) -> (State, bool) {
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
        match own.unwrap_or_else(|| self.own_state(role, index)) {
            // Annotations do not change what a thread is doing.
            State::Present if outer != State::Nothing => (outer, false),
            own => (own, own == State::Tracing && role == Role::FunctionCall),
        }
    }

    /// What an event does by itself, if that does not follow from its kind alone.
    fn own_state(&self, role: Role, index: usize) -> State {
        match role {
            Role::FunctionCall if self.traces(index) => State::Tracing,
            Role::EagerCall if self.fetches_input(index) => State::InputWait,
            Role::EagerCall if self.facts.remote.runs_elsewhere(self.track, index) => State::Communication,
            Role::EagerKernel if self.runs_function(index) => self.place.pipeline_or(role, State::Dispatch),
            Role::ExecutorRun if self.is_input_run(index) => State::InputWork,
            // Generators that run the model return results; what they load is visible inside them.
            Role::InputWait if self.runs_model(index) || self.enters_context() => State::Present,
            Role::InputWait if self.feeds => State::InputWork,
            Role::PythonFrame if self.loops => State::InputWait,
            Role::LaunchCopy if self.blocks(index) => State::Sync,
            _ => {
                let usual = State::of_role(role, self.facts.has_device).unwrap_or(State::Present);
                self.place.pipeline_or(role, usual)
            }
        }
    }

    /// A copy call that waits until the copy is done.
    fn blocks(&self, index: usize) -> bool {
        waits_for_copy(self.facts.trace.kind_name(self.track.kind_of(index)), self.track.dur(index))
    }

    /// Whether this call traces or compiles its function first.
    fn traces(&self, index: usize) -> bool {
        let args = self.facts.trace.args_at(self.track, index);
        let how = self.facts.call_key.and_then(|key| args.get(key));
        if let Some(how) = how.as_ref().and_then(|how| how.as_str()) {
            return how.starts_with("traced");
        }
        let span = self.track.span_of(index);
        let first = self.compiles.partition_point(|compile| compile.start < span.start);
        self.compiles.get(first).is_some_and(|compile| compile.start < span.end)
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

    /// Whether the innermost open event is a context manager that is being entered or left: it is a generator too.
    fn enters_context(&self) -> bool {
        self.open.last().is_some_and(|open| self.facts.context_managers.has(open.kind))
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

/// Whether a thread belongs to the input pipeline. Those that hand out batches do not: the step waits there.
pub(crate) fn is_pipeline_thread(name: &str) -> bool {
    name.starts_with("tf_data_") && !name.starts_with("tf_data_iterator_get_next")
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use crate::breakdown::Category;
    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};

    /// The time of a category in four steps of a millisecond with these events on their thread.
    fn owned(category: Category, events: &[(&str, i64, i64)]) -> Dur {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        for step in 0..4 {
            sketch.event(thread, "train", 1_000 * step, 1_000, &[("step_num", Arg::Int(step))]);
            let call = [("tf_function_call", Arg::Text("notTraced-xla"))];
            sketch.event(thread, "f", 1_000 * step, 950, &call);
            for &(name, at, length) in events {
                sketch.event(thread, name, 1_000 * step + at, length, &[]);
            }
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        context.breakdown().counted().map(|(_, step)| step.shares.get(category)).sum()
    }

    #[test]
    fn a_function_is_translated_before_and_between_its_compilations() {
        let events = [
            ("__inference_f_27:__inference_f_27", 50, 850),
            ("HLO passes through layout assignment", 100, 200),
            ("CpuCompiler::RunBackend", 400, 300),
            ("Codegen", 450, 200),
        ];
        assert_eq!(owned(Category::Compile, &events), Dur::from_us(4 * 650));
        assert_eq!(owned(Category::Compute, &events), Dur::from_us(4 * 200), "it runs after that");
        assert_eq!(owned(Category::Compile, &events[..1]), Dur::ZERO, "compiled before");
    }

    #[test]
    fn a_context_manager_fetches_no_batch() {
        let entered = [("$contextlib.py:132 __enter__", 955, 40), ("$builtins next", 960, 30)];
        assert_eq!(owned(Category::Input, &entered), Dur::ZERO);
        assert_eq!(owned(Category::Input, &entered[1..]), Dur::from_us(4 * 30));
    }

    #[test]
    fn the_loop_waits_for_input_in_a_queue_and_other_threads_do_not() {
        assert_eq!(owned(Category::Input, &[("$queue.py:154 get", 955, 40)]), Dur::from_us(4 * 40));
        let mut sketch = Sketch::new();
        let (loops, writer) = (sketch.thread("python"), sketch.thread("writer"));
        for step in 0..4 {
            sketch.event(loops, "train", 1_000 * step, 1_000, &[("step_num", Arg::Int(step))]);
            sketch.event(loops, "$train.py:7 log", 1_000 * step, 900, &[]);
            sketch.event(writer, "$queue.py:154 get", 1_000 * step, 1_000, &[]);
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        assert!(context.breakdown().counted().all(|(_, step)| step.shares.get(Category::Input).is_zero()));
    }

    #[test]
    fn waiting_for_results_of_the_host_is_not_python() {
        let waits = [("$api.py:2479 block_until_ready", 955, 40), ("$tree_util.py:101 tree_leaves", 960, 10)];
        assert_eq!(owned(Category::Dispatch, &waits), Dur::from_us(4 * (950 + 40)));
        assert_eq!(owned(Category::Dispatch, &waits[1..]), Dur::from_us(4 * 950));
    }

    #[test]
    fn a_copy_to_a_device_that_is_the_processor_is_a_transfer() {
        assert_eq!(owned(Category::TransferIn, &[("H2D Dispatch", 955, 40)]), Dur::from_us(4 * 40));
    }
}
