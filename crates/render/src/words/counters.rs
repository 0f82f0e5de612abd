//! Words for findings that rest on hardware counters: `uncoalesced-access`, `shared-memory-limited`,
//! `kernel-stalls`, and `low-occupancy` where it was measured. Advice is for those who write kernels, in CUDA or
//! Triton.

use stepscope_analyze::counters::{Access, KernelCounters, PeakSource, Unit, Waste};
use stepscope_analyze::kernels::Limiter;
use stepscope_diagnose::finding::TroubledKernel;
use stepscope_diagnose::{Finding, FindingId};

use super::{Words, lines, owned, quoted, share};
use crate::format::{decimal, short, thousands};

/// A last wave that leaves more than this empty is worth a word.
const LONG_TAIL: f64 = 0.2;

pub(super) fn words(finding: &Finding, kernels: &[TroubledKernel], count: usize) -> Words {
    let Some(worst) = kernels.first() else { return Words::default() };
    let kernel = &worst.counters;
    let others = match count {
        0 | 1 => String::new(),
        more => format!(" and {} more", thousands((more - 1) as u64)),
    };
    let name = format!("{}{others}", quoted(&stepscope_analyze::names::kernel_short_name(&kernel.name)));
    let takes = match worst.ms {
        Some(ms) if ms <= 0.0 => "whose time was not collected".to_owned(),
        Some(ms) => format!("which take{} {}", if count > 1 { "" } else { "s" }, owned(finding, ms)),
        None => "which the timeline does not show".to_owned(),
    };
    let (trouble, mut evidence, advice) = match finding.id {
        FindingId::UncoalescedAccess => uncoalesced(kernel),
        FindingId::SharedMemoryLimited => shared_memory(kernel),
        FindingId::LowOccupancy => occupancy(kernel),
        _ => stalls(kernel),
    };
    evidence.extend(cap(worst));
    evidence.extend(besides(finding.id, kernel));
    evidence.extend(kernels.iter().skip(1).map(|other| also(&other.counters)));
    Words { summary: format!("{trouble} {name}, {takes}."), evidence, advice }
}

/// `f`: 0.48 ms a launch, busiest unit at 67 %.
fn also(kernel: &KernelCounters) -> String {
    let near = kernel
        .speed_of_light()
        .map_or(String::new(), |figure| format!("; its busiest unit works at {} of its peak", share(figure)));
    let name = stepscope_analyze::names::kernel_short_name(&kernel.name);
    format!("{} too: {} a launch{near}.", quoted(&name), crate::format::duration_ms(kernel.mean_ms()))
}

/// Why no more than this can be won.
fn cap(kernel: &TroubledKernel) -> Option<String> {
    let (winnable, counters) = (kernel.winnable?, &kernel.counters);
    let most = format!("At most {} of the kernel's time can be won", share(winnable));
    let limit = counters.limit(kernel.waste).filter(|(_, figure)| (1.0 - figure - winnable).abs() < 0.005);
    let Some((unit, figure)) = limit else { return Some(format!("{most}.")) };
    let from_sheet = unit == Unit::Dram && counters.dram_peak == Some(PeakSource::DataSheet);
    let peak = if from_sheet { "the peak on its data sheet" } else { "its peak" };
    let name = match unit {
        Unit::Compute => "compute",
        Unit::Memory => "memory",
        Unit::Dram => "device memory",
        Unit::L1 => "the L1 cache",
        Unit::L2 => "the L2 cache",
    };
    let figure = share(figure);
    Some(match kernel.waste {
        Waste::None => format!("{most}: {name} already works at {figure} of {peak}."),
        Waste::Sectors(_) => {
            format!("{most}: for the needed sectors alone, {name} works at {figure} of {peak}.")
        }
        Waste::Conflicts(_) => format!("{most}: without the conflicts, {name} works at {figure} of {peak}."),
    })
}

