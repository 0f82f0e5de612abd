//! Many hosts, jobs and days, as four functions over plain data and bytes:
//!
//! - [`plan()`] lists what there is to read, as [`Work`] that any scheduler can send to any machine;
//! - [`partial()`] reads one piece of work and returns bytes; a file that cannot be read becomes an entry that says so;
//! - [`merge`] unites such bytes. It is associative, commutative and idempotent, and takes none and one;
//! - [`finish()`] turns bytes into the [`FleetReport`].
//!
//! The hosts of one *recording* (one job, one session) meet: collectives and stragglers can only be judged together.
//! Until all of them are known, a partial keeps each host's bounded result under the id of its input. Then they become
//! one small record. Nothing is ever added up before all is known, so the order in which results arrive cannot matter,
//! and nothing can be counted twice.
//!
//! [`store`] keeps results in files. This crate knows nothing about engines, networks or terminals.

pub mod devices;
mod error;
mod finish;
mod frame;
#[doc(hidden)]
pub mod fuzzing;
pub mod gate;
mod heat;
mod job;
mod local;
mod pack;
mod partial;
mod plan;
mod record;
mod search;
mod series;
mod set;
mod shard;
pub mod store;
mod workers;

pub use error::FleetError;
pub use finish::{FinishOptions, finish, finish_with, step_map};
pub use local::{Local, run};
pub use partial::{failed, partial};
pub use plan::{Options, Piece, Recording, Work, WorkInput, plan};
pub use set::{Set, merge};
pub use shard::Shard;
pub use stepscope_results::fleet::FleetReport;
pub use workers::Workers;

/// The version of the files that this version writes.
pub const FORMAT: u16 = frame::FORMAT;
