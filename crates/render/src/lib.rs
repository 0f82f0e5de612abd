//! Results and findings as text, JSON, CSV, Markdown and HTML. This is the last stage of the data flow, and the
//! only crate with sentences for people. All earlier stages pass on typed values.
//!
//! - [`table`]: shared by all views. A view fills a [`Table`], which provides text, JSON and CSV, sorting,
//!   filtering and cutting to the top rows.
//! - [`info`] and [`health`]: the content of a recording, and its problems.
//! - [`compare`], [`gate`] and [`journal`]: what changed between runs.
//! - [`mod@bench`]: measurements of servers, commands and input pipelines.
//! - [`capture`]: messages about a capture.
//! - [`report`]: the report as text, JSON, Markdown and HTML; [`words`] turns findings into sentences.
//! - [`export`]: the trace in the formats of other tools.
//! - [`style`] and [`mod@format`]: terminal colours and width, formats of numbers and times.
//!
//! This crate knows nothing about how a number was computed.

pub mod bench;
pub mod capture;
pub mod compare;
pub mod covers;
pub mod export;
pub mod format;
pub mod gate;
pub mod gauges;
pub mod health;
pub mod info;
pub mod journal;
pub mod monitor;
pub mod report;
pub mod run;
pub mod scalars;
mod signature;
pub mod style;
pub mod table;
pub mod views;
pub mod words;

pub use style::Style;
pub use table::{Cell, Column, Format, Select, Table};
