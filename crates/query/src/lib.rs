//! SQL over a recording: events, what surrounds them, and stepscope's results as read-only tables.
//!
//! [`Database::new`] takes an open profile, [`Database::query`] runs one SELECT. The engine is SQLite; the tables are
//! virtual, so that events stay in the columns of the trace and results are computed when a query first asks for them.
//! What a query may do, and for how long, is decided in `guard`; [`TABLES`], [`VIEWS`] and [`FUNCTIONS`] describe what it
//! can ask.
//!
//! This crate knows nothing about terminals, browsers and files of its own: it reads what the session has opened.

mod arguments;
mod cell;
mod error;
mod event;
mod examples;
mod family;
mod functions;
mod guard;
mod logs;
mod math;
mod meaning;
mod postings;
mod recording;
mod related;
mod rows;
mod running;
mod schema;
mod shortcut;
mod tables;
mod text;
mod vtab;

use std::sync::Arc;
use std::time::Duration;

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Statement};
use serde::ser::{Serialize, Serializer};
use stepscope_analyze::devices::collectives::NoWaiting;
use stepscope_read::Progress;
use stepscope_sqlite::MemoryLimit;

pub use error::{Failed, QueryError};
pub use examples::{EXAMPLES, Example};
pub use logs::LogFiles;
pub use recording::Holder;
pub use schema::{Column, FUNCTIONS, Function, Holds, TABLES, Table, View};
pub use tables::perfetto::VIEWS;

use recording::Recording;
use running::RunningQuery;

/// What a query may take.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Rows of an answer; further rows are left out.
    pub rows: usize,
    /// Bytes of an answer's values; further rows are left out.
    pub bytes: usize,
    /// How long a query may run, including analyses behind the tables. An analysis that takes longer goes on, and its
    /// result is kept for the next query.
    pub time: Duration,
    /// Bytes that SQLite may hold for a query, besides its answer.
    pub memory: u64,
}

impl Limits {
    /// For a terminal. Sorting all events of a large recording stays within the memory.
    pub const TERMINAL: Limits =
        Limits { rows: 1_000_000, bytes: 512 << 20, time: Duration::from_secs(60), memory: 2 << 30 };
    /// For answers over a network, of which several may be computed at once.
    pub const PAGE: Limits =
        Limits { rows: 5_000, bytes: 16 << 20, time: Duration::from_secs(10), memory: 1 << 30 };
}

/// One value of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Unknown.
    Null,
    /// A whole number.
    Int(i64),
    /// A number; may be infinite.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes.
    Blob(Vec<u8>),
}

impl Value {
    fn of(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(value) => Value::Int(value),
            ValueRef::Real(value) => Value::Real(value),
            ValueRef::Text(text) => Value::Text(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
        }
    }

    fn bytes(&self) -> usize {
        size_of::<Self>()
            + match self {
                Value::Text(text) => text.len(),
                Value::Blob(bytes) => bytes.len(),
                Value::Null | Value::Int(_) | Value::Real(_) => 0,
            }
    }

    /// The value as text for people and CSV: NULL is empty, bytes are hexadecimal.
    pub fn text(&self) -> String {
        match self {
            Value::Null => String::new(),
            Value::Int(value) => value.to_string(),
            Value::Real(value) => value.to_string(),
            Value::Text(text) => text.clone(),
            Value::Blob(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// JSON: numbers are numbers, NULL and infinities are `null`, bytes are hexadecimal text.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Value::Int(value) => to.serialize_i64(*value),
            Value::Real(value) if value.is_finite() => to.serialize_f64(*value),
            Value::Null | Value::Real(_) => to.serialize_none(),
            Value::Text(text) => to.serialize_str(text),
            Value::Blob(_) => to.serialize_str(&self.text()),
        }
    }
}

/// The answer to a query.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Names of the columns.
    pub columns: Vec<String>,
    /// The rows, each as long as `columns`.
    pub rows: Vec<Vec<Value>>,
    /// Whether rows are missing because of a limit.
    pub truncated: bool,
}

/// Starts work that may outlive its query.
pub type Spawn = Arc<dyn Fn(Box<dyn FnOnce() + Send>) + Send + Sync>;

