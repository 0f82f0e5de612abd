//! What devices compute, and how well it fills them, in the shape that rules need.

use stepscope_analyze::devices::feeding::Feeding;
use stepscope_analyze::session::Session;
use stepscope_analyze::work::kernels::{KernelRow, Kernels, is_product_without};

use super::Evidence;
use crate::thresholds;

/// Device work, over all devices.
#[derive(Clone, Debug)]
pub struct DeviceWork {
    /// Kernels per step on one device, without collectives.
    pub kernels_per_step: f64,
    /// Their mean length in microseconds.
    pub kernel_us: f64,
    /// The median length of calls that launch a kernel, in microseconds.
    pub launch_us: Option<f64>,
    /// The share of kernels that are started by graphs of kernels.
    pub graph_share: f64,
    /// Matrix kernels that use no matrix units although the device has them.
    pub without_matrix_units: Option<WithoutMatrixUnits>,
    /// Kernels of low occupancy.
    pub low_occupancy: Option<LowOccupancy>,
}

/// Kernels that leave most of the device's threads empty, by their launch configuration.
#[derive(Clone, Debug)]
pub struct LowOccupancy {
    /// Their share of kernel time.
    pub share: f64,
    /// The costliest of them.
    pub kernel: String,
    /// The share of the device's threads that it occupies at most.
    pub occupancy: f64,
    /// What limits it on one multiprocessor.
    pub limiter: Option<String>,
    /// Its blocks, and threads per block, where these are too few for the whole device.
    pub grid: Option<(u64, u32)>,
}

/// Matrix kernels on a device's ordinary units.
#[derive(Clone, Debug)]
pub struct WithoutMatrixUnits {
    /// Their share of kernel time.
    pub share: f64,
    /// The costliest of them.
    pub kernel: String,
    /// How many times faster the matrix units are at the most.
    pub speedup: f64,
    /// The units take 16 bits of one sort alone: those of NVIDIA's before compute capability 8.0 know float16.
    pub only_half: bool,
}

/// Kernels that compute: those that exchange data wait on purpose, with as few threads as that takes.
pub(super) fn computing(kernels: &Kernels) -> impl Iterator<Item = &KernelRow> {
    kernels.rows.iter().filter(|row| !row.collective)
}

impl Evidence for Option<DeviceWork> {
    fn of(session: &Session) -> Self {
        device_work(&session.kernels, session.feeding)
    }
}

fn device_work(kernels: &Kernels, feeding: Feeding) -> Option<DeviceWork> {
    let all: f64 = computing(kernels).map(|row| row.total_ms).sum();
    let count: u64 = computing(kernels).map(|row| row.count).sum();
    if count == 0 || all <= 0.0 {
        return None;
    }
    let share = |wanted: &dyn Fn(&KernelRow) -> bool| {
        let rows: Vec<&KernelRow> = computing(kernels).filter(|row| wanted(row)).collect();
        let worst = rows.iter().max_by(|a, b| a.total_ms.total_cmp(&b.total_ms)).copied().cloned()?;
        Some((rows.iter().map(|row| row.total_ms).sum::<f64>() / all, worst))
    };
    let without = feeding.matrix_speedup.and_then(|speedup| {
        let (share, kernel) = share(&|row| is_product_without(&row.name))?;
        Some(WithoutMatrixUnits { share, kernel: kernel.name, speedup, only_half: feeding.only_half })
    });
    let empty = share(&|row| occupied(row).is_some_and(|occupancy| occupancy < thresholds::OCCUPANCY));
    Some(DeviceWork {
        kernels_per_step: kernels.on_each(count as f64),
        kernel_us: all * 1e3 / count as f64,
        launch_us: feeding.calls.usual().map(|usual| usual.ms() * 1e3),
        graph_share: feeding.calls.graph_share(),
        without_matrix_units: without,
        low_occupancy: empty.and_then(|(share, row)| low_occupancy(share, row)),
    })
}

/// The share of the device's threads that a kernel occupies at most. What only runs for microseconds is done before
/// more threads could help, so the size of its grid does not count.
fn occupied(row: &KernelRow) -> Option<f64> {
    let filled = row.filled.filter(|_| row.mean_ms() * 1e3 > thresholds::SMALL_KERNEL);
    row.occupancy.into_iter().chain(filled).reduce(f64::min)
}

fn low_occupancy(share: f64, row: KernelRow) -> Option<LowOccupancy> {
    let occupancy = occupied(&row)?;
    let small = row.occupancy.is_none_or(|each| occupancy < each);
    Some(LowOccupancy {
        share,
        occupancy,
        limiter: row.limiter.filter(|_| !small).map(|limiter| limiter.key().to_owned()),
        grid: row.launch.blocks().zip(row.launch.threads()).filter(|_| small),
        kernel: row.name,
    })
}
