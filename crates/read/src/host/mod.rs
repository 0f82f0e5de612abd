//! What a Python program knows about itself that no profiler records: where its steps begin, which lines run, when its
//! garbage collector pauses it, which files it opens. `stepscope run` and the helper `stepscope.window` write such a file
//! (`stepscope.host.v1`) beside the profile of the same process.
//!
//! The file is a source like any other. Beside a profile, it joins that profile's trace ([`join`]): markers of steps and
//! sampled frames on the thread that runs the loop, so that all that understands markers and Python frames understands these.

mod document;
mod frames;
mod join;

use std::path::{Path, PathBuf};

use stepscope_trace::{Delivers, Format, NoteKind, Time, Trace, TraceBuilder};

use self::document::{HostLog, SCHEMA};
use crate::discover::host_of;
use crate::{Input, Progress, ReadError, Reader, files};

/// The ending of such a file's name; before it comes the name of the host, as in the profile's.
const ENDING: &str = ".host.json";

/// Logs of Python programs.
static FORMAT: Format = Format {
    endings: &[".host"],
    copies: &[&crate::xplane::FORMAT, &crate::chrome::FORMAT],
    ..Format::new("stepscope-host", "log of a Python program", Delivers::Timeline)
};

/// Reads logs of Python programs.
#[derive(Debug)]
pub struct HostReader;

impl Reader for HostReader {
    fn format(&self) -> &'static Format {
        &FORMAT
    }

    fn recognises(&self, head: &[u8]) -> bool {
        let schema = format!("\"schema\":\"{SCHEMA}\"");
        let head = head.get(..256).unwrap_or(head);
        head.windows(schema.len()).any(|part| part == schema.as_bytes())
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let (bytes, _) = input.inflated();
        progress.expect(bytes.len() as u64);
        let mut builder = TraceBuilder::new();
        match HostLog::of(&bytes) {
            Some(log) => {
                builder.clock.wall_ns_at_origin = log.clock.first().map(|(wall, _)| *wall);
                builder = join::join(builder.finish(), &log, Some(Time::ZERO));
            }
            None => builder.note(NoteKind::Damaged, "log of a Python program", 1, None),
        }
        let trace = builder.finish();
        progress.advance(bytes.len() as u64, trace.events());
        Ok(trace)
    }
}

/// The log beside a profile of a format that can have one.
fn beside(path: &Path, format: &Format) -> Option<PathBuf> {
    let can = FORMAT.copies.contains(&format) && !files::is_url(path);
    let log = can.then(|| path.with_file_name(format!("{}{ENDING}", host_of(path))))?;
    log.is_file().then_some(log)
}

/// The trace with the log of its process, if there is one beside its file.
pub(crate) fn with_log(trace: Trace, input: &Input, format: &Format) -> Trace {
    let Some(log) = beside(input.path(), format).and_then(|path| Input::open(&path).ok()) else {
        return trace;
    };
    let (bytes, _) = log.inflated();
    let Some(log) = HostLog::of(&bytes) else {
        let mut trace = trace;
        trace.note(NoteKind::Damaged, "log of a Python program", 1);
        return trace;
    };
    match join::origin(&trace, &log) {
        Some(origin) => join::join(trace, &log, Some(origin)).finish(),
        None => trace,
    }
}
