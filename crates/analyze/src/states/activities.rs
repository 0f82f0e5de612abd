//! What a Python thread asks TensorFlow to do, one activity after the other: the model's work, output, building
//! a pipeline, fetching a batch.
//!
//! An eager op appears as several nested events. The outermost is the activity; the events inside show what it
//! does. Markers, annotations and Python frames are transparent.

use stepscope_trace::{Form, KindId, KindSet, Span, Trace, Track};

use crate::vocabulary::names::concrete_function;
use crate::vocabulary::{Role, Vocabulary, is_dense, is_python_frame, words};

/// What an activity does; several at once are possible.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Does(u16);

impl Does {
    /// Runs a compiled function, multiplies matrices or changes variables.
    pub(crate) const MODEL: Does = Does(1);
    /// Writes summaries, checkpoints, results.
    pub(crate) const WRITES: Does = Does(1 << 1);
    /// Builds datasets, iterators or their functions.
    pub(crate) const SETS_UP: Does = Does(1 << 2);
    /// Initialises an iterator: a pipeline starts.
    pub(crate) const MAKES_ITERATOR: Does = Does(1 << 3);
    /// Requests the next batch.
    pub(crate) const FETCHES: Does = Does(1 << 4);
    /// Releases a tensor, a dataset or an iterator.
    pub(crate) const DELETES: Does = Does(1 << 5);
    /// Writes a checkpoint.
    pub(crate) const SAVES: Does = Does(1 << 6);
    /// Creates a dataset: a new pipeline, while an epoch only creates an iterator.
    pub(crate) const MAKES_DATASET: Does = Does(1 << 7);
    /// Reads a variable.
    pub(crate) const READS: Does = Does(1 << 8);
    /// Assigns a variable.
    pub(crate) const ASSIGNS: Does = Does(1 << 9);
    /// Runs an op that is neither of these and does more than pass a value on.
    pub(crate) const COMPUTES: Does = Does(1 << 10);

    pub(crate) fn has(self, other: Does) -> bool {
        self.0 & other.0 != 0
    }

    fn and(self, other: Does) -> Does {
        Does(self.0 | other.0)
    }
}

/// What each kind of event says about its activity; `None` for transparent ones.
pub(crate) struct Kinds(Vec<Option<Does>>);

impl Kinds {
    pub(crate) fn of(trace: &Trace, vocabulary: &Vocabulary) -> Self {
        Kinds(
            (0..trace.kinds().len())
                .map(KindId::from_index)
                .map(|kind| does(trace, vocabulary, kind))
                .collect(),
        )
    }

    /// What an event of this kind does; `None` for transparent ones.
    pub(crate) fn does(&self, kind: KindId) -> Option<Does> {
        self.0.get(kind.index()).copied().flatten()
    }

    /// Whether any event of the trace does this.
    pub(crate) fn any(&self, wanted: Does) -> bool {
        self.0.iter().flatten().any(|does| does.has(wanted))
    }

    /// The kinds whose events do this.
    pub(crate) fn that_do(&self, wanted: Does) -> KindSet {
        KindSet::of(self.0.len(), |kind| self.0[kind.index()].is_some_and(|does| does.has(wanted)))
    }
}

fn does(trace: &Trace, vocabulary: &Vocabulary, kind: KindId) -> Option<Does> {
    let (name, shape) = (trace.kind_name(kind), trace.kind(kind));
    let category = trace.str(shape.category);
    // A range that a user put around writing holds all of it: what comes before is not its preparation.
    let range = category == "user_annotation" && vocabulary.role(kind) == Role::Output;
    if shape.form != Form::Slice || range || is_python_frame(name, category) {
        return None;
    }
    match vocabulary.role(kind) {
        Role::FunctionCall | Role::Compile => Some(Does::MODEL),
        Role::Tracing => Some(Does::SETS_UP),
        Role::InputWait => Some(Does::FETCHES),
        Role::Output => {
            let words = words(name);
            let saves = words.iter().any(|word| word == "save" || word == "checkpoints");
            Some(if saves { Does::WRITES.and(Does::SAVES) } else { Does::WRITES })
        }
        Role::EagerCall | Role::EagerKernel | Role::Framework | Role::Op => Some(named(name)),
        _ => None,
    }
}

/// Ops around the reading of a variable that compute nothing.
const PASSES_ON: &[&str] =
    &["Identity", "DisableCopyOnRead", "VarIsInitializedOp", "VarHandleOp", "_EagerConst"];

/// What an eager op does, by its type.
fn named(name: &str) -> Does {
    if name == "TFE_DeleteTensorHandle" {
        return Does::DELETES;
    }
    let Some(op) = name.strip_prefix("EagerLocalExecute: ") else { return Does::default() };
    let words = words(op);
    let has = |word: &str| words.iter().any(|found| found == word);
    if op == "MakeIterator" {
        Does::SETS_UP.and(Does::MAKES_ITERATOR)
    } else if has("dataset") {
        Does::SETS_UP.and(Does::MAKES_DATASET)
    } else if has("iterator") {
        Does::SETS_UP
    } else if has("assign") {
        Does::MODEL.and(Does::ASSIGNS)
    } else if concrete_function(op).is_some() || is_dense(op) || has("apply") {
        Does::MODEL
    } else if op == "ReadVariableOp" {
        Does::READS
    } else if PASSES_ON.contains(&op) {
        Does::default()
    } else {
        Does::COMPUTES
    }
}

/// One activity of a thread.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Activity {
    pub(crate) span: Span,
    pub(crate) does: Does,
}

/// The activities of a thread, starting at event `from`, in time order.
pub(crate) fn activities<'a>(
    kinds: &'a Kinds,
    track: &'a Track,
    from: usize,
) -> impl Iterator<Item = Activity> + 'a {
    let mut next = from;
    std::iter::from_fn(move || {
        let mut current: Option<Activity> = None;
        while next < track.len() {
            let does = kinds.0[track.kind_of(next).index()];
            let span = track.span_of(next);
            match (&mut current, does) {
                (Some(outer), _) if span.start >= outer.span.end => break,
                (Some(outer), Some(does)) => outer.does = outer.does.and(does),
                (None, Some(does)) if !span.is_empty() => current = Some(Activity { span, does }),
                _ => {}
            }
            next += 1;
        }
        current
    })
}
