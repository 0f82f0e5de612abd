//! User-facing errors. All have the same form: `error: what; what was found; what to do`.

use std::fmt;

use stepscope_analyze::Coverage;
use stepscope_analyze::breakdown::selection::Range;
use stepscope_analyze::recording::health::Issue;
use stepscope_results::covers as words;

/// Whose fault a problem is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Wrong usage.
    Usage,
    /// Nothing readable was found.
    Nothing,
    /// Damaged input; the readable part was shown.
    Damaged,
}

/// An error as the user sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// What kind of problem it is.
    pub cause: Cause,
    /// What went wrong; what was found; what to do. Joined with semicolons.
    parts: Vec<String>,
    hints: Vec<String>,
    /// The host that is missing from all results because of it.
    missing: Option<String>,
}

impl Problem {
    /// Creates an error that says what went wrong.
    pub fn new(cause: Cause, what: impl Into<String>) -> Self {
        Problem { cause, parts: vec![what.into()], hints: Vec::new(), missing: None }
    }

    /// Adds what was found, then what to do.
    pub fn then(mut self, part: impl Into<String>) -> Self {
        self.parts.push(part.into());
        self
    }

    /// Says which host is missing from all results because of it.
    pub(crate) fn without(self, host: &str) -> Self {
        Problem { missing: Some(host.to_owned()), ..self }
    }

    /// A problem of the recording, if a host is missing from it.
    pub(crate) fn issue(&self) -> Option<Issue> {
        let detail = self.parts.iter().take(2).cloned().collect::<Vec<_>>().join("; ");
        Some(Issue::unread(self.missing.clone()?, detail))
    }

    /// What went wrong; what was found; what to do. The last two may be missing.
    pub fn parts(&self) -> &[String] {
        &self.parts
    }

    /// Additional hints.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Adds a `hint:` line.
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

/// Error for a range that contains nothing: what was requested, what exists, what to do.
pub(crate) fn missed(covers: &Coverage) -> Result<(), Problem> {
    if !covers.is_missed() {
        return Ok(());
    }
    let asked = match covers.selection.range {
        Range::Steps(first, last) if first == last => {
            format!("step {first} was not recorded, or not completely")
        }
        Range::Steps(first, i64::MAX) => format!("no complete step from {first} on was recorded"),
        Range::Steps(i64::MIN, last) => format!("no complete step up to {last} was recorded"),
        Range::Steps(first, last) => format!("none of the steps {first} to {last} was recorded completely"),
        Range::Time(_) | Range::Piece(_) | Range::Counted | Range::Whole => {
            "nothing that counts was recorded in that time range".to_owned()
        }
    };
    let steps = covers.found.map_or("no steps".to_owned(), words::numbers);
    let time = covers.recorded.map_or(String::new(), |span| format!(", {}", words::time(span)));
    Err(Problem::new(Cause::Usage, asked)
        .then(format!("found {steps}{time}"))
        .then("choose --steps or --time within this range, or omit them"))
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.parts.join("; "))?;
        self.hints.iter().try_for_each(|hint| write!(f, "\nhint: {hint}"))
    }
}
