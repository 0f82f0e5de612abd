//! One value of a row on its way to SQLite. Text is borrowed where the trace holds it.

use std::borrow::Cow;
use std::cmp::Ordering;

use stepscope_trace as trace;

/// Longer arguments are cut: compiled programs can be megabytes.
const LONGEST: usize = 64 << 10;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(Cow<'a, str>),
}

impl<'a> Cell<'a> {
    /// Text; empty text is unknown.
    pub(crate) fn known(text: &'a str) -> Self {
        if text.is_empty() { Cell::Null } else { Cell::Text(Cow::Borrowed(text)) }
    }

    /// The value of an argument. Integers that SQLite cannot hold become text.
    pub(crate) fn of_argument(value: trace::Value<'a>) -> Self {
        match value {
            trace::Value::Int(value) => Cell::Int(value),
            trace::Value::UInt(value) => {
                i64::try_from(value).map_or_else(|_| Cell::from(value.to_string()), Cell::Int)
            }
            trace::Value::Float(value) if value.is_finite() => Cell::Real(value),
            trace::Value::Float(_) | trace::Value::Null => Cell::Null,
            trace::Value::Bool(value) => Cell::Int(i64::from(value)),
            trace::Value::Str(text) | trace::Value::Json(text) => Cell::Text(cut(text)),
            trace::Value::Bytes(bytes) => Cell::from(format!("{} bytes", bytes.len())),
        }
    }

    /// SQLite's order: NULL, numbers, text by bytes.
    pub(crate) fn order(&self, other: &Cell<'_>) -> Ordering {
        match (self, other) {
            (Cell::Int(a), Cell::Int(b)) => a.cmp(b),
            (Cell::Text(a), Cell::Text(b)) => a.as_bytes().cmp(b.as_bytes()),
            (Cell::Null, Cell::Null) => Ordering::Equal,
            (Cell::Real(_) | Cell::Int(_), Cell::Real(_) | Cell::Int(_)) => {
                self.number().total_cmp(&other.number())
            }
            _ => self.class().cmp(&other.class()),
        }
    }

    fn number(&self) -> f64 {
        match self {
            Cell::Int(value) => *value as f64,
            Cell::Real(value) => *value,
            Cell::Null | Cell::Text(_) => f64::NAN,
        }
    }

    fn class(&self) -> u8 {
        match self {
            Cell::Null => 0,
            Cell::Int(_) | Cell::Real(_) => 1,
            Cell::Text(_) => 2,
        }
    }
}

/// At most [`LONGEST`] bytes, at the border of a character.
fn cut(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= LONGEST {
        return text;
    }
    let end = text.floor_char_boundary(LONGEST);
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(..end).unwrap_or_default()),
        Cow::Owned(mut text) => {
            text.truncate(end);
            Cow::Owned(text)
        }
    }
}

impl From<i64> for Cell<'_> {
    fn from(value: i64) -> Self {
        Cell::Int(value)
    }
}

impl From<u32> for Cell<'_> {
    fn from(value: u32) -> Self {
        Cell::Int(i64::from(value))
    }
}

impl From<u64> for Cell<'_> {
    fn from(value: u64) -> Self {
        i64::try_from(value).map_or_else(|_| Cell::from(value.to_string()), Cell::Int)
    }
}

impl From<usize> for Cell<'_> {
    fn from(value: usize) -> Self {
        Cell::from(value as u64)
    }
}

impl From<bool> for Cell<'_> {
    fn from(value: bool) -> Self {
        Cell::Int(i64::from(value))
    }
}

impl From<f64> for Cell<'_> {
    fn from(value: f64) -> Self {
        if value.is_finite() { Cell::Real(value) } else { Cell::Null }
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(value: &'a str) -> Self {
        Cell::Text(Cow::Borrowed(value))
    }
}

impl From<String> for Cell<'_> {
    fn from(value: String) -> Self {
        Cell::Text(Cow::Owned(value))
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}
