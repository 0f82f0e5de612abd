//! Functions that queries may call besides those of SQLite. All are pure: they read the recording and nothing else.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};
use rusqlite::functions::{Context, FunctionFlags};
use rusqlite::types::{Null, ToSqlOutput, Value, ValueRef};
use rusqlite::{Connection, Error, Result};
use stepscope_analyze::vocabulary::names::kernel_short_name;
use stepscope_analyze::work::kernels::LaunchKeys;

use crate::cell::Cell;
use crate::event::whole;
use crate::recording::{Place, Recording};

/// Largest compiled regular expression, in bytes.
const LARGEST_PATTERN: usize = 256 << 10;

/// Longest text that a regular expression may search, in bytes: its cost is at worst this times the size of the pattern.
const LONGEST_SEARCHED: usize = 100_000;

/// Makes the functions known to a connection; none returns more than `longest` bytes.
pub(crate) fn register(connection: &Connection, recording: &Arc<Recording>, longest: usize) -> Result<()> {
    let flags =
        FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DETERMINISTIC | FunctionFlags::SQLITE_INNOCUOUS;
    crate::text::register(connection, longest, flags)?;
    crate::math::register(connection, flags)?;
    for name in ["arg", "extract_arg"] {
        let of = recording.clone();
        connection.create_scalar_function(name, 2, flags, move |context| argument(&of, context))?;
    }
    connection.create_scalar_function("ms", 1, flags, |context| {
        Ok(number(context.get_raw(0)).map(|ns| ns / 1e6))
    })?;
    connection.create_scalar_function("overlap", 4, flags, |context| {
        let all: Vec<Option<i64>> = (0..4).map(|place| whole(&context.get_raw(place))).collect();
        let [Some(start), Some(dur), Some(other), Some(length)] = all[..] else { return Ok(None) };
        let end = start.saturating_add(dur).min(other.saturating_add(length));
        Ok(Some(end.saturating_sub(start.max(other)).max(0)))
    })?;
    connection.create_scalar_function("short_name", 1, flags, |context| {
        Ok(text(context.get_raw(0)).map(|name| kernel_short_name(name).into_owned()))
    })?;
    // `text REGEXP pattern` calls regexp(pattern, text).
    connection.create_scalar_function("regexp", 2, flags, |context| {
        let pattern: Arc<Regex> = context.get_or_create_aux(0, |value| {
            let pattern = text(value).unwrap_or_default();
            RegexBuilder::new(pattern).size_limit(LARGEST_PATTERN).build()
        })?;
        match text(context.get_raw(1)) {
            Some(text) if text.len() > LONGEST_SEARCHED => {
                let limit =
                    format!("REGEXP searches at most {LONGEST_SEARCHED} bytes; use substr(text, 1, 10000)");
                Err(Error::UserFunctionError(limit.into()))
            }
            text => Ok(text.map(|text| pattern.is_match(text))),
        }
    })
}

fn text(value: ValueRef<'_>) -> Option<&str> {
    match value {
        ValueRef::Text(text) => std::str::from_utf8(text).ok(),
        _ => None,
    }
}

fn number(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::Integer(value) => Some(value as f64),
        ValueRef::Real(value) => Some(value),
        _ => None,
    }
}

/// `arg(event_id, key)`.
fn argument(recording: &Recording, context: &Context<'_>) -> Result<ToSqlOutput<'static>> {
    let event = whole(&context.get_raw(0)).and_then(|id| recording.event(id));
    let (Some((track, index)), Some(key)) = (event, text(context.get_raw(1))) else { return Ok(nothing()) };
    let Some(place) = recording.place(track) else { return Ok(nothing()) };
    // Perfetto keeps arguments of programs below these.
    let key = key.strip_prefix("debug.").or_else(|| key.strip_prefix("args.")).unwrap_or(key);
    let found = place.trace().args_at(place.track, index).named(key);
    Ok(match found.map(Cell::of_argument) {
        Some(Cell::Int(value)) => ToSqlOutput::Owned(Value::Integer(value)),
        Some(Cell::Real(value)) => ToSqlOutput::Owned(Value::Real(value)),
        Some(Cell::Text(text)) => ToSqlOutput::Owned(Value::Text(text.into_owned())),
        Some(Cell::Null) | None => nothing(),
    })
}

fn nothing() -> ToSqlOutput<'static> {
    ToSqlOutput::from(Null)
}

/// Grid, block, registers and shared memory of a kernel, in every spelling that profilers use.
pub(crate) fn launch_config(place: &Place<'_>, index: usize, what: &str) -> Option<i64> {
    let trace = place.trace();
    let config = LaunchKeys::of(trace).read(trace.args_at(place.track, index));
    let side = |all: Option<[u32; 3]>, place: usize| all.map(|all| i64::from(all[place]));
    match what {
        "gridX" => side(config.grid, 0),
        "gridY" => side(config.grid, 1),
        "gridZ" => side(config.grid, 2),
        "blockX" => side(config.block, 0),
        "blockY" => side(config.block, 1),
        "blockZ" => side(config.block, 2),
        "registers" => config.registers.map(i64::from),
        "shared" => config.shared_bytes.and_then(|bytes| i64::try_from(bytes).ok()),
        _ => None,
    }
}
