//! Explicit step markers that training loops and profilers leave in a trace.
//!
//! They are only found and counted here; the analysis of steps turns them into steps. Markers are: an event
//! with an argument `step_num` (TensorFlow and JAX annotations; `_r` says that it is a root, i.e. the whole
//! step), Keras' `Profiled batch`, PyTorch's `ProfilerStep#N`.

use serde::Serialize;
use stepscope_trace::{KindId, Trace, TrackKind};

/// Written by Keras' callback.
const KERAS_BATCH: &str = "Profiled batch";
/// Written by PyTorch's profiler, followed by the step number.
const TORCH_STEP: &str = "ProfilerStep#";

/// One family of step markers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepMarker {
    /// The common name of the markers.
    pub name: String,
    /// Number of markers.
    pub count: u64,
    /// The lowest step number, if they have one.
    pub first_step: Option<i64>,
    /// The highest step number.
    pub last_step: Option<i64>,
    /// True if each stands for a whole step, according to itself.
    pub root: bool,
}

/// The families of markers, whole steps first, then the most frequent.
///
/// `kinds_of` contains, for each track, its kinds with the position of their first event: events are only
/// examined if the first of their kind is a marker, so millions of others cost nothing.
pub fn step_markers(trace: &Trace, kinds_of: &[Vec<(KindId, usize)>]) -> Vec<StepMarker> {
    let mut markers: Vec<StepMarker> = Vec::new();
    for (track, kinds) in trace.tracks().iter().zip(kinds_of) {
        if track.kind == TrackKind::Derived {
            continue;
        }
        let mut marked: Vec<KindId> = kinds
            .iter()
            .filter(|&&(kind, first)| mark(trace, kind, || trace.args_at(track, first)).is_some())
            .map(|&(kind, _)| kind)
            .collect();
        if marked.is_empty() {
            continue;
        }
        marked.sort_unstable();
        let marked = trace.kinds_where(|kind| marked.binary_search(&kind).is_ok());
        for (index, kind) in track.events_of(&marked) {
            if let Some(mark) = mark(trace, kind, || trace.args_at(track, index)) {
                count(&mut markers, mark);
            }
        }
    }
    markers.sort_by(|a, b| (b.root, b.count, &a.name).cmp(&(a.root, a.count, &b.name)));
    markers
}

struct Mark<'t> {
    name: &'t str,
    step: Option<i64>,
    root: bool,
}

fn mark<'t>(
    trace: &'t Trace,
    kind: KindId,
    args: impl Fn() -> stepscope_trace::Args<'t>,
) -> Option<Mark<'t>> {
    let name = trace.kind_name(kind);
    if let Some(number) = name.strip_prefix(TORCH_STEP) {
        return Some(Mark { name: "ProfilerStep", step: number.parse().ok(), root: true });
    }
    let step =
        trace.strings().find("step_num").and_then(|key| args().get(key)).and_then(|value| value.as_i64());
    let root = trace.strings().find("_r").and_then(|key| args().get(key)).is_some();
    (step.is_some() || name == KERAS_BATCH).then_some(Mark { name, step, root })
}

fn count(markers: &mut Vec<StepMarker>, mark: Mark<'_>) {
    let known = markers.iter_mut().find(|marker| marker.name == mark.name && marker.root == mark.root);
    match known {
        Some(marker) => {
            marker.count += 1;
            marker.first_step = marker.first_step.into_iter().chain(mark.step).min();
            marker.last_step = marker.last_step.into_iter().chain(mark.step).max();
        }
        None => markers.push(StepMarker {
            name: mark.name.to_owned(),
            count: 1,
            first_step: mark.step,
            last_step: mark.step,
            root: mark.root,
        }),
    }
}
