//! What went wrong, in the one form that all errors take: `error: what; what was found; what to do`.

use std::fmt;
use std::process::ExitCode;

/// The exit codes of the contract.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
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
pub struct Problem {
    /// The exit code that the command ends with.
    pub exit: Exit,
    /// What; what was found; what to do. Joined with semicolons.
    parts: Vec<String>,
    hints: Vec<String>,
}

impl Problem {
    /// What went wrong.
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Problem { exit, parts: vec![what.into()], hints: Vec::new() }
    }

    /// Adds what was found, then what to do.
    pub fn then(mut self, part: impl Into<String>) -> Self {
        self.parts.push(part.into());
        self
    }

    /// What; what was found; what to do. The latter two may be missing.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Further hints.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Adds a `hint:` line.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
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
