//! The user's own Python, if a Python tracer ran: which lines the step time was spent in.
//!
//! A tracer records every call, including libraries and builtins. Library code runs on behalf of the user's
//! code, so the Python time below a user's frame is that frame's *own* time until the next user frame; time in
//! which the framework works (ops, compilers, waiting for a device) is not counted.
//!
//! Without a tracer, ranges that the user put around parts of the loop take the place of frames.

mod elsewhere;
mod sums;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{
    Dur, Form, KindId, LIBRARY_SAMPLE, ProcessKind, Span, Time, Trace, Track, TrackKind, USER_SAMPLE,
};

use crate::context::Context;
use crate::states::{State, StateLine, is_range};
use crate::vocabulary::{Role, is_python_frame, takes_from_queue};
use elsewhere::Elsewhere;
use sums::{Sums, Wait};

/// A line of the user's code.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonFrame {
    /// The file as recorded, often without its folder.
    pub file: String,
    /// The line where the function starts.
    pub line: Option<u32>,
    /// The function.
    pub function: String,
    /// Number of calls within the steps.
    pub calls: u64,
    /// Time from start to end within the steps, in milliseconds.
    pub inclusive_ms: f64,
    /// Time in Python outside the user's other frames, in milliseconds.
    pub own_ms: f64,
    /// The call of a library that takes most of its own time, with its milliseconds.
    pub through: Option<(String, f64)>,
}

/// The user's code, most own time first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PythonFrames {
    /// True if a Python tracer ran.
    pub traced: bool,
    /// The user's ranges with the most own time, if no tracer ran; at most [`MOST_FRAMES`].
    pub ranges: Vec<PythonFrame>,
    /// The frames with the most own time; at most [`MOST_FRAMES`].
    pub frames: Vec<PythonFrame>,
    /// Total time in Python below the user's frames, in milliseconds.
    pub own_ms: f64,
    /// Number of steps; 0 for the whole capture.
    pub steps: usize,
    /// The functions in which the loop waits for its batch, innermost of those with most of the wait first,
    /// with their inclusive time in the wait. Callers that wait for nothing else are not listed.
    pub waiting: Vec<PythonFrame>,
    /// Functions that ran in threads of which only samples are known, most own time first; calls are not counted.
    pub elsewhere: Vec<PythonFrame>,
}

/// File, line and function.
type Place = (String, Option<u32>, String);

/// Maximum number of frames in a result.
pub const MOST_FRAMES: usize = 50;

/// The frames of one host.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct PythonPartial {
    traced: bool,
    steps: usize,
    #[serde(with = "crate::stored::sorted")]
    frames: HashMap<Place, Sums, FxBuildHasher>,
    /// The library call that takes most of a frame's own time, by frame.
    #[serde(default, with = "crate::stored::sorted")]
    through: HashMap<Place, (String, Dur), FxBuildHasher>,
    /// The time of user and library frames in the waits for input.
    #[serde(with = "crate::stored::sorted")]
    waiting: HashMap<Place, Wait, FxBuildHasher>,
    /// The total of these waits.
    waited: Dur,
    /// The time of user frames in threads of which only samples are known.
    #[serde(default, with = "crate::stored::sorted")]
    elsewhere: Elsewhere,
}

impl PythonPartial {
    /// One pass over the threads with frames; nothing if no tracer ran and there are no ranges.
    pub fn of(context: &Context) -> Self {
        let kinds = || (0..context.trace.kinds().len()).map(KindId::from_index);
        let mut frames: Vec<Option<Frame>> = kinds().map(|kind| frame_of(context.trace, kind)).collect();
        let traced = frames.iter().any(Option::is_some);
        if !traced {
            frames = kinds().map(|kind| range_of(context, kind)).collect();
        }
        if frames.iter().all(Option::is_none) {
            return PythonPartial::default();
        }
        Self::walked(context, frames, traced)
    }

