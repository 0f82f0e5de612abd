//! Why a command ended early.

use std::io;

use stepscope_session::{Cause, Problem};

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error to show to the user.
    Problem(Problem),
    /// A command could not be started; the code is the one that shells use.
    #[cfg_attr(not(unix), expect(dead_code, reason = "only Unix runs commands"))]
    Start(u8, Problem),
    /// The output could not be written.
    Output(io::Error),
}

impl Failure {
    pub(crate) fn into_problem(self) -> Problem {
        match self {
            Failure::Problem(problem) | Failure::Start(_, problem) => problem,
            Failure::Output(error) => Problem::new(Cause::Nothing, "cannot write the output")
                .then(error.to_string())
                .then("check the disk, or write to another location"),
        }
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Failure::Problem(problem)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

impl From<stepscope_results::table::SelectError> for Failure {
    fn from(error: stepscope_results::table::SelectError) -> Self {
        Failure::Problem(Problem::new(Cause::Usage, error.to_string()))
    }
}
