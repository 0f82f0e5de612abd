//! A connection that can read the tables and do nothing else.
//!
//! The database is empty and in memory. An authorizer lets a query select, read, call functions and recurse; everything
//! else (writing, attaching files, pragmas, extensions) is refused before it runs. Limits bound the size of a query and
//! of each value, and a progress handler bounds its time. The handler is not called inside a function, therefore values are
//! kept short enough that no function takes long, and functions that multiply lengths are replaced ([`crate::text`]).
//!
//! Memory is limited per query, by the thread that it runs on ([`MemoryLimit`]): a greedy query fails alone. SQLite's own
//! `hard_heap_limit` counts for the whole process; it is only the fallback for a process in which somebody used this SQLite
//! before.
//!
//! [`MemoryLimit`]: stepscope_sqlite::MemoryLimit

use std::sync::Arc;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::{Connection, Result};

use crate::arguments::ArgTable;
use crate::event::EventTable;
use crate::related::{RELATIONS, RelatedTable};
use crate::rows::RowsTable;
use crate::running::RunningQuery;
use crate::schema::{From, TABLES};
use crate::tables::perfetto::VIEWS;
use crate::{functions, vtab};

/// Bytes of a value and of a row, as SQLite advises for queries of strangers. No function takes more than milliseconds for it.
const LONGEST_VALUE: i32 = 1_000_000;

/// SQLite's own limits.
const LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_LENGTH, LONGEST_VALUE),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 64 << 10),
    (Limit::SQLITE_LIMIT_COLUMN, 200),
    (Limit::SQLITE_LIMIT_EXPR_DEPTH, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 20),
    (Limit::SQLITE_LIMIT_VDBE_OP, 250_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 100),
    (Limit::SQLITE_LIMIT_ATTACHED, 0),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 250),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 1),
    (Limit::SQLITE_LIMIT_TRIGGER_DEPTH, 1),
    (Limit::SQLITE_LIMIT_WORKER_THREADS, 0),
];

/// Operations of SQLite between two looks at the clock: some ten microseconds, or a second if each is a function on the
/// longest values.
const OPERATIONS: i32 = 500;

/// Tables of SQLite itself that are nobody's business: they show or keep pages of a database.
const NOT_FOR_READING: &[&str] = &["dbstat", "sqlite_dbpage", "sqlite_stmt", "bytecode", "tables_used"];

/// Functions with effects beyond their value, or whose cost grows with the product of their arguments' lengths.
const NOT_FOR_CALLING: &[&str] =
    &["load_extension", "fts3_tokenizer", "sqlite_log", "json_patch", "jsonb_patch"];

/// A connection for one query, which ends when the query is over.
pub(crate) fn connect(query: &Arc<RunningQuery>, memory: u64) -> Result<Connection> {
    let is_counted = stepscope_sqlite::prepare();
    let mut connection = Connection::open_in_memory()?;
    for (number, table) in TABLES.iter().enumerate() {
        let query = query.clone();
        match table.from {
            From::Events => vtab::register(&connection, table.name, EventTable(query))?,
            From::Arguments => vtab::register(&connection, table.name, ArgTable(query))?,
            From::Rows(_) | From::View(_) => {
                vtab::register(&connection, table.name, RowsTable { query, number, table })?;
            }
        }
    }
    for (name, relation) in RELATIONS {
        vtab::register(&connection, name, RelatedTable { query: query.clone(), relation })?;
    }
    functions::register(&connection, &query.recording, LONGEST_VALUE as usize)?;
    for view in VIEWS {
        connection.execute_batch(&format!("CREATE VIEW \"{}\" AS {}", view.name, view.query))?;
    }
    // Sorting must not create files. Text in double quotes is a name, never a value.
    connection.execute_batch("PRAGMA temp_store = MEMORY; PRAGMA query_only = ON;")?;
    if !is_counted {
        connection.execute_batch(&format!("PRAGMA hard_heap_limit = {memory};"))?;
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    for &(limit, value) in LIMITS {
        connection.set_limit(limit, value)?;
    }
    connection.authorizer(Some(|context: AuthContext<'_>| allows(&context.action)))?;
    let query = query.clone();
    connection.progress_handler(OPERATIONS, Some(move || query.is_over()))?;
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