type Told = (&'static str, Vec<String>, Vec<String>);

fn uncoalesced(kernel: &KernelCounters) -> Told {
    let mut evidence: Vec<String> = kernel
        .excess_sectors
        .map(|excess| format!("{} of the sectors that it moves would not be needed.", share(excess)))
        .into_iter()
        .collect();
    let sides = [("load", &kernel.loads), ("store", &kernel.stores)];
    evidence.extend(sides.into_iter().filter_map(|(what, access)| accessed(what, access)));
    let advice = lines([
        "Let neighbouring threads touch neighbouring addresses: in CUDA `threadIdx.x` should run along the \
         dimension that is contiguous in memory, in Triton the last dimension of the block of pointers.",
        "Where the layout forbids it, load a tile as it lies into shared memory and read it from there in your \
         order, or keep the tensor in the other layout.",
        "Then load 16 bytes a thread (`float4`): fewer requests for the same bytes.",
    ]);
    ("Uncoalesced access: much of each memory transfer is wasted in", evidence, advice)
}

fn accessed(what: &str, access: &Access) -> Option<String> {
    let sectors = access.sectors_per_request?;
    let used = access.bytes_per_sector.map_or(String::new(), |bytes| {
        format!(", and {} of a sector's 32 bytes are asked for", decimal(bytes, 1))
    });
    Some(format!("A {what} takes {} sectors (4 are enough for 4 bytes a thread){used}.", decimal(sectors, 1)))
}

fn shared_memory(kernel: &KernelCounters) -> Told {
    let (mut evidence, mut advice) = (Vec::new(), Vec::new());
    if let Some(conflicts) = kernel.bank_conflicts.filter(|share| *share > 0.0) {
        evidence.push(format!(
            "{} of shared memory's accesses are repeated for bank conflicts.",
            share(conflicts)
        ));
        advice.extend(lines([
            "Give threads of a warp different banks: pad the tile (`__shared__ float tile[32][33]`) or swizzle its \
             index; in Triton try another block shape or `num_warps`.",
        ]));
    }
    if kernel.limiter == Some(Limiter::SharedMemory) {
        let of = kernel
            .launch
            .shared_bytes
            .map_or(String::new(), |bytes| format!(" ({} a block)", crate::format::bytes(bytes as f64)));
        let theoretical = kernel.theoretical.map_or(String::new(), |most| {
            format!(": at most {} of the places for warps are taken", share(most))
        });
        evidence.push(format!("Shared memory{of} limits how many blocks are resident{theoretical}."));
        advice.extend(lines([
            "Take less shared memory a block: smaller tiles, 16-bit elements, or fewer stages (`num_stages` in Triton).",
        ]));
    }
    ("Shared memory limited: its banks or its size hold back", evidence, advice)
}

fn occupancy(kernel: &KernelCounters) -> Told {
    let mut evidence = Vec::new();
    if let Some(occupancy) = kernel.device_occupancy() {
        evidence.push(format!("{} of the device's places for warps are taken.", share(occupancy)));
    }
    let mut advice = Vec::new();
    if let Some(fact) = small_grid(kernel) {
        evidence.push(fact);
        advice.push(
            "Make more blocks: smaller tiles, a split along the reduction (split-K), or a larger batch."
                .to_owned(),
        );
    }
    let limited = kernel.limiter.zip(kernel.theoretical);
    if let Some((limiter, most)) = limited.filter(|(limiter, _)| *limiter != Limiter::Warps) {
        evidence.push(format!("{} allow {} at the most.", limit(limiter), share(most)));
        advice.push(fewer(limiter).to_owned());
    }
    if advice.is_empty() {
        advice.push("Give each launch more to do at once: a larger batch, or fused ops.".to_owned());
    }
    ("Low occupancy: too few resident threads to hide latency in", evidence, advice)
}

fn limit(limiter: Limiter) -> &'static str {
    match limiter {
        Limiter::Warps => "Places for warps",
        Limiter::Blocks => "Places for blocks (the blocks are small)",
        Limiter::Registers => "Registers",
        Limiter::SharedMemory => "Blocks' needs of shared memory",
    }
}

fn fewer(limiter: Limiter) -> &'static str {
    match limiter {
        Limiter::Warps | Limiter::Blocks => "Use blocks of 128 threads or more (`num_warps=4` in Triton).",
        Limiter::Registers => {
            "Use fewer registers a thread: `__launch_bounds__`, smaller tiles a thread; in Triton more `num_warps`."
        }
        Limiter::SharedMemory => "Take less shared memory a block: smaller tiles or fewer stages.",
    }
}

