//! The load of a load test and why one is not sustainable: what `bench infer` measures, and what is shown of it.

/// The load on a server.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Load {
    /// Open loop: requests at a fixed rate, even if earlier ones are unanswered.
    Open {
        /// Requests per second.
        per_second: f64,
        /// Their spread over time.
        arrivals: Arrivals,
    },
    /// Closed loop: clients that wait for their answers.
    Closed {
        /// Number of clients.
        clients: usize,
    },
}

/// When the requests of an open loop are sent.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// At equal intervals.
    Constant,
    /// At random, as from many independent clients.
    Poisson,
}

/// Why a load is not sustainable.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Too many requests failed.
    Failures,
    /// Answers do not keep up with the requests.
    Throughput,
    /// More clients bring no more answers.
    NoGain,
    /// An SLO was missed.
    Promise,
    /// Too few requests to decide whether the SLO was met.
    Unknown,
    /// The generator could not keep up: says nothing about the server.
    Generator,
    /// The SLO was missed while this machine was busy: says nothing about the server either.
    Busy,
}
