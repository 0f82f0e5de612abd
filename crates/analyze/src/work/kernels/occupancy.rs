//! Theoretical occupancy of NVIDIA GPUs: how many warps of a multiprocessor a launch can keep resident, and
//! what limits it. The rules are those of the CUDA occupancy calculator.

use stepscope_trace::Device;

use super::launch::LaunchConfig;

/// What a multiprocessor runs out of first.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum Limiter {
    /// Warp slots: nothing more can be gained.
    Warps,
    /// Block slots: the blocks are small.
    Blocks,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
}

impl Limiter {
    /// Its public key.
    pub fn key(self) -> &'static str {
        match self {
            Limiter::Warps => "warps",
            Limiter::Blocks => "blocks",
            Limiter::Registers => "registers",
            Limiter::SharedMemory => "shared-memory",
        }
    }
}

/// What a launch can keep resident.
#[derive(Copy, Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Occupancy {
    /// Resident warps relative to the maximum of a multiprocessor, 0 to 1.
    pub fraction: f64,
    /// Resident blocks per multiprocessor.
    pub blocks: u32,
    /// What limits it.
    pub limiter: Limiter,
}

/// Capacity of a multiprocessor.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
struct Capacity {
    warps: u32,
    blocks: u32,
    registers: u32,
    shared_bytes: u64,
    /// Allocation unit of shared memory.
    shared_unit: u64,
    /// Shared memory per block that the runtime reserves.
    shared_reserved: u64,
}

const WARP: u32 = 32;
/// Allocation unit of registers per warp.
const REGISTER_UNIT: u32 = 256;
/// Warps get registers in groups of this size.
const WARP_GROUP: u32 = 4;

/// Warps, blocks and kilobytes of shared memory per multiprocessor, by compute capability (CUDA programming
/// guide, table of technical specifications). All of them have 65,536 registers.
const CAPACITIES: &[((u32, u32), u32, u32, u64)] = &[
    ((5, 0), 64, 32, 64),
    ((5, 2), 64, 32, 96),
    ((5, 3), 64, 32, 64),
    ((6, 0), 64, 32, 64),
    ((6, 1), 64, 32, 96),
    ((6, 2), 64, 32, 64),
    ((7, 0), 64, 32, 96),
    ((7, 2), 64, 32, 96),
    ((7, 5), 32, 16, 64),
    ((8, 0), 64, 32, 164),
    ((8, 6), 48, 16, 100),
    ((8, 7), 48, 16, 164),
    ((8, 9), 48, 24, 100),
    ((9, 0), 64, 32, 228),
    ((10, 0), 64, 32, 228),
    ((10, 3), 64, 32, 228),
    ((11, 0), 48, 24, 228),
    ((12, 0), 48, 24, 100),
    ((12, 1), 48, 24, 100),
];

impl Capacity {
    /// `None` for devices whose rules are unknown, including AMD's.
    fn of(device: &Device) -> Option<Self> {
        let capability = device.compute_capability?;
        // AMD devices report their generation in the same field; their wavefront size identifies them.
        if device.warp_size.is_some_and(|size| size != WARP) {
            return None;
        }
        let (_, warps, blocks, kilobytes) = CAPACITIES.iter().find(|(known, ..)| *known == capability)?;
        let modern = capability.0 >= 8;
        Some(Capacity {
            warps: device.max_threads_per_multiprocessor.map_or(*warps, |threads| threads / WARP).max(1),
            blocks: *blocks,
            registers: device.registers_per_multiprocessor.unwrap_or(65_536),
            shared_bytes: device.shared_memory_per_multiprocessor.unwrap_or(kilobytes * 1024),
            shared_unit: if modern { 128 } else { 256 },
            shared_reserved: if modern { 1024 } else { 0 },
        })
    }
}

/// The theoretical occupancy of a launch; `None` if the device's rules or the launch are unknown.
pub fn theoretical(device: &Device, launch: &LaunchConfig) -> Option<Occupancy> {
    let capacity = Capacity::of(device)?;
    let threads = launch.threads().filter(|threads| (1..=1024).contains(threads))?;
    let warps = threads.div_ceil(WARP);
    let by_warps = capacity.warps / warps;
    let by_registers = match launch.registers? {
        0 => u32::MAX,
        registers => {
            let a_warp = (registers * WARP).next_multiple_of(REGISTER_UNIT);
            capacity.registers / a_warp / WARP_GROUP * WARP_GROUP / warps
        }
    };
    let shared = launch.shared_bytes.unwrap_or(0) + capacity.shared_reserved;
    let by_shared = match shared.next_multiple_of(capacity.shared_unit) {
        0 => u32::MAX,
        shared => u32::try_from(capacity.shared_bytes / shared).unwrap_or(u32::MAX),
    };
    let limits = [
        (by_warps, Limiter::Warps),
        (capacity.blocks, Limiter::Blocks),
        (by_registers, Limiter::Registers),
        (by_shared, Limiter::SharedMemory),
    ];
    let (blocks, limiter) = limits.into_iter().min_by_key(|(blocks, _)| *blocks)?;
    // It ran, so one block fits, whatever the figures say.
    let blocks = blocks.max(1);
    let fraction = (f64::from(blocks * warps) / f64::from(capacity.warps)).min(1.0);
    Some(Occupancy { fraction, blocks, limiter })
}

/// Threads per multiprocessor that every device has room for.
const LEAST_THREADS: u32 = 1024;

