//! What an event is. A trace with millions of events has a few thousand kinds, so everything that depends on an
//! event's name is decided once per kind, never once per event.

use crate::args::ArgRef;
use crate::ids::StrId;

/// How an event relates to time.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum Form {
    /// It has a start and an end.
    #[default]
    Slice,
    /// It marks one point in time.
    Instant,
    /// It stands for many occurrences without a position in time; its argument `num_occurrences` contains their
    /// number, its duration is their total. Never count it as time on the timeline.
    Aggregate,
}

/// The category of frames of the program's own Python that were sampled, not traced.
pub const USER_SAMPLE: &str = "python_sample";
/// The same for frames of libraries that the program's own code calls.
pub const LIBRARY_SAMPLE: &str = "python_library_sample";
/// The category of times in which the thread that runs the loop waits for Python's interpreter lock. The event's name is the
/// code that holds it, if that is known.
pub const LOCK_WAIT: &str = "python_lock_wait";

/// A kind of event: everything that its events share.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The event's name as recorded.
    pub name: StrId,
    /// A display name from the profiler; empty if there is none.
    pub display_name: StrId,
    /// The profiler's own category (Chrome's `cat`); empty if the format has none.
    pub category: StrId,
    /// How its events relate to time.
    pub form: Form,
    /// Arguments that all its events share.
    pub shared_args: Option<ArgRef>,
}

impl Kind {
    /// A slice with a name and nothing else.
    pub fn slice(name: StrId) -> Self {
        Kind {
            name,
            display_name: StrId::default(),
            category: StrId::default(),
            form: Form::Slice,
            shared_args: None,
        }
    }
}
