//! `nvidia-smi dmon`: a table for terminals, one row per GPU and tick. `nvidia-smi pmon` has one row per
//! process; processes of a GPU are added up.
//!
//! ```text
//! # gpu    pwr  gtemp  mtemp     sm    mem
//! # Idx      W      C      C      %      %
//!     0     74     33      -      0      0
//! ```

use std::collections::BTreeMap;

use rustc_hash::FxHashSet;
use stepscope_trace::Time;

use super::clock;
use super::fields::{Metric, value};
use super::gpu_samples::GpuSamples;

/// dmon's name of a value, its name in queries, and its unit.
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
/// Maximum number of lines before the table, because logs often include the typed command.
const PREAMBLE: usize = 50;

/// Whether a table starts near the top.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().take(PREAMBLE).any(|line| header(line).is_some())
}

/// Cells are separated by spaces, or by commas with `--format csv`.
fn cells(line: &str) -> Vec<&str> {
    line.split(|letter: char| letter.is_whitespace() || letter == ',')
        .filter(|cell| !cell.is_empty())
        .collect()
}

/// The columns that a line announces.
fn header(line: &str) -> Option<Vec<&str>> {
    let columns = cells(line.trim().strip_prefix('#')?);
    let known = |column: &&str| COLUMNS.iter().any(|(name, _, _)| name == column);
    (columns.contains(&"gpu") && columns.iter().any(known)).then_some(columns)
}

/// Reads all rows. Without times, a tick is one second, which is dmon's default.
pub(super) fn read(text: &str) -> GpuSamples {
    let mut gpu_samples = GpuSamples::new();
    let mut columns: Vec<&str> = Vec::new();
    let mut ticks = Ticks::default();
    for line in text.lines() {
        if let Some(found) = header(line) {
            columns = found;
            continue;
        }
        let cells = cells(line);
        if columns.is_empty() || line.trim_start().starts_with('#') || cells.is_empty() {
            continue;
        }
        let cell = |name: &str| {
            columns.iter().position(|column| *column == name).and_then(|at| cells.get(at)).copied()
        };
        let index = cell("gpu").filter(|index| index.parse::<u32>().is_ok());
        let Some(gpu) = index.and_then(|index| gpu_samples.gpu(index, None)) else {
            gpu_samples.broken += 1;
            continue;
        };
        let wall = stamp(cell("Date"), cell("Time"));
        let at = wall.map(|wall| wall.saturating_sub(gpu_samples.start_at(wall)));
        ticks.open(gpu, cell("pid"), at, &mut gpu_samples);
        for (index, &(name, _, _)) in COLUMNS.iter().enumerate() {
            // A GPU without a process is idle.
            let idle = cell("pid") == Some("-") && matches!(name, "sm" | "mem");
            if let Some(value) = cell(name).and_then(value).or(idle.then_some(0.0)) {
                *ticks.values.entry((gpu, index)).or_default() += value;
            }
        }
    }
    ticks.close(&mut gpu_samples);
    gpu_samples
}

/// Rows with the same time.
#[derive(Default)]
struct Ticks {
    count: i64,
    /// Time on the log's own clock.
    at: Option<i64>,
    /// GPUs and processes already seen in this tick, and the last GPU among them.
    seen: FxHashSet<(i64, String)>,
    last_gpu: Option<i64>,
    values: BTreeMap<(i64, usize), f64>,
}

impl Ticks {
    /// A repeated GPU or process, an earlier GPU, or another time starts the next tick.
    fn open(&mut self, gpu: i64, process: Option<&str>, at: Option<i64>, gpu_samples: &mut GpuSamples) {
        let row = (gpu, process.unwrap_or("").to_owned());
        let earlier = self.last_gpu.is_some_and(|last| gpu < last);
        if !self.seen.is_empty() && (earlier || at != self.at || self.seen.contains(&row)) {
            self.close(gpu_samples);
        }
        (self.at, self.last_gpu) = (at, Some(gpu));
        self.seen.insert(row);
    }

    fn close(&mut self, gpu_samples: &mut GpuSamples) {
        let at = Time::from_ns(self.at.unwrap_or(self.count.saturating_mul(1_000_000_000)));
        for ((gpu, column), value) in std::mem::take(&mut self.values) {
            if let Some(&(_, name, unit)) = COLUMNS.get(column) {
                gpu_samples.sample(gpu, &Metric { name: name.to_owned(), unit }, at, value);
            }
        }
        self.seen.clear();
        self.count += 1;
    }
}

/// The options `-o D` and `-o T` add a date like `20260425` and a time.
fn stamp(date: Option<&str>, time: Option<&str>) -> Option<i64> {
    let (date, time) = (date?, time?);
    let parts = [date.get(..4)?, date.get(4..6)?, date.get(6..8)?];
    clock::parse(&format!("{} {time}", parts.join("-")))
}