    fn walked(context: &Context, frames: Vec<Option<Frame>>, traced: bool) -> Self {
        let trace = context.trace;
        let breakdown = context.breakdown();
        let windows = Windows::new(breakdown.counted().map(|(step, _)| step.span));
        let has_frames = |track: &Track| track.kinds().iter().any(|kind| frames[kind.index()].is_some());
        // Work of other threads, such as a progress bar's, is not part of the step time.
        let steps_track =
            context.steps().track.filter(|_| context.steps().on_host && !breakdown.steps.whole_capture);
        let steps_track = steps_track.filter(|&track| has_frames(trace.track(track)));
        let mut sums = vec![Sums::default(); frames.len()];
        let (mut waits, mut waited) = (vec![Wait::default(); frames.len()], Dur::ZERO);
        let mut through: HashMap<(KindId, KindId), Dur, FxBuildHasher> = HashMap::default();
        for track in trace.tracks() {
            let host = trace.process(track.process).kind != ProcessKind::Device;
            let meant = steps_track.is_none_or(|steps_track| steps_track == track.id);
            if host && meant && track.kind == TrackKind::Thread && has_frames(track) {
                Walk {
                    context,
                    track,
                    frames: &frames,
                    windows: &windows,
                    traced,
                    in_steps: !breakdown.steps.whole_capture,
                    sums: &mut sums,
                    waits: &mut waits,
                    waited: &mut waited,
                    through: &mut through,
                    line: context.states().lines.iter().find(|(id, _)| *id == track.id).map(|(_, line)| line),
                    open: Vec::new(),
                }
                .run();
            }
        }
        let mut partial = PythonPartial {
            traced,
            steps: if breakdown.steps.whole_capture { 0 } else { breakdown.counted().count() },
            waited,
            elsewhere: elsewhere::elsewhere(context, &frames, &windows),
            ..PythonPartial::default()
        };
        for (frame, wait) in frames.iter().flatten().zip(waits_of(&frames, waits)) {
            let named = !is_plumbing(&frame.file) || takes_from_queue(&frame.file, &frame.function);
            let meant = !traced || (frame.line.is_some() && named);
            if wait.calls > 0 && meant {
                let key = (frame.file.clone(), frame.line, frame.function.clone());
                partial.add_wait(key, Wait { user: frame.user, ..wait });
            }
        }
        // A built-in method of another object is the same call.
        let mut calls: HashMap<(Place, String), Dur, FxBuildHasher> = HashMap::default();
        for ((owner, call), time) in through {
            if let [Some(owner), Some(call)] = [owner, call].map(|kind| frames[kind.index()].as_ref()) {
                *calls.entry((owner.key(), call.place())).or_default() += time;
            }
        }
        calls.into_iter().for_each(|((owner, call), time)| partial.add_through(owner, (call, time)));
        for (frame, sums) in frames.into_iter().zip(sums) {
            if let Some(Frame { file, line, function, user: true }) = frame
                && sums.calls > 0
            {
                partial.add((file, line, function), sums);
            }
        }
        partial
    }

    fn add(&mut self, key: Place, sums: Sums) {
        let all = self.frames.entry(key).or_default();
        all.calls += sums.calls;
        all.inclusive += sums.inclusive;
        all.own += sums.own;
    }

    /// Of several calls, the longest stays; of equal ones, the first by name.
    fn add_through(&mut self, key: Place, call: (String, Dur)) {
        let longest = self.through.entry(key).or_insert_with(|| call.clone());
        if (call.1, &longest.0) > (longest.1, &call.0) {
            *longest = call;
        }
    }

    fn add_wait(&mut self, key: Place, wait: Wait) {
        let all = self.waiting.entry(key).or_default();
        all.calls += wait.calls;
        all.inclusive += wait.inclusive;
        all.user |= wait.user;
    }

    /// Adds another host.
    pub fn merge(&mut self, other: PythonPartial) {
        self.traced |= other.traced;
        self.steps += other.steps;
        self.waited += other.waited;
        other.elsewhere.into_iter().for_each(|(key, own)| *self.elsewhere.entry(key).or_default() += own);
        other.waiting.into_iter().for_each(|(key, wait)| self.add_wait(key, wait));
        other.frames.into_iter().for_each(|(key, sums)| self.add(key, sums));
        other.through.into_iter().for_each(|(key, call)| self.add_through(key, call));
    }

