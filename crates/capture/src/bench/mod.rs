//! Measuring: a model server under load ([`infer`]), a command run again and again ([`command`]), an input pipeline
//! batch by batch ([`input`]).
//!
//! All of them hand over plain values; words and statistical judgement are made elsewhere. A [`Stop`] ends each of
//! them early with what was measured so far.

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
    /// Not an address of a server.
    #[error("not a URL: {0}")]
    Url(String),
    /// The server wants an encrypted connection.
    #[error("https is not supported")]
    Https,
    /// A header or method that HTTP does not allow.
    #[error("not a header: {0}")]
    Header(String),
    /// The name of the server leads nowhere.
    #[error("cannot resolve {host}: {source}")]
    Resolve {
        /// The name.
        host: String,
        /// What the system says.
        source: io::Error,
    },
    /// A program could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// Its name.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// The system refused something that every measurement needs.
    #[error(transparent)]
    System(#[from] io::Error),
}
