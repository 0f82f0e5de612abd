//! Functions of SQLite whose cost is the product of the lengths of their arguments, written again so that it is their sum.
//!
//! SQLite looks at the clock between its operations, never inside a function: `instr` of two texts of a megabyte would run
//! for minutes past any limit. These give the same answers, as far as valid text goes.

use memchr::memmem;
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Error, Result, ffi};

use std::borrow::Cow;
use std::collections::BTreeSet;

/// Replaces the functions of a connection. No result is longer than `longest` bytes.
pub(crate) fn register(connection: &Connection, longest: usize, flags: FunctionFlags) -> Result<()> {
    connection.create_scalar_function("instr", 2, flags, |context| Ok(position(context)))?;
    connection.create_scalar_function("replace", 3, flags, move |context| replaced(context, longest))?;
    for (name, side) in [("ltrim", Side::Start), ("rtrim", Side::End), ("trim", Side::Both)] {
        connection.create_scalar_function(name, 2, flags, move |context| Ok(trimmed(context, side)))?;
    }
    connection.create_scalar_function("unhex", 2, flags, |context| Ok(bytes_of_hex(context)))
}

/// Which end of a text is trimmed.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Side {
    Start,
    End,
    Both,
}

/// A value as text; `None` for NULL.
fn text<'a>(value: ValueRef<'a>) -> Option<Cow<'a, str>> {
    match value {
        ValueRef::Null => None,
        ValueRef::Integer(value) => Some(value.to_string().into()),
        ValueRef::Real(value) => Some(real(value).into()),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes)),
    }
}

/// A number as SQLite writes it: as few digits as tell it from others, always with a point.
fn real(value: f64) -> String {
    /// Above this exponent, and below the least one, numbers are written with it.
    const EXPONENTS: std::ops::Range<i32> = -4..17;
    if value.is_infinite() {
        return if value > 0.0 { "Inf" } else { "-Inf" }.to_owned();
    }
    let with_point =
        |digits: &str| if digits.contains('.') { digits.to_owned() } else { format!("{digits}.0") };
    let scientific = format!("{value:e}");
    match scientific.split_once('e') {
        Some((mantissa, exponent)) if !EXPONENTS.contains(&exponent.parse().unwrap_or(0)) => {
            let (sign, digits) = exponent.strip_prefix('-').map_or(('+', exponent), |digits| ('-', digits));
            format!("{}e{sign}{digits:0>2}", with_point(mantissa))
        }
        _ => with_point(&format!("{value}")),
    }
}

/// `instr(text, part)`: where the part begins, from 1; 0 if nowhere. Characters, or bytes if both are blobs.
fn position(context: &Context<'_>) -> Option<i64> {
    if let (ValueRef::Blob(whole), ValueRef::Blob(part)) = (context.get_raw(0), context.get_raw(1)) {
        return Some(memmem::find(whole, part).map_or(0, |at| at as i64 + 1));
    }
    let (whole, part) = (text(context.get_raw(0))?, text(context.get_raw(1))?);
    let at = memmem::find(whole.as_bytes(), part.as_bytes());
    Some(at.map_or(0, |at| whole[..at].chars().count() as i64 + 1))
}

/// `replace(text, from, to)`.
fn replaced(context: &Context<'_>, longest: usize) -> Result<Option<String>> {
    let [whole, from, to] = [0, 1, 2].map(|place| text(context.get_raw(place)));
    let (Some(whole), Some(from), Some(to)) = (whole, from, to) else { return Ok(None) };
    if from.is_empty() {
        return Ok(Some(whole.into_owned()));
    }
    let found = memmem::find_iter(whole.as_bytes(), from.as_bytes()).count();
    let length = (whole.len() - found * from.len()).saturating_add(found.saturating_mul(to.len()));
    if length > longest {
        return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_TOOBIG), None));
    }
    Ok(Some(whole.replace(&*from, &to)))
}

/// `trim(text, characters)` and its kin.
fn trimmed(context: &Context<'_>, side: Side) -> Option<String> {
    let (whole, characters) = (text(context.get_raw(0))?, text(context.get_raw(1))?);
    let set: BTreeSet<char> = characters.chars().collect();
    let mut rest: &str = &whole;
    if side != Side::End {
        rest = rest.trim_start_matches(|character| set.contains(&character));
    }
    if side != Side::Start {
        rest = rest.trim_end_matches(|character| set.contains(&character));
    }
    Some(rest.to_owned())
}