    /// The result.
    pub fn finish(mut self) -> PythonFrames {
        let waiting = culprits(self.waiting, self.waited);
        let elsewhere = elsewhere::finish(self.elsewhere);
        let own_ms = self.frames.values().map(|sums| sums.own).sum::<Dur>().ms();
        let mut frames: Vec<PythonFrame> = self
            .frames
            .into_iter()
            .map(|(key, sums)| {
                let through = self.through.remove(&key).map(|(call, time)| (call, time.ms()));
                let (file, line, function) = key;
                let (inclusive_ms, own_ms) = (sums.inclusive.ms(), sums.own.ms());
                PythonFrame { file, line, function, calls: sums.calls, inclusive_ms, own_ms, through }
            })
            .collect();
        frames.sort_by(|a, b| {
            b.own_ms.total_cmp(&a.own_ms).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
        });
        frames.truncate(MOST_FRAMES);
        let (frames, ranges) = if self.traced { (frames, Vec::new()) } else { (Vec::new(), frames) };
        PythonFrames { traced: self.traced, ranges, frames, own_ms, steps: self.steps, waiting, elsewhere }
    }
}

/// The waits of the kinds that are frames.
fn waits_of(frames: &[Option<Frame>], waits: Vec<Wait>) -> impl Iterator<Item = Wait> {
    frames.iter().zip(waits).filter(|(frame, _)| frame.is_some()).map(|(_, wait)| wait)
}

/// A function with this share of the wait may be what the loop waits for …
const MOST_OF_WAIT: f64 = 0.5;
/// … and one with this share is worth naming with it.
const SOME_OF_WAIT: f64 = 0.1;

/// The innermost of the user's functions with most of the wait, or of a library's if the user has none inside;
/// then what takes most of the rest of its time.
fn culprits(waiting: HashMap<Place, Wait, FxBuildHasher>, waited: Dur) -> Vec<PythonFrame> {
    let mut all: Vec<_> = waiting.into_iter().collect();
    // The innermost has the least time; ties are broken by location, so that the result is stable.
    all.sort_by(|(a, left), (b, right)| left.inclusive.cmp(&right.inclusive).then_with(|| a.cmp(b)));
    let most = |wait: &Wait| wait.inclusive.fraction_of(waited) >= MOST_OF_WAIT;
    let first = all
        .iter()
        .find(|(_, wait)| wait.user && most(wait))
        .or_else(|| all.iter().find(|(_, wait)| most(wait)));
    let Some(bound) = first.map(|(_, wait)| wait.inclusive) else { return Vec::new() };
    let first = first.cloned();
    let rest = all
        .into_iter()
        .rev()
        .filter(|(_, wait)| wait.inclusive < bound && wait.inclusive.fraction_of(waited) >= SOME_OF_WAIT);
    let frame = |((file, line, function), wait): (Place, Wait)| PythonFrame {
        file,
        line,
        function,
        calls: wait.calls,
        inclusive_ms: wait.inclusive.ms(),
        own_ms: wait.inclusive.ms(),
        through: None,
    };
    first.into_iter().chain(rest).map(frame).take(MOST_FRAMES).collect()
}

/// A parsed frame name.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    file: String,
    line: Option<u32>,
    function: String,
    user: bool,
}

impl Frame {
    /// XLA's tracer writes `$file.py:12 f`, Kineto's `folder/file.py(12): f`.
    fn of(name: &str) -> Frame {
        let (place, function) = match name.strip_prefix('$') {
            Some(name) => name.split_once(' ').unwrap_or((name, "")),
            None => name.split_once("): ").unwrap_or((name, "")),
        };
        let (file, line) = place
            .rsplit_once([':', '('])
            .and_then(|(file, line)| Some((file, line.parse().ok()?)))
            .map_or((place, None), |(file, line)| (file, Some(line)));
        let user = line.is_some() && is_users(file);
        Frame { file: file.to_owned(), line, function: function.to_owned(), user }
    }

    fn place(&self) -> String {
        match self.line {
            Some(line) => format!("{}:{line} {}", self.file, self.function),
            None => format!("{} {}", without_address(&self.file), self.function).trim_end().to_owned(),
        }
    }

    fn key(&self) -> Place {
        (self.file.clone(), self.line, self.function.clone())
    }
}

/// `<built-in method acquire of _thread.lock object at 0x7f…>` without the address, which differs from run to run.
fn without_address(name: &str) -> String {
    match name.split_once(" at 0x") {
        Some((before, _)) => format!("{before}>"),
        None => name.to_owned(),
    }
}

