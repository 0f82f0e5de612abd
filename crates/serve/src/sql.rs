//! Queries of the page's console. `API.md` is the contract; what a query may do is decided in `stepscope-query`.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use stepscope_query::{Database, EXAMPLES, FUNCTIONS, TABLES, VIEWS};
use stepscope_session::Problem;

use crate::error::Refusal;

/// Queries that run at the same time; a query takes a core.
const AT_ONCE: usize = 2;

static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// A place among the queries that run, given back when it is dropped.
struct Turn;

impl Turn {
    fn take() -> Option<Self> {
        let more = |running| (running < AT_ONCE).then_some(running + 1);
        RUNNING.fetch_update(Ordering::AcqRel, Ordering::Acquire, more).ok().map(|_| Turn)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Runs a query.
pub(crate) fn answer(database: &Database, query: &str) -> Result<Value, Refusal> {
    let Some(_turn) = Turn::take() else { return Err(Refusal::Busy) };
    let answer = database.query(query).map_err(|error| Refusal::Sql(Box::new(Problem::from(error))))?;
    Ok(json!({
        "schema": "stepscope.sql.v1", "columns": answer.columns, "rows": answer.rows, "truncated": answer.truncated,
    }))
}

/// Tables, functions and examples, for completion and help.
pub(crate) fn described() -> Value {
    let table = |table: &stepscope_query::Table| {
        let columns = table.columns.iter();
        let columns: Vec<Value> = columns
            .map(|column| json!({"name": column.name, "type": column.holds.sql(), "about": column.about}))
            .collect();
        json!({"name": table.name, "about": table.about, "columns": columns})
    };
    let view = |view: &stepscope_query::View| json!({"name": view.name, "about": view.about, "columns": []});
    let tables: Vec<Value> = TABLES.iter().map(table).chain(VIEWS.iter().map(view)).collect();
    let functions: Vec<Value> =
        FUNCTIONS.iter().map(|function| json!({"call": function.call, "about": function.about})).collect();
    let examples: Vec<Value> =
        EXAMPLES.iter().map(|example| json!({"question": example.question, "sql": example.sql})).collect();
    json!({"tables": tables, "functions": functions, "examples": examples})
}
