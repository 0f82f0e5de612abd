//! Names of Nsight Compute's metrics → figures. A metric has had several names across versions and
//! architectures; the first one that a launch has counts. Percentages stay percentages here.

use rustc_hash::FxHashMap;
use stepscope_trace::{Args, StrId, Trace};

/// A figure read from a launch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Metric {
    Compute,
    Memory,
    Dram,
    L1,
    L2,
    Achieved,
    Theoretical,
    LimitWarps,
    LimitBlocks,
    LimitRegisters,
    LimitShared,
    Waves,
    Multiprocessors,
    Blocks,
    LoadSectors,
    LoadRequests,
    StoreSectors,
    StoreRequests,
    LoadSectorsPerRequest,
    StoreSectorsPerRequest,
    LoadBytesPerSector,
    StoreBytesPerSector,
    Sectors,
    IdealSectors,
    ExcessSectors,
    LoadConflicts,
    StoreConflicts,
    LoadWavefronts,
    StoreWavefronts,
    SharedConflicts,
    SharedWavefronts,
    SharedLoads,
    SharedStores,
    SharedLoadBytes,
    SharedStoreBytes,
    SharedAccesses,
    IdealSharedAccesses,
    ExcessSharedAccesses,
    SharedBusy,
    LsuWavefronts,
    LsuRequests,
    SmCycles,
    ElapsedCycles,
    Fma,
    Alu,
    Fp64,
    Xu,
    Fp32Achieved,
    LocalSpills,
    SharedSpills,
    Issue,
    IssuePercent,
    Latency,
    L1Hits,
    L2Hits,
    DramRate,
    Tensor,
    Fadd,
    Fmul,
    Ffma,
    Cycles,
    DramReadRate,
    DramWriteRate,
    DramBytes,
    DramReadBytes,
    DramWriteBytes,
    AllFadd,
    AllFmul,
    AllFfma,
    FlopRate,
    Invocations,
    Shortest,
    Longest,
    DramPeak,
    SheetDramPeak,
    SheetFlopPeak,
}

/// One more than the last [`Metric`].
const METRICS: usize = Metric::SheetFlopPeak as usize + 1;