fn frame_of(trace: &Trace, kind: KindId) -> Option<Frame> {
    let name = trace.kind_name(kind);
    let category = trace.str(trace.kind(kind).category);
    is_python_frame(name, category).then(|| {
        let frame = Frame::of(name);
        // Who samples a program knows which code is its own.
        let user = match category {
            USER_SAMPLE => true,
            LIBRARY_SAMPLE => false,
            _ => frame.user,
        };
        Frame { user, ..frame }
    })
}

/// A range that the user put around a part of the loop, in the place of a frame.
fn range_of(context: &Context, kind: KindId) -> Option<Frame> {
    let (trace, vocabulary) = (context.trace, context.vocabulary());
    let by_user = trace.str(trace.kind(kind).category) == "user_annotation";
    let loads = vocabulary.role(kind) == Role::InputWait && !trace.kind_name(kind).starts_with("enumerate(");
    let wanted = by_user && (loads || is_range(trace, vocabulary, kind));
    let file = || trace.kind_name(kind).to_owned();
    wanted.then(|| Frame { file: file(), line: None, function: String::new(), user: true })
}

/// The location of a frame, as `file.py:12 f`; `None` for anything else.
pub(crate) fn frame_place(trace: &Trace, kind: KindId) -> Option<String> {
    frame_of(trace, kind).map(|frame| frame.place())
}

/// The location of a frame of the user's code, as `file.py:12 f`; `None` for libraries and for anything else.
pub(crate) fn user_place(trace: &Trace, kind: KindId) -> Option<String> {
    frame_of(trace, kind).filter(|frame| frame.user).map(|frame| frame.place())
}

/// Library folders, for tracers that write whole paths.
const LIBRARY_FOLDERS: &[&str] =
    &["site-packages/", "dist-packages/", "lib/python", "lib64/python", "<frozen", "importlib"];
/// Library packages, for paths that start with them.
const LIBRARY_PACKAGES: &[&str] = &[
    "torch",
    "torchvision",
    "numpy",
    "jax",
    "jaxlib",
    "flax",
    "optax",
    "tensorflow",
    "keras",
    "transformers",
];
/// Library files, for tracers that write names without folders: Python's own, and those of JAX, TensorFlow,
/// Keras, PyTorch and NumPy that a step passes through.
#[rustfmt::skip] // one name a line would fill two screens
const LIBRARY_FILES: &[&str] = &[
    "__init__.py", "_methods.py", "abc.py", "abstract_arrays.py", "ad.py", "ad_checkpoint.py", "annotations.py", "api.py",
    "api_util.py", "argparse.py", "array.py", "array_methods.py", "array_ops.py", "ast.py", "asyncio.py",
    "autograd.py", "backprop.py", "base.py", "base_events.py", "batching.py", "binary_op_wrapper.py",
    "callback.py", "codecs.py", "collections.py", "compiler.py", "concurrent.py", "config.py", "connection.py", "constant_op.py",
    "context.py", "contextlib.py", "copy.py", "core.py", "custom_derivatives.py", "dataloader.py",
    "dataset_ops.py", "debugging.py", "decoder.py", "def_function.py", "dispatch.py", "dtypes.py", "encoder.py",
    "encodings.py", "enum.py", "execute.py", "fetch.py", "fft.py", "fromnumeric.py", "func_graph.py",
    "functional.py", "functools.py", "gc.py", "gen_array_ops.py", "gen_dataset_ops.py", "gen_math_ops.py",
    "gen_nn_ops.py", "genericpath.py", "handlers.py", "heapq.py", "inspect.py", "io.py", "iostream.py",
    "iterator_ops.py", "jit.py", "json.py", "lax.py", "lax_numpy.py", "layout.py", "lib.py", "linalg.py",
    "linecache.py", "literals.py", "locale.py", "logging.py", "map_util.py", "math_ops.py", "mesh.py",
    "mlir.py", "module.py", "monitoring.py", "multiprocessing.py", "named_sharding.py", "nest.py", "nn.py",
    "nn_ops.py", "numeric.py", "op_shardings.py", "ops.py", "optimizer.py", "os.py", "partial_eval.py",
    "pathlib.py", "pickle.py", "pjit.py", "polymorphic_function.py", "posixpath.py", "prng.py",
    "profiler.py", "profiler_client.py", "pxla.py", "queue.py", "queues.py", "random.py", "re.py",
    "resource_variable_ops.py", "scipy.py", "selectors.py", "shape_base.py", "sharding.py",
    "sharding_impls.py", "sharding_specs.py", "shutil.py", "slicing.py", "socket.py", "source_info_util.py",
    "sre_compile.py", "sre_parse.py", "state.py", "string.py", "struct.py", "subprocess.py", "synchronize.py", "tempfile.py",
    "tensor_conversion.py", "tensor_shape.py", "tensor_util.py", "threading.py", "tokenize.py", "trace.py",
    "traceback.py", "traceback_util.py", "tracing_compilation.py", "traitlets.py", "tree.py",
    "tree_util.py", "type_spec.py", "types.py", "typing.py", "ufunc_api.py", "ufuncs.py", "util.py",
    "uuid.py", "variable.py", "variables.py", "warnings.py", "weakref.py", "worker.py", "xla.py",
    "xla_bridge.py", "xla_client.py", "zipfile.py",
];

