//! Recording: profiles taken from running processes over gRPC ([`grpc`]), commands run and timed ([`run`]), hardware
//! sampled all the while ([`sample`]), servers and commands measured ([`mod@bench`]).
//!
//! What is recorded becomes files or plain values; this crate knows nothing of analyses and of words for people.
//!
//! Commands are run and processes are watched with Unix's means: pseudo-terminals, signals, `/proc`. On other systems
//! only [`grpc`] is there.

#[cfg(unix)]
pub mod bench;
pub mod grpc;
#[cfg(unix)]
pub mod run;
#[cfg(unix)]
pub mod sample;
