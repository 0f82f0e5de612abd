//! Some advice on the details page contains values that the page does not list: the longest stall reason, and
//! excess sectors. This module turns those sentences, as worded in versions 2021 to 2026, back into metrics.

/// Stall reasons by a part of the sentence, and the metric that counts them.
const STALLS: &[(&str, &str)] = &[
    ("(LG) memory operations", "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio"),
    ("L1TEX (local, global", "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"),
    (
        "MIO (memory input/output) instruction queue",
        "smsp__average_warps_issue_stalled_mio_throttle_per_issue_active.ratio",
    ),
    (
        "scoreboard dependency on a MIO",
        "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
    ),
    (
        "scoreboard dependency on an MIO",
        "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
    ),
    ("sibling warps at a CTA barrier", "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio"),
    (
        "execution pipe to be available",
        "smsp__average_warps_issue_stalled_math_pipe_throttle_per_issue_active.ratio",
    ),
    (
        "L1 instruction queue for texture",
        "smsp__average_warps_issue_stalled_tex_throttle_per_issue_active.ratio",
    ),
    ("memory barrier", "smsp__average_warps_issue_stalled_membar_per_issue_active.ratio"),
];

const LATENCY: &str = "smsp__average_warp_latency_per_inst_issued.ratio";
const SECTORS: &str = "memory_l2_theoretical_sectors_global";
/// ncu has no single metric for this share.
const FP32: &str = "fp32 peak";
const EXCESS: &str = "derived__memory_l2_theoretical_sectors_global_excessive";

/// The metrics in a piece of advice, in base units. Spaces and line breaks may occur between any words.
pub(super) fn metrics_in(advice: &str) -> Vec<(&'static str, f64)> {
    let text = advice.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut found = Vec::new();
    if let (Some(stalled), Some(all)) = (
        between(&text, "spends ", " cycles being stalled"),
        between(&text, "total average of ", " cycles between"),
    ) && let Some((_, metric)) = STALLS.iter().find(|(part, _)| text.contains(part))
    {
        found.extend([(*metric, stalled), (LATENCY, all)]);
    }
    if text.contains("uncoalesced global accesses")
        && let (Some(excess), Some(all)) =
            (between(&text, "total of ", " excessive sectors"), between(&text, "of the total ", " sectors)"))
    {
        found.extend([(EXCESS, excess), (SECTORS, all)]);
    }
    if let Some(achieved) = between(&text, "achieved ", "% of this device's fp32 peak") {
        found.push((FP32, achieved));
    }
    found.extend(pattern(&text));
    found
}

/// How threads access global memory: versions until 2023 report what a thread requests and what a request
/// takes, newer ones report how much of a sector is used. What they say about device memory only covers misses.
fn pattern(text: &str) -> Vec<(&'static str, f64)> {
    let Some((_, [ratio, bytes])) = PATTERNS.iter().find(|(whose, _)| {
        ["in", "from", "to"]
            .iter()
            .any(|place| text.contains(&format!("for {whose} {place} L1TEX might not")))
    }) else {
        return Vec::new();
    };
    if let Some(used) = between(text, "On average, only ", " of the 32 bytes transmitted per sector") {
        return vec![(bytes, used)];
    }
    let asked = between(text, "this kernel accesses ", " bytes per thread per memory request");
    match (asked, between(text, "results in ", " sectors per request")) {
        (Some(asked), Some(taken)) if taken > 0.0 => {
            vec![(ratio, taken), (bytes, (32.0 * asked / taken).min(32.0))]
        }
        _ => Vec::new(),
    }
}

/// Both directions, with the metrics for sectors per request and requested bytes per sector.
const PATTERNS: [(&str, [&str; 2]); 2] = [
    (
        "global loads",
        [
            "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
            "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio",
        ],
    ),
    (
        "global stores",
        [
            "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
            "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio",
        ],
    ),
];

/// The number between two parts of a sentence.
fn between(text: &str, before: &str, after: &str) -> Option<f64> {
    let end = text.find(after)?;
    let start = text.get(..end)?.rfind(before)? + before.len();
    crate::csv::number(text.get(start..end)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_and_needless_sectors_are_found_over_line_ends() {
        let waits = "On average, each warp of this workload spends 18.1 cycles being stalled waiting for sibling\n     \
                     warps at a CTA barrier. Much. This stall type represents about 68.2% of the total average of 26.6\n  \
                     cycles between issuing two instructions.";
        let barrier = "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio";
        assert_eq!(metrics_in(waits), [(barrier, 18.1), (LATENCY, 26.6)]);
        let sectors = "This kernel has uncoalesced global accesses resulting in a total of 5061562 excessive sectors \
                       (74% of the total 6802184 sectors). Check the table.";
        assert_eq!(metrics_in(sectors), [(EXCESS, 5_061_562.0), (SECTORS, 6_802_184.0)]);
    }

    #[test]
    fn the_roofline_says_how_close_arithmetic_is_to_its_peak() {
        let roofline = "The ratio of peak float (fp32) to double (fp64) performance on this device is 32:1. The kernel \
                        achieved 10% of this device's fp32 peak performance and 0% of its fp64 peak performance.";
        assert_eq!(metrics_in(roofline), [(FP32, 10.0)]);
        let little = roofline.replace("achieved 10%", "achieved  close to 1%");
        assert_eq!(metrics_in(&little), [], "no figure");
    }

    #[test]
    fn other_sentences_say_nothing() {
        assert!(metrics_in("").is_empty());
        assert!(metrics_in("spends many cycles being stalled waiting for something").is_empty());
        let shared =
            "This kernel has uncoalesced shared accesses resulting in a total of 5 excessive wavefronts";
        assert!(metrics_in(shared).is_empty());
    }

    #[test]
    fn patterns_of_access_are_told_in_two_ways() {
        let new = "The memory access pattern for global stores to L1TEX might not be optimal. On average, only 4.0 of \
                   the 32   bytes transmitted per sector are utilized by each thread.";
        let bytes = "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.ratio";
        assert_eq!(metrics_in(new), [(bytes, 4.0)]);
        let old = "The memory access pattern for global loads in L1TEX might not be optimal. On average, this kernel \
                   accesses 4.0 bytes per thread per memory request; but the address pattern, possibly caused by the \
                   stride between threads, results in 8.0 sectors per request, or 8.0*32 = 256.0 bytes.";
        let sectors = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio";
        let bytes = "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.ratio";
        assert_eq!(metrics_in(old), [(sectors, 8.0), (bytes, 16.0)]);
        assert!(metrics_in(&new.replace("to L1TEX", "to DRAM")).is_empty());
    }
}
