//! GPU samples taken beside the run (utilisation, memory, power, temperature, clocks, throttling), under
//! nvidia-smi's names. One partial result per host ([`GpuSamplesPartial::of`]) → [`GpuSamplesPartial::merge`] →
//! [`GpuSamplesPartial::finish`].

use stepscope_trace::{Dur, ProcessKind, Trace, Track, TrackKind};

use crate::analysis::Analysis;
use crate::context::Context;

/// The samples of one metric over the whole log.
#[derive(Copy, Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sampled {
    /// The mean of all samples.
    pub mean: f64,
    /// The maximum.
    pub max: f64,
}

/// The samples of one GPU. What was not sampled is `None`.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct GpuSamples {
    /// The host.
    pub host: String,
    /// The GPU's number in the log.
    pub id: String,
    /// Number of samples of the most frequent metric.
    pub samples: usize,
    /// Time from the first to the last sample.
    pub span: Dur,
    /// Share of time in which any kernel was running, 0 to 1. One small kernel is enough.
    pub utilisation: Option<Sampled>,
    /// Share of time in which memory was read or written, 0 to 1.
    pub memory_utilisation: Option<Sampled>,
    /// Bytes of memory in use.
    pub memory_bytes: Option<Sampled>,
    /// Total memory in bytes.
    pub memory_total_bytes: Option<f64>,
    /// Watts.
    pub power_w: Option<Sampled>,
    /// Power limit in watts.
    pub power_limit_w: Option<f64>,
    /// Degrees Celsius.
    pub temperature_c: Option<Sampled>,
    /// Megahertz of the multiprocessors.
    pub clock_mhz: Option<Sampled>,
    /// Share of samples with throttled clocks, and the reasons in the log.
    pub throttled: Option<(f64, Vec<String>)>,
}

/// Start and end of a recording, in nanoseconds since 1970.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Wall {
    start: i64,
    end: i64,
}

impl Wall {
    /// The times of a trace; `None` if it has no wall clock.
    pub fn of(trace: &Trace) -> Option<Self> {
        let (origin, span) = (trace.clock().wall_ns_at_origin?, trace.span()?);
        Some(Wall { start: origin.checked_add(span.start.ns())?, end: origin.checked_add(span.end.ns())? })
    }

    /// Both, in seconds.
    pub fn seconds(self) -> (f64, f64) {
        (self.start as f64 / 1e9, self.end as f64 / 1e9)
    }

    fn apart_ns(self, other: Wall) -> i64 {
        self.start.saturating_sub(other.end).max(other.start.saturating_sub(self.end))
    }
}

/// nvidia-smi logs contain local time without a zone: within this distance it may be the same time.
const A_DAY_NS: i64 = 24 * 3_600 * 1_000_000_000;

/// Whether the samples may belong to the run of these timelines, which is assumed unless the times contradict.
pub fn may_be_of(samples: Option<Wall>, timelines: &[Wall]) -> bool {
    let near = |samples: Wall| timelines.iter().any(|timeline| samples.apart_ns(*timeline) <= A_DAY_NS);
    timelines.is_empty() || samples.is_none_or(near)
}

const MEBIBYTE: f64 = 1_048_576.0;
/// Bits of the reason mask that do not throttle: idle, and clocks requested by an application.
const HARMLESS_REASONS: u64 = 0b11;
/// Bits of the reason mask that throttle, under the names of the columns for single reasons.
const MASK: [(u64, &str); 6] = [
    (0x4, "sw_power_cap"),
    (0x8, "hw_slowdown"),
    (0x10, "sync_boost"),
    (0x20, "sw_thermal_slowdown"),
    (0x40, "hw_thermal_slowdown"),
    (0x80, "hw_power_brake_slowdown"),
];
/// Prefixes of the names of throttling reasons.
const REASONS: [&str; 2] = ["clocks_throttle_reasons.", "clocks_event_reasons."];
/// The metrics summarised here.
const KNOWN: [&str; 11] = [
    "utilization.gpu",
    "utilization.memory",
    "memory.used",
    "memory.total",
    "power.draw",
    "power.draw.average",
    "power.draw.instant",
    "power.limit",
    "temperature.gpu",
    "clocks.sm",
    "clocks.graphics",
];

