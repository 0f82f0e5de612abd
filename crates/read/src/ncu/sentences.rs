//! The advice on the details page says in words what the page does not say in figures: what warps wait for longest,
//! and how many sectors are for nothing. From these sentences, as versions 2021 to 2026 word them, back to metrics.

/// What a warp waits for, by a part of the sentence, and the metric that counts it.
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
const EXCESS: &str = "derived__memory_l2_theoretical_sectors_global_excessive";

/// The metrics that a piece of advice tells, in base units. Blanks and line ends may stand anywhere between words.
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
    found
}

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
    fn other_sentences_say_nothing() {
        assert!(metrics_in("").is_empty());
        assert!(metrics_in("spends many cycles being stalled waiting for something").is_empty());
        let shared =
            "This kernel has uncoalesced shared accesses resulting in a total of 5 excessive wavefronts";
        assert!(metrics_in(shared).is_empty());
    }
}
