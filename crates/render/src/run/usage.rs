//! Hardware use: the values from a run or a monitor, as lines and as JSON.

use std::io::{self, Write};

use stepscope_results::usage::{GpuUsage, Spread, Usage};

use crate::format::{bytes, decimal, duration_ms, percent, short, thousands};

/// Writes the hardware use as JSON of `schema`, for the end of a monitor.
pub(crate) fn write_use_json(
    schema: &str,
    wall_s: f64,
    usage: &Usage,
    out: &mut dyn Write,
) -> io::Result<()> {
    let value = serde_json::json!({ "schema": schema, "wall_s": wall_s, "usage": usage });
    serde_json::to_writer_pretty(&mut *out, &value)?;
    writeln!(out)
}

/// The hardware use as lines: a label and its text. Unknown values are not mentioned. `stepping`: busy cores
/// while there were steps, and whether the steps were steady.
pub(crate) fn lines(usage: &Usage, stepping: Option<(f64, bool)>) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    lines.extend(processors(usage, stepping).map(|text| ("cpu".to_owned(), text)));
    lines.extend(memory(usage).map(|text| ("memory".to_owned(), text)));
    lines.extend(traffic(usage).map(|text| ("disk, net".to_owned(), text)));
    for gpu in &usage.gpus {
        lines.extend(graphics(gpu).map(|text| (format!("gpu {}", gpu.index), text)));
    }
    lines
}

fn processors(usage: &Usage, stepping: Option<(f64, bool)>) -> Option<String> {
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

fn memory(usage: &Usage) -> Option<String> {
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

fn traffic(usage: &Usage) -> Option<String> {
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

fn graphics(gpu: &GpuUsage) -> Option<String> {
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
