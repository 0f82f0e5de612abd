//! Parquet, one row per event, for pandas, Polars, DuckDB and similar tools. Times are picoseconds from the
//! earliest origin. Hand-written, because a Parquet library would be larger than the rest of this crate.
//!
//! A row group stays in memory until it is full, which is after [`ROWS`] rows or [`TEXT`] bytes of arguments,
//! so memory does not grow with the trace.

mod answer;
mod column;
mod points;
mod sheet;
mod thrift;

use std::io::{self, Write};

use stepscope_trace::{Trace, Track};

use self::column::{Dictionary, Values, push_text};
use self::sheet::Sheet;
use super::ExportSource;
use super::args::push_args;
use super::time::Origins;

/// Rows in a full row group.
const ROWS: i32 = 1 << 17;
/// Bytes of arguments in a full row group.
const TEXT: usize = 64 << 20;
/// The size of a page is a signed 32-bit number; no text may come close to it.
const LONGEST: usize = 1 << 28;

pub use answer::{AnyColumn, write_table_parquet};
pub use points::write_points_parquet;

/// Writes all events of all hosts, track by track, in time order.
pub fn write_parquet(sources: &[ExportSource<'_>], out: &mut dyn Write) -> io::Result<()> {
    let origins = Origins::of(sources);
    let mut writer = Writer::new(out)?;
    for (host, source) in sources.iter().enumerate() {
        for track in source.trace.tracks() {
            writer.track(source, track, |index| clamp(origins.ps(host, track.start(index))))?;
        }
    }
    writer.finish()
}

fn clamp(ps: i128) -> i64 {
    i64::try_from(ps).unwrap_or(if ps < 0 { i64::MIN } else { i64::MAX })
}

/// The columns of the current row group.
struct Columns {
    host: Dictionary,
    process: Dictionary,
    track: Dictionary,
    name: Dictionary,
    category: Dictionary,
    start_ps: Vec<u8>,
    duration_ps: Vec<u8>,
    depth: Vec<u8>,
    args: Vec<u8>,
    rows: i32,
}

impl Columns {
    fn new() -> Self {
        Columns {
            host: Dictionary::default(),
            process: Dictionary::default(),
            track: Dictionary::default(),
            name: Dictionary::default(),
            category: Dictionary::default(),
            start_ps: Vec::new(),
            duration_ps: Vec::new(),
            depth: Vec::new(),
            args: Vec::new(),
            rows: 0,
        }
    }

    /// The columns in schema order.
    fn listed(self) -> [(&'static str, Values); 9] {
        [
            ("host", Values::Names(self.host)),
            ("process", Values::Names(self.process)),
            ("track", Values::Names(self.track)),
            ("name", Values::Names(self.name)),
            ("category", Values::Names(self.category)),
            ("start_ps", Values::Int64(self.start_ps)),
            ("duration_ps", Values::Int64(self.duration_ps)),
            ("depth", Values::Int32(self.depth)),
            ("args", Values::Text(self.args)),
        ]
    }

    fn push(&mut self, source: &ExportSource<'_>, track: &Track, index: usize, start_ps: i64, args: &str) {
        let trace: &Trace = source.trace;
        let kind = trace.kind(track.kind_of(index));
        self.host.push(source.host);
        self.process.push(trace.str(trace.process(track.process).name));
        self.track.push(trace.str(track.name));
        self.name.push(trace.str(kind.name));
        self.category.push(trace.str(kind.category));
        self.start_ps.extend_from_slice(&start_ps.to_le_bytes());
        self.duration_ps.extend_from_slice(&track.dur(index).ps().to_le_bytes());
        let depth = i32::try_from(track.nesting().depth(index)).unwrap_or(i32::MAX);
        self.depth.extend_from_slice(&depth.to_le_bytes());
        push_text(&mut self.args, args);
        self.rows += 1;
    }
}

struct Writer<'a> {
    sheet: Sheet<'a>,
    columns: Columns,
    line: String,
}

impl<'a> Writer<'a> {
    fn new(out: &'a mut dyn Write) -> io::Result<Self> {
        Ok(Writer { sheet: Sheet::new(out)?, columns: Columns::new(), line: String::new() })
    }

    fn track(
        &mut self,
        source: &ExportSource<'_>,
        track: &Track,
        start_ps: impl Fn(usize) -> i64,
    ) -> io::Result<()> {
        for index in 0..track.len() {
            self.line.clear();
            push_args(&mut self.line, source.trace, source.trace.args_at(track, index));
            if self.line.len() > LONGEST {
                return Err(io::Error::other("an event's arguments are too long for Parquet"));
            }
            self.columns.push(source, track, index, start_ps(index), &self.line);
            if self.columns.rows >= ROWS || self.columns.args.len() >= TEXT {
                self.row_group()?;
            }
        }
        Ok(())
    }

    /// Writes the current row group and starts a new one.
    fn row_group(&mut self) -> io::Result<()> {
        let full = std::mem::replace(&mut self.columns, Columns::new());
        let rows = full.rows;
        self.sheet.row_group(full.listed(), rows)
    }

    fn finish(mut self) -> io::Result<()> {
        if self.columns.rows > 0 {
            self.row_group()?;
        }
        self.sheet.finish("event", &Columns::new().listed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_read::parquet::layout::MAGIC;
    use stepscope_trace::TraceBuilder;

    #[test]
    fn a_trace_without_events_is_a_file_all_the_same() {
        let trace = TraceBuilder::new().finish();
        let mut out = Vec::new();
        write_parquet(&[ExportSource { host: "trainer", trace: &trace }], &mut out).unwrap();
        assert!(out.starts_with(MAGIC) && out.ends_with(MAGIC));
        let size = out.len();
        let footer = u32::from_le_bytes(out[size - 8..size - 4].try_into().unwrap()) as usize;
        assert_eq!(footer + 12, size, "magic, footer, its length, magic");
    }
}
