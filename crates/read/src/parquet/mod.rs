//! Parquet: a table in a file, column by column. Supports what exporters write: flat columns, pages of both
//! versions, the usual encodings and compressions.
//!
//! ```text
//! thrift   the encoding of all metadata
//! footer   the columns and their locations
//! page     a page's header, its content inflated
//! bits     runs, packed groups, differences
//! values   values by their encoding
//! column   a column's rows, some at a time
//! ```
//!
//! Hand-written, because files come from anywhere: nothing here panics, and no length in a file allocates more
//! memory than the file's own bytes justify.

mod bits;
mod column;
mod footer;
pub mod layout;
mod page;
#[cfg(test)]
mod tests;
mod thrift;
mod values;

use crate::budget::Budget;
use crate::codec::Spending;
use crate::input::Bytes;
use crate::table::{TableError, Value};
use column::Column;
use footer::{Footer, Group};

/// Number of rows decoded at a time: few enough to stay in the processor's cache.
const ROWS: usize = 1_024;

/// A table in a file.
#[derive(Debug)]
pub(crate) struct Table {
    file: Bytes,
    footer: Footer,
}

impl Table {
    /// Reads the list of columns, and nothing else.
    pub fn open(file: Bytes) -> Result<Self, TableError> {
        let footer = Footer::read(&file)?;
        Ok(Table { file, footer })
    }

    /// The names of the readable columns.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.footer.columns.iter().map(|column| column.name.as_str())
    }

    /// Calls `each` for every row, with the fields in the order of `columns`; a missing column yields nothing.
    /// Only these columns are read.
    pub fn rows(
        &self,
        columns: &[&str],
        budget: &Budget,
        mut each: impl FnMut(&[Value<'_>]),
    ) -> Result<(), TableError> {
        let spending = Spending::new(budget);
        self.footer.groups.iter().try_for_each(|group| self.group(group, columns, &spending, &mut each))
    }

    fn group(
        &self,
        group: &Group,
        columns: &[&str],
        spending: &Spending<'_>,
        each: &mut impl FnMut(&[Value<'_>]),
    ) -> Result<(), TableError> {
        let open = |name: &&str| {
            let Some(of) = self.footer.columns.iter().find(|column| column.name == **name) else {
                return Ok(None);
            };
            let chunk = group.chunks.get(of.chunk).ok_or(TableError::Short("the footer"))?;
            Column::open(&self.file, of, chunk).map(Some)
        };
        let mut columns: Vec<Option<Column>> = columns.iter().map(open).collect::<Result<_, _>>()?;
        let mut left = if columns.iter().any(Option::is_some) { group.rows } else { 0 };
        while left > 0 {
            let mut rows = left.min(ROWS as u64) as usize;
            for column in columns.iter_mut().flatten() {
                rows = rows.min(column.ready(spending)?);
            }
            if rows == 0 {
                return Err(TableError::Short("a column"));
            }
            spending.budget.rows(rows as u64)?;
            columns.iter_mut().flatten().try_for_each(|column| column.take(rows))?;
            let mut fields = Vec::with_capacity(columns.len());
            for row in 0..rows {
                fields.clear();
                fields.extend(columns.iter().map(|column| match column {
                    Some(column) => column.value(row),
                    None => Value::Nothing,
                }));
                each(&fields);
            }
            left -= rows as u64;
        }
        Ok(())
    }
}
