//! The one question whose answer needs no scan: how many events there are. SQLite counts the rows of a virtual table one
//! by one.

use std::sync::LazyLock;

use regex::Regex;

use crate::recording::Recording;
use crate::{Answer, Value};

static COUNT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)^\s*select\s+(count\s*\(\s*\*\s*\))(?:\s+as\s+([a-z_]+))?\s+from\s+(?:event|slice)\s*;?\s*$",
    )
    .ok()
});

/// The answer, if the query is that question.
pub(crate) fn answer(sql: &str, recording: &Recording) -> Option<Answer> {
    let query = COUNT.as_ref()?.captures(sql)?;
    let name = query.get(2).or_else(|| query.get(1))?.as_str().to_owned();
    let events = i64::try_from(recording.events).ok()?;
    Some(Answer { columns: vec![name], rows: vec![vec![Value::Int(events)]], truncated: false })
}
