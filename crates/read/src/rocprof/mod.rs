//! AMD's rocprofv3: its JSON (`--output-format json`) and its databases (`--output-format rocpd`).
//!
//! ```text
//! sink   records of both → tracks, devices, arguments, spelt as in Kineto
//! json   the JSON
//! rocpd  the database: tables with a number in their names, of several versions
//! ```

mod json;
mod rocpd;
mod sink;
#[cfg(test)]
mod tests;

use memchr::memmem;
use stepscope_trace::{Delivers, Format, NoteKind, Trace};

use crate::nsys::database::Database;
use crate::{Input, Progress, ReadError, Reader};
use sink::Sink;

/// rocprofv3's JSON.
static JSON: Format = Format {
    endings: &[".json", "_results"],
    copies: &[&ROCPD],
    ..Format::new("rocprofv3", "rocprofv3 result", Delivers::Timeline)
};

/// rocprofv3's databases.
static ROCPD: Format =
    Format { endings: &[".db", "_results"], ..Format::new("rocpd", "rocpd database", Delivers::Timeline) };

/// Bytes of the beginning that show the tool's name.
const TITLE: usize = 4_096;

/// Reads rocprofv3's JSON.
#[derive(Debug)]
pub struct RocprofReader;

impl Reader for RocprofReader {
    fn format(&self) -> &'static Format {
        &JSON
    }

    fn recognises(&self, head: &[u8]) -> bool {
        let first = head.get(..head.len().min(TITLE)).unwrap_or_default();
        first.trim_ascii_start().starts_with(b"{") && memmem::find(first, b"\"rocprofiler-sdk-").is_some()
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        let (bytes, inflating) = input.inflated();
        progress.expect(bytes.len() as u64);
        let mut sink = Sink::default();
        let broken = json::read(&bytes, &mut sink, input.budget());
        if let Some(at) = broken {
            sink.builder.note(NoteKind::Damaged, "truncated", 1, Some(at as u64));
        } else if let Some(error) = inflating {
            sink.builder.note(NoteKind::Damaged, &error.to_string(), 1, None);
        }
        progress.advance(bytes.len() as u64, sink.records);
        finish(sink, input, broken.unwrap_or(0))
    }
}

/// Reads rocprofv3's databases.
#[derive(Debug)]
pub struct RocpdReader;

impl Reader for RocpdReader {
    fn format(&self) -> &'static Format {
        &ROCPD
    }

    fn recognises(&self, head: &[u8]) -> bool {
        head.starts_with(b"SQLite format 3\0") && memmem::find(head, b"rocpd_").is_some()
    }

    fn read(&self, input: &Input, progress: &Progress) -> Result<Trace, ReadError> {
        progress.expect(input.size());
        let database = Database::open(input)?;
        let mut sink = Sink::default();
        sink.builder.note(NoteKind::Damaged, "pages are missing", database.missing_pages, None);
        rocpd::read(&database, &mut sink);
        progress.advance(input.size(), sink.records);
        finish(sink, input, 0)
    }
}

fn finish(sink: Sink, input: &Input, offset: usize) -> Result<Trace, ReadError> {
    if sink.records == 0 {
        let what = "it has no kernel, copy or call".to_owned();
        return Err(ReadError::Damaged { path: input.path().to_owned(), what, offset: offset as u64 });
    }
    Ok(sink.finish())
}
