//! Exit codes.

use stepscope_session::Cause;

/// How a command ended.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done.
    Done,
    /// The gate failed.
    GateFailed,
    /// Wrong usage.
    Usage,
    /// Nothing readable was found.
    Nothing,
    /// Damaged input; the readable part was shown.
    Damaged,
    /// The exit code of a command that was run for the user.
    OfCommand(u8),
}

impl Exit {
    /// The number that the process returns.
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::GateFailed => 1,
            Exit::Usage => 2,
            Exit::Nothing => 3,
            Exit::Damaged => 4,
            Exit::OfCommand(code) => code,
        }
    }
}

impl From<Cause> for Exit {
    fn from(cause: Cause) -> Self {
        match cause {
            Cause::Usage => Exit::Usage,
            Cause::Nothing => Exit::Nothing,
            Cause::Damaged => Exit::Damaged,
        }
    }
}
