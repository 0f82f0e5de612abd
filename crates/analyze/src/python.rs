//! The user's own Python, where a Python tracer ran: which lines the steps' time was spent in.
//!
//! A tracer records every call, libraries and builtins too. What a library does was asked for by the user's
//! code, so the time in Python below a user's frame is that frame's *own* until the next user's frame; time in
//! which the framework works (ops, compilers, waiting for a device) is nobody's.

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Dur, Form, KindId, ProcessKind, Span, Time, Track, TrackKind};

use crate::context::Context;
use crate::vocabulary::{Role, is_python_frame};

/// A line of the user's code.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonFrame {
    /// The file as recorded; often without its folder.
    pub file: String,
    /// The line on which the function begins.
    pub line: Option<u32>,
    /// The function.
    pub function: String,
    /// How often it was called within the steps.
    pub calls: u64,
    /// From its beginning to its end, within the steps, in milliseconds.
    pub inclusive_ms: f64,
    /// In Python, outside of other frames of the user's, in milliseconds.
    pub own_ms: f64,
}

/// The user's code, most time of its own first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PythonFrames {
    /// A Python tracer ran.
    pub traced: bool,
    /// The frames with most time of their own; at most [`MOST_FRAMES`].
    pub frames: Vec<PythonFrame>,
    /// All time in Python below the user's frames, in milliseconds.
    pub own_ms: f64,
    /// How many steps that is of; 0 where the whole capture is looked at.
    pub steps: usize,
}

/// How many frames a result holds.
pub const MOST_FRAMES: usize = 50;

/// What one host says.
#[derive(Clone, Debug, Default)]
pub struct PythonPartial {
    traced: bool,
    steps: usize,
    frames: HashMap<(String, Option<u32>, String), Sums, FxBuildHasher>,
}

#[derive(Copy, Clone, Debug, Default)]
struct Sums {
    calls: u64,
    inclusive: Dur,
    own: Dur,
}

impl PythonPartial {
    /// One pass over the threads with frames on them; nothing where no tracer ran.
    pub fn of(context: &Context) -> Self {
        let trace = context.trace;
        let frames: Vec<Option<Frame>> = (0..trace.kinds().len())
            .map(KindId::from_index)
            .map(|kind| {
                let category = trace.str(trace.kind(kind).category);
                is_python_frame(trace.kind_name(kind), category).then(|| Frame::of(trace.kind_name(kind)))
            })
            .collect();
        if frames.iter().all(Option::is_none) {
            return PythonPartial::default();
        }
        let breakdown = context.breakdown();
        let windows = Windows::new(breakdown.counted().map(|(step, _)| step.span));
        let mut sums = vec![Sums::default(); frames.len()];
        for track in trace.tracks() {
            let host = trace.process(track.process).kind != ProcessKind::Device;
            if host && track.kind == TrackKind::Thread {
                Walk {
                    context,
                    track,
                    frames: &frames,
                    windows: &windows,
                    sums: &mut sums,
                    open: Vec::new(),
                }
                .run();
            }
        }
        let mut partial = PythonPartial {
            traced: true,
            steps: if breakdown.whole_capture { 0 } else { breakdown.counted().count() },
            frames: HashMap::default(),
        };
        for (frame, sums) in frames.into_iter().zip(sums) {
            if let Some(Frame { file, line, function, user: true }) = frame
                && sums.calls > 0
            {
                partial.add((file, line, function), sums);
            }
        }
        partial
    }

    fn add(&mut self, key: (String, Option<u32>, String), sums: Sums) {
        let all = self.frames.entry(key).or_default();
        all.calls += sums.calls;
        all.inclusive += sums.inclusive;
        all.own += sums.own;
    }

    /// Adds another host.
    pub fn merge(&mut self, other: PythonPartial) {
        self.traced |= other.traced;
        self.steps += other.steps;
        other.frames.into_iter().for_each(|(key, sums)| self.add(key, sums));
    }

    /// The result.
    pub fn finish(self) -> PythonFrames {
        let own_ms = self.frames.values().map(|sums| sums.own).sum::<Dur>().ms();
        let mut frames: Vec<PythonFrame> = self
            .frames
            .into_iter()
            .map(|((file, line, function), sums)| PythonFrame {
                file,
                line,
                function,
                calls: sums.calls,
                inclusive_ms: sums.inclusive.ms(),
                own_ms: sums.own.ms(),
            })
            .collect();
        frames.sort_by(|a, b| {
            b.own_ms.total_cmp(&a.own_ms).then_with(|| (&a.file, a.line).cmp(&(&b.file, b.line)))
        });
        frames.truncate(MOST_FRAMES);
        PythonFrames { traced: self.traced, frames, own_ms, steps: self.steps }
    }
}

/// A frame's name, taken apart.
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
}

