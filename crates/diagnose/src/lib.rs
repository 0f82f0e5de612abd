//! From results to answers: what is wrong with a step, whether a change paid, whether CI should stop.
//!
//! [`compare`] puts two sides of runs beside each other, [`gate`] holds them against limits, [`journal`] keeps
//! a line for each experiment; [`statistics`] is the noise model that all three share. Typed values only:
//! sentences are made by `stepscope-render`.

pub mod statistics;
