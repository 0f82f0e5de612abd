//! The timeline: a session's tracks as rows of events, and queries on them. Answers millions of events within
//! milliseconds, so it is built for speed; knows nothing about HTTP and about which sessions are open.
//!
//! [`model`] is built once when a session is opened, with each track's rows and their pyramids; [`layout`] describes it. [`tile`]
//! and [`frame`] answer what to draw; [`event`], [`search`] and [`area`] answer queries about events and time
//! ranges.

pub mod area;
pub mod collectives;
pub mod critical;
pub mod event;
pub mod evidence;
pub mod frame;
pub mod layout;
mod look;
pub mod model;
pub mod overview;
mod rows;
pub mod search;
#[cfg(test)]
mod tests;
pub mod tile;
