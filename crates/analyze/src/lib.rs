//! From a trace to typed results: the steps, where their time goes, and the ops, kernels, input stages and
//! allocations involved.
//!
//! A [`Context`] wraps one host's trace and computes shared results on first use. Each analysis is *partial*
//! (one host) → *merge* → *finish*, so that a session of many hosts needs no more memory than one trace and the
//! partial results. Only [`vocabulary`] decides what names mean.
//!
//! This crate knows nothing about formats, advice or layout.

pub mod absence;
mod activities;
pub mod bounding;
pub mod breakdown;
pub mod callbacks;
pub mod catalogue;
pub mod collectives;
mod context;
pub mod counters;
pub mod curves;
pub mod devices;
pub mod eager;
pub mod functions;
pub mod gauges;
pub mod health;
pub mod inference;
pub mod info;
pub mod input;
pub mod kernels;
pub mod launches;
pub mod layers;
pub mod markers;
pub mod memory;
pub mod names;
pub mod odd;
pub mod ops;
pub mod over_time;
mod owners;
mod pieces;
pub mod python;
pub mod recurrence;
pub mod scopes;
pub mod selection;
pub mod setup;
#[cfg(test)]
mod sketch;
pub mod states;
pub mod statistics;
pub mod steps;
pub mod summary;
pub mod timeline;
pub mod vocabulary;
pub mod window;
pub mod writing;

pub use breakdown::{Breakdown, Category, Shares};
pub use context::Context;
pub use selection::{Coverage, Selection};