/// Packages that only serve others, and say nothing about what is loaded.
const PLUMBING: &[&str] = &[
    "torch",
    "numpy",
    "scipy",
    "PIL",
    "pandas",
    "jax",
    "jaxlib",
    "tensorflow",
    "keras",
    "tqdm",
    "cv2",
    "ml_dtypes",
];

/// Whether the file belongs to Python itself, or to a package that only serves others.
fn is_plumbing(file: &str) -> bool {
    let file = file.trim_start_matches("./");
    let in_packages =
        ["site-packages/", "dist-packages/"].iter().find_map(|folder| Some(file.split_once(folder)?.1));
    let package = in_packages.unwrap_or(file).split('/').next().unwrap_or(file);
    let of_python = in_packages.is_none()
        && ["lib/python", "lib64/python", "<frozen"].iter().any(|part| file.contains(part));
    let bare = !file.contains('/') && LIBRARY_FILES.binary_search(&file).is_ok();
    of_python || bare || file.starts_with('<') || PLUMBING.contains(&package)
}

fn is_users(file: &str) -> bool {
    let file = file.trim_start_matches("./");
    let in_library = LIBRARY_FOLDERS.iter().any(|folder| file.contains(folder))
        || file.split_once('/').is_some_and(|(package, _)| LIBRARY_PACKAGES.contains(&package));
    // A bare name may be a library's; with its folder it would have been recognised above.
    let library_name = !file.contains('/') && LIBRARY_FILES.binary_search(&file).is_ok();
    !file.is_empty() && !file.starts_with('<') && !in_library && !library_name
}

/// The counted windows, with sums over them that need no loop.
struct Windows {
    spans: Vec<Span>,
    /// Total of all windows before each.
    before: Vec<Dur>,
}

impl Windows {
    fn new(spans: impl Iterator<Item = Span>) -> Self {
        let mut spans: Vec<Span> = spans.collect();
        spans.sort_by_key(|span| span.start);
        let mut sum = Dur::ZERO;
        let before = spans
            .iter()
            .map(|span| {
                let before = sum;
                sum += span.dur();
                before
            })
            .collect();
        Windows { spans, before }
    }

    /// How much of the time before `at` counts.
    fn until(&self, at: Time) -> Dur {
        let Some(last) = self.spans.partition_point(|span| span.start <= at).checked_sub(1) else {
            return Dur::ZERO;
        };
        let span = self.spans[last];
        self.before[last] + Span::new(span.start, at.min(span.end)).dur()
    }

    /// Whether a whole window lies inside.
    fn any_inside(&self, span: Span) -> bool {
        let first = self.spans.partition_point(|window| window.start < span.start);
        self.spans.get(first).is_some_and(|window| window.end <= span.end)
    }

    fn within(&self, span: Span) -> Dur {
        (self.until(span.end) - self.until(span.start)).at_least_zero()
    }
}

