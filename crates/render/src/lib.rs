//! Results and findings as people and programs read them. The last stop of the data's way. All sentences for people are
//! made here, except those of a finding, which are in the finding's own file in `stepscope-diagnose`.
//!
//! - [`table`]: the frame that every view shares. A view fills a [`Table`]; text, JSON and CSV, sorting,
//!   filtering and cutting to the top rows come from there.
//! - [`info`] and [`health`]: what is in a recording and what is wrong with it, in words.
//! - [`compare`], [`gate`] and [`journal`]: what changed between runs.
//! - [`bench`]: what was measured of servers, commands and input pipelines.
//! - [`capture`]: what a capture brought.
//! - [`report`]: the answer, as text, JSON, Markdown and HTML. [`explain`]: the documentation of findings.
//! - [`export`]: the trace itself in other tools' formats.
//! - [`style`] and [`format`]: colour and width of the terminal, numbers and times as people write them.
//!
//! This crate knows nothing of how a number was computed.

pub mod bench;
pub mod capture;
pub mod compare;
pub mod covers;
pub mod explain;
pub mod export;
pub mod gate;
pub mod gauges;
pub mod health;
pub mod info;
pub mod journal;
pub mod monitor;
pub mod report;
pub mod run;
pub mod style;
pub mod table;
pub mod views;
pub mod words;

pub use stepscope_text as format;
pub use style::Style;
pub use table::{Cell, Column, Format, Select, Table};
