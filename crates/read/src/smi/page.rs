//! The page that `nvidia-smi` prints for people, once or every few seconds (`-l`): two lines per GPU.
//!
//! ```text
//! Thu Oct  1 03:25:17 2026
//! | NVIDIA-SMI 580.82.07              Driver Version: 580.82.07      CUDA Version: 13.0     |
//! |   0  Tesla T4                       Off |   00000000:00:04.0 Off |                    0 |
//! | N/A   49C    P8             10W /   70W |       0MiB /  15360MiB |      0%      Default |
//! ```

use stepscope_trace::Time;

use super::clock;
use super::fields::{Metric, value};
use super::gpu_samples::GpuSamples;

/// Maximum number of lines before a page, because logs often include the typed command.
const PREAMBLE: usize = 50;

/// Whether a page starts near the top.
pub(super) fn recognises(text: &str) -> bool {
    text.lines().take(PREAMBLE).any(begins)
}

fn begins(line: &str) -> bool {
    line.trim_start().starts_with("| NVIDIA-SMI ")
}

/// Reads all pages. Without times, pages are one second apart.
pub(super) fn read(text: &str) -> GpuSamples {
    let mut gpu_samples = GpuSamples::new();
    let (mut stamp, mut pages, mut at) = (None, 0_i64, 0_i64);
    // The GPU whose second line comes next.
    let mut pending = None;
    for line in text.lines() {
        if let Some(wall) = clock::as_printed(line) {
            stamp = Some(wall);
        } else if begins(line) {
            at = match stamp.take() {
                Some(wall) => wall.saturating_sub(gpu_samples.start_at(wall)),
                None => pages.saturating_mul(1_000_000_000),
            };
            pages += 1;
        } else if let Some(gpu) = pending.take() {
            for (metric, value) in measured(line) {
                gpu_samples.sample(gpu, &metric, Time::from_ns(at), value);
            }
        } else if let Some((index, model)) = gpu_of(line) {
            pending = gpu_samples.gpu(index, Some(&model));
        }
    }
    gpu_samples
}

fn cells(line: &str) -> Option<Vec<&str>> {
    let inner = line.trim().strip_prefix('|')?.strip_suffix('|')?;
    Some(inner.split('|').map(str::trim).collect())
}

/// Index and model of the GPU on a line: the next cell contains its bus address.
fn gpu_of(line: &str) -> Option<(&str, String)> {
    let cells = cells(line)?;
    let (name, bus) = (cells.first()?, cells.get(1)?.split_whitespace().next()?);
    let on_bus = bus.matches(':').count() == 2 && bus.contains('.');
    let mut words: Vec<&str> = name.split_whitespace().collect();
    // The last word says whether the driver stays loaded.
    if words.last().is_some_and(|word| matches!(*word, "On" | "Off" | "N/A" | "TCC" | "WDDM" | "MCDM")) {
        words.pop();
    }
    let (index, model) = words.split_first()?;
    (on_bus && index.parse::<u32>().is_ok()).then(|| (*index, model.join(" ")))
}

/// The values of the second line: fan, temperature, state and power · memory · utilisation.
fn measured(line: &str) -> Vec<(Metric, f64)> {
    let cells = cells(line).unwrap_or_default();
    let cell = |index: usize| cells.get(index).copied().unwrap_or("");
    let mut found = Vec::new();
    let mut add = |name: &str, unit: &'static str, text: &str| {
        if let Some(value) = value(text.strip_suffix(unit).unwrap_or(text)) {
            found.push((Metric { name: name.to_owned(), unit }, value));
        }
    };
    let mut watts = ["power.draw", "power.limit"].into_iter();
    for word in cell(0).split_whitespace() {
        match word.as_bytes() {
            [.., b'%'] => add("fan.speed", "%", word),
            [.., b'C'] => add("temperature.gpu", "C", word),
            [.., b'W'] => watts.next().into_iter().for_each(|name| add(name, "W", word)),
            [b'P', ..] => add("pstate", "", word),
            _ => {}
        }
    }
    if let Some((used, total)) = cell(1).split_once('/') {
        add("memory.used", "MiB", used.trim());
        add("memory.total", "MiB", total.trim());
    }
    if let Some(busy) = cell(2).split_whitespace().next().filter(|word| word.ends_with('%')) {
        add("utilization.gpu", "%", busy);
    }
    found
}
