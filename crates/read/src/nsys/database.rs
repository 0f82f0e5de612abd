//! The tables of an export, from one SQLite database or from files of other formats, read column by column.
//!
//! Tables and columns differ between versions, so nothing here uses SQL with fixed columns: [`Database::rows`]
//! selects what exists and returns nothing for the rest.

use std::borrow::Cow;
use std::sync::Arc;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use rustc_hash::FxHashMap;
use stepscope_trace::NoteKind;

use super::files::{self, File};
use super::sqlite::{self, quoted, said};
use crate::budget::{Budget, OverBudget};
use crate::table::{TableError, Value};
use crate::{Input, ReadError};

/// An open export and its content.
pub(crate) struct Database {
    source: Source,
    budget: Arc<Budget>,
    /// The columns of each table.
    tables: FxHashMap<String, Vec<String>>,
    /// Number of pages missing from a database.
    pub missing_pages: u64,
    /// Tables that cannot be read at all, and why.
    pub unreadable: Vec<(String, Trouble)>,
}

enum Source {
    Sqlite(sqlite::Opened),
    Files(FxHashMap<String, File>),
}

/// What is wrong with a table.
#[derive(Debug)]
pub(crate) struct Trouble {
    pub kind: NoteKind,
    pub what: String,
}

impl From<TableError> for Trouble {
    fn from(error: TableError) -> Self {
        Trouble { kind: error.note_kind(), what: error.to_string() }
    }
}

/// Result of reading a table's rows.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// Number of rows read.
    pub rows: u64,
    /// What ended the reading early.
    pub broken: Option<Trouble>,
}

