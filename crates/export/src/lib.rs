//! Trace in, bytes out: Perfetto's format and Chrome JSON for viewers, one row per event (CSV, Parquet) for data tools. The counterpart of the
//! readers. Output is streamed, so memory does not grow with the trace.
//!
//! This crate knows nothing about what an event means for performance, nor about tables of results.

mod args;
mod chrome;
mod csv;
mod parquet;
mod perfetto;
#[cfg(test)]
mod tests;
mod time;

use stepscope_trace::Trace;

pub use args::args_json;
pub use chrome::write_chrome;
pub use csv::write_csv;
pub use parquet::{AnyColumn, write_parquet, write_points_parquet, write_table_parquet};
pub use perfetto::write_perfetto;
pub use time::Origins;

/// The trace of one host to export.
#[derive(Copy, Clone, Debug)]
pub struct ExportSource<'a> {
    /// The host.
    pub host: &'a str,
    /// Its trace.
    pub trace: &'a Trace,
}
