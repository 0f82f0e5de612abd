//! GPUs: NVIDIA's through its management library, AMD's through /sys. A machine may have none.
//!
//! Drivers are slow to answer some queries (20 ms for bus traffic), so GPUs are read on a separate thread
//! ([`GpuWatch`]), and a sample uses the newest answer.

mod amd;
mod nvidia;

use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Location of NVIDIA's management library.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Nvml {
    /// Where the system's loader finds it.
    #[default]
    Installed,
    /// In this file.
    At(PathBuf),
    /// Not used.
    Off,
}

/// State of one GPU. Unknown is `None`; shares are 0 to 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gpu {
    /// Its number on this machine.
    pub index: u32,
    /// Its model.
    pub name: Option<String>,
    /// Share of time in which any kernel ran; one small kernel is enough.
    pub busy: Option<f64>,
    /// Share of time in which its memory was read or written.
    pub memory_busy: Option<f64>,
    /// Bytes of memory in use.
    pub memory_used: Option<u64>,
    /// Total memory in bytes.
    pub memory_total: Option<u64>,
    /// Bytes of its memory that each process uses.
    pub processes: Vec<(u32, u64)>,
    /// Watts.
    pub power: Option<f64>,
    /// Power limit in watts.
    pub power_limit: Option<f64>,
    /// Megahertz of the cores.
    pub clock: Option<f64>,
    /// Megahertz of the memory.
    pub memory_clock: Option<f64>,
    /// Degrees Celsius.
    pub temperature: Option<f64>,
    /// Why clocks are throttled; empty if they are not.
    pub throttled: Option<Vec<Throttle>>,
    /// Bytes per second from the host.
    pub bus_receive: Option<f64>,
    /// Bytes per second to the host.
    pub bus_send: Option<f64>,
}

/// Why a GPU's clocks are throttled.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Throttle {
    /// The power limit.
    PowerCap,
    /// Heat, limited by the driver.
    ThermalSoftware,
    /// Heat, limited by the hardware.
    ThermalHardware,
    /// Requested by the power supply.
    PowerBrake,
    /// The hardware slowed down because of heat or power.
    HardwareSlowdown,
    /// Another GPU of the group is slower.
    SyncBoost,
}

impl Throttle {
    /// The public key, as nvidia-smi names it.
    pub fn key(self) -> &'static str {
        match self {
            Throttle::PowerCap => "sw_power_cap",
            Throttle::ThermalSoftware => "sw_thermal_slowdown",
            Throttle::ThermalHardware => "hw_thermal_slowdown",
            Throttle::PowerBrake => "hw_power_brake_slowdown",
            Throttle::HardwareSlowdown => "hw_slowdown",
            Throttle::SyncBoost => "sync_boost",
        }
    }
}

/// All GPUs of the machine.
pub(super) struct Gpus {
    nvidia: Option<nvidia::Nvidia>,
    amd: Vec<amd::Card>,
}

impl Gpus {
    /// Finds them; `None` if there are none.
    pub(super) fn find(sys: &Path, nvml: &Nvml) -> Option<Self> {
        let nvidia = nvidia::Nvidia::find(nvml);
        let amd = amd::cards(sys);
        (nvidia.is_some() || !amd.is_empty()).then_some(Gpus { nvidia, amd })
    }

    /// Reads all of them. `with_bus`: also the bus traffic, which is slow.
    pub(super) fn read(&mut self, with_bus: bool) -> Vec<Gpu> {
        let mut gpus = self.nvidia.as_mut().map(|nvidia| nvidia.read(with_bus)).unwrap_or_default();
        let first = gpus.iter().map(|gpu| gpu.index + 1).max().unwrap_or(0);
        gpus.extend(self.amd.iter().zip(first..).map(|(card, index)| card.read(index)));
        gpus
    }
}

/// Bus traffic is read once every this many rounds.
const BUS_EVERY: u32 = 10;

/// Reads the GPUs repeatedly on a separate thread.
pub(super) struct GpuWatch {
    newest: Arc<Mutex<Vec<Gpu>>>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl GpuWatch {
    pub(super) fn start(mut gpus: Gpus, interval: Duration) -> Self {
        let newest = Arc::new(Mutex::new(gpus.read(false)));
        let (stop, stopped) = mpsc::channel::<()>();
        let shared = Arc::clone(&newest);
        let work = move || {
            for round in 0_u32.. {
                let read = gpus.read(round % BUS_EVERY == 0);
                if let Ok(mut newest) = shared.lock() {
                    *newest = read;
                }
                if stopped.recv_timeout(interval) != Err(RecvTimeoutError::Timeout) {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("gpu-sampler".to_owned()).spawn(work).ok();
        GpuWatch { newest, stop: Some(stop), thread }
    }

    pub(super) fn newest(&self) -> Vec<Gpu> {
        self.newest.lock().map(|newest| newest.clone()).unwrap_or_default()
    }
}

impl Drop for GpuWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            // It ends with the current round.
            let _ = thread.join();
        }
    }
}
