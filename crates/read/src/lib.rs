//! Bytes in, trace out. One folder per format, all with the same structure; [`READERS`] lists them. A new format is one
//! folder and one line in that list.
//!
//! A reader recognises its format by content, never by name, and turns it into a [`Trace`]. Damage does not
//! stop it: everything read before it is kept, and a note says where the damage is. [`discover`] finds the
//! files below a path; [`open`] reads one of them.
//!
//! This crate knows nothing about what an event means for performance.

mod arrow;
mod budget;
mod codec;
mod csv;
pub mod discover;
mod error;
pub mod files;
mod folder;
mod input;
mod json;
mod map;
mod memory_tracks;
pub mod parquet;
mod progress;
mod table;
pub mod tfevents;

use std::path::Path;

use stepscope_trace::{Format, NoteKind, Trace};

pub use budget::{Budget, Limit, OverBudget, allow_inflated_bytes};
pub use error::ReadError;
pub use folder::TableFile;
pub use input::{Bytes, Input};
pub use progress::Progress;

/// A profile format.
pub trait Reader: Sync {
    /// The format: its name, what it delivers, and what its files have to do with others.
    fn format(&self) -> &'static Format;

    /// Whether a file that starts like this may have the format. `head` is the first [`Input::HEAD`] bytes,
    /// inflated.
    fn recognises(&self, head: &[u8]) -> bool;

    /// When the file was recorded, as far as it says so without being read as a whole.
    fn recorded(&self, _input: &Input) -> Option<Recorded> {
        None
    }

    /// Reads the whole file. Fails only if nothing at all could be read.
    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError>;
}

/// When a file was recorded, in nanoseconds since 1970.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// When recording started.
    pub start_ns: i64,
    /// When it ended, if the file says so.
    pub end_ns: Option<i64>,
}

/// Declares the folders of the formats and lists their readers.
macro_rules! readers {
    ($($visible:vis $folder:ident: $($reader:ident),+;)+) => {
        $($visible mod $folder;)+
        $(pub use $folder::{$($reader),+};)+

        /// All readable formats, in the order in which they are tried.
        pub const READERS: &[&dyn Reader] = &[$($(&$reader),+),+];
    };
}

readers! {
    rocprof: RocpdReader, RocprofReader;
    pub nsys: NsysReader, NsysReportReader;
    ncu: NcuReader;
    snapshot: SnapshotReader;
    pprof: PprofReader;
    perfetto: PerfettoReader;
    role_timeline: RoleTimelineReader;
    samples: SamplesReader;
    host: HostReader;
    smi: SmiReader;
    triton: TritonReader;
    pub tf: TimelineReader, RunMetadataReader;
    chrome: ChromeReader;
    xplane: XPlaneReader;
}

/// The reader that recognises the file's content.
pub fn reader_for(input: &Input) -> Option<&'static dyn Reader> {
    if !input.tables().is_empty() {
        return Some(&NsysReader);
    }
    let head = input.head();
    READERS.iter().copied().find(|reader| reader.recognises(&head)).or_else(|| tf::for_events(input))
}

/// A profile that has been read.
#[derive(Debug)]
pub struct Opened {
    /// Its format.
    pub format: &'static Format,
    /// The size of the file on disk in bytes.
    pub bytes: u64,
    /// Its content.
    pub trace: Trace,
}

/// Reads one file of any known format.
pub fn open(path: &Path, progress: &Progress) -> Result<Opened, ReadError> {
    let input = Input::open(path)?;
    open_input(&input, progress)
}

/// Reads one file of any known format, or bytes that were never in a file.
pub fn open_input(input: &Input, progress: &Progress) -> Result<Opened, ReadError> {
    if input.size() == 0 {
        return Err(ReadError::Empty { path: input.path().to_owned() });
    }
    let reader = reader_for(input).or_else(|| nsys::for_any_database(input));
    let reader = reader.ok_or_else(|| ReadError::NotRecognised { path: input.path().to_owned() })?;
    let trace = host::with_log(read_with(reader, input, progress)?, input, reader.format());
    Ok(Opened { format: reader.format(), bytes: input.size(), trace })
}

/// Reads a file with a reader, and notes what concerns files of every format: that it was written to meanwhile, and
/// that its budget was used up.
pub(crate) fn read_with(reader: &dyn Reader, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
    input.budget().stops_with(progress.stop_flag());
    let read = reader.read(input, progress);
    progress.check();
    let (changed, over) = (input.has_changed(), input.over_budget());
    let path = || input.path().to_owned();
    let mut trace = read.map_err(|error| match over {
        _ if changed => ReadError::Changed { path: path() },
        Some(over) => ReadError::OverBudget { path: path(), over },
        None => error,
    })?;
    if changed {
        trace.note(NoteKind::Changed, "", 1);
    }
    if let Some(over) = over {
        trace.note(NoteKind::OverBudget, over.limit.counts(), over.at);
    }
    Ok(trace)
}
