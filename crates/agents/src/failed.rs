//! Why a tool has no answer.

use std::io;
use std::sync::Arc;

use stepscope_read::Progress;
use stepscope_results::table::SelectError;
use stepscope_session::{Cause, Problem};

/// Why a tool has no answer.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The assistant or the user can do something about it.
    Problem(Problem),
    /// The request was cancelled.
    Cancelled,
}

impl From<Problem> for Failed {
    fn from(problem: Problem) -> Self {
        Failed::Problem(problem)
    }
}

impl From<SelectError> for Failed {
    fn from(error: SelectError) -> Self {
        Failed::Problem(Problem::new(Cause::Usage, error.to_string()))
    }
}

impl From<io::Error> for Failed {
    fn from(error: io::Error) -> Self {
        Failed::Problem(Problem::new(Cause::Nothing, format!("the answer cannot be written: {error}")))
    }
}

/// Tells a tool that its request was cancelled. Readers and queries that are given its progress end by
/// themselves; other long work asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stop(Arc<Progress>);

impl Stop {
    /// The client cancelled the request.
    pub(crate) fn set(&self) {
        self.0.stop();
    }

    /// Whether it did.
    pub(crate) fn is_set(&self) -> bool {
        self.0.is_stopped()
    }

    /// The progress of what the tool reads and asks, which a cancellation stops.
    pub(crate) fn progress(&self) -> &Arc<Progress> {
        &self.0
    }

    /// Ends the tool if it did; called between long parts.
    pub(crate) fn check(&self) -> Result<(), Failed> {
        if self.is_set() { Err(Failed::Cancelled) } else { Ok(()) }
    }
}
