//! Words for what a monitor sampled of GPUs: how busy, how full, how hot. What was not sampled is not spoken of.

use stepscope_analyze::gauges::{Gauged, GpuGauges};

use crate::format::{bytes, decimal, duration_ms, percent, plural};

/// What is often taken for more than it is.
pub const UTILISATION: &str = "Utilisation is the share of time in which any kernel was running. One small kernel is \
                               enough: it does not say that the GPU was busy.";

/// What the samples say of the busiest GPU; `None` without samples.
pub fn headline(gauges: &[GpuGauges]) -> Option<String> {
    let gpu = gauges.iter().max_by(|a, b| {
        let mean = |gpu: &GpuGauges| gpu.utilisation.map_or(0.0, |utilisation| utilisation.mean);
        mean(a).total_cmp(&mean(b))
    })?;
    Some(match gpu.utilisation {
        Some(gauge) => {
            format!("On {}, some kernel was running for {} of the time", gpu.id, percent(gauge.mean))
        }
        None => "A monitor sampled the GPUs; how busy they were is unknown".to_owned(),
    })
}

/// `GPU 0, 1,923 samples over 2 h 41 min: utilisation 45.0 % (at most 100.0 %), memory …`
pub fn words(gpu: &GpuGauges) -> String {
    let mut parts = Vec::new();
    let most = |what: &str, gauge: Gauged, unit: fn(f64) -> String| {
        let (mean, max) = (unit(gauge.mean), unit(gauge.max));
        if mean == max { format!("{what} {mean}") } else { format!("{what} {mean} (at most {max})") }
    };
    let power = |watts: f64| format!("{} W", decimal(watts, 0));
    parts.extend(gpu.utilisation.map(|gauge| most("utilisation", gauge, percent)));
    parts.extend(gpu.memory_utilisation.map(|gauge| most("memory in use for", gauge, percent)));
    parts.extend(gpu.memory_bytes.map(|gauge| {
        let of = gpu.memory_total_bytes.map_or(String::new(), |total| format!(" of {}", bytes(total)));
        format!("{}{of}", most("memory", gauge, bytes))
    }));
    parts.extend(gpu.power_w.map(|gauge| {
        let of = gpu.power_limit_w.map_or(String::new(), |limit| format!(" of {}", power(limit)));
        format!("{}{of}", most("power", gauge, power))
    }));
    parts.extend(
        gpu.temperature_c.map(|gauge| most("temperature", gauge, |c| format!("{} °C", decimal(c, 0)))),
    );
    parts.extend(gpu.clock_mhz.map(|gauge| most("clock", gauge, |mhz| format!("{} MHz", decimal(mhz, 0)))));
    parts.extend(gpu.throttled.as_ref().map(|(share, reasons)| {
        let why = if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join(", ")) };
        format!("clocks held down in {} of the samples{why}", percent(*share))
    }));
    let samples = plural(gpu.samples as u64, "sample", "samples");
    let over =
        if gpu.span.is_zero() { String::new() } else { format!(" over {}", duration_ms(gpu.span.ms())) };
    format!("{}, {samples}{over}: {}.", gpu.id, parts.join(", "))
}
