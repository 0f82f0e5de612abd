//! Samples as CSV: a header, then one line per sample; unknown values are empty.
//!
//! `stepscope_read` recognises such a file by its first columns and reads it as counters; `docs/run.md` lists
//! all columns.

use std::fmt::Write as _;
use std::io::{self, Write};

use super::{Gpu, Sample, Sampler};

/// Machines with more cores get no column per core; the busiest core is included anyway.
const MOST_CORES: usize = 64;

/// A column that every file has: its name, and how to get it from a sample.
type Column = (&'static str, fn(&Sample) -> Cell);

/// A value, with its number of decimals.
#[derive(Copy, Clone)]
enum Cell {
    Whole(Option<u64>),
    Rate(Option<f64>),
    Percent(Option<f64>),
    Decimals(Option<f64>, usize),
}

const COLUMNS: &[Column] = &[
    ("time_unix_s", |s| Cell::Decimals(Some(s.wall_ns as f64 / 1e9), 6)),
    ("elapsed_s", |s| Cell::Decimals(Some(s.elapsed.as_secs_f64()), 3)),
    ("machine_cpu_percent", |s| Cell::Percent(s.machine.cpu)),
    ("busiest_core_percent", |s| Cell::Percent(s.machine.cores.iter().copied().reduce(f64::max))),
    ("machine_io_wait_percent", |s| Cell::Percent(s.machine.io_wait)),
    ("machine_steal_percent", |s| Cell::Percent(s.machine.steal)),
    ("machine_memory_total_bytes", |s| Cell::Whole(s.machine.memory_total)),
    ("machine_memory_available_bytes", |s| Cell::Whole(s.machine.memory_available)),
    ("machine_swap_used_bytes", |s| Cell::Whole(s.machine.swap_used)),
    ("machine_disk_read_bytes_per_s", |s| Cell::Rate(s.machine.disk_read)),
    ("machine_disk_write_bytes_per_s", |s| Cell::Rate(s.machine.disk_write)),
    ("machine_net_receive_bytes_per_s", |s| Cell::Rate(s.machine.net_receive)),
    ("machine_net_send_bytes_per_s", |s| Cell::Rate(s.machine.net_send)),
    ("machine_switches_per_s", |s| Cell::Rate(s.machine.switches)),
    ("tree_processes", |s| Cell::Whole(s.tree.as_ref().map(|t| t.processes))),
    ("tree_threads", |s| Cell::Whole(s.tree.as_ref().map(|t| t.threads))),
    ("tree_cpu_percent", |s| Cell::Percent(s.tree.as_ref().and_then(|t| t.cpu))),
    ("tree_cpu_seconds", |s| Cell::Decimals(s.tree.as_ref().map(|t| t.cpu_seconds), 2)),
    ("tree_rss_bytes", |s| Cell::Whole(s.tree.as_ref().map(|t| t.rss))),
    ("tree_pss_bytes", |s| Cell::Whole(s.tree.as_ref().and_then(|t| t.pss))),
    ("tree_largest_peak_bytes", |s| Cell::Whole(s.tree.as_ref().and_then(|t| t.largest_peak))),
    ("tree_disk_read_bytes_per_s", |s| Cell::Rate(s.tree.as_ref().and_then(|t| t.disk_read))),
    ("tree_disk_write_bytes_per_s", |s| Cell::Rate(s.tree.as_ref().and_then(|t| t.disk_write))),
    ("tree_switches_per_s", |s| Cell::Rate(s.tree.as_ref().and_then(|t| t.switches))),
    ("cgroup_cpu_limit_cores", |s| Cell::Decimals(s.cgroup.cpu_limit, 2)),
    ("cgroup_memory_limit_bytes", |s| Cell::Whole(s.cgroup.memory_limit)),
    ("cgroup_memory_used_bytes", |s| Cell::Whole(s.cgroup.memory_used)),
    ("cgroup_throttled_percent", |s| Cell::Percent(s.cgroup.throttled)),
];

/// A GPU column; its number precedes it: `gpu0_busy_percent`.
type GpuColumn = (&'static str, fn(&Gpu) -> Cell);

const GPU_COLUMNS: &[GpuColumn] = &[
    ("busy_percent", |g| Cell::Percent(g.busy)),
    ("memory_busy_percent", |g| Cell::Percent(g.memory_busy)),
    ("memory_used_bytes", |g| Cell::Whole(g.memory_used)),
    ("memory_total_bytes", |g| Cell::Whole(g.memory_total)),
    ("power_watts", |g| Cell::Decimals(g.power, 1)),
    ("power_limit_watts", |g| Cell::Decimals(g.power_limit, 1)),
    ("clock_mhz", |g| Cell::Rate(g.clock)),
    ("memory_clock_mhz", |g| Cell::Rate(g.memory_clock)),
    ("temperature_celsius", |g| Cell::Rate(g.temperature)),
    ("throttled", |g| Cell::Whole(g.throttled.as_ref().map(|reasons| u64::from(!reasons.is_empty())))),
    ("bus_receive_bytes_per_s", |g| Cell::Rate(g.bus_receive)),
    ("bus_send_bytes_per_s", |g| Cell::Rate(g.bus_send)),
];

/// Writes samples to `out`.
#[derive(Debug)]
pub struct CsvWriter<W> {
    out: W,
    cores: usize,
    gpus: usize,
    line: String,
}

impl<W: Write> CsvWriter<W> {
    /// Writes the names of the columns.
    pub fn new(mut out: W, sampler: &Sampler) -> io::Result<Self> {
        let cores = Some(sampler.cores()).filter(|&cores| cores <= MOST_CORES).unwrap_or(0);
        let gpus = sampler.gpus();
        let mut names: Vec<String> = COLUMNS.iter().map(|(name, _)| (*name).to_owned()).collect();
        for gpu in 0..gpus {
            names.extend(GPU_COLUMNS.iter().map(|(name, _)| format!("gpu{gpu}_{name}")));
            names.push(format!("gpu{gpu}_tree_memory_bytes"));
        }
        names.extend((0..cores).map(|core| format!("core{core}_percent")));
        writeln!(out, "{}", names.join(","))?;
        out.flush()?;
        Ok(CsvWriter { out, cores, gpus, line: String::new() })
    }

    /// Writes one sample and sees to it that it is out: a run may be killed at any time.
    pub fn write(&mut self, sample: &Sample) -> io::Result<()> {
        let line = &mut self.line;
        line.clear();
        for (_, cell) in COLUMNS {
            push(line, cell(sample));
        }
        for place in 0..self.gpus {
            let none = Gpu::default();
            let gpu = sample.gpus.get(place).unwrap_or(&none);
            GPU_COLUMNS.iter().for_each(|(_, cell)| push(line, cell(gpu)));
            push(line, Cell::Whole(sample.gpu_memory_of_tree.get(place).copied().flatten()));
        }
        for core in 0..self.cores {
            push(line, Cell::Percent(sample.machine.cores.get(core).copied()));
        }
        // The comma after the last cell becomes the end of the line.
        line.pop();
        line.push('\n');
        self.out.write_all(line.as_bytes())?;
        self.out.flush()
    }
}

fn push(line: &mut String, cell: Cell) {
    // Writing into a string cannot fail.
    let _ = match cell {
        Cell::Whole(Some(value)) => write!(line, "{value}"),
        Cell::Rate(Some(value)) => write!(line, "{value:.0}"),
        Cell::Percent(Some(share)) => write!(line, "{:.1}", share * 100.0),
        Cell::Decimals(Some(value), decimals) => write!(line, "{value:.decimals$}"),
        _ => Ok(()),
    };
    line.push(',');
}
