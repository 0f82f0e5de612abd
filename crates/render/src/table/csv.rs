//! A table as CSV, following RFC 4180: the column keys, then one line per row; unknown is empty.

use std::borrow::Cow;
use std::io::{self, Write};

use stepscope_text::csv_field;

use stepscope_results::table::{Cell, Picked, Table};

/// Writes the picked rows.
pub fn write_csv(table: &Table, picked: &Picked, out: &mut dyn Write) -> io::Result<()> {
    let kept = || table.columns().iter().filter(|column| !column.drawn);
    let keys: Vec<Cow<'_, str>> = kept().map(|column| csv_field(&column.key)).collect();
    write!(out, "{}\r\n", keys.join(","))?;
    for row in picked.rows.iter().filter_map(|&row| table.rows().get(row)) {
        let cells = row.iter().zip(table.columns()).filter(|(_, column)| !column.drawn);
        for (place, (cell, _)) in cells.enumerate() {
            if place > 0 {
                out.write_all(b",")?;
            }
            write_cell(cell, out)?;
        }
        out.write_all(b"\r\n")?;
    }
    Ok(())
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
    use stepscope_results::{Column, Format, Select};

    #[test]
    fn fields_are_quoted_where_they_must_be() {
        let mut table = Table::new(
            "test",
            vec![
                Column::new("name", "", Format::Name),
                Column::new("ms", "", Format::Ms),
                Column::new("parts", "", Format::Text),
            ],
        );
        table.push([Cell::from("say \"a,b\""), Cell::Null, Cell::Map(vec![("x".into(), 1.5)])]);
        table.push([Cell::from("plain"), 2.5.into()]);
        let mut out = Vec::new();
        write_csv(&table, &table.pick(&Select::default(), None).unwrap(), &mut out).unwrap();
        let want = "name,ms,parts\r\n\"say \"\"a,b\"\"\",,\"{\"\"x\"\":1.5}\"\r\nplain,2.5,\r\n";
        assert_eq!(String::from_utf8(out).unwrap(), want);
    }
}
