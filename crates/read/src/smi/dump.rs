//! `nvidia-smi -q`: everything about every GPU, one line each under headings, once or every few seconds (`-l`).
//!
//! ```text
//! ==============NVSMI LOG==============
//! Timestamp                                 : Tue Mar  5 10:11:12 2024
//! GPU 00000000:01:00.0
//!     Product Name                          : NVIDIA GeForce RTX 3090
//!     Utilization
//!         Gpu                               : 35 %
//! ```

use stepscope_trace::Time;

use super::clock;
use super::fields::{Metric, value};
use super::gpu_samples::GpuSamples;

const MARK: &str = "==============NVSMI LOG==============";
/// Maximum number of lines before a dump.
const PREAMBLE: usize = 50;

/// Heading, line (in lower case), name in queries, and unit. The first of several lines with the same meaning
/// counts.
const LINES: &[(&str, &str, &str, &str)] = &[
    ("", "performance state", "pstate", ""),
    ("", "fan speed", "fan.speed", "%"),
    ("fb memory usage", "total", "memory.total", "MiB"),
    ("fb memory usage", "used", "memory.used", "MiB"),
    ("utilization", "gpu", "utilization.gpu", "%"),
    ("utilization", "memory", "utilization.memory", "%"),
    ("utilization", "encoder", "utilization.encoder", "%"),
    ("utilization", "decoder", "utilization.decoder", "%"),
    ("temperature", "gpu current temp", "temperature.gpu", "C"),
    ("temperature", "memory current temp", "temperature.memory", "C"),
    ("power readings", "power draw", "power.draw", "W"),
    ("power readings", "power limit", "power.limit", "W"),
    ("gpu power readings", "power draw", "power.draw", "W"),
    ("gpu power readings", "average power draw", "power.draw", "W"),
    ("gpu power readings", "instantaneous power draw", "power.draw", "W"),
    ("gpu power readings", "current power limit", "power.limit", "W"),
    ("clocks", "sm", "clocks.sm", "MHz"),
    ("clocks", "memory", "clocks.mem", "MHz"),
];

/// Whether a dump starts near the top.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().take(PREAMBLE).any(|line| line.trim() == MARK)
}

/// Position inside a dump.
#[derive(Default)]
struct Cursor {
    /// The GPU: its bus address and its number here.
    bus: String,
    gpu: Option<i64>,
    heading: String,
    at: i64,
    /// Values already read for this GPU in this dump.
    told: Vec<&'static str>,
}

/// Reads all dumps. Without times, dumps are one second apart.
pub(super) fn read(text: &str) -> GpuSamples {
    let mut gpu_samples = GpuSamples::new();
    let (mut place, mut dumps) = (Cursor::default(), 0_i64);
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        let (key, said) =
            line.split_once(" : ").map_or((line.trim(), None), |(key, said)| (key.trim(), Some(said)));
        match said {
            None if key == MARK => {
                place = Cursor { at: dumps.saturating_mul(1_000_000_000), ..Cursor::default() };
                dumps += 1;
            }
            None if depth == 0 && key.starts_with("GPU ") => {
                let bus = key.trim_start_matches("GPU ").to_owned();
                let gpu = gpu_samples.gpu(&bus, None);
                place = Cursor { bus, gpu, at: place.at, ..Cursor::default() };
            }
            None if depth == 4 => place.heading = key.to_ascii_lowercase(),
            Some(said) if depth == 0 && key == "Timestamp" => {
                if let Some(wall) = clock::as_printed(said) {
                    place.at = wall.saturating_sub(gpu_samples.start_at(wall));
                }
            }
            Some(said) if key == "Product Name" && place.gpu.is_some() => {
                gpu_samples.gpu(&place.bus, Some(said.trim()));
            }
            Some(said) => {
                let heading = if depth > 4 { place.heading.as_str() } else { "" };
                take(&mut gpu_samples, place.gpu, place.at, &mut place.told, (heading, key, said));
            }
            None => {}
        }
    }
    gpu_samples
}

fn take(
    gpu_samples: &mut GpuSamples,
    gpu: Option<i64>,
    at: i64,
    told: &mut Vec<&'static str>,
    (heading, key, said): (&str, &str, &str),
) {
    let key = key.to_ascii_lowercase();
    let line = LINES.iter().find(|(under, name, _, _)| *under == heading && *name == key);
    if let (Some(gpu), Some(&(_, _, name, unit)), Some(value)) = (gpu, line, value(said))
        && !told.contains(&name)
    {
        told.push(name);
        gpu_samples.sample(gpu, &Metric { name: name.to_owned(), unit }, Time::from_ns(at), value);
    }
}