/// Row selection. A table without the column has no matching rows.
#[derive(Copy, Clone)]
pub(crate) enum Which<'a> {
    All,
    /// Rows with this number in the column.
    Number(&'a str, i64),
    /// Rows with one of these texts in the column.
    OneOf(&'a str, &'a [&'a str]),
    /// Rows without any of these words in the column, ignoring case.
    Without(&'a str, &'a [&'a str]),
}

impl<'a> Which<'a> {
    fn column(self) -> Option<&'a str> {
        match self {
            Which::All => None,
            Which::Number(column, _) | Which::OneOf(column, _) | Which::Without(column, _) => Some(column),
        }
    }

    /// As SQL. The texts are constants of this program, never from a file.
    fn clause(self) -> String {
        let texts = |texts: &[&str]| {
            texts.iter().map(|text| format!("'{}'", text.replace('\'', "''"))).collect::<Vec<_>>().join(",")
        };
        match self {
            Which::All => String::new(),
            Which::Number(column, number) => format!("WHERE {} = {number}", quoted(column)),
            Which::OneOf(column, wanted) => format!("WHERE {} IN ({})", quoted(column), texts(wanted)),
            Which::Without(column, words) => {
                let lacks = |word: &&str| format!("{} NOT LIKE '%{word}%'", quoted(column));
                format!("WHERE {}", words.iter().map(lacks).collect::<Vec<_>>().join(" AND "))
            }
        }
    }

    /// Whether a row with this value in the column is selected.
    fn takes(self, value: Value<'_>) -> bool {
        match (self, value) {
            (Which::All, _) => true,
            (Which::Number(_, wanted), Value::Int(number)) => number == wanted,
            (Which::OneOf(_, wanted), Value::Text(text)) => wanted.iter().any(|it| it.as_bytes() == text),
            (Which::Without(_, words), Value::Text(text)) => {
                let text = text.to_ascii_uppercase();
                words.iter().all(|word| memchr::memmem::find(&text, word.as_bytes()).is_none())
            }
            _ => false,
        }
    }
}

impl Database {
    /// Opens a database, a folder of tables, or bytes that were never in a file.
    pub fn open(input: &Input) -> Result<Self, ReadError> {
        if let Some(files) = files::open(input) {
            return Ok(Self::of_files(files, input.budget()));
        }
        let (connection, missing_pages) = sqlite::open(input)?;
        let tables = sqlite::tables(&connection, input)?;
        let (source, budget) = (Source::Sqlite(connection), input.budget().clone());
        Ok(Database { source, budget, tables, missing_pages, unreadable: Vec::new() })
    }

    fn of_files(found: Vec<(String, Result<File, TableError>)>, budget: &Arc<Budget>) -> Self {
        let (mut tables, mut files) = (FxHashMap::default(), FxHashMap::default());
        let mut unreadable = Vec::new();
        for (name, file) in found {
            match file {
                Ok(file) => {
                    tables.insert(name.clone(), file.columns());
                    files.insert(name, file);
                }
                Err(error) => unreadable.push((name, error.into())),
            }
        }
        Database {
            source: Source::Files(files),
            budget: budget.clone(),
            tables,
            missing_pages: 0,
            unreadable,
        }
    }

    /// Whether there is a table with this name.
    pub fn has(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    /// Whether the table has this column.
    pub(crate) fn has_column(&self, table: &str, column: &str) -> bool {
        self.tables.get(table).is_some_and(|columns| columns.iter().any(|known| known == column))
    }

    /// The names of all tables, sorted.
    pub fn tables(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.tables.keys().map(String::as_str).collect();
        names.sort_unstable();
        names
    }

    /// The names of a table's columns.
    pub fn columns(&self, table: &str) -> &[String] {
        self.tables.get(table).map_or(&[], Vec::as_slice)
    }

    /// Calls `each` for every row of `table`, with the fields in the order of `columns`. A column or table that
    /// this export does not have yields nothing.
    pub fn rows(&self, table: &str, columns: &[&str], each: impl FnMut(&Fields)) -> Outcome {
        self.rows_where(table, columns, Which::All, each)
    }

    /// The same for some of the rows.
    pub(crate) fn rows_where(
        &self,
        table: &str,
        columns: &[&str],
        which: Which,
        mut each: impl FnMut(&Fields),
    ) -> Outcome {
        self.visit(table, columns, which, &mut each)
    }

    /// The same for whatever is done with a row, so that it exists once.
    fn visit(&self, table: &str, columns: &[&str], which: Which, each: &mut dyn FnMut(&Fields)) -> Outcome {
        let mut outcome = Outcome::default();
        if !self.has(table) || which.column().is_some_and(|column| !self.has_column(table, column)) {
            return outcome;
        }
        outcome.broken = match &self.source {
            Source::Sqlite(connection) => {
                let query = self.query(table, columns, which);
                let ended = run(connection, &query, &self.budget, &mut outcome.rows, each);
                ended.err().map(|what| Trouble { kind: NoteKind::Damaged, what })
            }
            Source::Files(files) => files.get(table).and_then(|table| {
                let ended = run_file(table, columns, which, &self.budget, &mut outcome.rows, each);
                ended.err().map(Trouble::from)
            }),
        };
        outcome
    }

    fn query(&self, table: &str, columns: &[&str], which: Which) -> String {
        let wanted: Vec<String> = columns
            .iter()
            .map(|column| if self.has_column(table, column) { quoted(column) } else { "NULL".into() })
            .collect();
        format!("SELECT {} FROM {} {}", wanted.join(","), quoted(table), which.clause())
    }
}

fn run(
    connection: &Connection,
    query: &str,
    budget: &Budget,
    count: &mut u64,
    each: &mut dyn FnMut(&Fields),
) -> Result<(), String> {
    // An interrupted query does not say what interrupted it; the budget does.
    let failed = |error: rusqlite::Error| budget.met().map_or_else(|| said(&error), |over| over.to_string());
    let over = |over: OverBudget| over.to_string();
    let mut statement = connection.prepare(query).map_err(failed)?;
    let columns = statement.column_count();
    let mut rows = statement.query(()).map_err(failed)?;
    let mut texts = 0_u64;
    while let Some(row) = rows.next().map_err(failed)? {
        budget.rows(1).map_err(over)?;
        // Pages that refer to each other in circles can make texts that are larger than the file.
        let lengths = (0..columns).map(|column| match row.get_ref(column) {
            Ok(ValueRef::Text(bytes) | ValueRef::Blob(bytes)) => bytes.len() as u64,
            _ => 0,
        });
        texts += lengths.sum::<u64>();
        budget.inflated(texts).map_err(over)?;
        *count += 1;
        each(&Fields::Row(row));
    }
    Ok(())
}

fn run_file(
    table: &File,
    columns: &[&str],
    which: Which,
    budget: &Budget,
    count: &mut u64,
    each: &mut dyn FnMut(&Fields),
) -> Result<(), TableError> {
    // The column of the condition comes last, after the requested ones.
    let all: Vec<&str> = columns.iter().copied().chain(which.column()).collect();
    table.rows(&all, budget, |values| {
        if values.get(columns.len()).is_none_or(|&decides| which.takes(decides)) {
            *count += 1;
            each(&Fields::Values(values));
        }
    })
}

/// One row.
pub(crate) enum Fields<'r> {
    /// From a database.
    Row(&'r Row<'r>),
    /// From a file.
    Values(&'r [Value<'r>]),
}

impl Fields<'_> {
    #[inline]
    fn get(&self, index: usize) -> Option<Value<'_>> {
        match self {
            Fields::Row(row) => Some(match row.get_ref(index).ok()? {
                ValueRef::Null => Value::Nothing,
                ValueRef::Integer(value) => Value::Int(value),
                ValueRef::Real(value) => Value::Real(value),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Value::Text(bytes),
            }),
            Fields::Values(values) => values.get(index).copied(),
        }
    }

    /// The `index`th field as it is.
    pub(super) fn value(&self, index: usize) -> Option<Value<'_>> {
        self.get(index)
    }

    /// The `index`th field as an integer.
    #[inline]
    pub fn int(&self, index: usize) -> Option<i64> {
        match self.get(index)? {
            Value::Int(value) => Some(value),
            Value::Real(value) if value.fract() == 0.0 && value.abs() < 9e15 => Some(value as i64),
            Value::Text(text) => std::str::from_utf8(text).ok()?.trim().parse().ok(),
            _ => None,
        }
    }

    /// The `index`th field as a number.
    pub fn real(&self, index: usize) -> Option<f64> {
        match self.get(index)? {
            Value::Int(value) => Some(value as f64),
            Value::Real(value) => Some(value),
            _ => None,
        }
    }

    /// The `index`th field as bytes, if it is text or a blob.
    pub fn bytes(&self, index: usize) -> Option<&[u8]> {
        match self.get(index)? {
            Value::Text(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// The `index`th field as text. Invalid UTF-8 is replaced, because exports contain text from many locales.
    pub fn text(&self, index: usize) -> Option<Cow<'_, str>> {
        match self.get(index)? {
            Value::Text(bytes) => Some(String::from_utf8_lossy(bytes)),
            _ => None,
        }
    }
}
