//! Hardware use: the values from a run or a monitor, as lines and as JSON.

use std::io::{self, Write};

use serde::Serialize;

use crate::format::{bytes, decimal, duration_ms, percent, short, thousands};

/// Mean and maximum of a value.
#[derive(Copy, Clone, Debug, Default, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The maximum.
    pub max: f64,
}

/// Hardware use. Unknown is `None`; shares are 0 to 1.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Use {
    /// Number of samples.
    pub samples: u64,
    /// Cores of the machine.
    pub cores: Option<u64>,
    /// CPU limit of the control group, in cores.
    pub cpu_limit_cores: Option<f64>,
    /// Seconds of processor time.
    pub cpu_seconds: Option<f64>,
    /// Busy cores.
    pub cpu_cores: Option<Spread>,
    /// Share of all cores' time in use by anyone.
    pub machine_cpu_fraction: Option<Spread>,
    /// Share of all cores' time spent waiting for disks.
    pub io_wait_fraction: Option<Spread>,
    /// Share of all cores' time that the hypervisor gave to other machines.
    pub steal_fraction: Option<Spread>,
    /// Share of time in which the control group was throttled.
    pub throttled_fraction: Option<Spread>,
    /// Peak memory.
    pub rss_peak_bytes: Option<u64>,
    /// Peak memory with shared pages counted once.
    pub pss_peak_bytes: Option<u64>,
    /// Peak memory of the largest single process.
    pub process_peak_bytes: Option<u64>,
    /// Memory of the machine.
    pub memory_total_bytes: Option<u64>,
    /// Lowest available memory.
    pub memory_available_least_bytes: Option<u64>,
    /// Memory limit of the control group.
    pub memory_limit_bytes: Option<u64>,
    /// Peak memory of the control group.
    pub memory_used_most_bytes: Option<u64>,
    /// Peak swap usage.
    pub swap_peak_bytes: Option<u64>,
    /// Disk reads.
    pub disk_read_bytes_per_s: Option<Spread>,
    /// Disk writes.
    pub disk_write_bytes_per_s: Option<Spread>,
    /// Network bytes received by the machine.
    pub net_receive_bytes_per_s: Option<Spread>,
    /// Network bytes sent by the machine.
    pub net_send_bytes_per_s: Option<Spread>,
    /// Context switches.
    pub switches_per_s: Option<Spread>,
    /// Maximum number of processes.
    pub processes: u64,
    /// Maximum number of threads.
    pub threads: u64,
    /// The GPUs.
    pub gpus: Vec<GpuUse>,
}

/// Hardware use of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GpuUse {
    /// Its number.
    pub index: u32,
    /// Its model.
    pub name: Option<String>,
    /// Share of time in which any kernel ran.
    pub busy_fraction: Option<Spread>,
    /// Memory in use.
    pub memory_used_bytes: Option<Spread>,
    /// Total memory.
    pub memory_total_bytes: Option<u64>,
    /// Peak memory used by the run.
    pub memory_of_tree_bytes: Option<u64>,
    /// Power.
    pub power_watts: Option<Spread>,
    /// Power limit.
    pub power_limit_watts: Option<f64>,
    /// Clock.
    pub clock_mhz: Option<Spread>,
    /// Temperature.
    pub temperature_celsius: Option<Spread>,
    /// Share of samples with throttled clocks.
    pub throttled_fraction: Option<f64>,
    /// The reasons, as nvidia-smi names them.
    pub throttled_by: Vec<String>,
    /// Bytes from the host.
    pub bus_receive_bytes_per_s: Option<Spread>,
    /// Bytes to the host.
    pub bus_send_bytes_per_s: Option<Spread>,
}

/// Writes the hardware use as JSON of `schema`, for the end of a monitor.
pub fn write_use_json(schema: &str, wall_s: f64, usage: &Use, out: &mut dyn Write) -> io::Result<()> {
    let value = serde_json::json!({ "schema": schema, "wall_s": wall_s, "usage": usage });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

/// The hardware use as lines: a label and its text. Unknown values are not mentioned. `stepping`: busy cores
/// while there were steps, and whether the steps were steady.
pub(crate) fn lines(usage: &Use, stepping: Option<(f64, bool)>) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    lines.extend(processors(usage, stepping).map(|text| ("cpu".to_owned(), text)));
    lines.extend(memory(usage).map(|text| ("memory".to_owned(), text)));
    lines.extend(traffic(usage).map(|text| ("disk, net".to_owned(), text)));
    for gpu in &usage.gpus {
        lines.extend(graphics(gpu).map(|text| (format!("gpu {}", gpu.index), text)));
    }
    lines
}

