//! Any table as Parquet: columns of whole numbers, numbers or text. Parquet's columns here have no gaps, so that unknown
//! numbers are not a number, unknown text is empty, and a column of whole numbers with gaps becomes one of numbers.

use std::io::{self, Write};

use super::column::{Dictionary, Values};
use super::sheet::Sheet;

/// A column of a table.
#[derive(Clone, Debug)]
pub enum AnyColumn {
    /// Whole numbers.
    Ints(Vec<i64>),
    /// Numbers; unknown is not a number.
    Reals(Vec<f64>),
    /// Text; unknown is empty.
    Texts(Vec<String>),
}

/// Rows of one group.
const ROWS: usize = 1 << 18;

/// Writes a table of this many rows.
pub fn write_table_parquet(
    columns: &[(&str, AnyColumn)],
    rows: usize,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut sheet = Sheet::new(out)?;
    let part =
        |from: usize, to: usize| columns.iter().map(move |(name, column)| (*name, column.part(from, to)));
    for from in (0..rows).step_by(ROWS) {
        let to = (from + ROWS).min(rows);
        sheet.row_group(part(from, to), i32::try_from(to - from).unwrap_or(i32::MAX))?;
    }
    sheet.finish("row", &part(0, 0).collect::<Vec<_>>())
}

impl AnyColumn {
    fn part(&self, from: usize, to: usize) -> Values {
        match self {
            AnyColumn::Ints(all) => Values::Int64(bytes(all, from, to, i64::to_le_bytes)),
            AnyColumn::Reals(all) => Values::Double(bytes(all, from, to, f64::to_le_bytes)),
            AnyColumn::Texts(all) => {
                let mut names = Dictionary::default();
                all.get(from..to).unwrap_or_default().iter().for_each(|text| names.push(text));
                Values::Names(names)
            }
        }
    }
}

fn bytes<T: Copy>(all: &[T], from: usize, to: usize, of: fn(T) -> [u8; 8]) -> Vec<u8> {
    all.get(from..to).unwrap_or_default().iter().flat_map(|&value| of(value)).collect()
}
