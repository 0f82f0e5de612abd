//! The tool `sql`: questions that no view answers.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::json;
use stepscope_query::{Database, Holder, Limits, QueryError, Value};
use stepscope_results::{Cell, Column, Format, Table};
use stepscope_session::{Problem, Profile};

use super::{Tool, cursor_schema, path_schema, session_schema};
use crate::answer::{Answer, page_of_table};
use crate::arguments::Arguments;
use crate::failed::Failed;
use crate::server::Desk;

/// Rows of a page, if not asked for otherwise.
const ROWS: usize = 25;
/// Most rows of a page.
const MOST: usize = 100;

pub(super) const TOOL: Tool = Tool {
    name: "sql",
    title: "Query with SQL",
    about: "One read-only SELECT (SQLite) over a profile's events and results; times in ns. Call schema first. Stops after \
            10 s. Prefer aggregates over rows.",
    arguments: || {
        json!({
            "path": path_schema(),
            "query": {"type": "string"},
            "max_rows": {"type": "integer", "minimum": 1, "maximum": MOST, "description": "Rows per page, 25 by default"},
            "session": session_schema(),
            "cursor": cursor_schema(),
        })
    },
    required: &["path", "query"],
    run,
};

/// A profile whose neighbours count only below the roots.
struct Rooted {
    profile: Arc<Profile>,
    roots: Vec<PathBuf>,
}

impl Holder for Rooted {
    fn profile(&self) -> &Profile {
        &self.profile
    }

    fn roots(&self) -> &[PathBuf] {
        &self.roots
    }
}

fn run(desk: &Desk<'_>, arguments: Arguments<'_>) -> Result<Answer, Failed> {
    let query = arguments.needed("query")?;
    let (top, start) = (arguments.whole_number("max_rows", 1..=MOST, ROWS)?, arguments.cursor()?);
    let asked = desk.open(arguments.needed("path")?, arguments.text("session")?)?;
    let database = asked.opened.database.get_or_init(|| {
        let roots = desk.roots.all().to_vec();
        Database::new(Arc::new(Rooted { profile: Arc::clone(&asked.opened.profile), roots }), Limits::PAGE)
    });
    let answer = database.query_until(query, desk.stop.progress());
    desk.stop.check()?;
    let answer = answer.map_err(problem)?;
    let mut notes = asked.notes;
    if answer.truncated {
        notes
            .push(format!("note: only the first {} rows were computed; aggregate in SQL", answer.rows.len()));
    }
    let columns =
        answer.columns.iter().map(|name| Column::new(name.clone(), name.clone(), Format::Name)).collect();
    let mut table = Table::new("sql", columns);
    let rows: Vec<usize> = (0..answer.rows.len()).collect();
    answer.rows.into_iter().for_each(|row| table.push(row.into_iter().map(cell)));
    page_of_table(&notes, &table, &rows, start, top)
}

fn cell(value: Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Int(number) => number.into(),
        Value::Real(number) => number.into(),
        Value::Text(text) => text.into(),
        Value::Blob(_) => value.text().into(),
    }
}

fn problem(error: QueryError) -> Problem {
    Problem::from(error).hint("the tool schema lists all tables and columns")
}
