//! Benchmarks: a model server under load ([`infer`]), repeated commands ([`command`]), an input pipeline batch
//! by batch ([`input`]).
//!
//! All of them return plain values; text and statistics are done elsewhere. A [`Stop`] ends each of them early
//! with the results so far.

pub mod command;
pub mod infer;
pub mod input;
mod latencies;
pub mod pace;
mod stop;

use std::io;

use thiserror::Error;

pub use latencies::{Bin, Distribution, Recorder, needed_for};
pub use stop::Stop;

/// Why nothing could be measured.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum BenchError {
    /// Not a server address.
    #[error("not a URL: {0}")]
    Url(String),
    /// The server requires an encrypted connection.
    #[error("https is not supported")]
    Https,
    /// A header or method that HTTP does not allow.
    #[error("not a header: {0}")]
    Header(String),
    /// The name of the server cannot be resolved.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// The system's error.
        source: io::Error,
    },
    /// A program could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Its name.
        program: String,
        /// The system's error.
        source: io::Error,
    },
    /// The system refused something that every measurement needs.
    #[error(transparent)]
    System(#[from] io::Error),
}
