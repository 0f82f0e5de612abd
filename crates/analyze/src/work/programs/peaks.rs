//! What a device could do at best: operations per second by unit and type, bytes per second of its memory.
//!
//! The profile's own figures come first, then the table of specifications, then clock × units × what a unit does per cycle.
//! What nobody knows stays unknown; there is no peak of CPUs.

use stepscope_hlo::{Cost, MatrixType};
use stepscope_trace::{Datum, Device, DeviceKind, Trace};

use super::levels::cache_bytes;
use crate::work::gpu_specs;

/// Peak rates of one device.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Peaks {
    /// The device.
    pub device: String,
    /// Where the figures come from.
    pub source: PeakSource,
    /// Operations per second of matrix units, by [`MatrixType`].
    pub matrix: [Option<f64>; 9],
    /// Operations per second of all other units.
    pub vector: Option<f64>,
    /// Bytes per second of the device's memory.
    pub memory: Option<f64>,
    /// Bytes per second that memory on the chip delivers.
    #[serde(default)]
    pub on_chip_read: Option<f64>,
    /// Bytes per second that memory on the chip takes.
    #[serde(default)]
    pub on_chip_write: Option<f64>,
    /// Bytes of the last cache before the memory.
    #[serde(default)]
    pub cache_bytes: Option<u64>,
}

/// Where peak rates come from.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum PeakSource {
    /// The profile states them.
    #[default]
    Profile,
    /// A table of data sheets, by the device's name.
    Specifications,
    /// Clock × units × operations per cycle.
    Units,
    /// The user.
    Given,
}

impl PeakSource {
    /// For notes.
    pub fn words(self) -> &'static str {
        match self {
            PeakSource::Profile => "stated by the profile",
            PeakSource::Specifications => "from the data sheet",
            PeakSource::Units => "computed from clock and units",
            PeakSource::Given => "given by --peak",
        }
    }
}

/// Single precision on TPUs without shortcuts takes this many passes of brain floating point.
const EXACT_PASSES: f64 = 6.0;

/// Operations per cycle and multiprocessor, by compute capability: 64-bit, 32-bit, TF32, 16-bit, 8-bit floating point, 8-bit
/// integers. 0 if there is no such unit. From the vendors' architecture papers.
const PER_CYCLE: &[((u32, u32), [f64; 6])] = &[
    ((7, 0), [64.0, 128.0, 0.0, 1024.0, 0.0, 0.0]),
    ((7, 5), [4.0, 128.0, 0.0, 1024.0, 0.0, 2048.0]),
    ((8, 0), [128.0, 128.0, 1024.0, 2048.0, 0.0, 4096.0]),
    ((8, 6), [4.0, 256.0, 256.0, 512.0, 0.0, 2048.0]),
    ((8, 9), [4.0, 256.0, 512.0, 1024.0, 2048.0, 2048.0]),
    ((9, 0), [256.0, 256.0, 2048.0, 4096.0, 8192.0, 8192.0]),
    ((10, 0), [128.0, 256.0, 4096.0, 8192.0, 16384.0, 16384.0]),
];

/// AMD's devices state no name; compute capability and units tell them apart.
const BY_UNITS: &[((u32, u32), u32, &str)] =
    &[((9, 0), 110, "MI250X"), ((9, 4), 304, "MI300X"), ((9, 4), 228, "MI300A")];

impl Peaks {
    /// The peaks of the first device that ran something. Devices of one recording are alike in practice.
    pub fn of(trace: &Trace) -> Option<Self> {
        let mut devices = trace.devices().iter().filter(|device| device.process.is_some());
        let device = devices.find(|device| matches!(device.kind, DeviceKind::Gpu | DeviceKind::Tpu))?;
        match device.kind {
            DeviceKind::Tpu => stated(trace, device),
            _ => of_gpu(trace, device),
        }
    }

    /// The device for sentences.
    pub fn device_name(&self) -> &str {
        if self.device.is_empty() { "the device" } else { &self.device }
    }

    /// Peaks that the user gave: operations per second of all units and types, bytes per second.
    pub fn given(flops: Option<f64>, memory: Option<f64>) -> Self {
        let source = PeakSource::Given;
        Peaks { source, matrix: [flops; 9], vector: flops, memory, ..Peaks::default() }
    }

    /// The peak for numbers of a kind: its own, or that of the next wider one, which can do the same work.
    pub fn matrix(&self, kind: MatrixType) -> Option<f64> {
        let wider: &[MatrixType] = match kind {
            MatrixType::F64 | MatrixType::F32Exact | MatrixType::F32 => &[],
            MatrixType::Bf16 | MatrixType::F16 => &[MatrixType::F32],
            MatrixType::F8 | MatrixType::Int8 => &[MatrixType::Bf16],
            MatrixType::F4 => &[MatrixType::F8, MatrixType::Bf16],
            MatrixType::Int4 => &[MatrixType::Int8, MatrixType::Bf16],
        };
        let own = self.matrix[kind as usize];
        own.or_else(|| wider.iter().find_map(|&kind| self.matrix[kind as usize])).or(self.vector)
    }

