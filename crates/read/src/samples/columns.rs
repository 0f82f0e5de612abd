//! Counter names for the columns of a samples file.

/// The owner of a value.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Owner {
    Machine,
    Tree,
    Gpu(u32),
}

/// A column that becomes a counter.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Column {
    pub(super) owner: Owner,
    pub(super) name: String,
    /// Factor for the values.
    pub(super) scale: f64,
}

const MEBIBYTE: f64 = 1.0 / 1_048_576.0;

/// GPU columns, with nvidia-smi's names and units.
const GPU: &[(&str, &str, f64)] = &[
    ("busy_percent", "utilization.gpu [%]", 1.0),
    ("memory_busy_percent", "utilization.memory [%]", 1.0),
    ("memory_used_bytes", "memory.used [MiB]", MEBIBYTE),
    ("memory_total_bytes", "memory.total [MiB]", MEBIBYTE),
    ("power_watts", "power.draw [W]", 1.0),
    ("power_limit_watts", "power.limit [W]", 1.0),
    ("clock_mhz", "clocks.sm [MHz]", 1.0),
    ("memory_clock_mhz", "clocks.mem [MHz]", 1.0),
    ("temperature_celsius", "temperature.gpu [C]", 1.0),
    ("throttled", "clocks_event_reasons.hw_or_sw_slowdown", 1.0),
    ("bus_receive_bytes_per_s", "pcie received [MB/s]", 1e-6),
    ("bus_send_bytes_per_s", "pcie sent [MB/s]", 1e-6),
    ("tree_memory_bytes", "memory of the run [MiB]", MEBIBYTE),
];

/// Columns of the machine and of the run's processes.
const HOST: &[(&str, Owner, &str, f64)] = &[
    ("machine_cpu_percent", Owner::Machine, "cpu of the machine [%]", 1.0),
    ("busiest_core_percent", Owner::Machine, "busiest core [%]", 1.0),
    ("machine_io_wait_percent", Owner::Machine, "waiting for disks [%]", 1.0),
    ("machine_steal_percent", Owner::Machine, "taken by other virtual machines [%]", 1.0),
    ("machine_memory_available_bytes", Owner::Machine, "memory available [MB]", 1e-6),
    ("machine_swap_used_bytes", Owner::Machine, "swap used [MB]", 1e-6),
    ("machine_disk_read_bytes_per_s", Owner::Machine, "disks read [MB/s]", 1e-6),
    ("machine_disk_write_bytes_per_s", Owner::Machine, "disks written [MB/s]", 1e-6),
    ("machine_net_receive_bytes_per_s", Owner::Machine, "network received [MB/s]", 1e-6),
    ("machine_net_send_bytes_per_s", Owner::Machine, "network sent [MB/s]", 1e-6),
    ("machine_switches_per_s", Owner::Machine, "context switches [1/s]", 1.0),
    ("tree_processes", Owner::Tree, "processes", 1.0),
    ("tree_threads", Owner::Tree, "threads", 1.0),
    ("tree_cpu_percent", Owner::Tree, "cpu of the run [%]", 1.0),
    ("tree_rss_bytes", Owner::Tree, "memory of the run [MB]", 1e-6),
    ("tree_pss_bytes", Owner::Tree, "memory of the run, shared pages once [MB]", 1e-6),
    ("tree_disk_read_bytes_per_s", Owner::Tree, "disks read by the run [MB/s]", 1e-6),
    ("tree_disk_write_bytes_per_s", Owner::Tree, "disks written by the run [MB/s]", 1e-6),
    ("tree_switches_per_s", Owner::Tree, "context switches of the run [1/s]", 1.0),
    ("cgroup_memory_used_bytes", Owner::Machine, "memory of the control group [MB]", 1e-6),
    ("cgroup_throttled_percent", Owner::Machine, "throttled by the CPU limit [%]", 1.0),
];

impl Column {
    /// The column for a header name; `None` for values that are constant or cumulative.
    pub(super) fn of(header: &str) -> Option<Self> {
        if let Some(&(_, owner, name, scale)) = HOST.iter().find(|(known, ..)| *known == header) {
            return Some(Column { owner, name: name.to_owned(), scale });
        }
        if let Some(core) = header.strip_prefix("core").and_then(|rest| rest.strip_suffix("_percent")) {
            let core: u32 = core.parse().ok()?;
            return Some(Column { owner: Owner::Machine, name: format!("core {core} [%]"), scale: 1.0 });
        }
        let (gpu, of_gpu) = header.strip_prefix("gpu")?.split_once('_')?;
        let owner = Owner::Gpu(gpu.parse().ok().filter(|&gpu: &u32| gpu < 1_024)?);
        let &(_, name, scale) = GPU.iter().find(|(known, ..)| *known == of_gpu)?;
        Some(Column { owner, name: name.to_owned(), scale })
    }
}
