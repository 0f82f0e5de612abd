//! Counts the repairs made to the text; they become notes of the trace.

use stepscope_trace::{NoteKind, TraceBuilder};

/// A kind of repair.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Repair {
    /// An invalid escape after a backslash, or half of a surrogate pair.
    BadEscape,
    /// A control byte that was not escaped.
    ControlByte,
    /// Bytes that are not UTF-8.
    InvalidUtf8,
    /// A quotation mark inside a string that was not escaped.
    BareQuote,
    /// A value that is neither quoted nor a number: `N/A`, `NaN`, `None`.
    BareWord,
    /// A trailing comma.
    TrailingComma,
    /// A missing comma between two members.
    MissingComma,
    /// A list without its closing bracket.
    MissingBracket,
    /// A key without a value.
    MissingValue,
    /// An empty object instead of an event.
    EmptyEvent,
    /// An unreadable event.
    UnreadableEvent,
    /// An unreadable part of the file before or after the events.
    UnreadableHeader,
    /// A slice without a start; it is placed at the origin of the trace.
    MissingTime,
    /// A slice without a duration.
    MissingDuration,
}

const CODES: [&str; 14] = [
    "bad-escape",
    "control-byte",
    "invalid-utf8",
    "bare-quote",
    "bare-word",
    "trailing-comma",
    "missing-comma",
    "missing-bracket",
    "missing-value",
    "empty-event",
    "unreadable-event",
    "unreadable-header",
    "missing-ts",
    "missing-dur",
];

/// Number of repairs of each kind.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Repairs([u32; CODES.len()]);

impl Repairs {
    #[inline]
    pub(crate) fn count(&mut self, repair: Repair) {
        self.0[repair as usize] = self.0[repair as usize].saturating_add(1);
    }

    /// Adds counts from elsewhere.
    pub(crate) fn add(&mut self, other: Repairs) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count = count.saturating_add(more);
        }
    }

    /// Passes the counts to the trace; `offset` is their position in the text.
    #[inline]
    pub(crate) fn note(&mut self, builder: &mut TraceBuilder, offset: u64) {
        if self.0 != [0; CODES.len()] {
            for (count, code) in self.0.iter_mut().zip(CODES) {
                builder.note(NoteKind::Repaired, code, u64::from(std::mem::take(count)), Some(offset));
            }
        }
    }
}
