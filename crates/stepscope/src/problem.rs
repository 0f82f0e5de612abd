//! What went wrong, in the one form that all errors take: `error: what; what was found; what to do`.

use std::fmt;
use std::io;
use std::process::ExitCode;

/// The exit codes of the contract.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// The gate failed.
    GateFailed = 1,
    /// Wrong usage.
    Usage = 2,
    /// Nothing readable there.
    Nothing = 3,
    /// Damaged input; what could be read was shown.
    Damaged = 4,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// An error as the user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) exit: Exit,
    /// What; what was found; what to do. Joined with semicolons.
    parts: Vec<String>,
    hints: Vec<String>,
}

impl Problem {
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Problem { exit, parts: vec![what.into()], hints: Vec::new() }
    }

    /// Adds what was found, then what to do.
    pub(crate) fn then(mut self, part: impl Into<String>) -> Self {
        self.parts.push(part.into());
        self
    }

    /// Adds a `hint:` line.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.parts.join("; "))?;
        self.hints.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}

/// Why a command ended early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// For the user to read.
    Problem(Problem),
    /// The output could not be written.
    Output(io::Error),
}

impl Failure {
    pub(crate) fn into_problem(self) -> Problem {
        match self {
            Failure::Problem(problem) => problem,
            Failure::Output(error) => Problem::new(Exit::Nothing, "cannot write the output")
                .then(error.to_string())
                .then("check the disk, or write somewhere else"),
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

impl From<stepscope_render::table::SelectError> for Failure {
    fn from(error: stepscope_render::table::SelectError) -> Self {
        Failure::Problem(Problem::new(Exit::Usage, error.to_string()))
    }
}
