//! Launch configuration of a kernel: grid, block, registers, shared memory, in every spelling that profilers
//! use.

use stepscope_trace::{Args, StrId, Trace, Value};

/// A kernel's launch configuration. Missing or impossible values are `None`.
#[derive(
    Copy, Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
pub struct LaunchConfig {
    /// Blocks in each dimension.
    pub grid: Option<[u32; 3]>,
    /// Threads of a block in each dimension.
    pub block: Option<[u32; 3]>,
    /// Registers per thread.
    pub registers: Option<u32>,
    /// Shared memory per block, static and dynamic, in bytes.
    pub shared_bytes: Option<u64>,
    /// Occupancy as reported by the profile, in hundredths of a percent.
    pub reported_occupancy: Option<u32>,
}

/// No device has more; larger numbers are damage.
const MAX_REGISTERS: u64 = 255;
const MAX_SHARED: u64 = 1 << 20;
const MAX_THREADS: u64 = 1024;

impl LaunchConfig {
    /// Threads of a block.
    pub fn threads(&self) -> Option<u32> {
        self.block?.into_iter().try_fold(1_u32, u32::checked_mul)
    }

    /// Blocks of the grid.
    pub fn blocks(&self) -> Option<u64> {
        self.grid?.into_iter().try_fold(1_u64, |all, side| all.checked_mul(u64::from(side)))
    }

    /// From XPlane's `kernel_details`. CUDA: `regs:32 static_shared:0 dynamic_shared:0 grid:1,1,1 block:128,1,1
    /// occ_pct:100`; up to 2023 `regs:32 shm:0 grid:… block:…`; ROCm ` grid:… block:… private_mem:0
    /// group_mem:0 occ_pct:0`.
    pub(crate) fn from_details(details: &str) -> Self {
        let mut config = LaunchConfig::default();
        let (mut shared, mut sane) = (None, true);
        for (key, value) in details.split_ascii_whitespace().filter_map(|part| part.split_once(':')) {
            let number = value.parse::<u64>().ok();
            match key {
                "regs" => config.registers = number.filter(|&n| n > 0).and_then(|n| u32::try_from(n).ok()),
                "shm" | "static_shared" | "dynamic_shared" | "group_mem" => {
                    shared = Some(shared.unwrap_or(0_u64).saturating_add(number.unwrap_or(u64::MAX)));
                }
                "grid" => {
                    config.grid = dimensions(value.split(','));
                    sane &= config.grid.is_some();
                }
                "block" => {
                    config.block = dimensions(value.split(','));
                    sane &= config.block.is_some();
                }
                "occ_pct" => config.reported_occupancy = value.parse().ok().and_then(hundredths),
                _ => {}
            }
            sane &= key != "regs" || number.is_some_and(|registers| registers <= MAX_REGISTERS);
        }
        config.shared_bytes = shared;
        if sane { config.checked() } else { LaunchConfig::default() }
    }

    /// Some profiles have random bytes in place of a configuration. One impossible figure discredits all.
    fn checked(self) -> Self {
        let threads = self.block.is_none()
            || self.threads().is_some_and(|threads| (1..=MAX_THREADS).contains(&u64::from(threads)));
        let shared = self.shared_bytes.is_none_or(|shared| shared <= MAX_SHARED);
        if threads && shared { self } else { LaunchConfig::default() }
    }
}

fn dimensions<'a>(sides: impl Iterator<Item = &'a str>) -> Option<[u32; 3]> {
    let mut found = [1_u32; 3];
    let mut count = 0;
    for side in sides {
        *found.get_mut(count)? = side.trim().parse().ok().filter(|&side| side > 0)?;
        count += 1;
    }
    (count > 0).then_some(found)
}

/// 0 means below half a percent, or unknown.
fn hundredths(percent: f64) -> Option<u32> {
    (percent > 0.0 && percent <= 100.0).then(|| (percent * 100.0).round() as u32)
}

/// The keys of launch configurations.
#[derive(Debug)]
pub struct LaunchKeys {
    details: Option<StrId>,
    grid: Option<StrId>,
    block: Option<StrId>,
    registers: Option<StrId>,
    shared: Option<StrId>,
    occupancy: Vec<StrId>,
}

impl LaunchKeys {
    /// Those that this trace has.
    pub fn of(trace: &Trace) -> Self {
        let find = |key: &str| trace.strings().find(key);
        let occupancy = ["est. achieved occupancy %", "theoretical_occupancy_pct"];
        LaunchKeys {
            details: find("kernel_details"),
            grid: find("grid"),
            block: find("block"),
            registers: find("registers per thread"),
            shared: find("shared memory"),
            occupancy: occupancy.iter().filter_map(|key| find(key)).collect(),
        }
    }

    /// The launch configuration of one event.
    pub fn read(&self, args: Args<'_>) -> LaunchConfig {
        let mut config = LaunchConfig::default();
        args.visit(|key, value| {
            let key = Some(key);
            if key == self.details {
                let reported = config.reported_occupancy;
                config = LaunchConfig::from_details(value.as_str().unwrap_or_default());
                config.reported_occupancy = config.reported_occupancy.or(reported);
            } else if key == self.grid {
                config.grid = from_json(&value);
            } else if key == self.block {
                config.block = from_json(&value);
            } else if key == self.registers {
                let registers = value.as_u64().filter(|count| (1..=MAX_REGISTERS).contains(count));
                config.registers = registers.and_then(|count| u32::try_from(count).ok());
            } else if key == self.shared {
                config.shared_bytes = value.as_u64();
            } else if key.is_some_and(|key| self.occupancy.contains(&key)) {
                config.reported_occupancy = config.reported_occupancy.or(value.as_f64().and_then(hundredths));
            }
        });
        config.checked()
    }
}

/// `[564, 1, 1]`.
fn from_json(value: &Value<'_>) -> Option<[u32; 3]> {
    let list = value.as_str()?.trim().strip_prefix('[')?.strip_suffix(']')?;
    dimensions(list.split(','))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_spellings_of_kernel_details_are_read() {
        let new = "regs:32 static_shared:1024 dynamic_shared:512 grid:10,2,1 block:128,1,1 occ_pct:62.5";
        let config = LaunchConfig::from_details(new);
        assert_eq!((config.registers, config.shared_bytes), (Some(32), Some(1536)));
        assert_eq!((config.blocks(), config.threads()), (Some(20), Some(128)));
        assert_eq!(config.reported_occupancy, Some(6250));
        let old = LaunchConfig::from_details("regs:38 shm:0 grid:160,1,1 block:1024,1,1");
        assert_eq!((old.registers, old.shared_bytes, old.reported_occupancy), (Some(38), Some(0), None));
        let rocm = " grid:256,1,1 block:256,1,1 private_mem:0 group_mem:64 occ_pct:0";
        let rocm = LaunchConfig::from_details(rocm);
        assert_eq!((rocm.registers, rocm.shared_bytes, rocm.reported_occupancy), (None, Some(64), None));
    }

    #[test]
    fn random_bytes_are_no_configuration() {
        let garbage =
            "regs:17179869185 shm:7 grid:1,210453397508,0 block:139910371608800,96,18446744073709551536";
        assert_eq!(LaunchConfig::from_details(garbage), LaunchConfig::default());
        let large = LaunchConfig::from_details("regs:32 shm:0 grid:1,1,1 block:2048,1,1");
        assert_eq!(large, LaunchConfig::default());
        assert_eq!(LaunchConfig::from_details(""), LaunchConfig::default());
    }
}
