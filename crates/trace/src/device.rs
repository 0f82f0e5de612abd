//! Devices with their properties, and the environment of the run.

use crate::args::Datum;
use crate::ids::{ProcessId, StrId};

/// The kind of device.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
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

/// A named value from the file: a device property, a version, a capture option.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Property {
    /// The name as spelt in the file.
    pub key: StrId,
    /// The value.
    pub value: Datum,
}

/// A device. Every known figure is an `Option`: unknown is never 0.
#[derive(Clone, Debug, PartialEq)]
pub struct Device {
    /// The device's number in the file.
    pub number: i64,
    /// Model name, e.g. `NVIDIA A100-SXM4-40GB`; empty if the file does not contain it.
    pub name: StrId,
    /// The kind of device.
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
    /// Maximum number of threads per multiprocessor.
    pub max_threads_per_multiprocessor: Option<u32>,
    /// Maximum number of blocks per multiprocessor.
    pub max_blocks_per_multiprocessor: Option<u32>,
    /// 32-bit registers per multiprocessor.
    pub registers_per_multiprocessor: Option<u32>,
    /// Shared memory per multiprocessor in bytes.
    pub shared_memory_per_multiprocessor: Option<u64>,
    /// All properties as named in the file, including those above.
    pub properties: Vec<Property>,
}

impl Device {
    /// A device of which only the kind and number are known.
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

/// What the file says about the run besides the events. Never contains environment variables of the process.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Environment {
    /// The machine's name.
    pub host: Option<StrId>,
    /// Versions of software: frameworks, drivers, profilers.
    pub versions: Vec<Property>,
    /// The options of the capture.
    pub capture: Vec<Property>,
    /// This process's place in a distributed job: rank, world size, backend.
    pub distributed: Vec<Property>,
    /// Start and end of the capture, in nanoseconds since the Unix epoch.
    pub captured_ns: Option<(i64, i64)>,
}
