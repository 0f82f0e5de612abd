//! The export as tables in files: a folder with one Parquet or Arrow file per table, or one file with all
//! tables as Arrow streams.

use memchr::memmem;

use crate::budget::Budget;
use crate::table::{TableError, Value};
use crate::{Input, arrow, parquet};

/// A table in a file.
pub(super) enum File {
    Parquet(parquet::Table),
    Arrow(arrow::Table),
}

impl File {
    pub fn columns(&self) -> Vec<String> {
        match self {
            File::Parquet(table) => table.columns().map(str::to_owned).collect(),
            File::Arrow(table) => table.columns().map(str::to_owned).collect(),
        }
    }

    /// Calls `each` for every row, with the fields in the order of `columns`.
    pub fn rows(
        &self,
        columns: &[&str],
        budget: &Budget,
        each: impl FnMut(&[Value<'_>]),
    ) -> Result<(), TableError> {
        match self {
            File::Parquet(table) => table.rows(columns, budget, each),
            File::Arrow(table) => table.rows(columns, budget, each),
        }
    }
}

/// A table's name, and the table or its error.
type Named = (String, Result<File, TableError>);

/// All tables of an input that is not a database; `None` if it may be one.
pub(super) fn open(input: &Input) -> Option<Vec<Named>> {
    if !input.tables().is_empty() {
        return Some(input.tables().iter().map(|file| (file.name.clone(), one(&file.bytes))).collect());
    }
    let (bytes, _) = input.inflated();
    let named = |table: Result<arrow::Table, TableError>| {
        let name = table.as_ref().ok().and_then(|table| table.name.clone());
        (name.unwrap_or_else(|| "without a name".to_owned()), table.map(File::Arrow))
    };
    arrow::recognises(&bytes).then(|| arrow::tables(&bytes).into_iter().map(named).collect())
}

/// The only table of a file.
fn one(bytes: &crate::Bytes) -> Result<File, TableError> {
    if !arrow::recognises(bytes) {
        return parquet::Table::open(bytes.clone()).map(File::Parquet);
    }
    let first = arrow::tables(bytes).into_iter().next();
    first.unwrap_or(Err(TableError::Short("the file"))).map(File::Arrow)
}

/// Whether a file starts with named Arrow streams, including a known table.
pub(super) fn recognises(head: &[u8]) -> bool {
    let shows = |sign: &str| memmem::find(head, sign.as_bytes()).is_some();
    arrow::recognises(head) && shows("table_name") && known().any(shows)
}

/// Whether a file starts like an unsupported export: JSON lines that name their table, or HDF5.
pub(crate) fn is_other_export(head: &[u8]) -> bool {
    const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";
    let line = head.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let named = memmem::find(line, b"\"table\"").and_then(|at| {
        let value = line.get(at + 7..)?.trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
        value.strip_prefix(b"\"")
    });
    let names_table = named.is_some_and(|name| known().any(|table| name.starts_with(table.as_bytes())));
    let lines = line.starts_with(b"{") && names_table;
    lines || head.starts_with(HDF5) && known().any(|table| memmem::find(head, table.as_bytes()).is_some())
}

/// Prefixes of table names that an export may start with.
fn known() -> impl Iterator<Item = &'static str> {
    super::TELLING.into_iter().chain(["ENUM_", "ANALYSIS_DETAILS", "OSRT_", "SCHED_EVENTS"])
}
