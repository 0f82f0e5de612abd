//! Hardware sampling: the machine, a process tree, its control group and the GPUs.
//!
//! ```text
//! file      small files of /proc and /sys, read repeatedly
//! machine   processors, memory, disks, network
//! process   one process;  tree: a process and its descendants
//! cgroup    limits of the control group
//! gpu       NVIDIA and AMD
//! csv       samples as a table for other programs
//! ```
//!
//! Unknown is `None`, never zero. Ten samples per second of twenty processes cost well below one per cent of a
//! core: see `docs/run.md` for the measurement.

mod cgroup;
mod csv;
mod file;
mod gpu;
mod machine;
mod process;
#[cfg(test)]
mod tests;
mod tree;

use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub use cgroup::Cgroup;
pub use csv::CsvWriter;
pub use gpu::{Gpu, Nvml, Throttle};
pub use machine::Machine;
pub use tree::Tree;

use cgroup::CgroupWatch;
use gpu::{GpuWatch, Gpus};
use machine::MachineWatch;
use tree::TreeWatch;

/// What to sample, and where to look.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the kernel shows processes.
    pub proc: PathBuf,
    /// Where the kernel shows devices.
    pub sys: PathBuf,
    /// The root of the process tree; `None` for the machine only.
    pub root: Option<u32>,
    /// True if the root was just started: all its time counts, not only what comes after the first sample.
    pub from_birth: bool,
    /// Sampling interval, also for the GPUs.
    pub interval: Duration,
    /// Location of NVIDIA's library.
    pub nvml: Nvml,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            proc: PathBuf::from("/proc"),
            sys: PathBuf::from("/sys"),
            root: None,
            from_birth: false,
            interval: Duration::from_millis(100),
            nvml: Nvml::default(),
        }
    }
}

/// Hardware use between two moments.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Nanoseconds since 1970.
    pub wall_ns: i64,
    /// Time since the sampler was created.
    pub elapsed: Duration,
    /// The machine.
    pub machine: Machine,
    /// The process tree; `None` if not requested or if it has ended.
    pub tree: Option<Tree>,
    /// Limits of the tree's control group; those of the current process if there is no tree.
    pub cgroup: Cgroup,
    /// The GPUs.
    pub gpus: Vec<Gpu>,
    /// Bytes of each GPU's memory that the tree uses, in the order of `gpus`.
    pub gpu_memory_of_tree: Vec<Option<u64>>,
}

/// Takes samples.
pub struct Sampler {
    begun: Instant,
    last: Option<Duration>,
    machine: MachineWatch,
    tree: Option<TreeWatch>,
    cgroup: CgroupWatch,
    gpus: Option<GpuWatch>,
    buffer: Vec<u8>,
}

impl std::fmt::Debug for Sampler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sampler").field("begun", &self.begun).finish_non_exhaustive()
    }
}

impl Sampler {
    /// Detects the hardware; rates of the first sample count from here.
    pub fn new(options: &Options) -> Self {
        let Options { proc, sys, root, from_birth, interval, nvml } = options;
        let mut sampler = Sampler {
            begun: Instant::now(),
            last: None,
            machine: MachineWatch::new(proc, sys),
            tree: root.map(|root| TreeWatch::new(proc, root, *from_birth)),
            cgroup: CgroupWatch::new(proc, sys, *root),
            gpus: Gpus::find(sys, nvml).map(|gpus| GpuWatch::start(gpus, *interval)),
            buffer: Vec::new(),
        };
        sampler.sample_at(0, Duration::ZERO);
        sampler
    }

    /// Number of cores; 0 if unknown.
    pub fn cores(&self) -> usize {
        self.machine.cores()
    }

    /// Number of GPUs.
    pub fn gpus(&self) -> usize {
        self.gpus.as_ref().map_or(0, |gpus| gpus.newest().len())
    }

    /// Takes a sample now.
    pub fn sample(&mut self) -> Sample {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        self.sample_at(i64::try_from(wall.as_nanos()).unwrap_or(i64::MAX), self.begun.elapsed())
    }

    /// Takes a sample at a time known to the caller.
    fn sample_at(&mut self, wall_ns: i64, elapsed: Duration) -> Sample {
        let passed = self.last.replace(elapsed).map(|last| elapsed.saturating_sub(last));
        let buffer = &mut self.buffer;
        let machine = self.machine.sample(passed, buffer);
        let tree = self.tree.as_mut().and_then(|tree| tree.sample(passed, buffer));
        let cgroup = self.cgroup.sample(passed, buffer);
        let gpus = self.gpus.as_ref().map(GpuWatch::newest).unwrap_or_default();
        let of_tree = |gpu: &Gpu| {
            let members: Vec<u32> = self.tree.as_ref()?.pids().collect();
            let used = gpu.processes.iter().filter(|(pid, _)| members.contains(pid)).map(|(_, bytes)| *bytes);
            used.reduce(|all, one| all + one)
        };
        let gpu_memory_of_tree = gpus.iter().map(of_tree).collect();
        Sample { wall_ns, elapsed, machine, tree, cgroup, gpus, gpu_memory_of_tree }
    }
}
