//! Recording: profiles from running processes over gRPC ([`grpc`]), timed commands ([`run`]), hardware samples
//! ([`sample`]), benchmarks of servers and commands ([`bench`]).
//!
//! Results are files or plain values; this crate knows nothing about analyses and text for users.

pub mod bench;
pub mod grpc;
pub mod run;
pub mod sample;
