//! A table as JSON: `{"schema": "stepscope.VIEW.v1", members…, "notes": […], "rows": [{…}, …]}`, one row per
//! line.

use std::io::{self, Write};

use serde::ser::{Serialize, SerializeMap, Serializer};

use stepscope_results::table::{Cell, Column, Picked, Table};

/// Writes the picked rows.
pub fn write_json(table: &Table, picked: &Picked, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "{{\"schema\": \"stepscope.{}.v1\"", table.view)?;
    if let Some(headline) = &table.headline {
        write!(out, ",\n \"headline\": {}", serde_json::to_string(headline)?)?;
    }
    for (key, value) in table.members() {
        write!(out, ",\n {}: {}", serde_json::to_string(key)?, serde_json::to_string(value)?)?;
    }
    if !table.notes().is_empty() {
        write!(out, ",\n \"notes\": {}", serde_json::to_string(table.notes())?)?;
    }
    out.write_all(b",\n \"rows\": [")?;
    for (place, cells) in picked.rows.iter().filter_map(|&row| table.rows().get(row)).enumerate() {
        let row = Row { columns: table.columns(), cells };
        let separator = if place == 0 { "" } else { "," };
        write!(out, "{separator}\n  {}", serde_json::to_string(&row)?)?;
    }
    out.write_all(if picked.rows.is_empty() { b"]}\n" } else { b"\n ]}\n" })
}

struct Row<'a> {
    columns: &'a [Column],
    cells: &'a [Cell],
}

impl Serialize for Row<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(None)?;
        for (column, cell) in self.columns.iter().zip(self.cells).filter(|(column, _)| !column.drawn) {
            map.serialize_entry(&column.key, cell)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_results::{Format, Select};

    fn written(table: &Table) -> serde_json::Value {
        let mut out = Vec::new();
        write_json(table, &table.pick(&Select::default(), None).unwrap(), &mut out).unwrap();
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn numbers_are_numbers_and_unknown_is_null() {
        let columns = ["name", "ms", "count", "parts"].map(|key| Column::new(key, "", Format::Short));
        let mut table = Table::new("test", columns.to_vec());
        table.push([
            Cell::from("a\"b"),
            f64::NAN.into(),
            u64::MAX.into(),
            Cell::Map(vec![("z".into(), f64::INFINITY), ("a".into(), 2.0)]),
        ]);
        table.member("total_ms", 1.5);
        table.note("A remark.");
        let want = serde_json::json!({
            "schema": "stepscope.test.v1", "total_ms": 1.5, "notes": ["A remark."],
            "rows": [{"name": "a\"b", "ms": null, "count": u64::MAX, "parts": {"z": null, "a": 2.0}}],
        });
        assert_eq!(written(&table), want);
    }

    #[test]
    fn a_table_without_rows_is_an_object_all_the_same() {
        let table = Table::new("test", vec![Column::new("name", "", Format::Name)]);
        assert_eq!(written(&table), serde_json::json!({"schema": "stepscope.test.v1", "rows": []}));
    }
}