/// The share of the device's threads that a launch occupies at most, 0 to 1; `None` if its size or the device's
/// is unknown.
pub fn filled(device: &Device, launch: &LaunchConfig) -> Option<f64> {
    let (blocks, threads) = (launch.blocks()? as f64, f64::from(launch.threads()?));
    let multiprocessors = f64::from(device.multiprocessors.filter(|&count| count > 0)?);
    let most = Capacity::of(device).map(|capacity| capacity.warps * WARP);
    let most = most.or(device.max_threads_per_multiprocessor).unwrap_or(LEAST_THREADS);
    // What fits at once: the rest of the grid waits for its turn.
    let resident = theoretical(device, launch).map_or(f64::INFINITY, |found| f64::from(found.blocks));
    let at_once = blocks.min(resident * multiprocessors) * threads;
    Some((at_once / (multiprocessors * f64::from(most.max(1)))).min(1.0))
}

/// How often a launch fills the device, and the share of the last wave that stays empty.
pub fn waves(device: &Device, launch: &LaunchConfig, resident: u32) -> Option<(f64, f64)> {
    let slots = f64::from(device.multiprocessors?) * f64::from(resident);
    let waves = launch.blocks()? as f64 / slots;
    (waves.is_finite() && waves > 0.0).then(|| (waves, 1.0 - waves / waves.ceil()))
}

#[cfg(test)]
mod tests {
    use stepscope_trace::DeviceKind;

    use super::filled as filled_of;

    use super::*;

    fn occupancy(capability: (u32, u32), threads: u32, registers: u32, shared: u64) -> (f64, Limiter) {
        let device = Device { compute_capability: Some(capability), ..Device::new(DeviceKind::Gpu, 0) };
        let launch = LaunchConfig {
            block: Some([threads, 1, 1]),
            registers: Some(registers),
            shared_bytes: Some(shared),
            ..LaunchConfig::default()
        };
        let found = theoretical(&device, &launch).unwrap();
        (found.fraction, found.limiter)
    }

    #[test]
    fn known_values_of_the_cuda_occupancy_calculator() {
        assert_eq!(occupancy((7, 0), 256, 64, 0), (0.5, Limiter::Registers));
        assert_eq!(occupancy((8, 0), 1024, 32, 0), (1.0, Limiter::Warps));
        // 48 KiB and the runtime's own kilobyte: three blocks of four warps fit into 164 KiB.
        assert_eq!(occupancy((8, 0), 128, 32, 48 * 1024), (0.1875, Limiter::SharedMemory));
        // Two blocks of 48 KiB fill 96 KiB exactly where the runtime takes nothing.
        assert_eq!(occupancy((7, 0), 256, 32, 48 * 1024), (0.25, Limiter::SharedMemory));
        assert_eq!(occupancy((8, 6), 32, 16, 0), (16.0 / 48.0, Limiter::Blocks));
        assert_eq!(occupancy((7, 5), 256, 32, 0), (1.0, Limiter::Warps));
        // 168 registers: 5,376 a warp, twelve warps in groups of four.
        assert_eq!(occupancy((9, 0), 384, 168, 0), (0.1875, Limiter::Registers));
    }

    #[test]
    fn unknown_devices_have_no_occupancy() {
        let launch =
            LaunchConfig { block: Some([256, 1, 1]), registers: Some(32), ..LaunchConfig::default() };
        assert_eq!(theoretical(&Device::new(DeviceKind::Gpu, 0), &launch), None);
        let amd = Device {
            compute_capability: Some((9, 0)),
            warp_size: Some(64),
            ..Device::new(DeviceKind::Gpu, 0)
        };
        assert_eq!(theoretical(&amd, &launch), None);
    }

    #[test]
    fn a_launch_fills_what_its_threads_occupy() {
        let device = |capability| Device {
            compute_capability: capability,
            multiprocessors: Some(100),
            ..Device::new(DeviceKind::Gpu, 0)
        };
        let filled = |capability, grid, block| {
            let (grid, block) = (Some([grid, 1, 1]), Some([block, 1, 1]));
            let launch = LaunchConfig { grid, block, registers: Some(32), ..LaunchConfig::default() };
            filled_of(&device(capability), &launch).unwrap()
        };
        let near = |found: f64, want: f64| assert!((found - want).abs() < 1e-9, "{found} {want}");
        near(filled(Some((8, 0)), 1, 1), 1.0 / 204_800.0);
        near(filled(Some((8, 0)), 100, 256), 0.125);
        near(filled(Some((8, 0)), 1_000_000, 256), 1.0);
        // 32 blocks of one thread are resident on each multiprocessor, whatever the size of the grid.
        near(filled(Some((8, 0)), 1_000_000, 1), 32.0 / 2048.0);
        // Of an unknown device the least is known: the launch fills no more than this.
        near(filled(None, 1, 256), 256.0 / 102_400.0);
        let unknown = LaunchConfig { block: Some([256, 1, 1]), ..LaunchConfig::default() };
        assert_eq!(filled_of(&device(Some((8, 0))), &unknown), None);
    }

    #[test]
    fn a_little_more_than_one_wave_leaves_nearly_half_empty() {
        let device = Device { multiprocessors: Some(10), ..Device::new(DeviceKind::Gpu, 0) };
        let launch = LaunchConfig { grid: Some([11, 1, 1]), ..LaunchConfig::default() };
        let (waves, tail) = waves(&device, &launch, 1).unwrap();
        assert!((waves - 1.1).abs() < 1e-9 && (tail - 0.45).abs() < 1e-9);
    }
}
