//! `nvidia-smi --query-gpu=… --format=csv -l 1`: with and without a header, with and without units, with the
//! header repeated where somebody appended one log to another.

use std::borrow::Cow;

use stepscope_trace::Time;

use super::clock;
use super::fields::{Column, guessed, header, measured, value};
use super::gauges::Gauges;
use crate::csv::record;

/// Does the text begin like a log?
pub(super) fn recognises(text: &str) -> bool {
    let mut rest = text.trim_start();
    let Some(first) = record(&mut rest) else { return false };
    if let Some(columns) = header(&first) {
        return columns.contains(&Column::Timestamp) || columns.len() > 1 && columns.iter().all(is_known);
    }
    let timed = first.first().is_some_and(|cell| clock::parse(cell).is_some());
    let units = ["%", "MiB", "W", "MHz"];
    timed
        && first.iter().skip(1).any(|cell| matches!(measured(cell), (Some(_), unit) if units.contains(&unit)))
}

fn is_known(column: &Column) -> bool {
    *column != Column::Other
}

/// Reads all rows.
pub(super) fn read(text: &str) -> Gauges {
    let mut gauges = Gauges::new();
    let mut rest = text.trim_start();
    let mut rows = Rows::default();
    while let Some(row) = record(&mut rest) {
        if row.iter().all(|cell| cell.is_empty()) {
            continue;
        }
        rows.take(&row, &mut gauges);
    }
    gauges
}

#[derive(Default)]
struct Rows {
    columns: Vec<Column>,
    /// When the last row was taken, and how many rows said the same before it.
    last: Option<(i64, u32)>,
    /// Rows so far, for logs that do not say when.
    count: i64,
}

impl Rows {
    fn take(&mut self, row: &[Cow<str>], gauges: &mut Gauges) {
        if let Some(columns) = header(row) {
            self.columns = columns;
            return;
        }
        if self.columns.is_empty() {
            self.columns = guessed(row);
        }
        let find = |wanted: Column| self.columns.iter().position(|column| *column == wanted);
        let stamped = find(Column::Timestamp);
        let wall = stamped.and_then(|column| row.get(column)).and_then(|cell| clock::parse(cell));
        if stamped.is_some() && wall.is_none() {
            gauges.broken += 1;
            return;
        }
        let model = find(Column::Name).and_then(|column| row.get(column)).map(|cell| cell.trim());
        let Some(gpu) = gauges.gpu(&self.identity(row, wall), model) else {
            gauges.broken += 1;
            return;
        };
        let at = match wall {
            Some(wall) => wall.saturating_sub(gauges.start_at(wall)),
            None => self.count.saturating_mul(1_000_000_000),
        };
        self.count += 1;
        for (column, cell) in self.columns.iter().zip(row) {
            if let Column::Gauge(gauge) = column
                && let Some(value) = value(cell)
            {
                gauges.sample(gpu, gauge, Time::from_ns(at), value);
            }
        }
    }

    /// What tells GPUs apart: the columns that name them, or, where none does, the place among rows of one time.
    fn identity(&mut self, row: &[Cow<str>], wall: Option<i64>) -> String {
        let cells = self.columns.iter().zip(row).filter(|(column, _)| **column == Column::Identity);
        let names: Vec<&str> = cells.map(|(_, cell)| cell.trim()).collect();
        if !names.is_empty() {
            // Some logs have an index and another column called so that never changes: the first one leads.
            return names.into_iter().rev().collect::<Vec<_>>().join(" ");
        }
        let place = match (self.last, wall) {
            (Some((last, place)), Some(now)) if last == now => place + 1,
            _ => 0,
        };
        self.last = wall.map(|wall| (wall, place));
        place.to_string()
    }
}
