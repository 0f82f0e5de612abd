//! From a trace to typed results: the steps, where their time goes, and the ops, kernels, input stages and
//! allocations involved.
//!
//! Data flows through the rooms in one direction, which `cargo xtask check` enforces:
//! [`vocabulary`] (what names mean) → [`states`] (what each track does from moment to moment) → [`steps`] (found) →
//! [`breakdown`] (swept and classified) → [`Context`] → [`work`], [`time`], [`input`], [`memory`], [`devices`] and
//! [`recording`] (one question each) → [`ranks`] (what each rank does) → [`session`] (what all hosts of a session say together).
//!
//! A [`Context`] wraps one host's trace and computes shared results on first use. Each [`Analysis`] is *partial*
//! (one host) → *merge* → *finish*, so that a session of many hosts needs no more memory than one trace and the
//! partial results.
//!
//! This crate knows nothing about formats, advice or layout.

mod analysis;
pub mod breakdown;
mod context;
pub mod coverage;
pub mod curves;
pub mod devices;
mod host_trace;
pub mod input;
pub mod job;
pub mod memory;
pub mod ranks;
pub mod recording;
pub mod replay;
pub mod session;
#[cfg(test)]
mod sketch;
pub mod states;
pub mod steps;
mod stored;
pub mod time;
pub mod vocabulary;
pub mod window;
pub mod work;

pub use analysis::Analysis;
pub use breakdown::selection::Selection;
pub use breakdown::{Breakdown, Category, Shares};
pub use context::Context;
pub use coverage::Coverage;
pub use host_trace::HostTrace;
