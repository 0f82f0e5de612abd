//! The tables: names, columns, and what they hold. `.schema`, the documentation and completion read this list.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::LazyLock;

use stepscope_results as results;
use stepscope_results::Format;
use stepscope_results::table::Kind;

use crate::recording::Recording;
use crate::rows::{Rows, Sheet};
use crate::tables;

/// What the values of a column are; any may be NULL.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Whole numbers.
    Int,
    /// Numbers.
    Real,
    /// Text.
    Text,
    /// Whatever was recorded.
    Any,
}

impl Holds {
    /// The type in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Holds::Int => "INTEGER",
            Holds::Real => "REAL",
            Holds::Text => "TEXT",
            Holds::Any => "",
        }
    }
}

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub holds: Holds,
    /// What it says, in a few words.
    pub about: Cow<'static, str>,
    /// Whether `SELECT *` leaves it out.
    pub hidden: bool,
}

impl Column {
    pub(crate) const fn new(name: &'static str, holds: Holds, about: &'static str) -> Self {
        Column { name, holds, about: Cow::Borrowed(about), hidden: false }
    }

    /// Leaves it out of `SELECT *`.
    pub(crate) const fn hidden(mut self) -> Self {
        self.hidden = true;
        self
    }

    /// A column of a view; `None` if SQL does not have it.
    fn of(column: &results::Column) -> Option<Self> {
        let about = column.about;
        let (holds, about) = match column.kind() {
            Kind::Flag => (Holds::Int, format!("1 if {about}")),
            Kind::Map => (Holds::Text, format!("{about}; a JSON object")),
            Kind::Text => (Holds::Text, about.to_owned()),
            Kind::Int if column.format == Format::Bytes => (Holds::Int, format!("{about}, bytes")),
            Kind::Int => (Holds::Int, about.to_owned()),
            Kind::Real if column.format == Format::Ms => (Holds::Real, format!("{about}, ms")),
            Kind::Real => (Holds::Real, about.to_owned()),
        };
        let name = column.sql.filter(|_| is_in_sql(column))?;
        Some(Column { name, holds, about: Cow::Owned(about), hidden: false })
    }
}

/// Whether a column of a view is one in SQL. The host comes last there, and is not in every view.
pub(crate) fn is_in_sql(column: &results::Column) -> bool {
    column.sql.is_some() && !column.drawn && column.key != HOST.name
}

/// The last column of results that are listed host by host.
pub(crate) const HOST: Column = Column::new("host", Holds::Text, "its host");

/// Where the rows of a table come from.
#[derive(Copy, Clone)]
pub(crate) enum From {
    Events,
    Arguments,
    Rows(fn(&Recording) -> Box<dyn Rows>),
    /// A view, host by host.
    View(&'static results::views::View),
}

impl From {
    /// Whether the rows are computed once and kept.
    pub(crate) fn is_kept(self) -> bool {
        matches!(self, From::Rows(_) | From::View(_))
    }

    /// The rows, if they are kept.
    pub(crate) fn rows(self, recording: &Recording) -> Box<dyn Rows> {
        match self {
            From::Rows(make) => make(recording),
            From::View(view) => tables::results::per_host(recording, view),
            From::Events | From::Arguments => Box::new(Sheet::default()),
        }
    }
}

impl std::fmt::Debug for From {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            From::Events => "Events",
            From::Arguments => "Arguments",
            From::Rows(_) => "Rows",
            From::View(_) => "View",
        })
    }
}

/// A table.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// Its columns.
    pub columns: Cow<'static, [Column]>,
    pub(crate) from: From,
}

impl Table {
    /// The table of a view; `None` if it has none.
    fn of(view: &'static results::views::View) -> Option<Self> {
        let (name, about) = view.sql?;
        let columns = (view.columns)();
        let columns = columns.iter().filter_map(Column::of).chain([HOST]).collect();
        Some(Table { name, about, columns, from: From::View(view) })
    }
}

/// Declares a table, one line per column: `name: Type "meaning" => value;`. The rows come from a function, and `value` says
/// how to get a column from one.
macro_rules! table {
    ($TABLE:ident: $name:literal, $about:literal, $rows:path => $row:pat, $($key:ident: $holds:ident $means:literal => $get:expr;)*) => {
        const $TABLE: $crate::schema::Table = $crate::schema::Table {
            name: $name,
            about: $about,
            columns: std::borrow::Cow::Borrowed(&[
                $($crate::schema::Column::new(stringify!($key), $crate::schema::Holds::$holds, $means)),*
            ]),
            from: $crate::schema::From::Rows(|recording| {
                let rows = $rows(recording).map(|$row| vec![$($crate::cell::Cell::from($get)),*]);
                Box::new($crate::rows::Sheet(rows.collect()))
            }),
        };
    };
}
pub(crate) use table;

