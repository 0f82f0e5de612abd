//! Devices with their properties, and what is known of the run's surroundings.

use crate::args::Datum;
use crate::ids::{ProcessId, StrId};

/// What sort of device it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeviceKind {
    /// A general-purpose processor.
    Cpu,
    /// A graphics processor of any vendor.
    Gpu,
    /// A Tensor Processing Unit core.
    Tpu,
    /// Another accelerator.
    Other,
}

/// A named value as the file gives it: a device property, a version, a capture option.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Property {
    /// The name in the file's own spelling.
    pub key: StrId,
    /// The value.
    pub value: Datum,
}

/// A device. Every known figure is an `Option`: unknown is never 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// The file's own number of the device.
    pub number: i64,
    /// Model name, e.g. `NVIDIA A100-SXM4-40GB`; the empty string where the file does not say.
    pub name: StrId,
    /// What sort of device.
    pub kind: DeviceKind,
    /// The process that holds its tracks; `None` for a device that is only listed.
    pub process: Option<ProcessId>,
    /// `Nvidia`, `AMD`, …
    pub vendor: Option<StrId>,
    /// Streaming multiprocessors or compute units.
    pub multiprocessors: Option<u32>,
    /// Core clock in kHz.
    pub clock_khz: Option<u64>,
    /// Device memory in bytes.
    pub memory_bytes: Option<u64>,
    /// Peak memory bandwidth in bytes per second.
    pub memory_bandwidth: Option<u64>,
    /// CUDA compute capability (major, minor).
    pub compute_capability: Option<(u32, u32)>,
    /// Threads that run in lockstep: 32 on NVIDIA, 64 on AMD's CDNA.
    pub warp_size: Option<u32>,
    /// Threads that a multiprocessor can hold.
    pub max_threads_per_multiprocessor: Option<u32>,
    /// Blocks that a multiprocessor can hold.
    pub max_blocks_per_multiprocessor: Option<u32>,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_multiprocessor: Option<u32>,
    /// Shared memory of a multiprocessor in bytes.
    pub shared_memory_per_multiprocessor: Option<u64>,
    /// All properties in the file's own words, also those above.
    pub properties: Vec<Property>,
}

impl Device {
    /// A device of which nothing but its sort and number is known.
    pub fn new(kind: DeviceKind, number: i64) -> Self {
        Device {
            number,
            name: StrId::default(),
            kind,
            process: None,
            vendor: None,
            multiprocessors: None,
            clock_khz: None,
            memory_bytes: None,
            memory_bandwidth: None,
            compute_capability: None,
            warp_size: None,
            max_threads_per_multiprocessor: None,
            max_blocks_per_multiprocessor: None,
            registers_per_multiprocessor: None,
            shared_memory_per_multiprocessor: None,
            properties: Vec::new(),
        }
    }
}

/// What the file says about the run around the events. Never holds environment variables of the process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// The machine's name.
    pub host: Option<StrId>,
    /// Versions of software: frameworks, drivers, profilers.
    pub versions: Vec<Property>,
    /// With which options the profile was captured.
    pub capture: Vec<Property>,
    /// This process' place in a distributed job: rank, world size, backend.
    pub distributed: Vec<Property>,
    /// When capture began and ended, in nanoseconds since the Unix epoch.
    pub captured_ns: Option<(i64, i64)>,
}
