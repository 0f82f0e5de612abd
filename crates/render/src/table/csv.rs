//! A table as CSV, following RFC 4180: the column keys, then one line per row; unknown is empty.

use std::io::{self, Write};

use stepscope_text::csv_field;

use stepscope_results::table::{Cell, Format, Picked, Table};

/// Writes the picked rows. Named values become a column each, `breakdown.compute`: a spreadsheet cannot read JSON in a cell.
pub fn write_csv(table: &Table, picked: &Picked, out: &mut dyn Write) -> io::Result<()> {
    let rows = || picked.rows.iter().filter_map(|&row| table.rows().get(row));
    let kept = table.columns().iter().enumerate().filter(|(_, column)| !column.drawn);
    let fields: Vec<(usize, Field)> = kept
        .flat_map(|(place, column)| {
            let names = names(rows().filter_map(|row| row.get(place)));
            let parts = names.into_iter().map(move |name| (place, Field::Part(name)));
            match column.format {
                Format::Map => parts.collect(),
                _ => vec![(place, Field::Whole)],
            }
        })
        .collect();
    let keys: Vec<String> = fields
        .iter()
        .filter_map(|(place, field)| {
            let key = &table.columns().get(*place)?.key;
            Some(match field {
                Field::Whole => csv_field(key).into_owned(),
                Field::Part(name) => csv_field(&format!("{key}.{name}")).into_owned(),
            })
        })
        .collect();
    write!(out, "{}\r\n", keys.join(","))?;
    for row in rows() {
        for (place, (column, field)) in fields.iter().enumerate() {
            if place > 0 {
                out.write_all(b",")?;
            }
            match (row.get(*column), field) {
                (Some(Cell::Map(entries)), Field::Part(name)) => {
                    let value =
                        entries.iter().find(|(key, _)| key == name).map(|(_, value)| Cell::Float(*value));
                    write_cell(&value.unwrap_or(Cell::Null), out)?;
                }
                (Some(cell), Field::Whole) => write_cell(cell, out)?,
                _ => {}
            }
        }
        out.write_all(b"\r\n")?;
    }
    Ok(())
}

/// What a field of a line holds: a cell, or one of its named values.
enum Field {
    Whole,
    Part(String),
}

/// The names in cells of named values, in the order in which they first occur.
fn names<'c>(cells: impl Iterator<Item = &'c Cell>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for cell in cells {
        let Cell::Map(entries) = cell else { continue };
        for (name, _) in entries {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
    }
    names
}

fn write_cell(cell: &Cell, out: &mut dyn Write) -> io::Result<()> {
    match cell {
        Cell::Null => Ok(()),
        Cell::Text(text) => out.write_all(csv_field(text).as_bytes()),
        other => out.write_all(csv_field(&serde_json::to_string(other)?).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_results::{Column, Select};

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let mut table = Table::new(
            "test",
            vec![
                Column::new("name", "", Format::Name),
                Column::new("ms", "", Format::Ms),
                Column::new("parts", "", Format::Map),
            ],
        );
        table.push([Cell::from("say \"a,b\""), Cell::Null, Cell::Map(vec![("x".into(), 1.5)])]);
        table.push([Cell::from("plain"), 2.5.into(), Cell::Map(vec![("y".into(), 2.5)])]);
        let mut out = Vec::new();
        write_csv(&table, &table.pick(&Select::default(), None).unwrap(), &mut out).unwrap();
        let want = "name,ms,parts.x,parts.y\r\n\"say \"\"a,b\"\"\",,1.5,\r\nplain,2.5,,2.5\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }
}