/// A recording that can be asked. Cheap to clone; may be asked from several threads at once.
#[derive(Clone)]
pub struct Database {
    recording: Arc<Recording>,
    limits: Limits,
    spawn: Spawn,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("events", &self.recording.events)
            .field("limits", &self.limits)
            .finish()
    }
}

impl Database {
    /// Takes a recording, or whatever holds one. Nothing is computed yet.
    pub fn new(holder: Arc<dyn Holder>, limits: Limits) -> Self {
        Database { recording: Arc::new(Recording::new(holder)), limits, spawn: running::on_a_thread() }
    }

    /// The same recording with other limits; what was computed is shared.
    pub fn limited(&self, limits: Limits) -> Self {
        Database { limits, ..self.clone() }
    }

    /// The same recording with analyses on other threads: by default, each gets its own.
    pub fn spawning(&self, spawn: Spawn) -> Self {
        Database { spawn, ..self.clone() }
    }

    /// The tables and views, or the one with this name, as statements that would create them.
    pub fn schema(table: Option<&str>) -> String {
        schema::described(table)
    }

    /// Runs one SELECT.
    pub fn query(&self, sql: &str) -> Result<Answer, QueryError> {
        self.query_until(sql, &Arc::default())
    }

    /// Runs one SELECT until it ends or until somebody stops the progress.
    pub fn query_until(&self, sql: &str, progress: &Arc<Progress>) -> Result<Answer, QueryError> {
        if let Some(answer) = shortcut::answer(sql, &self.recording) {
            return Ok(answer);
        }
        let spawn = self.spawn.clone();
        let query = Arc::new(RunningQuery::new(self.recording.clone(), self.limits, progress.clone(), spawn));
        let failed = |error: rusqlite::Error| {
            if query.is_stopped() {
                QueryError::stopped()
            } else if query.gave_up() {
                QueryError::analysis_timed_out(self.limits.time)
            } else {
                QueryError::of(&error, self.limits.time)
            }
        };
        let _limit = MemoryLimit::of(self.limits.memory);
        // Connections share no memory, and a fresh one costs little.
        let connection = guard::connect(&query, self.limits.memory).map_err(failed)?;
        let mut statements = Batch::new(&connection, sql);
        let mut statement = statements.next().map_err(failed)?.ok_or_else(QueryError::empty)?;
        match statements.next() {
            Ok(None) => {}
            Ok(Some(_)) | Err(_) => return Err(QueryError::several()),
        }
        // Some statements are allowed because they would do nothing here, such as REINDEX.
        if statement.column_count() == 0 || !statement.readonly() {
            return Err(QueryError::no_select());
        }
        if statement.parameter_count() > 0 {
            return Err(QueryError::parameters());
        }
        self.collect(&mut statement).map_err(failed)
    }

    /// Why a table that a query names has no rows, where that says something about the recording.
    pub fn remark(&self, sql: &str) -> Option<&'static str> {
        let is_named = sql.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "collective");
        let why = is_named.then(|| self.recording.ranks().no_waiting()).flatten()?;
        Some(match why {
            NoWaiting::NoCollectives => "`collective` has no rows: no host recorded collectives of a device",
            NoWaiting::OneRank => {
                "`collective` has no rows: only one rank has collectives; open the recordings of two ranks together"
            }
            NoWaiting::NothingInCommon => {
                "`collective` has no rows: the ranks that are open have no collective in common, or their clocks cannot be compared"
            }
        })
    }

    fn collect(&self, statement: &mut Statement<'_>) -> rusqlite::Result<Answer> {
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut answer = Answer { columns, ..Answer::default() };
        let (width, mut bytes) = (answer.columns.len(), 0);
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            if answer.rows.len() >= self.limits.rows || bytes > self.limits.bytes {
                answer.truncated = true;
                break;
            }
            let values: Vec<Value> =
                (0..width).map(|place| row.get_ref(place).map(Value::of)).collect::<rusqlite::Result<_>>()?;
            bytes += values.iter().map(Value::bytes).sum::<usize>();
            answer.rows.push(values);
        }
        Ok(answer)
    }
}
