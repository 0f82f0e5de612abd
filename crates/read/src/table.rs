//! What column tables from different files share: a field, and what can be wrong with it.

use stepscope_trace::NoteKind;

use crate::budget::OverBudget;

/// One field of one row.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// The row has no value.
    Nothing,
    /// An integer; unsigned 64-bit values keep their bits, as in SQLite.
    Int(i64),
    /// Any number.
    Real(f64),
    /// Text or bytes; files do not reliably say which.
    Text(&'a [u8]),
}

/// Why a table cannot be read, or not completely.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TableError {
    /// Missing bytes.
    #[error("{0} is truncated")]
    Short(&'static str),
    /// Bytes that contradict each other or their format.
    #[error("{0} is invalid")]
    Wrong(&'static str),
    /// A number of the format that this reader does not know.
    #[error("unknown {0} {1}")]
    Unknown(&'static str, i64),
    /// The file holds more than its budget allows.
    #[error("{0}")]
    Over(#[from] OverBudget),
}

impl TableError {
    /// The kind of note: unknown is not damaged.
    pub(crate) fn note_kind(self) -> NoteKind {
        match self {
            TableError::Short(_) | TableError::Wrong(_) | TableError::Over(_) => NoteKind::Damaged,
            TableError::Unknown(..) => NoteKind::Unknown,
        }
    }
}