struct OpenFrame {
    end: Time,
    kind: KindId,
    counted: Dur,
    /// Counted time of nested frames.
    inside: Dur,
    /// The user's frame that owns it.
    owner: Option<KindId>,
    /// The library's frame that the owner called.
    call: Option<KindId>,
    is_python: bool,
    /// True if it counts as a call: not inside another call of the same function.
    outermost: bool,
    /// True inside a wait for input.
    waits: bool,
}

struct Walk<'a, 't> {
    context: &'a Context<'t>,
    track: &'t Track,
    frames: &'a [Option<Frame>],
    windows: &'a Windows,
    /// True if the frames are a tracer's, false if they are ranges.
    traced: bool,
    /// True if the windows are steps, false for the whole capture.
    in_steps: bool,
    sums: &'a mut [Sums],
    waits: &'a mut [Wait],
    waited: &'a mut Dur,
    /// Own time of a user's frame in each library call below it.
    through: &'a mut HashMap<(KindId, KindId), Dur, FxBuildHasher>,
    line: Option<&'a StateLine>,
    open: Vec<OpenFrame>,
}

impl Walk<'_, '_> {
    fn run(mut self) {
        let trace = self.context.trace;
        let line = self.line;
        // A caller that starts with the wait is not inside it.
        let waits_in = |span: Span| line.is_some_and(|line| line.all_in(span, State::InputWait));
        let any_wait = line.is_some_and(|line| line.states.iter().any(|state| state.has(State::InputWait)));
        for (index, &kind) in self.track.kinds().iter().enumerate() {
            let span = self.track.span_of(index);
            if span.is_empty() || trace.kind(kind).form != Form::Slice {
                continue;
            }
            self.close(span.start);
            let outer = self.open.last();
            let user = self.frames[kind.index()].as_ref().is_some_and(|frame| frame.user);
            // A function around a whole step runs the loop: it is not a part of the step that could be removed.
            let user = user && !(self.in_steps && self.windows.any_inside(span));
            let role = self.context.vocabulary().role(kind);
            let is_frame = self.frames[kind.index()].is_some();
            // A range around loading waits for input as a whole.
            let loads = role == Role::InputWait && !self.traced;
            let is_python = (is_frame && !loads)
                || matches!(role, Role::Annotation | Role::StepMarker)
                // An unknown name among Python frames is the user's own annotation.
                || role == Role::Unknown && outer.is_some_and(|outer| outer.is_python);
            let owner = if user { Some(kind) } else { outer.and_then(|outer| outer.owner) };
            let call =
                if user { None } else { outer.and_then(|outer| outer.call).or(is_frame.then_some(kind)) };
            let waits = any_wait && is_frame && waits_in(span);
            let outermost =
                (user || waits) && !self.open.iter().rev().take(RECURSION).any(|open| open.kind == kind);
            let counted = self.windows.within(span);
            self.open.push(OpenFrame {
                end: span.end,
                kind,
                counted,
                inside: Dur::ZERO,
                owner,
                call,
                is_python,
                outermost,
                waits,
            });
        }
        self.close(Time::MAX);
    }

    fn close(&mut self, now: Time) {
        while let Some(ended) = self.open.pop_if(|open| open.end <= now) {
            if let Some(outer) = self.open.last_mut() {
                outer.inside += ended.counted;
            }
            if ended.waits && !ended.counted.is_zero() {
                if !self.open.last().is_some_and(|outer| outer.waits) {
                    *self.waited += ended.counted;
                }
                let wait = &mut self.waits[ended.kind.index()];
                wait.calls += 1;
                if ended.outermost {
                    wait.inclusive += ended.counted;
                }
            }
            if let Some(owner) = ended.owner.filter(|_| ended.is_python) {
                let own = (ended.counted - ended.inside).at_least_zero();
                self.sums[owner.index()].own += own;
                if let Some(call) = ended.call {
                    *self.through.entry((owner, call)).or_default() += own;
                }
            }
            if ended.owner == Some(ended.kind) && !ended.counted.is_zero() {
                let sums = &mut self.sums[ended.kind.index()];
                sums.calls += 1;
                if ended.outermost {
                    sums.inclusive += ended.counted;
                }
            }
        }
    }
}

/// How far up a call looks for itself; deeper recursion counts twice in the inclusive time, but not in the own
/// time.
const RECURSION: usize = 64;

#[cfg(test)]
mod tests;
