//! Hardware use of a run, measured from outside: what `run` and `monitor` sample, and what is shown and saved of it. The
//! names of the members are those in JSON.

use serde::Serialize;

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
pub struct Usage {
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
    pub gpus: Vec<GpuUsage>,
}

/// Hardware use of one GPU.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct GpuUsage {
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
