//! A connection that can read the tables and do nothing else.
//!
//! The database is empty and in memory. An authorizer lets a query select, read, call functions and recurse; everything
//! else (writing, attaching files, pragmas, extensions) is refused before it runs. Limits bound the size of a query and
//! of each value, a progress handler bounds its time, and a heap limit its memory. The handler is not called inside a
//! function, therefore values are kept short enough that no function takes long.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Result};

use crate::arguments::ArgTable;
use crate::event::EventTable;
use crate::rows::RowsTable;
use crate::schema::{From, TABLES};
use crate::tables::nsys::VIEWS;
use crate::world::World;
use crate::{functions, vtab};

/// SQLite's own limits.
const LIMITS: &[(Limit, i32)] = &[
    // Bytes of a value and of a row.
    (Limit::SQLITE_LIMIT_LENGTH, 8_000_000),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 64 << 10),
    (Limit::SQLITE_LIMIT_COLUMN, 200),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 20),
    (Limit::SQLITE_LIMIT_VDBE_OP, 250_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 100),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1_000),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 1),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// Memory of SQLite in this process, in bytes. SQLite offers no limit per connection; sorting all events of a large
/// recording stays below this.
const HEAP: u64 = 2 << 30;

/// Operations of SQLite between two looks at the clock: about a millisecond.
const OPERATIONS: i32 = 20_000;

/// Tables of SQLite itself that are nobody's business: they show or keep pages of a database.
const NOT_FOR_READING: &[&str] = &["dbstat", "sqlite_dbpage", "sqlite_stmt", "bytecode", "tables_used"];

/// Functions with effects beyond their value.
const NOT_FOR_CALLING: &[&str] = &["load_extension", "fts3_tokenizer", "sqlite_log"];

/// A connection for one query.
pub(crate) fn connect(world: &Arc<World>, time: Duration) -> Result<Connection> {
    let mut connection = Connection::open_in_memory()?;
    for (number, table) in TABLES.iter().enumerate() {
        let world = world.clone();
        match table.from {
            From::Events => vtab::register(&connection, table.name, EventTable(world))?,
            From::Arguments => vtab::register(&connection, table.name, ArgTable(world))?,
            From::Rows(make) => {
                vtab::register(&connection, table.name, RowsTable { world, number, table, make })?;
            }
        }
    }
    functions::register(&connection, world)?;
    for view in VIEWS {
        connection.execute_batch(&format!("CREATE VIEW \"{}\" AS {}", view.name, view.query))?;
    }
    // Sorting must not create files. Text in double quotes is a name, never a value.
    connection.execute_batch(&format!(
        "PRAGMA temp_store = MEMORY; PRAGMA hard_heap_limit = {HEAP}; PRAGMA query_only = ON;"
    ))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    for &(limit, value) in LIMITS {
        connection.set_limit(limit, value)?;
    }
    connection.authorizer(Some(|context: AuthContext<'_>| allows(&context.action)))?;
    let (start, before, world) = (Instant::now(), world.computing(), world.clone());
    let is_late = move || start.elapsed() > time + world.computing().saturating_sub(before);
    connection.progress_handler(OPERATIONS, Some(is_late))?;
    Ok(connection)
}

fn allows(action: &AuthAction<'_>) -> Authorization {
    let among = |names: &[&str], name: &str| names.iter().any(|known| known.eq_ignore_ascii_case(name));
    let fine = match action {
        AuthAction::Select | AuthAction::Recursive => true,
        AuthAction::Read { table_name, .. } => !among(NOT_FOR_READING, table_name),
        AuthAction::Function { function_name } => !among(NOT_FOR_CALLING, function_name),
        _ => false,
    };
    if fine { Authorization::Allow } else { Authorization::Deny }
}
