//! What an event is. A trace of millions of events has a few thousand kinds, so whatever can be said about an
//! event's name is decided once a kind, never once an event.

use crate::args::ArgRef;
use crate::ids::StrId;

/// How an event lies in time.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, Default)]
pub enum Form {
    /// It began and ended.
    #[default]
    Slice,
    /// It marks one point in time.
    Instant,
    /// It stands for many occurrences without a place in time; its argument `num_occurrences` says how many,
    /// its duration is their total. Never count it as time on the timeline.
    Aggregate,
}

/// A kind of event: everything about it that its events share.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// The event's name as recorded.
    pub name: StrId,
    /// A friendlier name that the recorder gave; the empty string where there is none.
    pub display_name: StrId,
    /// The recorder's own category (Chrome's `cat`); the empty string where the format has none.
    pub category: StrId,
    /// How its events lie in time.
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