/// A view: a query with a name.
#[derive(Copy, Clone, Debug)]
pub struct View {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// The query.
    pub query: &'static str,
}

/// A function.
#[derive(Copy, Clone, Debug)]
pub struct Function {
    /// How it is called.
    pub call: &'static str,
    /// What it gives.
    pub about: &'static str,
}

pub(crate) use tables::recorded::ARG;

/// All tables: what was recorded, the steps, a table per view that has one, and what else is computed.
pub static TABLES: LazyLock<Vec<Table>> = LazyLock::new(|| {
    let recorded = tables::recorded::all().into_iter().chain(tables::steps::all());
    let computed = tables::results::all().into_iter().chain(tables::logged::all()).chain(tables::nsys::all());
    recorded.chain(results::views::VIEWS.iter().filter_map(Table::of)).chain(computed).collect()
});

/// The functions that SQLite does not have by itself.
pub const FUNCTIONS: &[Function] = &[
    Function { call: "arg(event_id, key)", about: "an argument of an event" },
    Function { call: "ms(ns)", about: "nanoseconds as milliseconds" },
    Function { call: "overlap(ts, dur, ts2, dur2)", about: "nanoseconds that two spans have in common" },
    Function { call: "short_name(name)", about: "a kernel's name without template and call arguments" },
    Function { call: "text REGEXP pattern", about: "whether a regular expression matches" },
    Function {
        call: "EXTRACT_ARG(arg_set_id, key)",
        about: "an argument of an event, under Perfetto's name",
    },
    Function {
        call: "ancestor_slice(id)",
        about: "a table: the events around an event, the innermost first",
    },
    Function { call: "descendant_slice(id)", about: "a table: the events inside an event" },
    Function {
        call: "overlapping_slice(id)",
        about: "a table: the events at the same time on any track of the host; ts and dur are what both have in common",
    },
    Function { call: "median(x)", about: "the middle value of a group" },
    Function {
        call: "percentile(x, p)",
        about: "the p-th percentile of a group, p from 0 to 100, interpolated",
    },
    Function {
        call: "stddev(x)",
        about: "the standard deviation of a group as a sample; variance(x) is its square",
    },
    Function {
        call: "sqrt(x)",
        about: "and exp, ln, log (base 10), log(base, x), log2, log10, pow(x, y), floor, ceil, trunc, mod(x, y)",
    },
];

/// The statement that declares a table.
pub(crate) fn declaration(table: &Table) -> String {
    let mut text = format!("CREATE TABLE \"{}\"(", table.name);
    for (place, column) in table.columns.iter().enumerate() {
        let comma = if place > 0 { ", " } else { "" };
        let hidden = if column.hidden { " HIDDEN" } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(text, "{comma}\"{}\" {}{hidden}", column.name, column.holds.sql());
    }
    text + ")"
}

/// Tables, views and functions for people: what rows are, columns with their meaning. Empty if nothing has that name.
pub(crate) fn described(wanted: Option<&str>) -> String {
    let is_wanted = |name: &str| wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(name));
    let mut text = String::new();
    for table in TABLES.iter().filter(|table| is_wanted(table.name)) {
        let _ = writeln!(text, "-- {}\nCREATE TABLE {}(", table.about, table.name);
        for (place, column) in table.columns.iter().enumerate() {
            let comma = if place + 1 < table.columns.len() { "," } else { "" };
            let declared = format!("{} {}", column.name, column.holds.sql());
            let hidden = if column.hidden { "; not in SELECT *" } else { "" };
            let _ = writeln!(
                text,
                "  {:<28} -- {}{hidden}",
                declared.trim_end().to_owned() + comma,
                column.about
            );
        }
        text.push_str(");\n\n");
    }
    for view in tables::perfetto::VIEWS.iter().filter(|view| is_wanted(view.name)) {
        let _ = writeln!(text, "-- {}\nCREATE VIEW {} AS\n  {};\n", view.about, view.name, view.query);
    }
    if wanted.is_none() {
        for function in FUNCTIONS {
            let _ = writeln!(text, "-- {}: {}", function.call, function.about);
        }
    }
    text
}
