//! Why one process gave no profile. Each reason has its own cure, so each is a variant of its own.

use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// Why one process gave no profile.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// The name leads nowhere.
    #[error("no such host: {detail}")]
    NoSuchHost {
        /// What the resolver said.
        detail: String,
    },
    /// The machine is there; nothing listens on the port.
    #[error("connection refused")]
    Refused,
    /// No way to the machine, or no answer from it.
    #[error("unreachable: {detail}")]
    Unreachable {
        /// What the network said.
        detail: String,
    },
    /// It takes the connection and then says nothing.
    #[error("no answer within {after:?}")]
    Silent {
        /// How long was waited.
        after: Duration,
    },
    /// Something else than gRPC listens there.
    #[error("does not speak gRPC")]
    NotGrpc {
        /// The first line that it said, if it said any.
        said: Option<String>,
    },
    /// It speaks gRPC, but has no profiler service.
    #[error("no profiler service there")]
    NoProfiler,
    /// Another profile is being recorded in that process.
    #[error("busy: {said}")]
    Busy {
        /// In the server's words.
        said: String,
    },
    /// The server says that it is not ready.
    #[error("unavailable: {said}")]
    Unavailable {
        /// In the server's words.
        said: String,
    },
    /// The window was recorded, and nothing was in it.
    #[error("the trace is empty")]
    Empty,
    /// The server did not send the profile: older ones write it to their own disk.
    #[error("the profile was not sent")]
    NotSent {
        /// Where such a server would have put it, on its own disk.
        there: PathBuf,
    },
    /// The profile is larger than was allowed.
    #[error("more than {limit} bytes")]
    TooLarge {
        /// Its size, where it is known.
        found: Option<u64>,
        /// What was allowed.
        limit: u64,
    },
    /// No profile came in time.
    #[error("nothing within {after:?}")]
    TimedOut {
        /// How long was waited.
        after: Duration,
    },
    /// The connection broke while the profile was being recorded or sent.
    #[error("the connection broke after {after:?}: {detail}")]
    Died {
        /// How far into the call.
        after: Duration,
        /// What the connection said.
        detail: String,
    },
    /// The server refused for a reason of its own.
    #[error("the server answered {code}: {said}")]
    Server {
        /// The gRPC code's name.
        code: String,
        /// In the server's words.
        said: String,
    },
    /// The one who asked gave up.
    #[error("interrupted")]
    Interrupted,
}

impl CaptureError {
    /// May it be different in a moment? A server that comes up refuses first; one that records is busy.
    pub fn may_pass(&self) -> bool {
        matches!(
            self,
            CaptureError::Refused
                | CaptureError::Unreachable { .. }
                | CaptureError::Busy { .. }
                | CaptureError::Unavailable { .. }
        )
    }

    /// Is the process gone, as far as can be told?
    pub fn is_gone(&self) -> bool {
        matches!(self, CaptureError::Refused | CaptureError::Unreachable { .. } | CaptureError::Died { .. })
    }
}