/// Folders of libraries, where the tracer writes whole paths.
const LIBRARY_FOLDERS: &[&str] =
    &["site-packages/", "dist-packages/", "lib/python", "lib64/python", "<frozen", "importlib"];
/// Packages, where paths begin with them.
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
/// Files of libraries, where the tracer writes names without folders: Python's own, and those of JAX,
/// TensorFlow, Keras, PyTorch and NumPy that a step passes through.
#[rustfmt::skip] // one name a line would fill two screens
const LIBRARY_FILES: &[&str] = &[
    "__init__.py", "_methods.py", "abc.py", "ad.py", "ad_checkpoint.py", "annotations.py", "api.py",
    "api_util.py", "argparse.py", "array.py", "array_methods.py", "array_ops.py", "ast.py", "asyncio.py",
    "autograd.py", "backprop.py", "base.py", "base_events.py", "batching.py", "binary_op_wrapper.py",
    "codecs.py", "collections.py", "compiler.py", "concurrent.py", "config.py", "constant_op.py",
    "context.py", "contextlib.py", "copy.py", "core.py", "custom_derivatives.py", "dataloader.py",
    "dataset_ops.py", "decoder.py", "def_function.py", "dispatch.py", "dtypes.py", "encoder.py",
    "encodings.py", "enum.py", "execute.py", "fetch.py", "fft.py", "fromnumeric.py", "func_graph.py",
    "functional.py", "functools.py", "gc.py", "gen_array_ops.py", "gen_dataset_ops.py", "gen_math_ops.py",
    "gen_nn_ops.py", "genericpath.py", "handlers.py", "heapq.py", "inspect.py", "io.py", "iostream.py",
    "iterator_ops.py", "jit.py", "json.py", "lax.py", "lax_numpy.py", "layout.py", "lib.py", "linalg.py",
    "linecache.py", "literals.py", "locale.py", "logging.py", "map_util.py", "math_ops.py", "mesh.py",
    "mlir.py", "module.py", "monitoring.py", "multiprocessing.py", "named_sharding.py", "nest.py", "nn.py",
    "nn_ops.py", "numeric.py", "op_shardings.py", "ops.py", "optimizer.py", "os.py", "partial_eval.py",
    "pathlib.py", "pickle.py", "pjit.py", "polymorphic_function.py", "posixpath.py", "prng.py",
    "profiler.py", "profiler_client.py", "pxla.py", "queue.py", "random.py", "re.py",
    "resource_variable_ops.py", "scipy.py", "selectors.py", "shape_base.py", "sharding.py",
    "sharding_impls.py", "sharding_specs.py", "shutil.py", "slicing.py", "socket.py", "source_info_util.py",
    "sre_compile.py", "sre_parse.py", "state.py", "string.py", "struct.py", "subprocess.py", "tempfile.py",
    "tensor_conversion.py", "tensor_shape.py", "tensor_util.py", "threading.py", "tokenize.py", "trace.py",
    "traceback.py", "traceback_util.py", "tracing_compilation.py", "traitlets.py", "tree.py",
    "tree_util.py", "type_spec.py", "types.py", "typing.py", "ufunc_api.py", "ufuncs.py", "util.py",
    "uuid.py", "variable.py", "variables.py", "warnings.py", "weakref.py", "worker.py", "xla.py",
    "xla_bridge.py", "xla_client.py", "zipfile.py",
];

fn is_users(file: &str) -> bool {
    let file = file.trim_start_matches("./");
    let in_library = LIBRARY_FOLDERS.iter().any(|folder| file.contains(folder))
        || file.split_once('/').is_some_and(|(package, _)| LIBRARY_PACKAGES.contains(&package));
    // A name alone may be a library's; with its folder it would have shown as one above.
    let library_name = !file.contains('/') && LIBRARY_FILES.binary_search(&file).is_ok();
    !file.is_empty() && !file.starts_with('<') && !in_library && !library_name
}

/// The windows in which time counts, and sums over them without looking at each.
struct Windows {
    spans: Vec<Span>,
    /// What lies in all windows before each.
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

    fn within(&self, span: Span) -> Dur {
        (self.until(span.end) - self.until(span.start)).at_least_zero()
    }
}

struct Open {
    end: Time,
    kind: KindId,
    counted: Dur,
    /// Counted time of what lies inside.
    inside: Dur,
    /// The user's frame whose own this is.
    owner: Option<KindId>,
    is_python: bool,
    /// Counts as a call: not inside another call of the same function.
    outermost: bool,
}

struct Walk<'a, 't> {
    context: &'a Context<'t>,
    track: &'t Track,
    frames: &'a [Option<Frame>],
    windows: &'a Windows,
    sums: &'a mut [Sums],
    open: Vec<Open>,
}

