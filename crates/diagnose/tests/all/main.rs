//! Findings on traces that the tests draw. One binary, which links once.

mod counters;
mod device_rules;
mod layers;
mod odd_traces;
