//! Hardware counters of a kernel in one line below the kernel table, for values that do not fit in the table.
//! What was not collected is not mentioned.

use stepscope_analyze::vocabulary::names::kernel_short_name;
use stepscope_analyze::work::counters::{KernelCounters, PeakSource};

use crate::format::{bytes, middle_cut, percent, plural, printable, short};

/// Width of a kernel's name in a line.
const NAME: usize = 48;

/// `naive_gemm: occupancy 99.6 % of 100.0 % possible (limit: warps); hits 94.9 % in L1, 47.8 % in L2; …`;
/// `None` if none of it was collected.
pub(super) fn line(kernel: &KernelCounters) -> Option<String> {
    let facts =
        [occupancy(kernel), hits(kernel), memory(kernel), arithmetic(kernel), tensor(kernel), shared(kernel)];
    let facts: Vec<String> = facts.into_iter().flatten().chain(spills(kernel)).collect();
    let name = printable(&kernel_short_name(&kernel.name));
    (!facts.is_empty()).then(|| format!("{}: {}.", middle_cut(&name, NAME), facts.join("; ")))
}

fn occupancy(kernel: &KernelCounters) -> Option<String> {
    let fits = kernel.theoretical.map_or(String::new(), |most| format!(" of {} possible", percent(most)));
    let limit = kernel.limiter.map_or(String::new(), |limiter| format!(" (limit: {})", limiter.key()));
    kernel.achieved.map(|achieved| format!("occupancy {}{fits}{limit}", percent(achieved)))
}

fn hits(kernel: &KernelCounters) -> Option<String> {
    let caches = [("L1", kernel.l1_hits), ("L2", kernel.l2_hits)];
    let known = caches.into_iter().filter_map(|(cache, hits)| Some(format!("{} in {cache}", percent(hits?))));
    let known: Vec<String> = known.collect();
    (!known.is_empty()).then(|| format!("hits {}", known.join(", ")))
}

fn memory(kernel: &KernelCounters) -> Option<String> {
    let rate = kernel.dram_bytes_per_s.map(|rate| format!("{}/s", bytes(rate)));
    let peak = kernel.dram.map(|part| {
        let sheet = if kernel.dram_peak == Some(PeakSource::DataSheet) { " (data sheet)" } else { "" };
        format!("{} of its peak{sheet}", percent(part))
    });
    let known: Vec<String> = rate.into_iter().chain(peak).collect();
    (!known.is_empty()).then(|| format!("device memory at {}", known.join(", ")))
}

fn arithmetic(kernel: &KernelCounters) -> Option<String> {
    let rate = kernel.flops_per_s.filter(|rate| *rate > 0.0)?;
    let peak = kernel
        .sheet_fp32
        .map_or(String::new(), |part| format!(", {} of the data sheet's peak", percent(part)));
    let intensity = kernel
        .intensity()
        .map_or(String::new(), |flops| format!(", {} per byte of device memory", short(flops)));
    Some(format!("FP32 at {} GFLOP/s{peak}{intensity}", short(rate / 1e9)))
}

fn tensor(kernel: &KernelCounters) -> Option<String> {
    kernel.tensor.filter(|busy| *busy > 0.0).map(|busy| format!("tensor cores busy {}", percent(busy)))
}

fn shared(kernel: &KernelCounters) -> Option<String> {
    let repeated = kernel.bank_conflicts.filter(|part| *part > 0.0)?;
    Some(format!("{} of shared memory accesses repeated because of bank conflicts", percent(repeated)))
}

fn spills(kernel: &KernelCounters) -> Option<String> {
    let spills = kernel.spills.filter(|requests| *requests >= 1.0)?;
    Some(plural(spills as u64, "request for spilled registers", "requests for spilled registers"))
}
