//! The tables of an export as they are, for queries that name them: nothing is interpreted, no row is left out.

use std::path::Path;

use stepscope_trace::Format;

use super::database::Database;
use super::report;
use crate::Input;
use crate::table::Value;

/// A value of a table.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum ExportValue<'a> {
    /// Unknown, or no such column in this export.
    Null,
    /// A whole number.
    Int(i64),
    /// A number.
    Real(f64),
    /// Text or bytes.
    Text(&'a [u8]),
}

/// An export of Nsight Systems, open for its tables.
pub struct ExportTables(Database);

impl std::fmt::Debug for ExportTables {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ExportTables").field(&self.0.tables()).finish()
    }
}

impl ExportTables {
    /// Opens the export from which a recording of this format was read; `None` of all other formats.
    pub fn of(format: &Format, path: &Path) -> Option<Self> {
        let input = if *format == super::FORMAT {
            Input::open(path).ok()?
        } else if *format == report::FORMAT {
            Input::open(&report::known_export(path)?).ok()?
        } else {
            return None;
        };
        Database::open(&input).ok().map(ExportTables)
    }

    /// Calls `each` for every row with the values of these columns. Rows behind damage are left out.
    pub fn rows(&self, table: &str, columns: &[&str], each: &mut dyn FnMut(&[ExportValue<'_>])) {
        // What is damaged was noted when the recording was read.
        let _ = self.0.rows(table, columns, |row| {
            let value = |place| match row.value(place) {
                None | Some(Value::Nothing) => ExportValue::Null,
                Some(Value::Int(value)) => ExportValue::Int(value),
                Some(Value::Real(value)) => ExportValue::Real(value),
                Some(Value::Text(text)) => ExportValue::Text(text),
            };
            each(&(0..columns.len()).map(value).collect::<Vec<_>>());
        });
    }
}
