//! The tool `schema`: what a query can ask, and the resource with the same content.

use std::fmt::Write as _;

use serde_json::{Value, json};
use stepscope_query::{FUNCTIONS, TABLES, Table, VIEWS};
use stepscope_render::format::quoted;
use stepscope_session::{Cause, Problem};

use super::{Tool, cursor_schema};
use crate::answer::{Answer, page_of_text};
use crate::arguments::Arguments;
use crate::failed::Failed;
use crate::server::Desk;

pub(super) const TOOL: Tool = Tool {
    name: "schema",
    title: "Tables for SQL",
    about: "The tables for sql with their columns; with table, what each column holds.",
    arguments: || json!({"table": {"type": "string", "description": "One table in full"}, "cursor": cursor_schema()}),
    required: &[],
    run,
};

fn run(_: &Desk<'_>, arguments: Arguments<'_>) -> Result<Answer, Failed> {
    let start = arguments.cursor()?;
    let Some(name) = arguments.text("table")? else {
        let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        return Ok(page_of_text(
            &[],
            &all(),
            start,
            if start == 0 { json!({"tables": names}) } else { json!({}) },
        ));
    };
    let table = TABLES.iter().find(|table| table.name == name).ok_or_else(|| {
        let names: Vec<&str> = TABLES.iter().map(|table| table.name).collect();
        Problem::new(Cause::Usage, format!("there is no table {}", quoted(name)))
            .then(format!("the tables are {}", names.join(", ")))
            .then("call it again with one of them")
    })?;
    let column = |column: &stepscope_query::Column| -> Value {
        json!({"name": column.name, "type": column.holds.sql(), "about": column.about})
    };
    let data = json!({"table": table.name, "columns": table.columns.iter().map(column).collect::<Vec<_>>()});
    Ok(page_of_text(&[], &one(table), start, if start == 0 { data } else { json!({}) }))
}

/// All tables, one line each.
pub(super) fn all() -> String {
    let mut text =
        String::from("All times are ns from the start of the recording; any value may be NULL.\n\n");
    for table in TABLES.iter() {
        let columns: Vec<&str> = table.columns.iter().map(|column| column.name).collect();
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}({}): {}", table.name, columns.join(", "), table.about);
    }
    let views: Vec<&str> = VIEWS.iter().map(|view| view.name).collect();
    let _ = writeln!(text, "\nViews: {}", views.join(", "));
    for function in FUNCTIONS {
        let _ = writeln!(text, "{}: {}", function.call, function.about);
    }
    text.push_str(
        "\nExamples:\nSELECT name, count(*), sum(self_dur) / 1e6 AS ms FROM event GROUP BY name ORDER BY ms DESC LIMIT 10\n\
         SELECT number, dur / 1e6 AS ms FROM step ORDER BY dur DESC LIMIT 5\n",
    );
    text
}

fn one(table: &Table) -> String {
    let mut text = format!("{}: {}\n", table.name, table.about);
    for column in table.columns.iter() {
        let hidden = if column.hidden { " (not part of SELECT *)" } else { "" };
        let _ = writeln!(text, "  {} {}: {}{hidden}", column.name, column.holds.sql(), column.about);
    }
    text
}
