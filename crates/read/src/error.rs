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
    /// It is a database, but nothing that a profiler wrote.
    #[error("{path} is {found}, not a profile", path = path.display())]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// It is a file of another kind than the one asked for.
    #[error("{path} is {}", wrong_kind(wanted, *found), path = path.display())]
    WrongKind {
        /// Which file.
        path: PathBuf,
        /// What was asked for.
        wanted: &'static str,
        /// What it is; `None` where that cannot be said.
        found: Option<&'static str>,
    },
    /// The format is its maker's own; a tool of theirs has to export it first, and is not there.
    #[error("{path} has to be exported first: {command}", path = path.display())]
    NeedsExport {
        /// Which file.
        path: PathBuf,
        /// How.
        command: String,
    },
    /// The tool that should have exported the file failed.
    #[error("{path} could not be exported: {tool} said: {said}", path = path.display(), tool = tool.display())]
    ExportFailed {
        /// Which file.
        path: PathBuf,
        /// Which tool.
        tool: PathBuf,
        /// Its last words.
        said: String,
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

fn wrong_kind(wanted: &str, found: Option<&str>) -> String {
    match found {
        Some(found) => format!("{found}, not {wanted}"),
        None => format!("not {wanted}"),
    }
}
