//! `nvidia-smi --query-gpu=… --format=csv -l 1`: with or without a header, with or without units, with repeated
//! headers if logs were appended, with terminal output before it.

use std::borrow::Cow;

use stepscope_trace::Time;

use super::fields::{Column, guessed, header, measured, value};
use super::gpu_samples::GpuSamples;
use super::{bare, clock};
use crate::csv::{record, separator};

/// Maximum number of lines before the header.
const PREAMBLE: usize = 50;

/// Whether the text starts like a log.
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

/// Position of a header with units, as only nvidia-smi writes them.
fn header_at(text: &str) -> Option<usize> {
    let units = ["[%]", "[MiB]", "[W]", "[MHz]"];
    let is_header = |line: &str| {
        // Every printed line goes through this check, and most name no unit.
        if !units.iter().any(|unit| line.contains(unit)) {
            return false;
        }
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
pub(super) fn read(text: &str) -> GpuSamples {
    let mut gpu_samples = GpuSamples::new();
    let mut rest = header_at(text).and_then(|at| text.get(at..)).unwrap_or(text).trim_start();
    let separator = separator(rest);
    let bare = bare::columns(rest, separator);
    let unnamed = bare.iter().flatten().filter(|column| matches!(column, Column::Metric(_)));
    gpu_samples.unnamed = unnamed.count() as u64;
    let mut rows = Rows { columns: bare.unwrap_or_default(), ..Rows::default() };
    let ends = rest.ends_with('\n');
    while let Some(row) = record(&mut rest, separator) {
        // A logger that was stopped, or is still writing, leaves half a line.
        let half = rest.is_empty() && !ends && row.len() < rows.columns.len();
        if !half && !row.iter().all(|cell| cell.is_empty()) {
            rows.take(&row, &mut gpu_samples);
        }
    }
    gpu_samples
}

#[derive(Default)]
struct Rows {
    columns: Vec<Column>,
    /// Time of the last row, and how many rows before it had the same time.
    last: Option<(i64, u32)>,
    /// Rounds over all GPUs so far and the last GPU's number, for logs without times.
    rounds: i64,
    last_gpu: Option<i64>,
}

impl Rows {
    fn take(&mut self, row: &[Cow<str>], gpu_samples: &mut GpuSamples) {
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
        // Without a time, a line is a sample if it has a value for every column, because terminals show other
        // lines too.
        if wall.is_none() && (stamped.is_some() || row.len() != self.columns.len()) {
            gpu_samples.broken += 1;
            return;
        }
        let model = find(Column::Name).and_then(|column| row.get(column)).map(|cell| cell.trim());
        let Some(gpu) = gpu_samples.gpu(&self.identity(row, wall), model) else {
            gpu_samples.broken += 1;
            return;
        };
        let at = match wall {
            Some(wall) => wall.saturating_sub(gpu_samples.start_at(wall)),
            None => self.round_of(gpu).saturating_mul(1_000_000_000),
        };
        for (column, cell) in self.columns.iter().zip(row) {
            if let Column::Metric(metric) = column
                && let Some(value) = value(cell)
            {
                gpu_samples.sample(gpu, metric, Time::from_ns(at), value);
            }
        }
    }

    /// The round of a sample: a repeated or earlier GPU starts the next round.
    fn round_of(&mut self, gpu: i64) -> i64 {
        self.rounds += i64::from(self.last_gpu.is_some_and(|last| gpu <= last));
        self.last_gpu = Some(gpu);
        self.rounds
    }

    /// The key of a GPU: the columns that name it, or, if there are none, its position among rows with the same
    /// time.
    fn identity(&mut self, row: &[Cow<str>], wall: Option<i64>) -> String {
        let cells = self.columns.iter().zip(row).filter(|(column, _)| **column == Column::Identity);
        let names: Vec<&str> = cells.map(|(_, cell)| cell.trim()).collect();
        if !names.is_empty() {
            // Some logs have an index and another column with that name that never changes: the first one wins.
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
