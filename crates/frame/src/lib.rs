//! Results as columns: a view's table and all events of a profile, in Arrow's memory layout, passed to data-frame
//! libraries through Arrow's C stream interface.
//!
//! [`Frame`] holds the columns, [`table`] and [`events`] fill it, [`stream`] passes it on. This crate knows nothing
//! about Python, and nothing about how a figure was computed.

mod column;
pub mod events;
pub mod stream;
pub mod table;

pub use column::{Codes, Column, Frame, Values, Words};
