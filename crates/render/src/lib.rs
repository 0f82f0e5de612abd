//! Results and findings as text, JSON, CSV, Markdown and HTML: the last stage of the data flow. All sentences for people
//! are written here, except those of a finding, which are in its own file in `stepscope-diagnose`.
//!
//! - [`table`]: any table as text, JSON and CSV.
//! - [`info`]: the content of a recording.
//! - [`compare`], [`gate`] and [`journal`]: what changed between runs.
//! - [`mod@bench`]: measurements of servers, commands and input pipelines.
//! - [`capture`]: messages about a capture.
//! - [`report`]: the report as text, JSON, Markdown and HTML. [`explain`]: the documentation of findings.
//! - [`style`] and [`mod@format`]: terminal colours and width, formats of numbers and times.
//!
//! This crate knows nothing about how a number was computed.

pub mod bench;
pub mod capture;
pub mod compare;
pub mod explain;
pub mod fleet;
pub mod gate;
pub mod info;
pub mod journal;
pub mod monitor;
pub mod report;
pub mod run;
pub mod scalars;
pub mod style;
pub mod table;

pub use stepscope_text as format;
pub use style::Style;

/// The format with this name, for tests.
#[cfg(test)]
pub(crate) fn format_named(name: &str) -> &'static stepscope_trace::Format {
    let mut formats = stepscope_read::READERS.iter().map(|reader| reader.format());
    formats.find(|format| format.name == name).unwrap()
}