/// All names; newer versions first if a figure has several.
const NAMES: &[(Metric, &str)] = &[
    (Metric::Compute, "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
    (Metric::Memory, "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
    (Metric::Dram, "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
    (Metric::Dram, "dram__throughput.avg.pct_of_peak_sustained_elapsed"),
    (Metric::L1, "l1tex__throughput.avg.pct_of_peak_sustained_active"),
    (Metric::L2, "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
    (Metric::Achieved, "sm__warps_active.avg.pct_of_peak_sustained_active"),
    (Metric::Theoretical, "sm__maximum_warps_per_active_cycle_pct"),
    (Metric::LimitWarps, "launch__occupancy_limit_warps"),
    (Metric::LimitBlocks, "launch__occupancy_limit_blocks"),
    (Metric::LimitRegisters, "launch__occupancy_limit_registers"),
    (Metric::LimitShared, "launch__occupancy_limit_shared_mem"),
    (Metric::Waves, "launch__waves_per_multiprocessor"),
    (Metric::Multiprocessors, "launch__sm_count"),
    (Metric::Multiprocessors, "device__attribute_multiprocessor_count"),
    (Metric::Blocks, "launch__grid_size"),
    (Metric::LoadSectors, "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"),
    (Metric::LoadRequests, "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"),
    (Metric::StoreSectors, "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"),
    (Metric::StoreRequests, "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum"),
    (Metric::LoadSectorsPerRequest, "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"),
    (Metric::StoreSectorsPerRequest, "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio"),
    (Metric::LoadBytesPerSector, "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio"),
    (Metric::StoreBytesPerSector, "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio"),
    (Metric::Sectors, "memory_l2_theoretical_sectors_global"),
    (Metric::IdealSectors, "memory_l2_theoretical_sectors_global_ideal"),
    (Metric::ExcessSectors, "derived__memory_l2_theoretical_sectors_global_excessive"),
    (Metric::LoadConflicts, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"),
    (Metric::StoreConflicts, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"),
    (Metric::LoadConflicts, "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum"),
    (Metric::StoreConflicts, "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum"),
    (Metric::SharedConflicts, "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"),
    (Metric::SharedConflicts, "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared.sum"),
    (Metric::LoadWavefronts, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"),
    (Metric::StoreWavefronts, "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum"),
    (Metric::LoadWavefronts, "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld.sum"),
    (Metric::StoreWavefronts, "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st.sum"),
    (Metric::SharedWavefronts, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum"),
    (Metric::SharedWavefronts, "smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared.sum"),
    (Metric::SharedLoads, "smsp__inst_executed_op_shared_ld.sum"),
    (Metric::SharedLoads, "smsp__sass_inst_executed_op_shared_ld.sum"),
    (Metric::SharedStores, "smsp__inst_executed_op_shared_st.sum"),
    (Metric::SharedStores, "smsp__sass_inst_executed_op_shared_st.sum"),
    (Metric::SharedLoadBytes, "smsp__sass_data_bytes_mem_shared_op_ld.sum"),
    (Metric::SharedStoreBytes, "smsp__sass_data_bytes_mem_shared_op_st.sum"),
    (Metric::SharedAccesses, "memory_l1_wavefronts_shared"),
    (Metric::IdealSharedAccesses, "memory_l1_wavefronts_shared_ideal"),
    (Metric::ExcessSharedAccesses, "derived__memory_l1_wavefronts_shared_excessive"),
    (Metric::SharedBusy, "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed"),
    (Metric::LsuWavefronts, "l1tex__data_pipe_lsu_wavefronts.avg.pct_of_peak_sustained_elapsed"),
    (Metric::LsuRequests, "l1tex__lsuin_requests.avg.pct_of_peak_sustained_elapsed"),
    (Metric::LsuRequests, "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_elapsed"),
    (Metric::LsuRequests, "sm__inst_executed_pipe_lsu.avg.pct_of_peak_sustained_active"),
    // The busiest of these pipes: at least as busy as the load and store units.
    (Metric::LsuRequests, "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed"),
    (Metric::SmCycles, "l1tex__cycles_elapsed.sum"),
    (Metric::SmCycles, "sm__cycles_elapsed.sum"),
    (Metric::ElapsedCycles, "gpc__cycles_elapsed.max"),
    (Metric::ElapsedCycles, "sm__cycles_elapsed.max"),
    (Metric::Fma, "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"),
    (Metric::Fma, "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active"),
    (Metric::Fma, "sm__inst_executed_pipe_fma.avg.pct_of_peak_sustained_active"),
    (Metric::Alu, "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_elapsed"),
    (Metric::Alu, "sm__pipe_alu_cycles_active.avg.pct_of_peak_sustained_active"),
    (Metric::Alu, "sm__inst_executed_pipe_alu.avg.pct_of_peak_sustained_active"),
    (Metric::Fp64, "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed"),
    (Metric::Fp64, "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_active"),
    (Metric::Fp64, "sm__inst_executed_pipe_fp64.avg.pct_of_peak_sustained_active"),
    (Metric::Xu, "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_elapsed"),
    (Metric::Xu, "sm__inst_executed_pipe_xu.avg.pct_of_peak_sustained_active"),
    (Metric::Fp32Achieved, "fp32 peak"),
    (Metric::LocalSpills, "derived__local_spilling_requests"),
    (Metric::LocalSpills, "smsp__sass_inst_executed_op_local.sum"),
    (Metric::SharedSpills, "derived__shared_spilling_requests"),
    (Metric::Issue, "smsp__issue_active.avg.per_cycle_active"),
    (Metric::IssuePercent, "smsp__issue_active.avg.pct_of_peak_sustained_active"),
    (Metric::Latency, "smsp__average_warp_latency_per_inst_issued.ratio"),
    (Metric::L1Hits, "l1tex__t_sector_hit_rate.pct"),
    (Metric::L2Hits, "lts__t_sector_hit_rate.pct"),
    (Metric::DramRate, "dram__bytes.sum.per_second"),
    (Metric::Tensor, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"),
    (Metric::Tensor, "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active"),
    (Metric::Tensor, "sm__pipe_tensor_op_hmma_cycles_active.avg.pct_of_peak_sustained_active"),
    (Metric::Tensor, "sm__inst_executed_pipe_tensor.avg.pct_of_peak_sustained_active"),
    (Metric::Fadd, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed"),
    (Metric::Fmul, "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed"),
    (Metric::Ffma, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed"),
    (Metric::Cycles, "smsp__cycles_elapsed.avg.per_second"),
    (Metric::DramReadRate, "dram__bytes_read.sum.per_second"),
    (Metric::DramWriteRate, "dram__bytes_write.sum.per_second"),
    (Metric::DramBytes, "dram__bytes.sum"),
    (Metric::DramReadBytes, "dram__bytes_read.sum"),
    (Metric::DramWriteBytes, "dram__bytes_write.sum"),
    (Metric::AllFadd, "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"),
    (Metric::AllFadd, "sm__sass_thread_inst_executed_op_fadd_pred_on.sum"),
    (Metric::AllFmul, "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum"),
    (Metric::AllFmul, "sm__sass_thread_inst_executed_op_fmul_pred_on.sum"),
    (Metric::AllFfma, "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum"),
    (Metric::AllFfma, "sm__sass_thread_inst_executed_op_ffma_pred_on.sum"),
    (Metric::Invocations, "invocations"),
    (Metric::Shortest, "gpu__time_duration.min"),
    (Metric::Longest, "gpu__time_duration.max"),
];

/// Stall reasons as spelt in the metrics. Being selected, or another being selected, is not a stall.
const STALLS: &[&str] = &[
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "gmma",
    "imc_miss",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "misc",
    "no_instruction",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",
    "wait",
];

const SLOTS: usize = METRICS + STALLS.len();

/// The target of each metric.
pub(super) struct Names {
    slots: FxHashMap<StrId, (usize, usize)>,
}

impl Names {
    pub(super) fn of(trace: &Trace) -> Self {
        let find = |name: &str| trace.strings().find(name);
        let named =
            NAMES.iter().enumerate().map(|(rank, (metric, name))| (find(name), *metric as usize, rank));
        let stalls = STALLS.iter().enumerate().map(|(at, reason)| {
            let name = format!("smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio");
            (find(&name), METRICS + at, 0)
        });
        let slots = named.chain(stalls).filter_map(|(name, slot, rank)| Some((name?, (slot, rank))));
        Names { slots: slots.collect() }
    }

    /// The figures of one launch.
    pub(super) fn read(&self, args: Args<'_>) -> Figures {
        let mut best = [usize::MAX; SLOTS];
        let mut figures = Figures([None; SLOTS]);
        args.visit(|key, value| {
            let Some(&(slot, rank)) = self.slots.get(&key) else { return };
            let value = value.as_f64().filter(|value| *value >= 0.0);
            if let (Some(best), Some(figure), Some(value)) =
                (best.get_mut(slot), figures.0.get_mut(slot), value)
                && rank < *best
            {
                (*best, *figure) = (rank, Some(value));
            }
        });
        figures
    }
}

/// The figures of a launch, or means over several.
#[derive(Clone, Debug)]
pub(super) struct Figures([Option<f64>; SLOTS]);

impl Figures {
    pub(super) fn get(&self, metric: Metric) -> Option<f64> {
        self.0.get(metric as usize).copied().flatten()
    }

    /// Sets a figure that launches do not contain under this name.
    pub(super) fn set(&mut self, metric: Metric, value: Option<f64>) {
        if let (Some(slot), Some(value)) = (self.0.get_mut(metric as usize), value) {
            *slot = Some(value);
        }
    }

    /// The sum of both, or the one that is known.
    pub(super) fn sum(&self, a: Metric, b: Metric) -> Option<f64> {
        [self.get(a), self.get(b)].into_iter().flatten().reduce(|a, b| a + b)
    }

    /// Rates of a launch with this duration, if only parts or totals were collected. Reads without writes are
    /// not all of the memory traffic.
    pub(super) fn derive_rates(&mut self, seconds: f64) {
        let both = |a, b| Some(self.get(a)? + self.get(b)?);
        let per_second = |total: Option<f64>| total.filter(|_| seconds > 0.0).map(|total| total / seconds);
        let moved = self.get(Metric::DramBytes).or(both(Metric::DramReadBytes, Metric::DramWriteBytes));
        let rate = self
            .get(Metric::DramRate)
            .or(both(Metric::DramReadRate, Metric::DramWriteRate))
            .or(per_second(moved));
        let operations = flops(self, [Metric::AllFadd, Metric::AllFmul, Metric::AllFfma]);
        let operations = per_second(operations);
        self.set(Metric::DramRate, rate);
        self.set(Metric::FlopRate, operations);
    }

    /// A percentage as a share, at most 1.
    pub(super) fn share(&self, metric: Metric) -> Option<f64> {
        self.get(metric).map(|percent| (percent / 100.0).min(1.0))
    }

    /// One figure divided by another, if the divisor is not zero.
    pub(super) fn ratio(&self, over: Metric, under: Metric) -> Option<f64> {
        let under = self.get(under).filter(|under| *under > 0.0)?;
        self.get(over).map(|over| over / under)
    }

    /// Whether there is a figure that shows what limits a kernel.
    pub(super) fn tell_limits(&self) -> bool {
        use Metric::{
            Achieved, Compute, Dram, DramBytes, DramRate, L1, L2, LoadSectors, Memory, Sectors, Tensor,
        };
        let limits =
            [Achieved, Compute, Dram, DramBytes, DramRate, L1, L2, LoadSectors, Memory, Sectors, Tensor];
        limits.into_iter().any(|metric| self.get(metric).is_some()) || self.longest_stall().is_some()
    }

    /// All stall reasons that were collected, with their cycles per issued instruction.
    pub(super) fn stalls(&self) -> impl Iterator<Item = (&'static str, f64)> + '_ {
        let cycles = self.0.iter().skip(METRICS).zip(STALLS);
        cycles.filter_map(|(cycles, reason)| Some((*reason, (*cycles)?)))
    }

    /// The longest of them.
    pub(super) fn longest_stall(&self) -> Option<(&'static str, f64)> {
        let known = self.stalls();
        known.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, cycles)| *cycles > 0.0)
    }
}

/// Operations: additions, products, and fused ones, which count twice.
pub(super) fn flops(figures: &Figures, [adds, products, fused]: [Metric; 3]) -> Option<f64> {
    let fused = figures.get(fused).map(|fused| 2.0 * fused);
    [figures.sum(adds, products), fused].into_iter().flatten().reduce(|a, b| a + b)
}

/// Means over several launches, weighted by time.
#[derive(Clone, Debug, serde::Serialize, serde::Deserialize)]
pub(super) struct Means(#[serde(with = "crate::stored::array")] [(f64, f64); SLOTS]);

impl Default for Means {
    fn default() -> Self {
        Means([(0.0, 0.0); SLOTS])
    }
}

impl Means {
    pub(super) fn add(&mut self, figures: &Figures, weight: f64) {
        for ((sum, weights), figure) in self.0.iter_mut().zip(figures.0) {
            if let Some(figure) = figure {
                *sum += figure * weight;
                *weights += weight;
            }
        }
    }

    pub(super) fn merge(&mut self, other: &Means) {
        for ((sum, weights), (others, their_weights)) in self.0.iter_mut().zip(other.0) {
            *sum += others;
            *weights += their_weights;
        }
    }

    pub(super) fn finish(&self) -> Figures {
        Figures(self.0.map(|(sum, weights)| (weights > 0.0).then(|| sum / weights)))
    }
}
