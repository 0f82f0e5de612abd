//! Any table of results as Parquet, one row per row. Unknown numbers are NaN, unknown text is empty.

use std::io::{self, Write};

use super::column::{Dictionary, Values};
use super::sheet::{Named, Sheet};

/// One column of a table.
#[derive(Clone, Debug, PartialEq)]
pub enum TableColumn {
    /// Text.
    Text(Vec<String>),
    /// Whole numbers.
    Int(Vec<i64>),
    /// Any other numbers.
    Double(Vec<f64>),
}

impl TableColumn {
    fn len(&self) -> usize {
        match self {
            TableColumn::Text(all) => all.len(),
            TableColumn::Int(all) => all.len(),
            TableColumn::Double(all) => all.len(),
        }
    }

    fn values(&self) -> Values {
        match self {
            TableColumn::Text(all) => {
                let mut names = Dictionary::default();
                all.iter().for_each(|text| names.push(text));
                Values::Names(names)
            }
            TableColumn::Int(all) => {
                Values::Int64(all.iter().flat_map(|number| number.to_le_bytes()).collect())
            }
            TableColumn::Double(all) => {
                Values::Double(all.iter().flat_map(|number| number.to_le_bytes()).collect())
            }
        }
    }
}

/// Writes a table: what a row is called, and its columns, which must be of equal length.
pub fn write_table_parquet(
    row: &str,
    columns: &[(&'static str, TableColumn)],
    out: &mut dyn Write,
) -> io::Result<()> {
    let rows = columns.first().map_or(0, |(_, column)| column.len());
    if columns.iter().any(|(_, column)| column.len() != rows) {
        return Err(io::Error::other("columns of different lengths"));
    }
    let mut sheet = Sheet::new(out)?;
    let named = || -> Vec<Named> { columns.iter().map(|(name, column)| (*name, column.values())).collect() };
    if rows > 0 {
        sheet.row_group(named(), i32::try_from(rows).map_err(io::Error::other)?)?;
    }
    sheet.finish(row, &named())
}
