//! Recording: profiles taken from running processes over gRPC ([`grpc`]), commands run and timed ([`run`]), hardware
//! sampled all the while ([`sample`]), servers and commands measured ([`bench`]).
//!
//! What is recorded becomes files or plain values; this crate knows nothing of analyses and of words for people.

pub mod bench;
pub mod grpc;
pub mod run;
pub mod sample;
