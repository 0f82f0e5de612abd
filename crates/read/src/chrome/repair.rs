//! Which repairs were made to the text, and how often: they end up as notes of the trace.

use stepscope_trace::{NoteKind, TraceBuilder};

/// A way in which text was mended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Repair {
    /// A backslash before something that is not an escape, or half of a surrogate pair.
    BadEscape,
    /// A control byte that ought to have been escaped.
    ControlByte,
    /// Bytes that are not UTF-8.
    InvalidUtf8,
    /// A quotation mark inside a string that ought to have been escaped.
    BareQuote,
    /// A value that is neither quoted nor a number: `N/A`, `NaN`, `None`.
    BareWord,
    /// A comma with nothing behind it.
    TrailingComma,
    /// Two members with no comma between them.
    MissingComma,
    /// A list without its closing bracket.
    MissingBracket,
    /// A key without a value.
    MissingValue,
    /// An object without members where an event should be.
    EmptyEvent,
    /// An event that could not be read.
    UnreadableEvent,
    /// A part of the file before or after the events that could not be read.
    UnreadableHeader,
    /// A slice without a start; it was put at the trace's origin.
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

/// How often each repair was made.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Repairs([u32; CODES.len()]);

impl Repairs {
    #[inline]
    pub(super) fn count(&mut self, repair: Repair) {
        self.0[repair as usize] = self.0[repair as usize].saturating_add(1);
    }

    /// Adds what was counted elsewhere.
    pub(super) fn add(&mut self, other: Repairs) {
        for (count, more) in self.0.iter_mut().zip(other.0) {
            *count = count.saturating_add(more);
        }
    }

    /// Hands the counts over to the trace, `offset` being where in the text they were found.
    #[inline]
    pub(super) fn note(&mut self, builder: &mut TraceBuilder, offset: u64) {
        if self.0 != [0; CODES.len()] {
            for (count, code) in self.0.iter_mut().zip(CODES) {
                builder.note(NoteKind::Repaired, code, u64::from(std::mem::take(count)), Some(offset));
            }
        }
    }
}
