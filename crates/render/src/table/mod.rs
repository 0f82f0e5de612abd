//! Code that all views share: a typed table, and its output forms.
//!
//! A view (`ops`, `kernels`, `health`, …) is a function from a result to a [`Table`]. It declares its columns
//! once, each with a key (the column's name in JSON and CSV), a title for people and a [`Format`]. Then it
//! pushes rows of [`Cell`]s in the order that suits most readers. Everything else happens here, once for all
//! views:
//!
//! - `--sort COLUMN[:asc|:desc]`, `--filter REGEX`, `--top N` ([`Select`], [`Table::pick`]);
//! - text with units, aligned numbers and names cut to the terminal's width ([`write_text`]);
//! - JSON as `{"schema": "stepscope.VIEW.v1", …, "rows": [{…}, …]}` ([`write_json`]);
//! - CSV, following RFC 4180, with the same columns ([`write_csv`]).
//!
//! Values in cells are plain and unformatted: milliseconds, bytes, fractions from 0 to 1. Unknown is
//! [`Cell::Null`], never 0; a number that is not finite becomes `Null` automatically.
//!
//! ```
//! use stepscope_render::{Cell, Column, Format, Select, Style, Table, table};
//!
//! let mut ops = Table::new("ops", vec![
//!     Column::new("name", "op", Format::Name),
//!     Column::new("count", "count", Format::Count),
//!     Column::new("total_ms", "total", Format::Ms),
//!     Column::new("fraction", "share", Format::Percent),
//!     Column::new("flops", "FLOP/s", Format::Short).optional(), // omitted on narrow terminals
//! ]);
//! ops.headline = Some("MatMul takes 61.0 % of the step".to_owned());
//! ops.top = Some(20); // text shows 20 rows by default; JSON and CSV have all
//! ops.push([Cell::from("MatMul"), 12_u64.into(), 4.25.into(), 0.61.into(), Cell::Null]);
//! ops.note("Times are self times, without nested ops.");
//! ops.member("device_count", 2); // another member of the JSON object, beside "rows"
//!
//! let mut out = Vec::new();
//! let picked = ops.pick(&Select::default(), ops.top).unwrap();
//! table::write_text(&ops, &picked, Style::PLAIN, &mut out).unwrap();
//! table::write_json(&ops, &picked, &mut out).unwrap();
//! table::write_csv(&ops, &picked, &mut out).unwrap();
//! ```
//!
//! A view whose rows are sentences (`health`) pushes them with [`Table::push_prose`]. Text output then prints
//! the sentences, while JSON, CSV and the selection use the cells as usual.

mod columns;
mod csv;
mod json;
mod select;
mod text;

use std::borrow::Cow;

use stepscope_analyze::Coverage;

pub use columns::columns_json;
pub use csv::write_csv;
pub use json::write_json;
pub use select::{Picked, Select, SelectError};
pub use text::write_text;

/// How a column's values look in text. JSON and CSV always contain the bare value.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Format {
    /// A name: left-aligned, its middle cut on narrow terminals.
    Name,
    /// Short text: left-aligned, never cut.
    Text,
    /// A whole number with thousands separators.
    Count,
    /// An integer that identifies something (an id, an index): no separators.
    Id,
    /// Milliseconds; the column is shown in the unit that suits its largest value.
    Ms,
    /// Bytes, shown as kB, MB, …
    Bytes,
    /// A fraction from 0 to 1, shown as a percentage.
    Percent,
    /// Any number, about three significant digits.
    Short,
}

impl Format {
    /// True if values are right-aligned.
    pub fn is_number(self) -> bool {
        !matches!(self, Format::Name | Format::Text)
    }
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name in JSON, CSV and `--sort`; public, so it never changes.
    pub key: Cow<'static, str>,
    /// Its title in text.
    pub title: Cow<'static, str>,
    /// How its values look in text.
    pub format: Format,
    /// Omitted from text if the terminal is too narrow; the last such column goes first.
    pub optional: bool,
    /// Never shown in text.
    pub hidden: bool,
    /// Only shown in text: a bar, or a figure that other columns already contain.
    pub drawn: bool,
}