fn processors(usage: &Use, stepping: Option<(f64, bool)>) -> Option<String> {
    let mean = stepping.map(|(cpu, _)| cpu).or(usage.cpu_cores.map(|cpu| cpu.mean))?;
    let mut text = short(mean);
    text += &match (usage.cpu_limit_cores, usage.cores) {
        (Some(limit), _) => format!(" of {} cores allowed", short(limit)),
        (None, Some(1)) => " of 1 core".to_owned(),
        (None, Some(cores)) => format!(" of {} cores", thousands(cores)),
        (None, None) => " cores".to_owned(),
    };
    text += match stepping {
        Some((_, true)) => " busy while steps were steady",
        Some((_, false)) => " busy while there were steps",
        None => " busy",
    };
    if let Some(seconds) = usage.cpu_seconds {
        text += &format!(", {} in total", duration_ms(seconds * 1e3));
    }
    let share = |name: &str, spread: Option<Spread>| {
        spread.filter(|spread| spread.mean >= 0.01).map(|spread| format!(", {name} {}", percent(spread.mean)))
    };
    text += &share("waiting for disks", usage.io_wait_fraction).unwrap_or_default();
    text += &share("throttled by its CPU limit", usage.throttled_fraction).unwrap_or_default();
    text += &share("taken by other virtual machines", usage.steal_fraction).unwrap_or_default();
    Some(text)
}

fn memory(usage: &Use) -> Option<String> {
    let size = |value: u64| bytes(value as f64);
    let peak = usage.rss_peak_bytes?;
    let mut text = format!("peak {}", size(peak));
    if let Some(total) = usage.memory_limit_bytes {
        text += &format!(" of {} allowed", size(total));
    } else if let Some(total) = usage.memory_total_bytes {
        text += &format!(" of {}", size(total));
    }
    if usage.processes > 1 {
        text += &format!(" in {} processes", thousands(usage.processes));
        text +=
            &usage.process_peak_bytes.map_or(String::new(), |one| format!(", {} in the largest", size(one)));
    }
    // Only worth mentioning if much is shared.
    if let Some(own) = usage.pss_peak_bytes.filter(|&own| (own as f64) < 0.8 * peak as f64) {
        text += &format!("; {} with shared pages counted once (sampled)", size(own));
    }
    if let Some(swap) = usage.swap_peak_bytes.filter(|&swap| swap > 0) {
        text += &format!(", {} swap used on the machine", size(swap));
    }
    Some(text)
}

fn traffic(usage: &Use) -> Option<String> {
    // Less than this per second is the noise of an idle machine.
    let worth = |spread: Option<Spread>| spread.filter(|spread| spread.max >= 1e5);
    let rate = |name: &str, spread: Option<Spread>| {
        worth(spread).map(|s| format!("{name} {}/s (peak {}/s)", bytes(s.mean), bytes(s.max)))
    };
    let parts = [
        rate("read", usage.disk_read_bytes_per_s),
        rate("wrote", usage.disk_write_bytes_per_s),
        rate("machine received", usage.net_receive_bytes_per_s),
        rate("sent", usage.net_send_bytes_per_s),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

fn graphics(gpu: &GpuUse) -> Option<String> {
    let mut parts = Vec::new();
    parts.extend(gpu.name.clone());
    parts.extend(gpu.busy_fraction.map(|busy| format!("busy {}", percent(busy.mean))));
    parts.extend(gpu.memory_used_bytes.map(|used| {
        let total = gpu.memory_total_bytes.map_or(String::new(), |all| format!(" of {}", bytes(all as f64)));
        format!("memory peak {}{total}", bytes(used.max))
    }));
    parts.extend(gpu.power_watts.map(|power| {
        let limit = gpu.power_limit_watts.map_or(String::new(), |limit| format!(" of {}", decimal(limit, 0)));
        format!("{}{limit} W", decimal(power.mean, 0))
    }));
    parts.extend(gpu.temperature_celsius.map(|heat| format!("up to {} °C", decimal(heat.max, 0))));
    if let Some(share) = gpu.throttled_fraction.filter(|&share| share > 0.0) {
        parts.push(format!(
            "clocks throttled in {} of the samples ({})",
            percent(share),
            gpu.throttled_by.join(", ")
        ));
    }
    (!parts.is_empty()).then(|| parts.join(", "))
}
