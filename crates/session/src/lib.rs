//! One recording as a whole: resolve it ([`find`]), read its hosts ([`load`]), and build what the command line
//! and the page share: the report ([`report`]), the tables of views ([`Hosts::table`]), one side of a
//! comparison ([`side`]) and, for classic TensorFlow, the model that ran ([`model`]).
//!
//! This crate connects readers, analyses, rules and text. It contains no analysis of its own and knows nothing
//! about terminals and browsers. Error messages are written here once, for both.

mod clock;
mod event_logs;
pub mod find;
mod foreign;
mod hosts;
pub mod load;
pub mod model;
mod problem;
pub mod program;
pub mod report;
mod sample;
mod saved_run;
pub mod side;
mod views;

pub use clock::{HostClock, HostMove, moved, moves, shifts};
pub use event_logs::event_logs_of;
pub use find::{Query, ResolvedSession, all_sessions_again, all_sessions_within};
pub use hosts::Hosts;
pub use load::{HostProfile, PerHost, Profile, unreadable_file};
pub use problem::{Cause, Problem};
pub use sample::{SAMPLE_HOST, SAMPLE_NAME, sample};
pub use saved_run::SavedRun;