impl Column {
    /// Creates a column.
    pub fn new(
        key: impl Into<Cow<'static, str>>,
        title: impl Into<Cow<'static, str>>,
        format: Format,
    ) -> Self {
        Column { key: key.into(), title: title.into(), format, optional: false, hidden: false, drawn: false }
    }

    /// The same column, omitted from text on narrow terminals.
    pub fn optional(self) -> Self {
        Column { optional: true, ..self }
    }

    /// The same column, for JSON and CSV only.
    pub fn hidden(self) -> Self {
        Column { hidden: true, ..self }
    }

    /// The same column, for text only.
    pub fn drawn(self) -> Self {
        Column { drawn: true, ..self }
    }
}

/// One value. Use `into()` on numbers, text, booleans, or an `Option` of these.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Cell {
    /// Unknown or not applicable.
    #[default]
    Null,
    /// A whole number.
    Int(i128),
    /// Any other number; finite.
    Float(f64),
    /// A truth value.
    Bool(bool),
    /// Text.
    Text(String),
    /// Named numbers: an object in JSON, JSON text in CSV, e.g. a step's breakdown.
    Map(Vec<(String, f64)>),
}

impl From<f64> for Cell {
    fn from(value: f64) -> Self {
        if value.is_finite() { Cell::Float(value) } else { Cell::Null }
    }
}

macro_rules! whole {
    ($($number:ty),*) => {$(
        impl From<$number> for Cell {
            fn from(value: $number) -> Self {
                Cell::Int(i128::from(value))
            }
        }
    )*};
}
whole!(i32, u32, i64, u64);

impl From<usize> for Cell {
    fn from(value: usize) -> Self {
        Cell::Int(value as i128)
    }
}

impl From<bool> for Cell {
    fn from(value: bool) -> Self {
        Cell::Bool(value)
    }
}

impl From<&str> for Cell {
    fn from(value: &str) -> Self {
        Cell::Text(value.to_owned())
    }
}

impl From<String> for Cell {
    fn from(value: String) -> Self {
        Cell::Text(value)
    }
}

impl<T: Into<Cell>> From<Option<T>> for Cell {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

/// The result of a view.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// The view's name; the JSON schema is `stepscope.VIEW.v1`.
    pub view: &'static str,
    /// The result in one line, above the text.
    pub headline: Option<String>,
    /// Default number of rows in text.
    pub top: Option<usize>,
    /// In text, rows of prose follow each other without blank lines, as in a tree.
    pub dense: bool,
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
    prose: Vec<String>,
    notes: Vec<String>,
    members: Vec<(&'static str, serde_json::Value)>,
}

impl Table {
    /// A table without rows.
    pub fn new(view: &'static str, columns: Vec<Column>) -> Self {
        Table {
            view,
            headline: None,
            top: None,
            dense: false,
            columns,
            rows: Vec::new(),
            prose: Vec::new(),
            notes: Vec::new(),
            members: Vec::new(),
        }
    }

    /// Adds a row with one cell per column. Missing cells are unknown; extra cells are dropped.
    pub fn push(&mut self, cells: impl IntoIterator<Item = Cell>) {
        let mut row: Vec<Cell> = cells.into_iter().collect();
        row.resize(self.columns.len(), Cell::Null);
        self.rows.push(row);
    }

    /// Adds a row that text shows as `prose` instead of columns. All rows of a table are of the same kind.
    pub fn push_prose(&mut self, cells: impl IntoIterator<Item = Cell>, prose: String) {
        self.push(cells);
        self.prose.push(prose);
    }

    /// Adds a line below the table; in JSON it is part of `"notes"`.
    pub fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Adds a member to the JSON object beside `"rows"`.
    pub fn member(&mut self, key: &'static str, value: impl Into<serde_json::Value>) {
        self.members.push((key, value.into()));
    }

    /// Adds what the table covers, as the first note and in JSON.
    pub fn cover(&mut self, covers: &Coverage) {
        self.notes.insert(0, format!("Covers {}.", crate::covers::words(covers)));
        self.member("covers", crate::covers::json(covers));
    }

    /// The columns.
    pub fn columns(&self) -> &[Column] {
        &self.columns
    }

    /// The rows, in the view's own order.
    pub fn rows(&self) -> &[Vec<Cell>] {
        &self.rows
    }
}
