//! Why a file could not be read at all. Partial damage is not an error: it is a note in the trace.

use std::io;
use std::path::PathBuf;

/// Nothing could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system refused.
    #[error("cannot read {path}: {error}", path = path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// The file has no bytes.
    #[error("{path} is empty", path = path.display())]
    Empty {
        /// Which file.
        path: PathBuf,
    },
    /// No reader knows this content.
    #[error("{path} is not a profile that stepscope knows", path = path.display())]
    NotRecognised {
        /// Which file.
        path: PathBuf,
    },
    /// It looks like the format, but not one event or table of it could be read.
    #[error("{path} is damaged: {what} at byte {offset}", path = path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// Where.
        offset: u64,
    },
}
