//! Why a file could not be read at all. Partial damage is not an error but a note in the trace.

use std::io;
use std::path::PathBuf;

/// Nothing could be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The operating system returned an error.
    #[error("cannot read {path}: {error}", path = path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The file has no bytes.
    #[error("{path} is empty", path = path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// A pipe, a socket or a device: it has no size, and reading it may never end.
    #[error("{path} is a pipe or a device, not a file", path = path.display())]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// No reader recognises the content.
    #[error("{path} is not a profile in a known format", path = path.display())]
    NotRecognised {
        /// The file.
        path: PathBuf,
    },
    /// A database that no profiler wrote.
    #[error("{path} is {found}, not a profile", path = path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// A file of another kind than requested.
    #[error("{path} is {}", wrong_kind(wanted, *found), path = path.display())]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// The requested kind.
        wanted: &'static str,
        /// The actual kind; `None` if unknown.
        found: Option<&'static str>,
    },
    /// The format is proprietary; the vendor's tool must export it first, but is not installed.
    #[error("{path}{written} has to be exported first: {command}", path = path.display(), written = written_by(by.as_deref()))]
    NeedsExport {
        /// The file.
        path: PathBuf,
        /// The tool and version that wrote it, if the file says so.
        by: Option<String>,
        /// The export command.
        command: String,
    },
    /// The export tool failed.
    #[error("{path} could not be exported: {tool} reported: {said}", path = path.display(), tool = tool.display())]
    ExportFailed {
        /// The file.
        path: PathBuf,
        /// The tool.
        tool: PathBuf,
        /// Its last message.
        said: String,
    },
    /// The file was written to while it was read, and nothing could be read.
    #[error("{path} changed while it was read", path = path.display())]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// A limit of the file's budget was met before anything could be read.
    #[error("{path}: {over}", path = path.display())]
    OverBudget {
        /// The file.
        path: PathBuf,
        /// The limit.
        over: crate::budget::OverBudget,
    },
    /// A pickle that would run code when it is loaded.
    #[error("{path} asks to run code ({opcode} at byte {offset}); stepscope does not run it", path = path.display())]
    RunsCode {
        /// The file.
        path: PathBuf,
        /// The opcode that asks for it.
        opcode: &'static str,
        /// Position of the opcode.
        offset: u64,
    },
    /// The export tool did not end in time and was stopped.
    #[error("{path} could not be exported: {tool} did not end within {seconds} s", path = path.display(), tool = tool.display())]
    ExportTimedOut {
        /// The file.
        path: PathBuf,
        /// The tool.
        tool: PathBuf,
        /// How long it was given.
        seconds: u64,
    },
    /// The format is recognised, but not one event or table could be read.
    #[error("{path} is damaged: {what} at byte {offset}", path = path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// Position of the damage.
        offset: u64,
    },
}

fn wrong_kind(wanted: &str, found: Option<&str>) -> String {
    match found {
        Some(found) => format!("{found}, not {wanted}"),
        None => format!("not {wanted}"),
    }
}

fn written_by(tool: Option<&str>) -> String {
    tool.map_or_else(String::new, |tool| format!(" (written by {tool})"))
}
