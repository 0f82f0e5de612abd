//! The timeline: a session's tracks as rows of events, and queries on them.
//!
//! [`model`] is built once when a session is opened, with each track's [`rows`] and their pyramids. [`tile`]
//! and [`frame`] answer what to draw; [`event`], [`search`] and [`area`] answer queries about events and time
//! ranges.

pub(crate) mod area;
pub(crate) mod collectives;
pub(crate) mod critical;
pub(crate) mod event;
pub(crate) mod frame;
pub(crate) mod look;
pub(crate) mod model;
pub(crate) mod overview;
pub(crate) mod rows;
pub(crate) mod search;
#[cfg(test)]
mod tests;
pub(crate) mod tile;