impl Walk<'_, '_> {
    fn run(mut self) {
        let trace = self.context.trace;
        if !self.track.kinds().iter().any(|kind| self.frames[kind.index()].is_some()) {
            return;
        }
        for (index, &kind) in self.track.kinds().iter().enumerate() {
            let span = self.track.span_of(index);
            if span.is_empty() || trace.kind(kind).form != Form::Slice {
                continue;
            }
            self.close(span.start);
            let outer = self.open.last();
            let user = self.frames[kind.index()].as_ref().is_some_and(|frame| frame.user);
            let role = self.context.vocabulary().role(kind);
            let is_frame = self.frames[kind.index()].is_some();
            let is_python = is_frame
                || matches!(role, Role::Annotation | Role::StepMarker)
                // An unknown name among Python's frames is the user's own annotation.
                || role == Role::Unknown && outer.is_some_and(|outer| outer.is_python);
            let owner = if user { Some(kind) } else { outer.and_then(|outer| outer.owner) };
            let outermost = user && !self.open.iter().rev().take(RECURSION).any(|open| open.kind == kind);
            let counted = self.windows.within(span);
            self.open.push(Open {
                end: span.end,
                kind,
                counted,
                inside: Dur::ZERO,
                owner,
                is_python,
                outermost,
            });
        }
        self.close(Time::MAX);
    }

    fn close(&mut self, now: Time) {
        while let Some(ended) = self.open.pop_if(|open| open.end <= now) {
            if let Some(outer) = self.open.last_mut() {
                outer.inside += ended.counted;
            }
            if let Some(owner) = ended.owner.filter(|_| ended.is_python) {
                self.sums[owner.index()].own += (ended.counted - ended.inside).at_least_zero();
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

/// How far up a call looks for itself; deeper recursion is counted twice in the inclusive time, not in the own.
const RECURSION: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_trace::{Kind, TraceBuilder};

    #[test]
    fn frames_of_both_tracers_are_taken_apart() {
        let frame = |name| {
            let Frame { file, line, function, user } = Frame::of(name);
            (file, line, function, user)
        };
        assert_eq!(frame("$train.py:12 load"), ("train.py".into(), Some(12), "load".into(), true));
        assert_eq!(frame("$pjit.py:98 cache_miss"), ("pjit.py".into(), Some(98), "cache_miss".into(), false));
        assert_eq!(frame("$builtins next"), ("builtins".into(), None, "next".into(), false));
        assert_eq!(frame("train.py(7): <module>"), ("train.py".into(), Some(7), "<module>".into(), true));
        assert!(!Frame::of("torch/nn/modules/module.py(1511): _call_impl").user);
        assert!(!Frame::of("/usr/lib/python3.12/site-packages/x/y.py(1): f").user);
        assert!(!Frame::of("<built-in method len>").user);
        assert!(!Frame::of("nn.Module: Linear_0").user);
        assert!(LIBRARY_FILES.is_sorted(), "looked up by bisection");
    }

    #[test]
    fn windows_count_only_what_lies_inside() {
        let span = |a, b| Span::new(Time::from_ps(a), Time::from_ps(b));
        let windows = Windows::new([span(10, 20), span(30, 40)].into_iter());
        assert_eq!(windows.within(span(0, 100)), Dur::from_ps(20));
        assert_eq!(windows.within(span(15, 35)), Dur::from_ps(10));
        assert_eq!(windows.within(span(20, 30)), Dur::ZERO);
        assert_eq!(Windows::new(std::iter::empty()).within(span(0, 9)), Dur::ZERO);
    }

    #[test]
    fn what_a_library_does_is_its_callers_and_an_op_is_nobodys() {
        let mut builder = TraceBuilder::new();
        let python = builder.strings.intern("python");
        let process = builder.process(python, ProcessKind::Host, 1);
        let track = builder.track(process, python, TrackKind::Thread, 1, TraceBuilder::ARENA);
        for (name, start, len) in [
            ("$train.py:1 main", 0, 100),
            ("$train.py:20 load", 10, 60),
            ("$random.py:5 shuffle", 15, 40),
            ("dense/MatMul:MatMul", 80, 10),
        ] {
            let name = builder.strings.intern(name);
            let kind = builder.kind(Kind::slice(name));
            builder.event(track, Time::from_ns(start * 1_000_000), Dur::from_us(len * 1_000), kind, None);
        }
        let trace = builder.finish();
        let frames = PythonPartial::of(&Context::new(&trace, "host")).finish();
        let rows: Vec<(&str, u64, f64, f64)> = frames
            .frames
            .iter()
            .map(|frame| (frame.function.as_str(), frame.calls, frame.inclusive_ms, frame.own_ms))
            .collect();
        assert_eq!(rows, [("load", 1, 60.0, 60.0), ("main", 1, 100.0, 30.0)]);
        assert!(frames.traced && frames.steps == 0);
    }
}
