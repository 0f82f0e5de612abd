//! NVIDIA's GPUs, through its management library, which is loaded at run time if it exists.

use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{Clock, PcieUtilCounter, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;

use super::{Gpu, Nvml, Throttle};

/// The library has the second name if only the driver is installed.
const NAMES: [&str; 2] = ["libnvidia-ml.so", "libnvidia-ml.so.1"];

const REASONS: [(ThrottleReasons, Throttle); 6] = [
    (ThrottleReasons::SW_POWER_CAP, Throttle::PowerCap),
    (ThrottleReasons::SW_THERMAL_SLOWDOWN, Throttle::ThermalSoftware),
    (ThrottleReasons::HW_THERMAL_SLOWDOWN, Throttle::ThermalHardware),
    (ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN, Throttle::PowerBrake),
    (ThrottleReasons::HW_SLOWDOWN, Throttle::HardwareSlowdown),
    (ThrottleReasons::SYNC_BOOST, Throttle::SyncBoost),
];

/// The library, and the last known bus traffic.
pub(super) struct Nvidia {
    library: nvml_wrapper::Nvml,
    count: u32,
    buses: Vec<(Option<f64>, Option<f64>)>,
}

impl Nvidia {
    pub(super) fn find(nvml: &Nvml) -> Option<Self> {
        let open = |path: &std::ffi::OsStr| nvml_wrapper::Nvml::builder().lib_path(path).init().ok();
        let library = match nvml {
            Nvml::Installed => NAMES.iter().find_map(|name| open(name.as_ref())),
            Nvml::At(path) => open(path.as_os_str()),
            Nvml::Off => None,
        }?;
        let count = library.device_count().ok().filter(|&count| count > 0)?;
        Some(Nvidia { library, count, buses: vec![(None, None); count as usize] })
    }

    pub(super) fn read(&mut self, with_bus: bool) -> Vec<Gpu> {
        let mut gpus = Vec::with_capacity(self.count as usize);
        for index in 0..self.count {
            let Ok(device) = self.library.device_by_index(index) else { continue };
            let mut gpu = read(&device, index);
            if let Some(bus) = self.buses.get_mut(index as usize) {
                if with_bus {
                    // The library reports kilobytes per second.
                    let traffic =
                        |counter| device.pcie_throughput(counter).ok().map(|kb| f64::from(kb) * 1e3);
                    *bus = (traffic(PcieUtilCounter::Receive), traffic(PcieUtilCounter::Send));
                }
                (gpu.bus_receive, gpu.bus_send) = *bus;
            }
            gpus.push(gpu);
        }
        gpus
    }
}

fn read(device: &nvml_wrapper::Device<'_>, index: u32) -> Gpu {
    let rates = device.utilization_rates().ok();
    let memory = device.memory_info().ok();
    let watts = |milliwatts: u32| f64::from(milliwatts) / 1e3;
    let reasons = device.current_throttle_reasons().ok();
    let held = |reasons: ThrottleReasons| {
        REASONS.iter().filter(|(bit, _)| reasons.contains(*bit)).map(|&(_, reason)| reason).collect()
    };
    Gpu {
        index,
        name: device.name().ok(),
        busy: rates.as_ref().map(|rates| f64::from(rates.gpu) / 100.0),
        memory_busy: rates.as_ref().map(|rates| f64::from(rates.memory) / 100.0),
        memory_used: memory.as_ref().map(|memory| memory.used),
        memory_total: memory.as_ref().map(|memory| memory.total),
        processes: processes(device),
        power: device.power_usage().ok().map(watts),
        power_limit: device.enforced_power_limit().ok().map(watts),
        clock: device.clock_info(Clock::SM).ok().map(f64::from),
        memory_clock: device.clock_info(Clock::Memory).ok().map(f64::from),
        temperature: device.temperature(TemperatureSensor::Gpu).ok().map(f64::from),
        throttled: reasons.map(held),
        bus_receive: None,
        bus_send: None,
    }
}

fn processes(device: &nvml_wrapper::Device<'_>) -> Vec<(u32, u64)> {
    let running = device.running_compute_processes().unwrap_or_default();
    let used = |memory: UsedGpuMemory| match memory {
        UsedGpuMemory::Used(bytes) => Some(bytes),
        UsedGpuMemory::Unavailable => None,
    };
    running.into_iter().filter_map(|process| Some((process.pid, used(process.used_gpu_memory)?))).collect()
}
