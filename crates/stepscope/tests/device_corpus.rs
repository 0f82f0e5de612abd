//! Verdicts on profiles of real devices with a known problem, if the corpus is available.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

mod support;

use serde_json::Value;
use stepscope_testkit::corpus::corpus;
use support::{ids, json_of};

/// The report on files of the corpus; `None` where one is not there.
fn report(files: &[&str]) -> Option<Value> {
    let paths = files.iter().map(|file| corpus(file)).collect::<Option<Vec<_>>>()?;
    Some(json_of("report", &paths))
}

fn finding<'r>(report: &'r Value, id: &str) -> &'r Value {
    let all = report["findings"].as_array().unwrap();
    all.iter().find(|finding| finding["id"] == id).unwrap_or_else(|| panic!("no {id} in {:?}", ids(report)))
}

#[test]
fn ranges_around_runs_are_steps_and_python_is_not_claimed_unseen() {
    if let Some(report) = report(&["nsys/realcugan-trt_profile.sqlite"]) {
        assert_eq!(report["steps"]["origin"], "inferred");
        assert_eq!(ids(&report)[0], "compute-bound");
    }
    if let Some(report) = report(&["nsys/cs336-jsun_result.sqlite"]) {
        assert_eq!(report["steps"]["origin"], "inferred");
        assert!(!ids(&report).contains(&"host-python"), "{:?}", ids(&report));
        assert_eq!(ids(&report)[0], "low-precision-unused");
    }
}

/// NVIDIA's own sums are over the whole recording.
#[test]
fn sums_over_the_whole_recording_are_those_of_nsys() {
    for name in ["cs336-lankehan_result", "nsys-ai_h100_2gpu_1s", "nsys-ai_mfu_2gpu_before"] {
        let oracle = corpus(&format!("nsys/oracle/{name}_cuda_gpu_kern_sum.csv"));
        let Some((oracle, recording)) = oracle.zip(corpus(&format!("nsys/{name}.sqlite"))) else { continue };
        let text = std::fs::read_to_string(oracle).unwrap();
        // Time (%), Total Time (ns), Instances, …; names hold commas.
        let rows = text.lines().skip(1).filter_map(|line| {
            let mut cells = line.split(',').skip(1);
            Some((cells.next()?.parse::<f64>().ok()?, cells.next()?.parse::<u64>().ok()?))
        });
        let (total, count) = rows.fold((0.0, 0), |sum, row| (sum.0 + row.0, sum.1 + row.1));
        let told = json_of("kernels", &[recording, "--whole".into()]);
        let kernels = told["rows"].as_array().unwrap();
        let ours: f64 = kernels.iter().filter_map(|row| row["total_ms"].as_f64()).sum();
        assert_eq!(kernels.iter().filter_map(|row| row["count"].as_u64()).sum::<u64>(), count, "{name}");
        assert!((ours * 1e6 - total).abs() < 1.0, "{name}: {ours} ms, not {total} ns");
        assert_eq!(told["covers"]["range"], "whole");
    }
}

#[test]
fn pinned_copies_are_not_told_to_pin() {
    let Some(report) = report(&["nsys/nsys-ai_h100_2gpu_1s.sqlite"]) else { return };
    let bound = finding(&report, "transfer-bound");
    assert!(bound["evidence"].to_string().contains("pinned memory already"), "{bound}");
    assert!(!bound["advice"].to_string().contains("pin_memory"), "{bound}");
}

#[test]
fn a_runtime_that_starts_is_not_bound_by_launches() {
    let Some(report) = report(&["pytorch/hta_critical_path_alexnet.json.gz"]) else { return };
    assert!(ids(&report).contains(&"startup-profiled"), "{:?}", ids(&report));
    let critical = |finding: &&Value| finding["severity"] == "critical";
    assert_eq!(report["findings"].as_array().unwrap().iter().find(critical), None);
}

/// Six of ten exchanges that order pairs up end on one rank before they begin on the other: these ranks also exchange
/// data with others that are not here.
#[test]
fn ranks_whose_exchanges_do_not_meet_say_nothing_of_waiting() {
    let ranks = ["pytorch/hta_sampled_rank0.json.gz", "pytorch/hta_sampled_rank1.json.gz"];
    let Some(report) = report(&ranks) else { return };
    let evidence = finding(&report, "communication-bound")["evidence"].to_string();
    assert!(!evidence.contains("a rank waits"), "{evidence}");
}