/// A metric's name without its unit; `None` for other tracks.
fn metric<'t>(trace: &'t Trace, track: &Track) -> Option<&'t str> {
    let on_device = trace.process(track.process).kind == ProcessKind::Device;
    if track.kind != TrackKind::Counter || !on_device || track.samples.values.is_empty() {
        return None;
    }
    let name = trace.str(track.name);
    let name = name.split_once(" [").map_or(name, |(name, _)| name);
    let known = KNOWN.contains(&name) || REASONS.iter().any(|start| name.starts_with(start));
    known.then_some(name)
}

/// The GPUs of one host, or of several merged.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct GpuSamplesPartial {
    gpus: Vec<GpuSamples>,
}

impl Analysis for GpuSamplesPartial {
    type Output = Vec<GpuSamples>;

    /// The GPUs of one host.
    fn of(context: &Context) -> Self {
        let (trace, host) = (context.trace, &context.host);
        let mut gpus: Vec<(usize, GpuSamples)> = Vec::new();
        for track in trace.tracks() {
            let Some(name) = metric(trace, track) else { continue };
            let process = track.process.index();
            if gpus.last().is_none_or(|(last, _)| *last != process)
                && !gpus.iter().any(|(known, _)| *known == process)
            {
                let id = trace.str(trace.process(track.process).name).to_owned();
                gpus.push((process, GpuSamples { host: host.clone(), id, ..GpuSamples::default() }));
            }
            if let Some((_, gpu)) = gpus.iter_mut().find(|(known, _)| *known == process) {
                gpu.add(name, track);
            }
        }
        GpuSamplesPartial { gpus: gpus.into_iter().map(|(_, gpu)| gpu).collect() }
    }

    /// Adds another host.
    fn merge(&mut self, other: GpuSamplesPartial) {
        self.gpus.extend(other.gpus);
    }

    /// All GPUs, by host.
    fn finish(self) -> Vec<GpuSamples> {
        let mut gpus = self.gpus;
        gpus.sort_by(|a, b| a.host.cmp(&b.host));
        gpus
    }
}

impl GpuSamplesPartial {
    /// Whether nothing was sampled.
    pub fn is_empty(&self) -> bool {
        self.gpus.is_empty()
    }
}

impl GpuSamples {
    fn add(&mut self, name: &str, track: &Track) {
        let values = &track.samples.values;
        self.samples = self.samples.max(values.len());
        self.span = self.span.max(track.span().unwrap_or_default().dur());
        let sampled = |scale: f64| {
            let max = values.iter().copied().reduce(f64::max)?;
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            Some(Sampled { mean: mean * scale, max: max * scale })
        };
        match name {
            "utilization.gpu" => self.utilisation = sampled(0.01),
            "utilization.memory" => self.memory_utilisation = sampled(0.01),
            "memory.used" => self.memory_bytes = sampled(MEBIBYTE),
            "memory.total" => self.memory_total_bytes = sampled(MEBIBYTE).map(|total| total.max),
            "power.draw" => self.power_w = sampled(1.0),
            "power.draw.average" | "power.draw.instant" => self.power_w = self.power_w.or(sampled(1.0)),
            "power.limit" => self.power_limit_w = sampled(1.0).map(|limit| limit.max),
            "temperature.gpu" => self.temperature_c = sampled(1.0),
            "clocks.sm" => self.clock_mhz = sampled(1.0),
            "clocks.graphics" => self.clock_mhz = self.clock_mhz.or(sampled(1.0)),
            reason => self.add_reason(reason, values),
        }
    }