fn stalls(kernel: &KernelCounters) -> Told {
    let Some((reason, part)) = kernel.stall else {
        return ("Kernel stalls: warps wait in", Vec::new(), Vec::new());
    };
    let (waits, advice) = stall(reason);
    let mut evidence =
        vec![format!("Warps wait {waits} for {} of their time ({}).", share(part), quoted(reason))];
    evidence.extend(
        kernel.issue.map(|issue| format!("Schedulers issue an instruction in {} of cycles.", share(issue))),
    );
    ("Kernel stalls: warps wait for one thing most of the time in", evidence, vec![advice.to_owned()])
}

/// What a stall means, and what helps.
fn stall(reason: &str) -> (&'static str, &'static str) {
    match reason {
        "long_scoreboard" => (
            "for data from global memory",
            "Ask for data earlier and for less of it: reuse tiles in shared memory or registers, prefetch \
             (`cp.async`, `num_stages` in Triton), more warps a multiprocessor.",
        ),
        "lg_throttle" => (
            "for the queue of global loads and stores",
            "Issue fewer global loads: reuse tiles in shared memory or registers (several results a thread), and load \
             16 bytes a thread (`float4`).",
        ),
        "short_scoreboard" | "mio_throttle" => (
            "for shared memory or special functions",
            "Touch shared memory less: wider accesses, values kept in registers, fewer bank conflicts.",
        ),
        "barrier" => (
            "at barriers for other warps",
            "Balance the work between `__syncthreads()`, use smaller blocks, or synchronise warps only.",
        ),
        "math_pipe_throttle" => (
            "for the arithmetic units",
            "The units are in demand: use the matrix units, a lower precision or fewer operations.",
        ),
        "gmma" => ("for the matrix units", "Keep more products in flight: larger tiles, more stages."),
        "wait" | "dispatch_stall" => (
            "for fixed latencies between instructions",
            "Give each thread more independent work: unroll loops, several results a thread.",
        ),
        "drain" => (
            "for stores to finish at its end",
            "Store in wider, contiguous pieces, and let blocks do more each.",
        ),
        "membar" => ("at memory fences", "Use fewer or narrower fences (`__threadfence_block()`)."),
        "tex_throttle" => ("for the texture queue", "Use fewer texture fetches, or plain loads."),
        "no_instruction" | "imc_miss" | "branch_resolving" => (
            "for their next instruction or constants",
            "Make the kernel's code shorter or its branches fewer; let threads of a warp take one way.",
        ),
        _ => ("for one reason", "See the kernel's source view in Nsight Compute for where it waits."),
    }
}

/// What else the counters show.
fn besides(id: FindingId, kernel: &KernelCounters) -> Vec<String> {
    let mut facts = Vec::new();
    if id != FindingId::KernelStalls
        && let Some((reason, part)) = kernel.stall
    {
        facts.push(format!("Warps wait {} for {} of their time.", stall(reason).0, share(part)));
    }
    if id != FindingId::LowOccupancy {
        facts.extend(small_grid(kernel));
    }
    if let Some(tail) = kernel.tail().filter(|tail| *tail >= LONG_TAIL && kernel.waves.unwrap_or(0.0) > 1.0) {
        let waves = short(kernel.waves.unwrap_or(0.0));
        facts.push(format!(
            "Its {waves} waves of blocks leave {} of the places empty at the end.",
            share(tail)
        ));
    }
    if let Some(spills) = kernel.spills.filter(|spills| *spills > 0.0) {
        facts.push(format!("Registers spill to memory: {} requests a launch.", short(spills)));
    }
    facts
}

fn small_grid(kernel: &KernelCounters) -> Option<String> {
    let (blocks, count) = kernel.blocks.zip(kernel.multiprocessors)?;
    (blocks < count).then(|| {
        format!(
            "Its {} blocks leave some of {} multiprocessors empty.",
            decimal(blocks, 0),
            decimal(count, 0)
        )
    })
}
