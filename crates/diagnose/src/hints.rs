//! What utilisation alone suggests, where there is no profile. Hints, not findings: a busy core shows that something
//! is limited by it, not what; only a profile can prove more.

/// How busy a machine was while steps were steady. What is not known is `None`; shares are 0 to 1.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct Load {
    /// Cores that the run may use: those of the machine, or what its control group allows.
    pub cores: Option<f64>,
    /// Cores that it kept busy.
    pub cpu: Option<f64>,
    /// The share of time in which its control group was held back.
    pub throttled: Option<f64>,
    /// The share of all cores' time spent waiting for disks.
    pub io_wait: Option<f64>,
    /// The share of time in which the busiest GPU ran any kernel.
    pub gpu_busy: Option<f64>,
    /// The share of samples in which a GPU's clocks were held down by heat or power.
    pub gpu_held: Option<f64>,
    /// The share of the memory that it may use which it used at its peak.
    pub memory: Option<f64>,
}

/// What a utilisation suggests.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Hint {
    /// The control group's share of processor time was used up for this share of time.
    CpuQuota(f64),
    /// The GPU had nothing to run for this share of time, while about one core was busy.
    GpuWaitsForOneCore {
        /// The share of time without a kernel.
        idle: f64,
    },
    /// The GPU had nothing to run for this share of time.
    GpuWaits {
        /// The share of time without a kernel.
        idle: f64,
    },
    /// The GPU ran kernels nearly all the time.
    GpuBusy(f64),
    /// Clocks of a GPU were held down in this share of samples.
    GpuHeld(f64),
    /// Cores waited for disks for this share of their time.
    DiskWait(f64),
    /// About one core of several was busy.
    OneCore {
        /// Of how many.
        cores: f64,
    },
    /// Nearly all cores were busy.
    AllCores {
        /// How many there are.
        cores: f64,
    },
    /// Little ran anywhere.
    Waits {
        /// Cores that were busy.
        cpu: f64,
    },
    /// This share of the memory was in use.
    MemoryTight(f64),
}

/// Being held back for less than this does not show in step times.
const QUOTA: f64 = 0.05;
/// A GPU below this waits for something; above the other it does not.
const GPU_LOW: f64 = 0.5;
const GPU_HIGH: f64 = 0.9;
const HELD: f64 = 0.2;
/// Waiting is counted per core, and one reader keeps only one of them waiting.
const DISK_CORES: f64 = 0.25;
/// One core, give or take the threads that only help.
const ONE_CORE: std::ops::Range<f64> = 0.75..1.35;
const ALL: f64 = 0.85;
const LITTLE: f64 = 0.3;
const TIGHT: f64 = 0.9;

/// What the load suggests, the weightiest first.
pub fn hints(load: &Load) -> Vec<Hint> {
    let mut hints = Vec::new();
    let one_core = load.cpu.is_some_and(|cpu| ONE_CORE.contains(&cpu));
    hints.extend(load.throttled.filter(|&share| share >= QUOTA).map(Hint::CpuQuota));
    let disk = load.io_wait.zip(load.cores).filter(|(wait, cores)| wait * cores >= DISK_CORES);
    hints.extend(disk.map(|(wait, _)| Hint::DiskWait(wait)));
    match load.gpu_busy {
        Some(busy) if busy < GPU_LOW && one_core => hints.push(Hint::GpuWaitsForOneCore { idle: 1.0 - busy }),
        Some(busy) if busy < GPU_LOW => hints.push(Hint::GpuWaits { idle: 1.0 - busy }),
        Some(busy) if busy >= GPU_HIGH => hints.push(Hint::GpuBusy(busy)),
        Some(_) => {}
        None => hints.extend(processors(load, one_core, disk.is_some())),
    }
    hints.extend(load.gpu_held.filter(|&share| share >= HELD).map(Hint::GpuHeld));
    hints.extend(load.memory.filter(|&share| share >= TIGHT).map(Hint::MemoryTight));
    hints
}

/// Without a GPU the processors do the work.
fn processors(load: &Load, one_core: bool, disk: bool) -> Option<Hint> {
    let (cpu, cores) = load.cpu.zip(load.cores)?;
    if cpu >= ALL * cores && cores > 0.0 {
        Some(Hint::AllCores { cores })
    } else if one_core && cores >= 1.8 {
        Some(Hint::OneCore { cores })
    } else {
        (cpu < LITTLE && !disk).then_some(Hint::Waits { cpu })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(cpu: f64) -> Load {
        Load { cores: Some(8.0), cpu: Some(cpu), ..Load::default() }
    }

    #[test]
    fn processors_are_judged_by_what_may_be_used() {
        assert_eq!(hints(&load(1.05)), [Hint::OneCore { cores: 8.0 }]);
        assert_eq!(hints(&load(7.6)), [Hint::AllCores { cores: 8.0 }]);
        assert_eq!(hints(&load(0.1)), [Hint::Waits { cpu: 0.1 }]);
        assert_eq!(hints(&load(4.0)), []);
        let quota = Load { cores: Some(1.0), throttled: Some(0.4), ..load(1.0) };
        assert_eq!(hints(&quota), [Hint::CpuQuota(0.4), Hint::AllCores { cores: 1.0 }]);
    }

    #[test]
    fn a_gpu_that_waits_leads() {
        let gpu = |busy| Load { gpu_busy: Some(busy), ..load(1.0) };
        assert_eq!(hints(&gpu(0.25)), [Hint::GpuWaitsForOneCore { idle: 0.75 }]);
        assert_eq!(hints(&Load { cpu: Some(5.0), ..gpu(0.25) }), [Hint::GpuWaits { idle: 0.75 }]);
        assert_eq!(hints(&gpu(0.95)), [Hint::GpuBusy(0.95)]);
        assert_eq!(hints(&Load::default()), [], "what is not known suggests nothing");
    }
}
