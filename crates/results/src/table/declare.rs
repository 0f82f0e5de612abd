//! The declaration of a table: every column once, with its key, title, format, meaning and the way to get it from a row.
//! Text, CSV, JSON, data frames, SQL, schemas and documentation follow from it.
//!
//! ```
//! use stepscope_results::table::{Field, Table, columns};
//!
//! struct Op {
//!     name: &'static str,
//!     count: u64,
//!     share: Option<f64>,
//! }
//!
//! // key, marks: format, title, what it means => the value.
//! let fields: Vec<Field<Op>> = columns! { op: Op;
//!     name.known: Name "op", "name of the op" => op.name;
//!     count.known: Count "count", "number of runs" => op.count;
//!     fraction.optional: Percent "share", "share of all time" => op.share;
//! };
//! let ops = [Op { name: "MatMul", count: 12, share: Some(0.61) }, Op { name: "Copy", count: 1, share: None }];
//! let table = Table::of("ops", &fields, &ops);
//! assert_eq!(table.columns()[1].about, "number of runs");
//! assert_eq!(table.rows().len(), 2);
//! ```

use super::{Cell, Column, Format, Prose, Table};

/// A column of rows `R`, with the way to get it from a row.
#[derive(Debug)]
pub struct Field<R> {
    /// The column.
    pub column: Column,
    get: fn(&R) -> Cell,
}

impl<R> Field<R> {
    /// A column. [`columns!`](crate::table::columns) is shorter.
    pub fn new(
        key: &'static str,
        title: &'static str,
        format: Format,
        about: &'static str,
        get: fn(&R) -> Cell,
    ) -> Self {
        Field { column: Column { about, sql: Some(key), ..Column::new(key, title, format) }, get }
    }

    /// Omitted from text if the terminal is too narrow.
    pub fn optional(self) -> Self {
        Field { column: self.column.optional(), ..self }
    }

    /// For JSON, CSV and SQL only.
    pub fn hidden(self) -> Self {
        Field { column: self.column.hidden(), ..self }
    }

    /// For text only.
    pub fn drawn(self) -> Self {
        Field { column: self.column.drawn(), ..self }
    }

    /// Every row has it.
    pub fn known(mut self) -> Self {
        self.column.known = true;
        self
    }

    /// Missing from tables of recordings that cannot have it.
    pub fn sometimes(mut self) -> Self {
        self.column.sometimes = true;
        self
    }

    /// Its values are among these.
    pub fn one_of(mut self, words: &'static [&'static str]) -> Self {
        self.column.one_of = words;
        self
    }

    /// Its values are not whole, although its format is for whole numbers.
    pub fn real(mut self) -> Self {
        self.column.real = true;
        self
    }

    /// Its name in SQL, where its key is a word of the language.
    pub fn sql(mut self, name: &'static str) -> Self {
        self.column.sql = Some(name);
        self
    }

    /// Not in SQL: another column has the same in a better form.
    pub fn not_in_sql(mut self) -> Self {
        self.column.sql = None;
        self
    }
}

/// The columns alone.
pub fn described<R>(fields: Vec<Field<R>>) -> Vec<Column> {
    fields.into_iter().map(|field| field.column).collect()
}

impl Table {
    /// A table of these rows.
    pub fn of<'r, R: 'r>(
        view: &'static str,
        fields: &[Field<R>],
        rows: impl IntoIterator<Item = &'r R>,
    ) -> Table {
        let mut table = Table::new(view, fields.iter().map(|field| field.column.clone()).collect());
        rows.into_iter().for_each(|row| table.add(fields, row));
        table
    }

    /// Adds a row.
    pub fn add<R>(&mut self, fields: &[Field<R>], row: &R) {
        self.push(fields.iter().map(|field| (field.get)(row)));
    }

    /// Adds a row that text shows in words.
    pub(crate) fn add_prose<R>(&mut self, fields: &[Field<R>], row: &R, prose: Prose) {
        self.push_prose(fields.iter().map(|field| (field.get)(row)), prose);
    }

    /// Leaves columns out of text.
    pub fn hide(&mut self, keys: &[&str]) {
        let hidden = self.columns.iter_mut().filter(|column| keys.contains(&column.key.as_ref()));
        hidden.for_each(|column| column.hidden = true);
    }

    /// Gives a column another title.
    pub(crate) fn entitle(&mut self, key: &str, title: &'static str) {
        let named = self.columns.iter_mut().filter(|column| column.key == key);
        named.for_each(|column| column.title = title.into());
    }
}

/// Declares columns, one line each: `key.mark.mark: Format "title", "meaning" => value;`. Views say what each means. The marks are the methods of
/// [`Field`]; the value is anything that becomes a [`Cell`].
#[macro_export]
macro_rules! columns {
    ($row:ident: $type:ty; $($key:ident $(.$mark:ident $(($arg:expr))?)*: $format:ident $title:literal $(, $about:literal)? => $get:expr;)*) => {
        vec![$(
            $crate::table::Field::<$type>::new(
                stringify!($key),
                $title,
                $crate::table::Format::$format,
                concat!("" $(, $about)?),
                |$row: &$type| $crate::table::Cell::from($get),
            )$(.$mark($($arg)?))*
        ),*]
    };
}

pub use crate::columns;
