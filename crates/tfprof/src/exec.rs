//! What one step recorded about one node.

use stepscope_tfgraph::{NodeRecord, SavedExec, SavedMemory};

use crate::device::{Device, is_cpu};
use crate::measures::Measures;

/// Start and duration of executions on one lane, in µs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Lane {
    /// The device, by its number in the profile.
    pub device: u32,
    pub accelerator: bool,
    pub times: Vec<(i64, i64)>,
}

/// What one step recorded about one node.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Exec {
    pub runs: i64,
    pub start: i64,
    pub end: i64,
    pub lanes: Vec<Lane>,
    pub memory: MemorySums,
    /// Memory in use by everyone: time and amount. Accelerators only.
    pub in_use: Vec<(i64, i64)>,
    /// Changes of allocations on accelerators: time and amount.
    pub allocations: Vec<(i64, i64)>,
}

/// Memory over all runs of a step.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MemorySums {
    pub requested: i64,
    pub peak: i64,
    pub residual: i64,
    pub output: i64,
    pub accelerator_persistent: i64,
}

impl MemorySums {
    fn add(&mut self, memory: &SavedMemory) {
        let add = |to: &mut i64, value: i64| *to = to.saturating_add(value);
        add(&mut self.requested, memory.requested);
        add(&mut self.peak, memory.peak);
        add(&mut self.residual, memory.residual);
        add(&mut self.output, memory.output);
        add(&mut self.accelerator_persistent, memory.accelerator_persistent);
    }
}

impl Exec {
    /// Adds when it ran on a device.
    pub(crate) fn add_time(&mut self, number: u32, device: &Device, record: &NodeRecord<'_>) {
        let start = record.start_micros;
        if start <= 0 {
            return;
        }
        self.start = if self.start > 0 { self.start.min(start) } else { start };
        // An execution shorter than a microsecond counts as one.
        let duration = if record.op_end_micros == 0 { 1 } else { record.op_end_micros };
        self.end = self.end.max(start.saturating_add(duration));
        if device.accelerator || device.canonical {
            self.lane(number, device.accelerator).push((start, duration));
        }
        if device.canonical && !device.accelerator {
            self.runs += 1;
        }
    }

    fn lane(&mut self, device: u32, accelerator: bool) -> &mut Vec<(i64, i64)> {
        let at = self.lanes.iter().position(|lane| lane.device == device).unwrap_or_else(|| {
            self.lanes.push(Lane { device, accelerator, times: Vec::new() });
            self.lanes.len() - 1
        });
        &mut self.lanes[at].times
    }

    /// Adds what it did with memory.
    pub(crate) fn add_memory(&mut self, device: &Device, record: &NodeRecord<'_>) {
        if record.start_micros <= 0 {
            return;
        }
        let mut memory = SavedMemory {
            micros: record.start_micros.saturating_add(record.op_end_micros),
            ..SavedMemory::default()
        };
        for used in record.memory.iter().filter(|used| used.allocator.contains("GPU")) {
            memory.in_use = memory.in_use.max(used.in_use_bytes);
            self.allocations.extend_from_slice(&used.changes);
        }
        let bytes = record.outputs.iter().filter_map(|output| output.bytes);
        memory.output = sum(bytes.map(|(requested, allocated)| requested.max(allocated)));
        if record.has_memory_stats && !is_cpu(&device.name) {
            memory.accelerator_persistent = record.persistent_bytes;
        }
        let (temp, persistent) = (record.temp_bytes, record.persistent_bytes);
        let of =
            |value: fn(&stepscope_tfgraph::AllocatorUse<'_>) -> i64| sum(record.memory.iter().map(value));
        memory.residual = of(|used| used.live_bytes).saturating_add(persistent);
        memory.requested = of(|used| used.total_bytes).saturating_add(persistent).saturating_add(temp);
        memory.peak = of(|used| used.peak_bytes).saturating_add(persistent).saturating_add(temp);
        self.memory.add(&memory);
        if !is_cpu(&device.name) {
            self.in_use.push((memory.micros, memory.in_use));
        }
    }

    /// The same from a saved profile; `number_of` numbers the devices.
    pub fn of_saved(saved: &SavedExec, canonical: &str, mut number_of: impl FnMut(&str) -> u32) -> Self {
        let mut exec = Exec {
            runs: saved.run_count,
            start: saved.start_micros,
            end: saved.end_micros,
            ..Exec::default()
        };
        for (map, accelerator) in [(&saved.accelerator, true), (&saved.cpu, false)] {
            for (device, times) in map {
                let device = number_of(device);
                exec.lanes.push(Lane { device, accelerator, times: times.clone() });
            }
        }
        saved.memory.iter().for_each(|memory| exec.memory.add(memory));
        exec.allocations.clone_from(&saved.allocations);
        if !is_cpu(canonical) {
            exec.in_use = saved.memory.iter().map(|memory| (memory.micros, memory.in_use)).collect();
        }
        exec
    }

    /// Time on accelerators, or on hosts, in µs.
    pub fn micros(&self, accelerator: bool) -> i64 {
        let lanes = self.lanes.iter().filter(|lane| lane.accelerator == accelerator);
        sum(lanes.flat_map(|lane| &lane.times).map(|(_, duration)| *duration))
    }

    /// All that is counted of it.
    pub fn measures(&self) -> Measures {
        let (accelerator_micros, cpu_micros) = (self.micros(true), self.micros(false));
        Measures {
            runs: self.runs,
            exec_micros: accelerator_micros.saturating_add(cpu_micros),
            accelerator_micros,
            cpu_micros,
            requested_bytes: self.memory.requested,
            peak_bytes: self.memory.peak,
            residual_bytes: self.memory.residual,
            output_bytes: self.memory.output,
            ..Measures::default()
        }
    }
}

pub(crate) fn sum(values: impl Iterator<Item = i64>) -> i64 {
    values.fold(0, i64::saturating_add)
}
