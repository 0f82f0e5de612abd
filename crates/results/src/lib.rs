//! Results as plain values: between what computes (`analyze`, `diagnose`) and what shows (`render`, `query`, `frame`, the
//! page). Nothing here knows terminals, files or formats of output.
//!
//! - [`table`]: a typed table, and the selection of its rows. [`views`]: one table per question about a recording.
//! - [`report`], [`fleet`], [`run`]: everything that a report on a recording, on many, or on a command shows.
//! - [`usage`] and [`load_test`]: what was measured from outside.
//! - [`covers`], [`gpu_samples`] and [`words`]: the words that tables and reports share.

pub mod covers;
pub mod fleet;
pub mod gpu_samples;
pub mod load_test;
pub mod report;
pub mod run;
pub mod table;
pub mod usage;
pub mod views;
pub mod words;

use stepscope_text as format;
pub use table::{Cell, Column, Format, Select, Table};
