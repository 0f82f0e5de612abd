//! Notes: oddities that a reader found in a file. Only counted here; the text is written elsewhere.

/// The kind of oddity.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    /// The file is truncated, or its bytes are invalid. Everything before is kept. `detail` says what is
    /// damaged.
    Damaged,
    /// The file changed while it was read, so that its parts may not fit each other.
    Changed,
    /// The file holds more than its budget allows; everything before is kept. `count` is the limit that was
    /// met, and `detail` names what it counts.
    OverBudget,
    /// The profiler itself reported an error; `detail` is its text.
    CollectionError,
    /// The profiler itself reported a warning; `detail` is its text.
    CollectionWarning,
    /// The profiler reports dropped events; `count` is their number, if known.
    DroppedByRecorder,
    /// Text was repaired to be readable; `detail` names the kind of repair.
    Repaired,
    /// An event's end is before its start; it was read as an instant.
    NegativeDuration,
    /// A time does not fit the trace's range of 106 days around its origin; it was clamped.
    TimeOutOfRange,
    /// An event refers to something that the file does not define; `detail` says what.
    DanglingReference,
    /// A start without an end, or an end without a start.
    Unpaired,
    /// A part of the file that this version does not understand; `detail` names it.
    Unknown,
    /// Numbers whose meaning the file does not state; `count` is the number of such columns.
    Unnamed,
}

/// One kind of oddity in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Its kind.
    pub kind: NoteKind,
    /// The profiler's own text, or the name of the thing.
    pub detail: String,
    /// How many times.
    pub count: u64,
    /// Position of the first occurrence in the file, in bytes.
    pub offset: Option<u64>,
}
