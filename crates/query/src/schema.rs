//! The tables: names, columns, and what they hold. `.schema`, the documentation and completion read this list.

use std::fmt::Write as _;

use crate::rows::Rows;
use crate::tables;
use crate::world::World;

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
#[derive(Copy, Clone, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What its values are.
    pub holds: Holds,
    /// What it says, in a few words.
    pub about: &'static str,
    /// Whether `SELECT *` leaves it out.
    pub hidden: bool,
    /// The key under which a view has it, if that differs.
    pub(crate) key: &'static str,
}

impl Column {
    pub(crate) const fn new(name: &'static str, holds: Holds, about: &'static str) -> Self {
        Column { name, holds, about, hidden: false, key: name }
    }

    /// Leaves it out of `SELECT *`.
    pub(crate) const fn hidden(self) -> Self {
        Column { hidden: true, ..self }
    }

    /// Names the key under which a view has it.
    pub(crate) const fn of(self, key: &'static str) -> Self {
        Column { key, ..self }
    }
}

/// Where the rows of a table come from.
#[derive(Copy, Clone)]
pub(crate) enum From {
    Events,
    Arguments,
    Rows(fn(&World) -> Box<dyn Rows>),
}

impl std::fmt::Debug for From {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            From::Events => "Events",
            From::Arguments => "Arguments",
            From::Rows(_) => "Rows",
        })
    }
}

/// A table.
#[derive(Copy, Clone, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// What a row is.
    pub about: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
    pub(crate) from: From,
}

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

/// All tables. Not a constant: every crate that names one compiles the functions in it again.
pub static TABLES: &[Table] = &[
    tables::recorded::EVENT,
    ARG,
    tables::recorded::TRACK,
    tables::recorded::PROCESS,
    tables::recorded::COUNTER,
    tables::recorded::FLOW,
    tables::recorded::LAUNCH,
    tables::recorded::DEVICE,
    tables::recorded::HOST,
    tables::recorded::NOTE,
    tables::recorded::STRING,
    tables::steps::STEP,
    tables::steps::BREAKDOWN,
    tables::results::OP,
    tables::results::KERNEL,
    tables::results::SCOPE,
    tables::results::FUNCTION,
    tables::results::INPUT_STAGE,
    tables::results::ALLOCATION,
    tables::results::REQUEST,
    tables::results::COLLECTIVE,
    tables::results::FINDING,
    tables::logged::SCALAR,
    tables::logged::NODE,
];

/// The functions that SQLite does not have by itself.
pub const FUNCTIONS: &[Function] = &[
    Function { call: "arg(event_id, key)", about: "an argument of an event" },
    Function { call: "ms(ns)", about: "nanoseconds as milliseconds" },
    Function { call: "overlap(ts, dur, ts2, dur2)", about: "nanoseconds that two spans have in common" },
    Function { call: "short_name(name)", about: "a kernel's name without template and call arguments" },
    Function { call: "text REGEXP pattern", about: "whether a regular expression matches" },
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
    for view in tables::nsys::VIEWS.iter().filter(|view| is_wanted(view.name)) {
        let _ = writeln!(text, "-- {}\nCREATE VIEW {} AS\n  {};\n", view.about, view.name, view.query);
    }
    if wanted.is_none() {
        for function in FUNCTIONS {
            let _ = writeln!(text, "-- {}: {}", function.call, function.about);
        }
    }
    text
}
