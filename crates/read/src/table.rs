//! What tables in columns have in common, whatever file they come from: a field, and what can be wrong with them.

use stepscope_trace::NoteKind;

/// Rows that a byte of a file can stand for. Runs can claim billions in a few bytes; real tables, whose rows differ in
/// their times at least, need more than a byte a row.
pub(crate) const ROWS_A_BYTE: u64 = 64;

/// One field of one row.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// The row does not have it.
    Nothing,
    /// A whole number; unsigned ones of 64 bits keep their bits, as in SQLite.
    Int(i64),
    /// Any number.
    Real(f64),
    /// Text, or bytes: which of them, files do not say reliably.
    Text(&'a [u8]),
}

/// Why a table cannot be read, or not to its end.
#[derive(Copy, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum TableError {
    /// Bytes that should be there are not.
    #[error("{0} ends early")]
    Short(&'static str),
    /// Bytes that contradict each other or their format.
    #[error("{0} cannot be right")]
    Wrong(&'static str),
    /// A format's own number for something that this reader does not know.
    #[error("{0} {1} is not known")]
    Unknown(&'static str, i64),
}

impl TableError {
    /// What a note calls it: not knowing is not damage.
    pub(crate) fn note_kind(self) -> NoteKind {
        match self {
            TableError::Short(_) | TableError::Wrong(_) => NoteKind::Damaged,
            TableError::Unknown(..) => NoteKind::Unknown,
        }
    }
}
