//! `nvidia-smi dmon`: a table for terminals, one row a GPU and tick.
//!
//! ```text
//! # gpu    pwr  gtemp  mtemp     sm    mem
//! # Idx      W      C      C      %      %
//!     0     74     33      -      0      0
//! ```

use stepscope_trace::Time;

use super::clock;
use super::fields::{Gauge, value};
use super::gauges::Gauges;

/// What dmon calls a value, what queries call it, and its unit.
const COLUMNS: &[(&str, &str, &str)] = &[
    ("pwr", "power.draw", "W"),
    ("gtemp", "temperature.gpu", "C"),
    ("temp", "temperature.gpu", "C"),
    ("mtemp", "temperature.memory", "C"),
    ("sm", "utilization.gpu", "%"),
    ("mem", "utilization.memory", "%"),
    ("enc", "utilization.encoder", "%"),
    ("dec", "utilization.decoder", "%"),
    ("mclk", "clocks.mem", "MHz"),
    ("pclk", "clocks.sm", "MHz"),
    ("fb", "memory.used", "MiB"),
];

/// Does the text begin like dmon's table?
pub(super) fn recognises(text: &str) -> bool {
    text.trim_start().lines().next().is_some_and(|line| header(line).is_some())
}

/// The columns that a line announces.
fn header(line: &str) -> Option<Vec<&str>> {
    let columns: Vec<&str> = line.trim().strip_prefix('#')?.split_whitespace().collect();
    let known = |column: &&str| COLUMNS.iter().any(|(name, _, _)| name == column);
    (columns.contains(&"gpu") && columns.iter().any(known)).then_some(columns)
}

/// Reads all rows. Without times in it, a tick is a second: that is what dmon does unless told otherwise.
pub(super) fn read(text: &str) -> Gauges {
    let mut gauges = Gauges::new();
    let mut columns: Vec<&str> = Vec::new();
    let (mut tick, mut last_gpu) = (0_i64, None);
    for line in text.lines() {
        if let Some(found) = header(line) {
            columns = found;
            continue;
        }
        let cells: Vec<&str> = line.split_whitespace().collect();
        if line.trim_start().starts_with('#') || cells.is_empty() {
            continue;
        }
        let cell =
            |name: &str| columns.iter().position(|column| *column == name).and_then(|at| cells.get(at));
        let Some(gpu) = cell("gpu").and_then(|cell| gauges.gpu(cell, None)) else {
            gauges.broken += 1;
            continue;
        };
        // A GPU that comes again, or an earlier one, opens the next tick.
        tick += i64::from(last_gpu.is_some_and(|last| gpu <= last));
        last_gpu = Some(gpu);
        let at = match stamp(cell("Date").copied(), cell("Time").copied()) {
            Some(wall) => wall.saturating_sub(gauges.start_at(wall)),
            None => tick.saturating_mul(1_000_000_000),
        };
        for &(name, gauge, unit) in COLUMNS {
            if let Some(value) = cell(name).and_then(|cell| value(cell)) {
                let gauge = Gauge { name: gauge.to_owned(), unit };
                gauges.sample(gpu, &gauge, Time::from_ns(at), value);
            }
        }
    }
    gauges
}

/// Options `-o D` and `-o T` add a date like `20260425` and a time.
fn stamp(date: Option<&str>, time: Option<&str>) -> Option<i64> {
    let (date, time) = (date?, time?);
    let parts = [date.get(..4)?, date.get(4..6)?, date.get(6..8)?];
    clock::parse(&format!("{} {time}", parts.join("-")))
}
