//! Why a process returned no profile. Each cause has its own fix, so each is a variant.

use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

/// Why a process returned no profile.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum CaptureError {
    /// The name cannot be resolved.
    #[error("no such host: {detail}")]
    NoSuchHost {
        /// The resolver's message.
        detail: String,
    },
    /// The machine exists, but nothing is listening on the port.
    #[error("connection refused")]
    Refused,
    /// The machine cannot be reached, or does not answer.
    #[error("unreachable: {detail}")]
    Unreachable {
        /// The network's message.
        detail: String,
    },
    /// It accepts the connection but does not answer.
    #[error("no answer within {after:?}")]
    Silent {
        /// How long was waited.
        after: Duration,
    },
    /// Another protocol than gRPC.
    #[error("does not speak gRPC")]
    NotGrpc {
        /// The first line that it sent, if any.
        said: Option<String>,
    },
    /// It speaks gRPC, but has no profiler service.
    #[error("no profiler service there")]
    NoProfiler,
    /// Another profile is being recorded in that process.
    #[error("busy: {said}")]
    Busy {
        /// The server's message.
        said: String,
    },
    /// The server reports that it is not ready.
    #[error("unavailable: {said}")]
    Unavailable {
        /// The server's message.
        said: String,
    },
    /// The window was recorded, but is empty.
    #[error("the trace is empty")]
    Empty,
    /// The server did not send the profile: older ones write it to their own disk.
    #[error("the profile was not sent")]
    NotSent {
        /// Where such a server would have written it, on its own disk.
        there: PathBuf,
    },
    /// The profile exceeds the size limit.
    #[error("more than {limit} bytes")]
    TooLarge {
        /// Its size, if known.
        found: Option<u64>,
        /// The limit.
        limit: u64,
    },
    /// No profile arrived in time.
    #[error("nothing within {after:?}")]
    TimedOut {
        /// How long was waited.
        after: Duration,
    },
    /// The connection broke while the profile was being recorded or sent.
    #[error("the connection broke after {after:?}: {detail}")]
    Died {
        /// Time since the start of the call.
        after: Duration,
        /// The connection's error.
        detail: String,
    },
    /// The server refused for another reason.
    #[error("the server answered {code}: {said}")]
    Server {
        /// The gRPC code's name.
        code: String,
        /// The server's message.
        said: String,
    },
    /// The user interrupted it.
    #[error("interrupted")]
    Interrupted,
}

impl CaptureError {
    /// Whether it may change soon. A server that is starting refuses first; one that is recording is busy.
    pub(crate) fn may_pass(&self) -> bool {
        matches!(
            self,
            CaptureError::Refused
                | CaptureError::Unreachable { .. }
                | CaptureError::Busy { .. }
                | CaptureError::Unavailable { .. }
        )
    }

    /// Whether the process is gone, as far as is known.
    pub fn is_gone(&self) -> bool {
        matches!(self, CaptureError::Refused | CaptureError::Unreachable { .. } | CaptureError::Died { .. })
    }
}
