//! Figures of one kernel that follow from several counters.

use super::metrics::{Figures, Metric, flops};
use super::{Access, PeakSource, RAGGED, SECTOR, VECTOR_BYTES, VECTOR_SECTORS};
use crate::work::kernels::Limiter;

/// A rate relative to its peak, at most 1.
pub(super) fn over(rate: Option<f64>, peak: Option<f64>) -> Option<f64> {
    rate.zip(peak.filter(|peak| *peak > 0.0)).map(|(rate, peak)| (rate / peak).min(1.0))
}

/// How close device memory came to its peak, and the source of the peak.
pub(super) fn dram(figures: &Figures) -> Option<(f64, PeakSource)> {
    let share_of = |peak| over(figures.get(Metric::DramRate), figures.get(peak));
    let counted = figures.share(Metric::Dram).map(|share| (share, PeakSource::Counted));
    counted
        .or_else(|| Some((share_of(Metric::DramPeak)?, PeakSource::Device)))
        .or_else(|| Some((share_of(Metric::SheetDramPeak)?, PeakSource::DataSheet)))
}

/// What allows the fewest blocks. Warp slots come first among equals: nothing more can be gained then.
pub(super) fn limiter(figures: &Figures) -> Option<Limiter> {
    let limits = [
        (Metric::LimitWarps, Limiter::Warps),
        (Metric::LimitBlocks, Limiter::Blocks),
        (Metric::LimitRegisters, Limiter::Registers),
        (Metric::LimitShared, Limiter::SharedMemory),
    ];
    let known = limits.into_iter().filter_map(|(limit, limiter)| Some((figures.get(limit)?, limiter)));
    known.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, limiter)| limiter)
}

/// ncu counts what an ideal pattern would need; if that was not collected, the requested bytes per sector are
/// used.
pub(super) fn excess_sectors(
    figures: &Figures,
    accesses: [Access; 2],
    shared_bytes: Option<u64>,
) -> Option<f64> {
    let counted = figures
        .get(Metric::ExcessSectors)
        .or_else(|| Some(figures.get(Metric::Sectors)? - figures.get(Metric::IdealSectors)?));
    let (excess, all) = match counted {
        Some(excess) => {
            // The counters treat full requests of 16 bytes per lane as half wasted.
            let vectors = accesses.iter().filter(|access| access.is_vectorised());
            let fine: f64 = vectors.filter_map(|access| access.sectors).sum::<f64>() * VECTOR_BYTES / SECTOR;
            let all = sectors(figures, accesses)?;
            // If requests were not counted, up to half may be such requests, unless fewer bytes are requested
            // or there are too many requests for these sectors.
            let known = |access: &Access| {
                let poor = |bytes| bytes < VECTOR_BYTES * (1.0 - RAGGED);
                access.sectors_per_request.is_some() || access.bytes_per_sector.is_some_and(poor)
            };
            let unknown = !accesses.iter().any(known) && !has_narrow_requests(figures, all, shared_bytes);
            if unknown && excess <= all * (VECTOR_BYTES / SECTOR + RAGGED) && excess > 0.0 {
                return None;
            }
            (excess - fine, all)
        }
        None => {
            let wasted = accesses.iter().filter_map(Access::wasted).reduce(|a, b| a + b)?;
            (wasted, accesses.iter().filter_map(|access| access.sectors).sum())
        }
    };
    (all > 0.0).then(|| (excess / all).clamp(0.0, 1.0))
}

/// Requests per cycle that a multiprocessor's load and store units accept. Some devices accept twice as many,
/// which makes the requests estimated from it too few, never too many.
const REQUESTS_PER_CYCLE: f64 = 0.5;
/// Without shared memory, other instructions of these units (shuffles, atomics) are at most so many of theirs.
const OTHER_REQUESTS: f64 = 0.5;

/// Whether a kernel that uses no shared memory makes more requests than its sectors would need with 16 bytes per lane.
fn has_narrow_requests(figures: &Figures, sectors: f64, shared_bytes: Option<u64>) -> bool {
    let by_device = || Some(figures.get(Metric::ElapsedCycles)? * figures.get(Metric::Multiprocessors)?);
    let cycles = figures.get(Metric::SmCycles).or_else(by_device);
    let requests = figures.share(Metric::LsuRequests).zip(cycles);
    shared_bytes == Some(0)
        && requests.is_some_and(|(busy, cycles)| {
            let requests = busy * cycles * REQUESTS_PER_CYCLE;
            sectors < requests * VECTOR_SECTORS * (1.0 - OTHER_REQUESTS)
        })
}

/// Passes through the first cache per load or store instruction, at least. Both figures are shares of peaks, and a
/// multiprocessor accepts at most one instruction in the time of a pass. Shared memory takes passes too: `None` if
/// they cannot be told apart.
pub(super) fn passes(figures: &Figures, shared_bytes: Option<u64>) -> Option<f64> {
    let in_shared = figures.share(Metric::SharedBusy).or((shared_bytes == Some(0)).then_some(0.0))?;
    let counted = figures.share(Metric::LsuWavefronts).zip(figures.share(Metric::LsuRequests));
    // The load and store units are among those that the busiest compute unit is chosen from.
    let (passes, requests) = counted.or_else(|| {
        let first = figures.share(Metric::L1)?;
        let lower = [Metric::L2, Metric::Dram].into_iter().filter_map(|unit| figures.share(unit));
        let lower = lower.reduce(f64::max)?;
        // What the first cache gets from the second one keeps it busy as well.
        (lower < first / 2.0).then_some((first, figures.share(Metric::Compute)?))
    })?;
    (requests > 0.0).then(|| (passes - in_shared).max(0.0) / requests)
}