    fn add_reason(&mut self, name: &str, values: &[f64]) {
        let Some(reason) = REASONS.iter().find_map(|start| name.strip_prefix(start)) else { return };
        let held: fn(f64) -> bool = match reason {
            // A mask of all reasons.
            "active" => |mask| mask as u64 & !HARMLESS_REASONS != 0,
            "supported" | "gpu_idle" | "applications_clocks_setting" => return,
            _ => |flag| flag > 0.0,
        };
        let share = values.iter().filter(|&&value| held(value)).count() as f64 / values.len().max(1) as f64;
        let (most, reasons) = self.throttled.get_or_insert((0.0, Vec::new()));
        *most = most.max(share);
        let named: Vec<&str> = match reason {
            _ if share == 0.0 => Vec::new(),
            "active" => {
                let all = values.iter().fold(0, |all, mask| all | *mask as u64);
                MASK.iter().filter(|(bit, _)| all & bit != 0).map(|(_, name)| *name).collect()
            }
            reason => vec![reason],
        };
        for name in named {
            if !reasons.iter().any(|known| known == name) {
                reasons.push(name.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use stepscope_trace::{ArgSourceId, Time, TraceBuilder};

    use super::*;

    fn sampled(metrics: &[(&str, &[f64])]) -> Trace {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("GPU 0");
        let process = builder.process(name, ProcessKind::Device, 0);
        for (number, (name, values)) in metrics.iter().enumerate() {
            let name = builder.strings.intern(name);
            let track =
                builder.track(process, name, TrackKind::Counter, number as i64, ArgSourceId::default());
            for (at, value) in values.iter().enumerate() {
                builder.sample(track, Time::from_ns(at as i64 * 1_000_000_000), *value);
            }
        }
        builder.finish()
    }

    #[test]
    fn a_mask_names_its_reasons_once() {
        let mask = "clocks_event_reasons.active";
        let trace = sampled(&[(mask, &[4.0, 68.0]), ("clocks_event_reasons.sw_power_cap", &[1.0, 1.0])]);
        let gpus = GpuSamplesPartial::of(&Context::new(&trace, "a")).finish();
        let named = ["sw_power_cap", "hw_thermal_slowdown"].map(str::to_owned).to_vec();
        assert_eq!(gpus[0].throttled, Some((1.0, named)));
    }

    #[test]
    fn what_stands_in_for_a_metric_does_not_displace_it() {
        let trace = sampled(&[("power.draw.instant [W]", &[9.0]), ("clocks.graphics [MHz]", &[7.0])]);
        let gpus = GpuSamplesPartial::of(&Context::new(&trace, "a")).finish();
        let one = |value: f64| Some(Sampled { mean: value, max: value });
        assert_eq!((gpus[0].power_w, gpus[0].clock_mhz), (one(9.0), one(7.0)));
        let trace = sampled(&[("clocks.sm [MHz]", &[5.0]), ("clocks.graphics [MHz]", &[7.0])]);
        assert_eq!(GpuSamplesPartial::of(&Context::new(&trace, "a")).finish()[0].clock_mhz, one(5.0));
    }

    #[test]
    fn samples_are_summed_up_in_base_units() {
        let trace = sampled(&[
            ("utilization.gpu [%]", &[0.0, 50.0, 100.0]),
            ("memory.used [MiB]", &[1.0, 3.0]),
            ("memory.total [MiB]", &[4.0]),
            ("clocks_throttle_reasons.active", &[1.0, 4.0, 0.0, 0.0]),
            ("clocks_throttle_reasons.sw_power_cap", &[0.0, 1.0, 0.0, 0.0]),
            ("clocks_throttle_reasons.gpu_idle", &[1.0, 1.0, 1.0, 1.0]),
        ]);
        assert!(!crate::vocabulary::has_timeline(&trace));
        let gpus = GpuSamplesPartial::of(&Context::new(&trace, "a")).finish();
        assert_eq!(gpus.len(), 1);
        assert_eq!(gpus[0].utilisation, Some(Sampled { mean: 0.5, max: 1.0 }));
        assert_eq!(gpus[0].memory_bytes, Some(Sampled { mean: 2.0 * MEBIBYTE, max: 3.0 * MEBIBYTE }));
        assert_eq!(gpus[0].memory_total_bytes, Some(4.0 * MEBIBYTE));
        assert_eq!(gpus[0].throttled, Some((0.25, vec!["sw_power_cap".to_owned()])));
        assert_eq!((gpus[0].power_w, gpus[0].samples), (None, 4));
    }

    #[test]
    fn other_counters_are_no_samples() {
        let trace = sampled(&[("SM Active [Throughput %]", &[1.0])]);
        assert!(GpuSamplesPartial::of(&Context::new(&trace, "a")).finish().is_empty());
    }
}
