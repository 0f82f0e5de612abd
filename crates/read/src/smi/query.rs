//! `nvidia-smi --query-gpu=… --format=csv -l 1`: with and without a header, with and without units, with the
//! header repeated where somebody appended one log to another, with what a terminal showed before it.

use std::borrow::Cow;

use stepscope_trace::Time;

use super::fields::{Column, guessed, header, measured, value};
use super::gauges::Gauges;
use super::{bare, clock};
use crate::csv::{record, separator};

/// How far down the header may be.
const PREAMBLE: usize = 50;

/// Does the text begin like a log?
pub(super) fn recognises(text: &str) -> bool {
    let mut rest = text.trim_start();
    let separated_by = separator(rest);
    let Some(first) = record(&mut rest, separated_by) else { return false };
    if header_at(text).is_some() {
        return true;
    }
    if let Some(columns) = header(&first) {
        return columns.contains(&Column::Timestamp) || columns.len() > 1 && columns.iter().all(is_known);
    }
    let timed = first.first().is_some_and(|cell| clock::parse(cell).is_some());
    let units = ["%", "MiB", "W", "MHz"];
    let measured = timed
        && first
            .iter()
            .skip(1)
            .any(|cell| matches!(measured(cell), (Some(_), unit) if units.contains(&unit)));
    measured || bare::columns(text.trim_start(), separated_by).is_some()
}

/// Where a header with units is, as only nvidia-smi writes them.
fn header_at(text: &str) -> Option<usize> {
    let units = ["[%]", "[MiB]", "[W]", "[MHz]"];
    let is_header = |line: &str| {
        let cells = record(&mut { line }, separator(line)).unwrap_or_default();
        cells.iter().any(|cell| units.iter().any(|unit| cell.ends_with(unit))) && header(&cells).is_some()
    };
    let mut at = 0;
    for line in text.split_inclusive('\n').take(PREAMBLE) {
        if is_header(line) {
            return Some(at);
        }
        at += line.len();
    }
    None
}

fn is_known(column: &Column) -> bool {
    *column != Column::Other
}

/// Reads all rows.
pub(super) fn read(text: &str) -> Gauges {
    let mut gauges = Gauges::new();
    let mut rest = header_at(text).and_then(|at| text.get(at..)).unwrap_or(text).trim_start();
    let separator = separator(rest);
    let bare = bare::columns(rest, separator);
    let unnamed = bare.iter().flatten().filter(|column| matches!(column, Column::Gauge(_)));
    gauges.unnamed = unnamed.count() as u64;
    let mut rows = Rows { columns: bare.unwrap_or_default(), ..Rows::default() };
    let ends = rest.ends_with('\n');
    while let Some(row) = record(&mut rest, separator) {
        // A logger that was stopped, or still writes, leaves half a line.
        let half = rest.is_empty() && !ends && row.len() < rows.columns.len();
        if !half && !row.iter().all(|cell| cell.is_empty()) {
            rows.take(&row, &mut gauges);
        }
    }
    gauges
}

#[derive(Default)]
struct Rows {
    columns: Vec<Column>,
    /// When the last row was taken, and how many rows said the same before it.
    last: Option<(i64, u32)>,
    /// Rounds over all GPUs so far and the last GPU's number, for logs that do not say when.
    rounds: i64,
    last_gpu: Option<i64>,
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
        // Without a time, a line is a sample if it has a value for every column: terminals show other lines too.
        if wall.is_none() && (stamped.is_some() || row.len() != self.columns.len()) {
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
            None => self.round_of(gpu).saturating_mul(1_000_000_000),
        };
        for (column, cell) in self.columns.iter().zip(row) {
            if let Column::Gauge(gauge) = column
                && let Some(value) = value(cell)
            {
                gauges.sample(gpu, gauge, Time::from_ns(at), value);
            }
        }
    }

    /// The round that a sample is of: a GPU that comes again, or an earlier one, opens the next.
    fn round_of(&mut self, gpu: i64) -> i64 {
        self.rounds += i64::from(self.last_gpu.is_some_and(|last| gpu <= last));
        self.last_gpu = Some(gpu);
        self.rounds
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
