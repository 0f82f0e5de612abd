//! From results to answers: what is wrong with a step, whether a change paid, whether CI should stop.
//!
//! [`engine`] runs the [`rules`] over [`facts`] and settles which finding owns what of the step.
//! [`runs`] does the same for the curves that a run logged. [`hints`] says what utilisation alone suggests. [`compare`] puts two sides of runs beside each other, [`gate`] holds them against limits, [`journal`] keeps
//! a line for each experiment; [`statistics`] is the noise model that all three share.
//!
//! A finding is one file in [`rules`]: its [`rule`], its check, its thresholds, its words and its documentation. All
//! other sentences are made by `stepscope-render`.

pub mod compare;
pub mod complaints;
pub mod engine;
pub mod facts;
pub mod finding;
pub mod gate;
pub mod hints;
pub mod journal;
pub mod owners;
pub mod paired;
pub mod rule;
pub mod rules;
pub mod runs;
pub mod statistics;
pub mod thresholds;
pub mod warnings;
pub mod words;

pub use engine::{diagnose, diagnose_with_run};
pub use facts::Facts;
pub use finding::{Finding, Severity, Words};
pub use rule::Rule;
pub use runs::{RunVerdict, diagnose_run};
