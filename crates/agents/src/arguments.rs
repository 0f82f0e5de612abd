//! The arguments of a tool, as a client sent them. What is wrong with them is said in words, so that an assistant can
//! correct itself.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};
use stepscope_render::format::quoted;
use stepscope_session::{Cause, Problem};

/// The arguments of one call.
#[derive(Copy, Clone, Debug)]
pub(crate) struct Arguments<'a> {
    given: &'a Map<String, Value>,
}

impl<'a> Arguments<'a> {
    /// Arguments of which all are among the known.
    pub(crate) fn of(given: &'a Map<String, Value>, known: &[String]) -> Result<Self, Problem> {
        match given.keys().find(|key| !known.contains(key)) {
            None => Ok(Arguments { given }),
            Some(key) => Err(Problem::new(Cause::Usage, format!("unknown argument {}", quoted(key)))
                .then(format!("the arguments are {}", known.join(", ")))
                .then("call it again with these")),
        }
    }

    /// A text, if it is there.
    pub(crate) fn text(&self, key: &str) -> Result<Option<&'a str>, Problem> {
        match self.given.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(_) => Err(wrong(key, "a string")),
        }
    }

    /// A text that has to be there.
    pub(crate) fn needed(&self, key: &str) -> Result<&'a str, Problem> {
        self.text(key)?
            .filter(|text| !text.is_empty())
            .ok_or_else(|| wrong(key, "a string that is not empty"))
    }

    /// One text or several.
    pub(crate) fn texts(&self, key: &str) -> Result<Vec<&'a str>, Problem> {
        let texts = match self.given.get(key) {
            Some(Value::Array(values)) => values.iter().map(Value::as_str).collect::<Option<Vec<_>>>(),
            _ => Some(vec![self.needed(key)?]),
        };
        let texts = texts.filter(|texts| (1..=MOST).contains(&texts.len()));
        texts.ok_or_else(|| wrong(key, "one path, or a list of at most 8 paths"))
    }

    /// A whole number within bounds.
    pub(crate) fn whole_number(
        &self,
        key: &str,
        bounds: RangeInclusive<usize>,
        default: usize,
    ) -> Result<usize, Problem> {
        let number = match self.given.get(key) {
            None | Some(Value::Null) => return Ok(default),
            Some(value) => value.as_u64().and_then(|number| usize::try_from(number).ok()),
        };
        let wanted = || wrong(key, &format!("a whole number from {} to {}", bounds.start(), bounds.end()));
        number.filter(|number| bounds.contains(number)).ok_or_else(wanted)
    }

    /// Where a page starts: what an earlier answer called `next_cursor`.
    pub(crate) fn cursor(&self) -> Result<usize, Problem> {
        let given = match self.given.get("cursor") {
            None | Some(Value::Null) => return Ok(0),
            Some(Value::String(text)) => text.parse().ok(),
            Some(number) => number.as_u64().and_then(|number| usize::try_from(number).ok()),
        };
        given.ok_or_else(|| wrong("cursor", "the next_cursor of an earlier answer"))
    }
}

/// Most recordings per side of a comparison.
const MOST: usize = 8;

fn wrong(key: &str, wanted: &str) -> Problem {
    Problem::new(Cause::Usage, format!("the argument `{key}` is missing or wrong"))
        .then(format!("it is {wanted}"))
        .then("call it again with that")
}
