//! A recording as a whole: which one is meant ([`find`]), its hosts read ([`load`]), and what the command line and the
//! page both make of it: the report ([`report`]), the views ([`views`]), a comparison's side ([`side`]) and, for classic
//! TensorFlow, the model that ran ([`model`]).
//!
//! This is the wiring that binds readers, analyses, rules and words; it holds no analysis of its own, and knows
//! nothing of terminals and browsers. Problems are worded here once, for both.

pub mod find;
pub mod load;
pub mod model;
mod problem;
pub mod report;
mod sample;
mod saved_run;
pub mod side;
pub mod views;

pub use find::{Chosen, Wanted, all_sessions};
pub use load::{Loaded, Looked, Profile};
pub use problem::{Exit, Problem};
pub use sample::{SAMPLE_HOST, SAMPLE_NAME, sample};
pub use saved_run::SavedRun;
