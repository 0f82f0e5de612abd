//! Tables that are lists of rows: results of analyses, tracks, launches. Rows with an equal value in a column are found
//! through an order of that column, made on first use.

use std::sync::Arc;

use rusqlite::Result;
use rusqlite::types::ValueRef;
use rusqlite::vtab::{Filters, IndexConstraintOp, IndexFlags, IndexInfo};

use crate::cell::Cell;
use crate::recording::Recording;
use crate::running::RunningQuery;
use crate::schema::{Holds, Table, declaration};
use crate::vtab::{Source, Walk};

/// Rows of a table.
pub(crate) trait Rows: Send + Sync {
    /// How many.
    fn len(&self) -> usize;

    /// Whether a first column that is called `id` has no value twice.
    fn has_key(&self) -> bool {
        true
    }

    /// One value.
    fn cell<'a>(&'a self, recording: &'a Recording, row: usize, column: usize) -> Cell<'a>;
}

/// Rows that are kept as values.
#[derive(Debug, Default)]
pub(crate) struct Sheet(pub(crate) Vec<Vec<Cell<'static>>>);

impl Rows for Sheet {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn cell<'a>(&'a self, _: &'a Recording, row: usize, column: usize) -> Cell<'a> {
        match self.0.get(row).and_then(|row| row.get(column)) {
            Some(Cell::Text(text)) => Cell::Text(std::borrow::Cow::Borrowed(text.as_ref())),
            Some(other) => other.clone(),
            None => Cell::Null,
        }
    }
}

/// A table of rows.
pub(crate) struct RowsTable {
    pub(crate) query: Arc<RunningQuery>,
    /// Its place among all tables.
    pub(crate) number: usize,
    pub(crate) table: &'static Table,
}

impl Source for RowsTable {
    type Walk = RowsWalk;

    fn declaration(&self) -> String {
        declaration(self.table)
    }

    fn plan(&self, info: &mut IndexInfo) -> Result<()> {
        let all = self.query.rows(self.number)?;
        let rows = all.map_or(0, Rows::len).max(1);
        // The first column is a key if it is called `id`.
        let has_key = all.is_some_and(Rows::has_key);
        let is_key = |column: i32| {
            has_key && column == 0 && self.table.columns.first().is_some_and(|it| it.name == "id")
        };
        let mut chosen: Option<(usize, i32)> = None;
        for (place, constraint) in info.constraints().enumerate() {
            let equal = constraint.operator() == IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ;
            let better = chosen.is_none_or(|(_, known)| is_key(constraint.column()) && !is_key(known));
            if equal && constraint.is_usable() && constraint.column() >= 0 && better {
                chosen = Some((place, constraint.column()));
            }
        }
        let binary = |info: &IndexInfo, place| info.collation(place).is_ok_and(|name| name == "BINARY");
        match chosen.filter(|&(place, _)| binary(info, place)) {
            Some((place, column)) => {
                info.constraint_usage(place).set_argv_index(1);
                info.set_idx_str(&column.to_string());
                let found = if is_key(column) { 1.0 } else { (rows as f64).sqrt() };
                if is_key(column) {
                    info.set_idx_flags(IndexFlags::SQLITE_INDEX_SCAN_UNIQUE);
                }
                info.set_estimated_rows(found as i64);
                info.set_estimated_cost(found + 10.0);
            }
            None => {
                info.set_estimated_rows(i64::try_from(rows).unwrap_or(i64::MAX));
                info.set_estimated_cost(rows as f64 + 10.0);
            }
        }
        Ok(())
    }

    fn query(&self) -> &Arc<RunningQuery> {
        &self.query
    }

    fn walk(&self) -> RowsWalk {
        let (query, number, table) = (self.query.clone(), self.number, self.table);
        RowsWalk { query, number, table, order: None, at: 0, end: 0 }
    }
}

/// A walk over all rows, or over those that an order found.
pub(crate) struct RowsWalk {
    query: Arc<RunningQuery>,
    number: usize,
    table: &'static Table,
    order: Option<Arc<Vec<u32>>>,
    at: usize,
    end: usize,
}

impl RowsWalk {
    fn row(&self) -> usize {
        match &self.order {
            Some(order) => order.get(self.at).map_or(usize::MAX, |&row| row as usize),
            None => self.at,
        }
    }
}

impl Walk for RowsWalk {
    fn filter(&mut self, plan: &str, values: &Filters<'_>) -> Result<()> {
        (self.order, self.at) = (None, 0);
        let query = self.query.clone();
        let Some(rows) = query.rows(self.number)? else { return Ok(()) };
        self.end = rows.len();
        let (Ok(column), Some(value)) = (plan.parse::<usize>(), values.iter().next()) else { return Ok(()) };
        let holds = self.table.columns.get(column).map(|column| column.holds);
        let wanted = match (holds, value) {
            // Nothing equals NULL.
            (_, ValueRef::Null) => {
                self.end = 0;
                return Ok(());
            }
            (Some(Holds::Int | Holds::Real), ValueRef::Integer(value)) => Cell::Int(value),
            (Some(Holds::Real), ValueRef::Real(value)) => Cell::Real(value),
            (Some(Holds::Text), ValueRef::Text(text)) => match std::str::from_utf8(text) {
                Ok(text) => Cell::from(text),
                Err(_) => return Ok(()),
            },
            // SQLite converts before it compares: it looks at all rows.
            _ => return Ok(()),
        };
        let Some(order) = query.order(self.number, column)? else { return Ok(()) };
        let cell = |row: u32| rows.cell(&query.recording, row as usize, column);
        let from = order.partition_point(|&row| cell(row).order(&wanted).is_lt());
        let to = order.partition_point(|&row| cell(row).order(&wanted).is_le());
        (self.at, self.end) = (from, to);
        self.order = Some(order);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.at >= self.end
    }

    fn cell<'w>(&self, query: &'w RunningQuery, column: usize) -> Result<Cell<'w>> {
        let rows = query.rows(self.number)?;
        Ok(rows.map_or(Cell::Null, |rows| rows.cell(&query.recording, self.row(), column)))
    }

    fn rowid(&self) -> i64 {
        i64::try_from(self.row()).unwrap_or(i64::MAX)
    }
}
