//! Why a query got no answer: what went wrong, what was found, what to do.

use std::fmt;
use std::time::Duration;

use rusqlite::{Error, ErrorCode};
use stepscope_session::{Cause, Problem};

/// The kind of failure.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Failed {
    /// SQLite cannot understand the query: syntax, unknown tables and columns.
    Wrong,
    /// The query asks for something other than reading.
    Refused,
    /// The query ran into the time limit.
    TooLong,
    /// The query needs more memory, or longer values, than the limits allow.
    TooLarge,
    /// Nobody waits for the answer any more.
    Stopped,
}

/// Why a query got no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueryError {
    /// The kind of failure.
    pub failed: Failed,
    what: String,
    found: String,
    todo: String,
}

impl QueryError {
    pub(crate) fn new(
        failed: Failed,
        what: impl Into<String>,
        found: impl Into<String>,
        todo: impl Into<String>,
    ) -> Self {
        QueryError { failed, what: what.into(), found: found.into(), todo: todo.into() }
    }

    /// What went wrong; what was found; what to do.
    pub fn parts(&self) -> [&str; 3] {
        [&self.what, &self.found, &self.todo]
    }

    /// The name of a table, column or function that does not exist.
    pub fn unknown_name(&self) -> Option<&str> {
        let after = ["no such table: ", "no such column: ", "no such function: "];
        let name = after.iter().find_map(|start| self.found.strip_prefix(start))?;
        // Behind the name comes its place; before it may be the table it should be of.
        name.split(',').next()?.rsplit('.').next()
    }

    pub(crate) fn timed_out(limit: Duration) -> Self {
        QueryError::new(
            Failed::TooLong,
            format!("the query was stopped after {} s", limit.as_secs_f64()),
            "it had not finished",
            "filter by time, track, step or name, or raise the time limit",
        )
    }

    pub(crate) fn analysis_timed_out(limit: Duration) -> Self {
        QueryError::new(
            Failed::TooLong,
            format!("the query was stopped after {} s", limit.as_secs_f64()),
            "the analysis behind one of its tables had not finished",
            "raise the time limit, or ask again while the profile is open: the analysis goes on",
        )
    }

    pub(crate) fn stopped() -> Self {
        QueryError::new(Failed::Stopped, "the query was cancelled", "it had not finished", "run it again")
    }

    pub(crate) fn several() -> Self {
        QueryError::new(
            Failed::Refused,
            "there is more than one statement",
            "a query is one SELECT",
            "run the statements one by one",
        )
    }

    pub(crate) fn empty() -> Self {
        QueryError::new(Failed::Wrong, "the query is empty", "found no statement", "give a SELECT")
    }

    pub(crate) fn no_select() -> Self {
        Self::refused("found another statement".to_owned())
    }

    pub(crate) fn parameters() -> Self {
        QueryError::new(
            Failed::Wrong,
            "the query has parameters",
            "`?`, `:name`, `@name` and `$name` have no value here",
            "write the values into the query",
        )
    }

    /// What SQLite says about a query, in our words where they help.
    pub(crate) fn of(error: &Error, limit: Duration) -> Self {
        let (code, said) = spoken(error);
        match code {
            Some(ErrorCode::OperationInterrupted) => Self::timed_out(limit),
            Some(ErrorCode::AuthorizationForStatementDenied | ErrorCode::ReadOnly) => Self::refused(said),
            Some(ErrorCode::OutOfMemory | ErrorCode::TooBig) => QueryError::new(
                Failed::TooLarge,
                "the query needs too much memory",
                said,
                "filter the rows, or select fewer and shorter columns",
            ),
            _ if ["not authorized", "prohibited", "may not be modified"]
                .iter()
                .any(|no| said.contains(no)) =>
            {
                Self::refused(said)
            }
            _ if said.contains("too many") || said.contains("too large") || said.contains("too deep") => {
                QueryError::new(Failed::TooLarge, "the query is too large", said, "make it shorter")
            }
            _ => Self::wrong(said),
        }
    }

    fn refused(said: String) -> Self {
        QueryError::new(
            Failed::Refused,
            "only SELECT is allowed",
            said,
            "queries read the recording; they cannot change it, open files or set options",
        )
    }

    fn wrong(said: String) -> Self {
        let todo = if said.contains("no such table") {
            "`.tables` lists the tables"
        } else if said.contains("no such column") || said.contains("no such function") {
            "`.schema` lists tables, columns and functions; text stands in 'single quotes'"
        } else {
            "check the query; `--examples` shows some that work"
        };
        QueryError::new(Failed::Wrong, "the query cannot be run", said, todo)
    }
}

/// The code and the words. rusqlite appends the whole query to syntax errors; the place in it is enough.
fn spoken(error: &Error) -> (Option<ErrorCode>, String) {
    match error {
        Error::SqliteFailure(error, said) => {
            (Some(error.code), said.clone().unwrap_or_else(|| error.to_string()))
        }
        Error::SqlInputError { error, msg, offset, .. } if *offset >= 0 => {
            (Some(error.code), format!("{msg}, at character {}", i64::from(*offset) + 1))
        }
        Error::SqlInputError { error, msg, .. } => (Some(error.code), msg.clone()),
        other => (None, other.to_string().lines().next().unwrap_or_default().to_owned()),
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}; {}", self.what, self.found, self.todo)
    }
}

impl std::error::Error for QueryError {}

impl From<QueryError> for Problem {
    fn from(error: QueryError) -> Self {
        Problem::new(Cause::Usage, error.what).then(error.found).then(error.todo)
    }
}
