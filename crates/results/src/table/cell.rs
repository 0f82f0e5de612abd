//! One value of a table: plain, typed, without a format.

use serde::ser::{Serialize, SerializeMap, Serializer};

/// One value. Use `into()` on numbers, text, booleans, or an `Option` of these.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Cell {
    /// Unknown or not applicable.
    #[default]
    Null,
    /// A whole number.
    Int(i128),
    /// Any other number; finite.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Text(String),
    /// Named numbers: an object in JSON, JSON text in CSV, e.g. a step's breakdown.
    Map(Vec<(String, f64)>),
}

impl Cell {
    /// Named numbers; those that are not finite are unknown, and left out.
    pub fn named<N: Into<String>>(numbers: impl IntoIterator<Item = (N, f64)>) -> Self {
        let known = numbers.into_iter().filter(|(_, number)| number.is_finite());
        Cell::Map(known.map(|(name, number)| (name.into(), number)).collect())
    }
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        if value.is_finite() { Cell::Float(value) } else { Cell::Null }
    }
}

macro_rules! whole {
    ($($number:ty),*) => {$(
        impl From<$number> for Cell {
            fn from(value: $number) -> Self {
                Cell::Int(i128::from(value))
            }
        }
    )*};
}
whole!(i32, u32, i64, u64);

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Cell::Int(value as i128)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Cell::Bool(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Cell::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Cell::Text(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Cell::Null => to.serialize_none(),
            // JSON readers disagree about integers beyond 64 bits; none of these values gets there.
            Cell::Int(value) => match i64::try_from(*value) {
                Ok(value) => to.serialize_i64(value),
                Err(_) => u64::try_from(*value)
                    .map_or_else(|_| Err(serde::ser::Error::custom("beyond 64 bits")), Ok)
                    .and_then(|value| to.serialize_u64(value)),
            },
            Cell::Float(value) => to.serialize_f64(*value),
            Cell::Bool(value) => to.serialize_bool(*value),
            Cell::Text(text) => to.serialize_str(text),
            Cell::Map(entries) => {
                let mut map = to.serialize_map(Some(entries.len()))?;
                for (key, value) in entries {
                    map.serialize_entry(key, value)?;
                }
                map.end()
            }
        }
    }
}
