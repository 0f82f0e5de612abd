//! Code that all views share: a typed table, and its output forms.
//!
//! A view (`ops`, `kernels`, `health`, …) declares its columns once ([`columns!`]) and fills rows in the order that suits most
//! readers ([`Table::of`]). Everything else happens once for all views:
//!
//! - `--sort COLUMN[:asc|:desc]`, `--filter REGEX`, `--top N` ([`Select`], [`Table::pick`]);
//! - text with units, aligned numbers and names cut to the terminal's width, JSON as
//!   `{"schema": "stepscope.VIEW.v1", …, "rows": [{…}, …]}`, and CSV with the same columns (`stepscope-render`);
//! - tables of SQL (`stepscope-query`), data frames (`stepscope-frame`), schemas, documentation.
//!
//! Values in cells are plain and unformatted: milliseconds, bytes, fractions from 0 to 1. Unknown is
//! [`Cell::Null`], never 0; a number that is not finite becomes `Null` automatically.
//!
//! A view whose rows are sentences (`health`) adds them with [`Table::add_prose`]. Text output then prints
//! the sentences, while JSON, CSV and the selection use the cells as usual.

mod cell;
mod declare;
mod select;

use std::borrow::Cow;

use stepscope_analyze::Coverage;

pub use cell::Cell;
pub use declare::{Field, columns, described};
pub use select::{Picked, Select, SelectError};

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
    /// True or false, shown as yes or no.
    Flag,
    /// Named numbers.
    Map,
}

impl Format {
    /// True if values are right-aligned.
    pub fn is_number(self) -> bool {
        !matches!(self, Format::Name | Format::Text | Format::Flag | Format::Map)
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
    /// What it means, in a few words.
    pub about: &'static str,
    /// Every row has it.
    pub known: bool,
    /// Missing from tables of recordings that cannot have it.
    pub sometimes: bool,
    /// All its values; empty if there may be any.
    pub one_of: &'static [&'static str],
    /// Its values are not whole, although its format is for whole numbers.
    pub real: bool,
    /// Its name in SQL.
    pub sql: Option<&'static str>,
}

/// What the values of a column are.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// Whole numbers.
    Int,
    /// Numbers.
    Real,
    /// True or false.
    Flag,
    /// Named numbers.
    Map,
}

impl Column {
    /// Creates a column.
    pub fn new(
        key: impl Into<Cow<'static, str>>,
        title: impl Into<Cow<'static, str>>,
        format: Format,
    ) -> Self {
        Column {
            key: key.into(),
            title: title.into(),
            format,
            optional: false,
            hidden: false,
            drawn: false,
            about: "",
            known: false,
            sometimes: false,
            one_of: &[],
            real: false,
            sql: None,
        }
    }

    /// What its values are.
    pub fn kind(&self) -> Kind {
        match self.format {
            Format::Name | Format::Text => Kind::Text,
            Format::Ms | Format::Percent | Format::Short => Kind::Real,
            Format::Count | Format::Id | Format::Bytes if self.real => Kind::Real,
            Format::Count | Format::Id | Format::Bytes => Kind::Int,
            Format::Flag => Kind::Flag,
            Format::Map => Kind::Map,
        }
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

/// A row in words: a beginning that stands out, and the rest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prose {
    /// How the beginning stands out.
    pub tone: Tone,
    /// The beginning.
    pub lead: String,
    /// The rest.
    pub rest: String,
}

/// Why the beginning of a row stands out.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Tone {
    /// An error.
    Error,
    /// A warning.
    Warning,
    /// Information, or a drawing.
    Info,
    /// It does not.
    None,
}

impl From<String> for Prose {
    fn from(rest: String) -> Self {
        Prose { tone: Tone::None, lead: String::new(), rest }
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
    prose: Vec<Prose>,
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
    pub fn push_prose(&mut self, cells: impl IntoIterator<Item = Cell>, prose: impl Into<Prose>) {
        self.push(cells);
        self.prose.push(prose.into());
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

    /// The rows as sentences, in the same order; empty if rows are shown by columns.
    pub fn prose(&self) -> &[Prose] {
        &self.prose
    }

    /// The lines below the table.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// The other members of the JSON object.
    pub fn members(&self) -> &[(&'static str, serde_json::Value)] {
        &self.members
    }
}
