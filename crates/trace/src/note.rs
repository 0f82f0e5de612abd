//! Notes: what a reader found odd about a file. Counted, never printed here; the wording is made elsewhere.

/// What sort of oddity it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NoteKind {
    /// The file ends in the middle of something, or its bytes cannot be what they claim to be. What came
    /// before is kept. `detail` says what broke.
    Damaged,
    /// The recorder itself reported an error; `detail` is its text.
    CollectionError,
    /// The recorder itself reported a warning; `detail` is its text.
    CollectionWarning,
    /// The recorder says that it dropped events; `count` says how many where it is known.
    DroppedByRecorder,
    /// Text was mended to be readable; `detail` names the kind of repair.
    Repaired,
    /// An event's end lies before its start; it was read as an instant.
    NegativeDuration,
    /// A time does not fit the trace's range of 106 days around its origin; it was clamped.
    TimeOutOfRange,
    /// An event refers to something that the file does not define; `detail` names what.
    DanglingReference,
    /// A beginning without an end, or an end without a beginning.
    Unpaired,
    /// A part of the file that this version does not understand; `detail` names it.
    Unknown,
    /// Numbers of which the file does not say what they are; `count` says how many columns of them.
    Unnamed,
}

/// One kind of oddity in one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// What sort.
    pub kind: NoteKind,
    /// The recorder's own text, or the name of the thing.
    pub detail: String,
    /// How many times.
    pub count: u64,
    /// Where in the file it was first seen, in bytes.
    pub offset: Option<u64>,
}