    /// Seconds that operations take at best; `None` if a peak is unknown.
    pub(crate) fn compute_seconds(&self, cost: &Cost) -> Option<f64> {
        let mut seconds = 0.0;
        for kind in MatrixType::ALL {
            let flops = cost.matrix[kind as usize];
            if flops > 0 {
                seconds += flops as f64 / self.matrix(kind)?;
            }
        }
        let rest = cost.vector.saturating_add(cost.transcendentals);
        if rest > 0 {
            seconds += rest as f64 / self.vector?;
        }
        Some(seconds)
    }
}

fn name_of(trace: &Trace, device: &Device) -> String {
    trace.str(device.name).to_owned()
}

/// What a TPU's profile states: the peak of its matrix units in brain floating point.
fn stated(trace: &Trace, device: &Device) -> Option<Peaks> {
    let rate = |name: &str, unit: f64| {
        let key = trace.strings().find(name)?;
        match device.properties.iter().find(|property| property.key == key)?.value {
            Datum::Float(rate) if rate > 0.0 => Some(rate * unit),
            Datum::UInt(rate) if rate > 0 => Some(rate as f64 * unit),
            _ => None,
        }
    };
    let peak = rate("peak_teraflops_per_second", 1e12)?;
    let mut matrix = [Some(peak); 9];
    matrix[MatrixType::F32Exact as usize] = Some(peak / EXACT_PASSES);
    matrix[MatrixType::F64 as usize] = None;
    let memory = device.memory_bandwidth.map(|rate| rate as f64);
    // The rate of the vector units is not stated.
    Some(Peaks {
        device: name_of(trace, device),
        source: PeakSource::Profile,
        matrix,
        memory,
        on_chip_read: rate("peak_vmem_rd_bw_gigabytes_per_second", 1e9),
        on_chip_write: rate("peak_vmem_wr_bw_gigabytes_per_second", 1e9),
        ..Peaks::default()
    })
}

fn of_gpu(trace: &Trace, device: &Device) -> Option<Peaks> {
    let name = name_of(trace, device);
    let by_units = || {
        let units = device.compute_capability.zip(device.multiprocessors)?;
        BY_UNITS
            .iter()
            .find(|(capability, count, _)| (*capability, *count) == units)
            .map(|(_, _, name)| *name)
    };
    let named = gpu_specs::peaks_of(&name).or_else(|| gpu_specs::peaks_of(by_units()?));
    if let Some(specs) = named {
        let rate = |value: Option<f64>| value.map(|value| value * 1e12);
        let rates = [specs.fp64, specs.fp32, specs.tf32, specs.half, specs.fp8, specs.int8].map(rate);
        let memory = Some(specs.memory * 1e9);
        let peaks = from_rates(specs.name.to_owned(), PeakSource::Specifications, rates, memory);
        return Some(Peaks { cache_bytes: cache_bytes(specs.name), ..peaks });
    }
    let (_, per_cycle) =
        PER_CYCLE.iter().find(|(capability, _)| Some(*capability) == device.compute_capability)?;
    let cycles = device.clock_khz? as f64 * 1e3 * f64::from(device.multiprocessors?);
    let rates = per_cycle.map(|rate| (rate > 0.0).then_some(rate * cycles));
    let memory = device.memory_bandwidth.map(|rate| rate as f64);
    Some(from_rates(name, PeakSource::Units, rates, memory))
}

/// From 64-bit, 32-bit, TF32, 16-bit, 8-bit floating point and 8-bit integers.
fn from_rates(device: String, source: PeakSource, rates: [Option<f64>; 6], memory: Option<f64>) -> Peaks {
    let [fp64, fp32, tf32, half, fp8, int8] = rates;
    let mut matrix = [None; 9];
    matrix[MatrixType::F64 as usize] = fp64;
    matrix[MatrixType::F32Exact as usize] = fp32;
    matrix[MatrixType::F32 as usize] = tf32.or(fp32);
    matrix[MatrixType::Bf16 as usize] = half;
    matrix[MatrixType::F16 as usize] = half;
    matrix[MatrixType::F8 as usize] = fp8;
    matrix[MatrixType::Int8 as usize] = int8;
    Peaks { device, source, matrix, vector: fp32, memory, ..Peaks::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_type_takes_the_peak_of_the_next_wider_one() {
        let rates = [Some(1.0), Some(2.0), None, Some(16.0), None, None];
        let peaks = from_rates(String::new(), PeakSource::Units, rates, None);
        assert_eq!(peaks.matrix(MatrixType::F32), Some(2.0));
        assert_eq!(peaks.matrix(MatrixType::F8), Some(16.0));
        assert_eq!(peaks.matrix(MatrixType::Int4), Some(16.0));
        assert_eq!(Peaks::default().matrix(MatrixType::F32), None);
    }

    #[test]
    fn each_unit_takes_its_own_time() {
        let mut cost = Cost { vector: 4, ..Cost::default() };
        cost.matrix[MatrixType::Bf16 as usize] = 32;
        let rates = [None, Some(2.0), None, Some(16.0), None, None];
        let peaks = from_rates(String::new(), PeakSource::Units, rates, None);
        assert_eq!(peaks.compute_seconds(&cost), Some(4.0));
        cost.matrix[MatrixType::F64 as usize] = 1;
        assert_eq!(Peaks { vector: None, ..peaks }.compute_seconds(&cost), None, "unknown, never 0");
    }
}