/// How close arithmetic is to its peak: what tiles, wider loads or other layouts leave to do. Issued instructions
/// bound it from above if no arithmetic unit was counted.
pub(super) fn arithmetic(figures: &Figures, issue: Option<f64>) -> Option<f64> {
    let fp32 = over(flops_per_s(figures), figures.get(Metric::SheetFlopPeak))
        .or(figures.share(Metric::Fp32Achieved))
        .or(figures.share(Metric::Fma));
    let units = [Metric::Alu, Metric::Fp64, Metric::Xu, Metric::Tensor].map(|unit| figures.share(unit));
    let known = fp32.or(figures.share(Metric::Alu)).is_some();
    let most = units.into_iter().chain([fp32]).flatten().reduce(f64::max);
    most.filter(|_| known).or(issue)
}

pub(super) fn sectors(figures: &Figures, accesses: [Access; 2]) -> Option<f64> {
    let seen = accesses.iter().filter_map(|access| access.sectors).reduce(|a, b| a + b);
    figures.get(Metric::Sectors).or(seen)
}

/// Counted by the hardware, or, if that was not collected, what an ideal pattern would not need.
pub(super) fn bank_conflicts(figures: &Figures) -> Option<f64> {
    let by_direction = figures
        .sum(Metric::LoadConflicts, Metric::StoreConflicts)
        .zip(figures.sum(Metric::LoadWavefronts, Metric::StoreWavefronts));
    let both = || figures.get(Metric::SharedConflicts).zip(figures.get(Metric::SharedWavefronts));
    let by_excess = || figures.get(Metric::ExcessSharedAccesses).zip(figures.get(Metric::SharedAccesses));
    let by_ideal = || {
        let all = figures.get(Metric::SharedAccesses)?;
        Some((all - figures.get(Metric::IdealSharedAccesses)?, all))
    };
    let found = by_direction.or_else(both).or_else(by_excess).or_else(by_ideal);
    let (conflicts, all) = found.or_else(|| repeated(figures))?;
    Some(if all > 0.0 { (conflicts / all).clamp(0.0, 1.0) } else { 0.0 })
}

/// 16-byte lanes need four passes, the most that an instruction needs without conflicts.
const TURNS: f64 = 4.0;
/// Bytes that all banks deliver in a pass.
const TURN_BYTES: f64 = 128.0;

/// Shared memory passes beyond those that the instructions need, and all passes, if conflicts themselves were
/// not collected.
pub(super) fn repeated(figures: &Figures) -> Option<(f64, f64)> {
    let all = figures
        .sum(Metric::LoadWavefronts, Metric::StoreWavefronts)
        .or(figures.get(Metric::SharedWavefronts))?;
    let instructions = figures.sum(Metric::SharedLoads, Metric::SharedStores)?;
    let bytes = figures.sum(Metric::SharedLoadBytes, Metric::SharedStoreBytes);
    let needed = bytes.map_or(TURNS * instructions, |bytes| (bytes / TURN_BYTES).max(instructions));
    Some(((all - needed).max(0.0), all))
}

pub(super) fn stall(figures: &Figures) -> Option<(&'static str, f64)> {
    let (reason, cycles) = figures.longest_stall()?;
    let all = figures.get(Metric::Latency).filter(|all| *all > 0.0)?;
    Some((reason, (cycles / all).min(1.0)))
}

/// All stall reasons as shares of a warp's time between two instructions, longest first.
pub(super) fn stalls(figures: &Figures) -> Vec<(&'static str, f64)> {
    let Some(all) = figures.get(Metric::Latency).filter(|all| *all > 0.0) else { return Vec::new() };
    let shares = figures.stalls().filter(|(_, cycles)| *cycles > 0.0);
    let mut shares: Vec<_> = shares.map(|(reason, cycles)| (reason, (cycles / all).min(1.0))).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(b.0)));
    shares
}

/// Bytes that a launch moves between kernel, caches and device memory, as far as they were counted.
pub(super) fn traffic(figures: &Figures, accesses: [Access; 2], seconds: f64) -> Vec<(&'static str, f64)> {
    let [loads, stores] = accesses.map(|access| access.sectors.map(|sectors| sectors * SECTOR));
    let moved = |bytes, rate| figures.get(bytes).or(figures.get(rate).map(|rate: f64| rate * seconds));
    let (read, write) = (
        moved(Metric::DramReadBytes, Metric::DramReadRate),
        moved(Metric::DramWriteBytes, Metric::DramWriteRate),
    );
    let both = if read.or(write).is_none() { moved(Metric::DramBytes, Metric::DramRate) } else { None };
    let all =
        [("load", loads), ("store", stores), ("dram_read", read), ("dram_write", write), ("dram", both)];
    all.into_iter().filter_map(|(way, bytes)| Some((way, bytes?))).collect()
}

/// What device memory can deliver, in bytes per second.
pub(super) fn dram_limit(figures: &Figures) -> Option<f64> {
    let share = figures.share(Metric::Dram).filter(|share| *share > 0.0);
    let counted = figures.get(Metric::DramRate).zip(share).map(|(rate, share)| rate / share);
    counted.or(figures.get(Metric::DramPeak)).or(figures.get(Metric::SheetDramPeak))
}

/// From counts per cycle, or in total.
pub(super) fn flops_per_s(figures: &Figures) -> Option<f64> {
    let per_cycle = flops(figures, [Metric::Fadd, Metric::Fmul, Metric::Ffma]);
    let counted = per_cycle.zip(figures.get(Metric::Cycles)).map(|(operations, cycles)| operations * cycles);
    counted.or(figures.get(Metric::FlopRate))
}
