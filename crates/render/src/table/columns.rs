//! A table by columns for the page: everything that text and JSON contain, unformatted.

use serde_json::{Map, Value, json};

use stepscope_results::table::{Cell, Column, Format, Table};

/// The whole table as a value; `ways` are the possible groupings of its rows.
pub fn columns_json(table: &Table, ways: &[&str]) -> Value {
    let columns = table.columns().iter().enumerate().filter(|(_, column)| !column.drawn);
    let members: Map<String, Value> =
        table.members().iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
    json!({
        "view": table.view, "headline": table.headline, "notes": table.notes(), "rows": table.rows().len(),
        "columns": columns.map(|(place, column)| one(table, place, column)).collect::<Vec<_>>(),
        "members": members, "ways": ways,
    })
}

fn one(table: &Table, place: usize, column: &Column) -> Value {
    json!({
        "key": column.key, "title": column.title, "format": format(column.format), "hidden": column.hidden,
        "optional": column.optional,
        "values": table.rows().iter().map(|row| exact(row.get(place))).collect::<Vec<_>>(),
    })
}

/// The largest integer that a browser keeps exactly.
const EXACT: i128 = 1 << 53;

/// A value for browsers: numbers that they would round, such as those of programs on TPUs, are text.
fn exact(cell: Option<&Cell>) -> Value {
    match cell {
        Some(Cell::Int(number)) if !(-EXACT..=EXACT).contains(number) => json!(number.to_string()),
        cell => json!(cell),
    }
}

/// Public name of a format.
fn format(format: Format) -> &'static str {
    match format {
        Format::Name => "name",
        Format::Text | Format::Flag | Format::Map => "text",
        Format::Count => "count",
        Format::Id => "id",
        Format::Ms => "ms",
        Format::Bytes => "bytes",
        Format::Percent => "percent",
        Format::Short => "short",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_results::Cell;

    #[test]
    fn columns_hold_bare_values_and_no_drawings() {
        let columns = vec![
            Column::new("name", "op", Format::Name),
            Column::new("bar", "", Format::Text).drawn(),
            Column::new("total_ms", "total", Format::Ms).optional(),
        ];
        let mut table = Table::new("test", columns);
        table.push([Cell::from("a"), Cell::from("##"), 1.5.into()]);
        table.push([Cell::from("b")]);
        table.member("sum", 3);
        let json = columns_json(&table, &["name"]);
        assert_eq!(json["rows"], 2);
        assert_eq!(json["members"], json!({"sum": 3}));
        assert_eq!(json["ways"], json!(["name"]));
        let columns = json["columns"].as_array().unwrap();
        assert_eq!(columns.len(), 2);
        assert_eq!(columns[1]["values"], json!([1.5, null]));
        assert_eq!((&columns[1]["format"], &columns[1]["optional"]), (&json!("ms"), &json!(true)));
    }
}
