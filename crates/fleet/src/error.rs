//! Why nothing can be said: usage, files, and partials that cannot be read. A profile that cannot be read is not an
//! error but an entry in the result.

use std::path::PathBuf;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FleetError {
    /// A path cannot be searched.
    #[error(transparent)]
    Read(#[from] stepscope_read::ReadError),
    /// A pattern, date or shard that the user gave.
    #[error("{0}")]
    Usage(String),
    /// Bytes that are not a partial.
    #[error("this is not a stepscope partial: it starts with other bytes")]
    NotPartial,
    /// A partial that ends early.
    #[error("the partial is truncated: {found} of {expected} bytes")]
    Truncated {
        /// Bytes that are there.
        found: u64,
        /// Bytes that there should be.
        expected: u64,
    },
    /// A partial with fewer entries than it should have.
    #[error("the partial is truncated: {found} of {expected} entries")]
    Missing {
        /// Entries that are there.
        found: u64,
        /// Entries that there should be.
        expected: u64,
    },
    /// The checksum does not fit.
    #[error("the partial is damaged: the checksum at byte {at} does not match")]
    Checksum {
        /// Where the frame begins.
        at: u64,
    },
    /// Written by a version that this one cannot read.
    #[error(
        "the partial has format {found}, which stepscope {tool} wrote; this version reads up to format {known}"
    )]
    Newer {
        /// Its format.
        found: u16,
        /// The newest format that this version reads.
        known: u16,
        /// The version that wrote it.
        tool: String,
    },
    /// The content does not decode.
    #[error("the partial is damaged: {0}")]
    Content(String),
    /// Somebody stopped the reading.
    #[error("the reading was stopped")]
    Stopped,
    /// A file of the store.
    #[error("{}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: std::io::Error,
    },
}