/// `unhex(text, ignored)`: NULL if the text has anything else than pairs of digits and ignored characters.
fn bytes_of_hex(context: &Context<'_>) -> ToSqlOutput<'static> {
    let bytes = || -> Option<Vec<u8>> {
        let (whole, ignored) = (text(context.get_raw(0))?, text(context.get_raw(1))?);
        let ignored: BTreeSet<char> = ignored.chars().collect();
        let mut bytes = Vec::with_capacity(whole.len() / 2);
        let mut all = whole.chars();
        while let Some(first) = all.next() {
            let digit = |character: char| character.to_digit(16).and_then(|digit| u8::try_from(digit).ok());
            match digit(first) {
                Some(high) => bytes.push(high << 4 | digit(all.next()?)?),
                None if ignored.contains(&first) => {}
                None => return None,
            }
        }
        Some(bytes)
    };
    ToSqlOutput::Owned(bytes().map_or(Value::Null, Value::Blob))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every call, as SQLite itself answers it and as these functions do.
    #[test]
    fn answers_are_those_of_sqlite() {
        const CALLS: &[&str] = &[
            "instr('abcabc', 'ca')",
            "instr('abc', 'x')",
            "instr('äöü', 'ü')",
            "instr('abc', '')",
            "instr('', 'a')",
            "instr(NULL, 'a')",
            "instr('a', NULL)",
            "instr(x'00ff01', x'01')",
            "instr(x'616263', 'c')",
            "instr(12345, 34)",
            "instr(1.5, '.')",
            "instr(1e300, 'e')",
            "instr(-0.00001234, 'e')",
            "replace('aXbXc', 'X', '--')",
            "replace('abc', '', 'x')",
            "replace('aaa', 'aa', 'b')",
            "replace(NULL, 'a', 'b')",
            "replace('a', NULL, 'b')",
            "replace('a', 'a', NULL)",
            "replace(1.0, '.', ',')",
            "replace(123456789012345678, '1', 'x')",
            "replace(0.1 + 0.2, '0', 'o')",
            "replace(1e15, '1', 'x')",
            "replace(123456.789, '9', 'x')",
            "replace(1e-5, '1', 'x')",
            "replace(0.0001, '1', 'x')",
            "replace(1e16, '1', 'x')",
            "replace(1e17, '1', 'x')",
            "replace(1.25e18, '1', 'x')",
            "replace(-1e100, '1', 'x')",
            "replace(9e999, 'n', 'x')",
            "replace(0.1, '1', 'x')",
            "replace(100.0 / 3, '1', 'x')",
            "trim('xxaxbxx', 'x')",
            "ltrim('xyxa', 'xy')",
            "rtrim('axyx', 'xy')",
            "trim('aaa', 'a')",
            "trim('a', '')",
            "trim(NULL, 'a')",
            "trim('äaä', 'ä')",
            "unhex('61-62', '-')",
            "unhex('6-162', '-')",
            "unhex('6', '')",
            "unhex('zz', 'z')",
            "unhex(NULL, '')",
            "unhex('61', NULL)",
        ];
        let (plain, ours) = (Connection::open_in_memory().unwrap(), Connection::open_in_memory().unwrap());
        register(&ours, 1_000, FunctionFlags::SQLITE_UTF8).unwrap();
        for call in CALLS {
            let answer = |connection: &Connection| -> Value {
                connection.query_row(&format!("SELECT {call}"), [], |row| row.get(0)).unwrap()
            };
            assert_eq!(answer(&ours), answer(&plain), "{call}");
        }
    }

    #[test]
    fn results_have_a_limit() {
        let connection = Connection::open_in_memory().unwrap();
        register(&connection, 1_000, FunctionFlags::SQLITE_UTF8).unwrap();
        let grown = "SELECT replace(hex(zeroblob(200)), '0', 'xxxx')";
        let error = connection.query_row(grown, [], |row| row.get::<_, String>(0)).unwrap_err();
        assert_eq!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::TooBig), "{error}");
    }
}
