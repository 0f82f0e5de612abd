//! The details page's words for metrics, and the metrics behind them. Seen in versions 2020.1 to 2026.2; a word
//! that is not listed stays what it is.

/// The metric that a label stands for.
pub(super) fn metric_of<'l>(label: &'l str, unit: &str) -> &'l str {
    // Two sections have one word for a share and for a rate.
    if label == "Memory Throughput" && unit != "%" {
        return "dram__bytes.sum.per_second";
    }
    LABELS.iter().find(|(known, _)| *known == label).map_or(label, |(_, metric)| metric)
}

const LABELS: &[(&str, &str)] = &[
    ("Duration", "gpu__time_duration.sum"),
    ("DRAM Frequency", "dram__cycles_elapsed.avg.per_second"),
    ("SM Frequency", "gpc__cycles_elapsed.avg.per_second"),
    ("Elapsed Cycles", "gpc__cycles_elapsed.max"),
    ("SM Active Cycles", "sm__cycles_active.avg"),
    ("Memory Throughput", "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"),
    ("Compute (SM) Throughput", "sm__throughput.avg.pct_of_peak_sustained_elapsed"),
    ("DRAM Throughput", "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"),
    ("L1/TEX Cache Throughput", "l1tex__throughput.avg.pct_of_peak_sustained_active"),
    ("L2 Cache Throughput", "lts__throughput.avg.pct_of_peak_sustained_elapsed"),
    ("Executed Ipc Active", "sm__inst_executed.avg.per_cycle_active"),
    ("Executed Ipc Elapsed", "sm__inst_executed.avg.per_cycle_elapsed"),
    ("Issued Ipc Active", "sm__inst_issued.avg.per_cycle_active"),
    ("Issue Slots Busy", "sm__inst_issued.avg.pct_of_peak_sustained_active"),
    ("SM Busy", "sm__instruction_throughput.avg.pct_of_peak_sustained_active"),
    ("Mem Busy", "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed"),
    ("Max Bandwidth", "gpu__compute_memory_request_throughput.avg.pct_of_peak_sustained_elapsed"),
    ("Mem Pipes Busy", "sm__memory_throughput.avg.pct_of_peak_sustained_elapsed"),
    ("L1/TEX Hit Rate", "l1tex__t_sector_hit_rate.pct"),
    ("L2 Hit Rate", "lts__t_sector_hit_rate.pct"),
    ("One or More Eligible", "smsp__issue_active.avg.pct_of_peak_sustained_active"),
    ("Issued Warp Per Scheduler", "smsp__issue_active.avg.per_cycle_active"),
    ("No Eligible", "smsp__issue_inst0.avg.pct_of_peak_sustained_active"),
    ("Active Warps Per Scheduler", "smsp__warps_active.avg.per_cycle_active"),
    ("Eligible Warps Per Scheduler", "smsp__warps_eligible.avg.per_cycle_active"),
    ("Warp Cycles Per Issued Instruction", "smsp__average_warp_latency_per_inst_issued.ratio"),
    ("Warp Cycles Per Executed Instruction", "smsp__average_warps_active_per_inst_executed.ratio"),
    ("Avg. Active Threads Per Warp", "smsp__thread_inst_executed_per_inst_executed.ratio"),
    (
        "Avg. Not Predicated Off Threads Per Warp",
        "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio",
    ),
    ("Executed Instructions", "smsp__inst_executed.sum"),
    ("Issued Instructions", "smsp__inst_issued.sum"),
    ("Average DRAM Active Cycles", "dram__cycles_active.avg"),
    ("Total DRAM Elapsed Cycles", "dram__cycles_elapsed.sum"),
    ("Average L1 Active Cycles", "l1tex__cycles_active.avg"),
    ("Total L1 Elapsed Cycles", "l1tex__cycles_elapsed.sum"),
    ("Average L2 Active Cycles", "lts__cycles_active.avg"),
    ("Total L2 Elapsed Cycles", "lts__cycles_elapsed.sum"),
    ("Average SMSP Active Cycles", "smsp__cycles_active.avg"),
    ("Total SMSP Elapsed Cycles", "smsp__cycles_elapsed.sum"),
    ("Total SM Elapsed Cycles", "sm__cycles_elapsed.sum"),
    ("Block Size", "launch__block_size"),
    ("Grid Size", "launch__grid_size"),
    ("Threads", "launch__thread_count"),
    ("# SMs", "launch__sm_count"),
    ("Waves Per SM", "launch__waves_per_multiprocessor"),
    ("Registers Per Thread", "launch__registers_per_thread"),
    ("Shared Memory Configuration Size", "launch__shared_mem_config_size"),
    ("Driver Shared Memory Per Block", "launch__shared_mem_per_block_driver"),
    ("Dynamic Shared Memory Per Block", "launch__shared_mem_per_block_dynamic"),
    ("Static Shared Memory Per Block", "launch__shared_mem_per_block_static"),
    ("Block Limit SM", "launch__occupancy_limit_blocks"),
    ("Block Limit Registers", "launch__occupancy_limit_registers"),
    ("Block Limit Shared Mem", "launch__occupancy_limit_shared_mem"),
    ("Block Limit Warps", "launch__occupancy_limit_warps"),
    ("Block Limit Barriers", "launch__occupancy_limit_barriers"),
    ("Theoretical Active Warps per SM", "sm__maximum_warps_avg_per_active_cycle"),
    ("Theoretical Occupancy", "sm__maximum_warps_per_active_cycle_pct"),
    ("Achieved Occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active"),
    ("Achieved Active Warps Per SM", "sm__warps_active.avg.per_cycle_active"),
    ("Local Memory Spilling Requests", "derived__local_spilling_requests"),
    ("Shared Memory Spilling Requests", "derived__shared_spilling_requests"),
];
