//! Text about GPU samples: utilisation, memory, temperature. What was not sampled is not mentioned.

use stepscope_analyze::devices::gpu_samples::{GpuSamples, Sampled};

use crate::format::{bytes, decimal, duration_ms, percent, plural};

/// A common misunderstanding.
pub const UTILISATION: &str = "Utilisation is the share of time in which any kernel was running. One small kernel is \
                               enough, so high utilisation does not mean that the GPU was used well.";

/// Summary of the busiest GPU's samples; `None` without samples.
pub fn headline(gpus: &[GpuSamples]) -> Option<String> {
    let gpu = gpus.iter().max_by(|a, b| {
        let mean = |gpu: &GpuSamples| gpu.utilisation.map_or(0.0, |utilisation| utilisation.mean);
        mean(a).total_cmp(&mean(b))
    })?;
    Some(match gpu.utilisation {
        Some(sampled) => {
            format!("On {}, a kernel was running for {} of the time", gpu.id, percent(sampled.mean))
        }
        None => "The GPUs were sampled, but their utilisation is unknown".to_owned(),
    })
}

/// `GPU 0, 1,923 samples over 2 h 41 min: utilisation 45.0 % (peak 100.0 %), memory …`
pub fn words(gpu: &GpuSamples) -> String {
    let mut parts = Vec::new();
    let most = |what: &str, sampled: Sampled, unit: fn(f64) -> String| {
        let (mean, max) = (unit(sampled.mean), unit(sampled.max));
        if mean == max { format!("{what} {mean}") } else { format!("{what} {mean} (peak {max})") }
    };
    let power = |watts: f64| format!("{} W", decimal(watts, 0));
    parts.extend(gpu.utilisation.map(|sampled| most("utilisation", sampled, percent)));
    parts.extend(gpu.memory_utilisation.map(|sampled| most("memory utilisation", sampled, percent)));
    parts.extend(gpu.memory_bytes.map(|sampled| {
        let of = gpu.memory_total_bytes.map_or(String::new(), |total| format!(" of {}", bytes(total)));
        format!("{}{of}", most("memory", sampled, bytes))
    }));
    parts.extend(gpu.power_w.map(|sampled| {
        let of = gpu.power_limit_w.map_or(String::new(), |limit| format!(" of {}", power(limit)));
        format!("{}{of}", most("power", sampled, power))
    }));
    parts.extend(
        gpu.temperature_c.map(|sampled| most("temperature", sampled, |c| format!("{} °C", decimal(c, 0)))),
    );
    parts.extend(
        gpu.clock_mhz.map(|sampled| most("clock", sampled, |mhz| format!("{} MHz", decimal(mhz, 0)))),
    );
    parts.extend(gpu.throttled.as_ref().map(|(share, reasons)| {
        let why = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        format!("clocks throttled in {} of the samples{why}", percent(*share))
    }));
    let samples = plural(gpu.samples as u64, "sample", "samples");
    let over =
        if gpu.span.is_zero() { String::new() } else { format!(" over {}", duration_ms(gpu.span.ms())) };
    format!("{}, {samples}{over}: {}.", gpu.id, parts.join(", "))
}
