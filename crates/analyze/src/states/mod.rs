//! What each thread and stream is doing at any time.
//!
//! Every track becomes a line of states: first it waits for input, then it traces a graph, and so on. Events
//! nest, and the innermost does not always decide: an op inside the input pipeline is input, whatever it
//! computes, and a constant that is created while a graph is being traced is tracing. Therefore some states
//! *hold*: everything inside them keeps the state.
//!
//! One pass with a stack per track, linear in its events. Nothing is assigned to categories here: that is the
//! work of [`crate::breakdown`].

pub(crate) mod activities;
mod async_ops;
mod background;
pub(crate) mod host_collectives;
pub mod launches;
mod line;
mod loaders;
pub(crate) mod lock_waits;
pub mod missing_device;
mod output;
pub(crate) mod ranges;
pub(crate) mod read_out;
mod remote;
mod state;
pub mod timeline;
mod track_chunks;
mod walk;

use rayon::prelude::*;
use stepscope_trace::{DeviceKind, KindId, ProcessKind, Trace, Track, TrackId, TrackKind};

use crate::vocabulary::{Role, Vocabulary, names_torch_op};
use missing_device::{has_device_ops, programs_without_work, starts_any_kernel, uses_device_memory};
use walk::Facts;

pub use background::Background;
pub use line::StateLine;
pub use state::State;
pub(crate) use track_chunks::chunks;
pub(crate) use walk::is_pipeline_thread;

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
    /// Instructions of compiled programs that went on in the background, on processors.
    pub background: Background,
}

impl States {
    /// Walks all tracks, on all cores.
    pub fn of(trace: &Trace, vocabulary: &Vocabulary) -> Self {
        let has_device = has_device_work(trace, vocabulary);
        let device_unseen =
            !has_device && (uses_unseen_device(trace) || programs_without_work(trace, vocabulary));
        let facts = Facts::of(trace, vocabulary, has_device || device_unseen);
        let mut lines: Vec<(TrackId, StateLine)> = trace
            .tracks()
            .par_iter()
            .filter(|track| matches!(track.kind, TrackKind::Thread | TrackKind::Stream | TrackKind::Async))
            .filter(|track| !track.is_empty())
            .map(|track| (track.id, facts.line_of(track)))
            .filter(|(_, line)| !line.times.is_empty())
            .collect();
        for (track, state, spans) in async_ops::waits(trace, &facts.input_runs, facts.has_device) {
            let line = lines.iter_mut().find(|(id, _)| *id == track);
            line.into_iter().for_each(|(_, line)| line.fill(&spans, state));
        }
        // Beside a device, its own collectives count.
        if !has_device {
            for (track, spans) in host_collectives::set_up(trace, vocabulary) {
                let line = lines.iter_mut().find(|(id, _)| *id == track);
                line.into_iter().for_each(|(_, line)| line.fill(&spans, State::Communication));
            }
        }
        let background = if has_device || device_unseen {
            Background::default()
        } else {
            Background::of(trace, vocabulary)
        };
        for (track, state, spans) in background.spans(trace, vocabulary) {
            let line = lines.iter_mut().find(|(id, _)| *id == track);
            line.into_iter().for_each(|(_, line)| line.fill(&spans, state));
        }
        States { lines, has_device, device_unseen, background }
    }
}

fn has_kind(trace: &Trace, wanted: impl Fn(KindId) -> bool) -> bool {
    (0..trace.kinds().len()).any(|index| wanted(KindId::from_index(index)))
}

fn has_device_work(trace: &Trace, vocabulary: &Vocabulary) -> bool {
    let work = trace.kinds_where(|kind| {
        matches!(vocabulary.role(kind), Role::Kernel | Role::Collective | Role::Copy(_) | Role::Memset)
    });
    trace.tracks().iter().any(|track| {
        track.kind == TrackKind::Stream
            && trace.process(track.process).kind == ProcessKind::Device
            && track.has_any(&work)
    })
}

/// A GPU is listed, and calls of its runtime or allocator were recorded, but no work on it.
fn uses_unseen_device(trace: &Trace) -> bool {
    let listed =
        trace.devices().iter().any(|device| matches!(device.kind, DeviceKind::Gpu | DeviceKind::Tpu))
            || trace.processes().iter().any(|process| process.kind == ProcessKind::Device);
    (listed && uses_device_memory(trace)) || starts_any_kernel(trace) || has_device_ops(trace)
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
    use super::timeline::Mask;
    use super::*;
    use stepscope_trace::{Dur, Kind, Span, Time, TraceBuilder};

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
