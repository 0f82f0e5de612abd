//! Explicit marks of steps, as training loops and profilers leave them in a trace.
//!
//! Only looked for and counted here; how they become steps is for the analysis of steps. The marks are: an
//! event with an argument `step_num` (TensorFlow and JAX annotations; `_r` says that it is a root, i.e. the
//! whole step), Keras' `Profiled batch`, PyTorch's `ProfilerStep#N`.

use serde::Serialize;
use stepscope_trace::{KindId, Trace, TrackKind};

/// Keras' callback writes these.
const KERAS_BATCH: &str = "Profiled batch";
/// PyTorch's profiler writes these, the step's number behind.
const TORCH_STEP: &str = "ProfilerStep#";

/// One family of step marks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct StepMarker {
    /// The name that the marks share.
    pub name: String,
    /// How many there are.
    pub count: u64,
    /// The lowest step number, where they carry one.
    pub first_step: Option<i64>,
    /// The highest step number.
    pub last_step: Option<i64>,
    /// Does each stand for a whole step, by its own word?
    pub root: bool,
}

/// The families of marks, whole steps first, then the most frequent.
///
/// `kinds_of` holds, for each track, its kinds with the position of their first event: events are looked at
/// only where the first of their kind carries a mark, so millions of others cost nothing.
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
        for (index, kind) in track.kinds().iter().enumerate() {
            if marked.binary_search(kind).is_ok()
                && let Some(mark) = mark(trace, *kind, || trace.args_at(track, index))
            {
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
