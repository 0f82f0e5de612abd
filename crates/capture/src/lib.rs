//! Recording: profiles from running processes over gRPC ([`grpc`]), timed commands ([`run`]), hardware samples
//! ([`sample`]), benchmarks of servers and commands ([`mod@bench`]), two programs
//! that take turns ([`turns`]).
//!
//! Results are files or plain values; this crate knows nothing about analyses and text for users.
//!
//! Commands are run and processes are watched with Unix features: pseudo-terminals, signals, `/proc`. Other systems
//! have only [`grpc`].

#[cfg(unix)]
pub mod bench;
pub mod grpc;
mod interrupts;
#[cfg(unix)]
pub mod run;
#[cfg(unix)]
pub mod sample;
#[cfg(unix)]
pub mod turns;

pub use interrupts::at_interrupts;
