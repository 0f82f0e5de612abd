//! Which kinds of events may load batches, and which are the model's work: what tells a loader from an iterator that runs the
//! model.

use stepscope_trace::{KindId, KindSet, Trace, Track};

use super::runs_python;
use crate::vocabulary::{
    Role, Vocabulary, is_dense, is_python_frame, op_type, starts_kernels, takes_from_queue,
};

/// Whether it is a frame that takes the next item from a queue.
pub(super) fn is_queue_frame(name: &str) -> bool {
    let frame = name.strip_prefix('$').and_then(|frame| frame.split_once(' '));
    frame
        .is_some_and(|(place, function)| takes_from_queue(place.split(':').next().unwrap_or(place), function))
}

/// Python frames and ranges of users that look like loaders by name alone. PyTorch's own loader is one whatever runs
/// inside it.
pub(super) fn fetching_frames(trace: &Trace, vocabulary: &Vocabulary) -> KindSet {
    trace.kinds_where(|kind| {
        let (name, category) = (trace.kind_name(kind), trace.str(trace.kind(kind).category));
        let by_name = match category {
            "user_annotation" => !name.starts_with("enumerate(DataLoader)"),
            category => is_python_frame(name, category) && !name.contains("utils/data/"),
        };
        by_name && vocabulary.role(kind) == Role::InputWait
    })
}

/// The kinds that are the model's work: compiled functions and dense ops; if there are none, kernel launches.
/// Other ops and modules also prepare batches.
pub(super) fn model_kinds(trace: &Trace, vocabulary: &Vocabulary) -> KindSet {
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

/// The model's work and the markers of steps; empty unless a thread that runs Python has some of them.
pub(super) fn loop_kinds(trace: &Trace, vocabulary: &Vocabulary, model: &KindSet) -> KindSet {
    let kinds = trace.kinds_where(|kind| model.has(kind) || vocabulary.role(kind) == Role::StepMarker);
    let has_loop = |track: &Track| track.has_any(&kinds) && runs_python(trace, vocabulary, track);
    if trace.tracks().iter().any(has_loop) { kinds } else { KindSet::default() }
}
