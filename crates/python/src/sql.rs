//! The answer to a query as a table.

use stepscope_query::{Answer, Value};
use stepscope_results::{Cell, Column, Format, Table};

/// All rows of an answer.
pub(crate) fn table(answer: Answer) -> Table {
    let column = |(place, name): (usize, &String)| {
        let first = answer.rows.iter().filter_map(|row| row.get(place)).find(|value| **value != Value::Null);
        let format = match first {
            Some(Value::Int(_)) => Format::Id,
            Some(Value::Real(_)) => Format::Short,
            _ => Format::Name,
        };
        Column::new(name.clone(), name.clone(), format)
    };
    let mut table = Table::new("sql", answer.columns.iter().enumerate().map(column).collect());
    if answer.truncated {
        table.note(format!("Cut after {} rows; raise `rows` to get more.", answer.rows.len()));
    }
    for row in answer.rows {
        table.push(row.into_iter().map(cell));
    }
    table
}

fn cell(value: Value) -> Cell {
    match value {
        Value::Null => Cell::Null,
        Value::Int(value) => value.into(),
        Value::Real(value) => value.into(),
        Value::Text(text) => text.into(),
        Value::Blob(_) => value.text().into(),
    }
}
