//! Reports on real Nsight Compute profiles and nvidia-smi logs, if the corpus is available.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::path::PathBuf;

use serde_json::Value;
use stepscope_testkit::corpus::corpus;
use support::{ids, json};

fn files(folder: &str) -> Vec<PathBuf> {
    let Some(folder) = corpus(folder) else { return Vec::new() };
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
    files.sort();
    files
}

/// A raw page with one launch that strides through memory, written like ncu's.
const PAGE: &str = concat!(
    r#""ID","Process ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum","#,
    r#""gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed","#,
    r#""memory_l2_theoretical_sectors_global","memory_l2_theoretical_sectors_global_ideal""#,
    "\n",
    r#""","","","","","ms","%","sectors","sectors""#,
    "\n",
    r#""0","7","strided(float *)","(256, 1, 1)","(64, 1, 1)","2.5","89","8,000","2,000""#,
    "\n",
);

#[test]
fn a_profiled_kernel_has_its_columns_and_its_verdict() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("page.csv");
    std::fs::write(&path, PAGE).unwrap();
    let row = &json("kernels", &path)["rows"][0];
    assert_eq!((row["name"].as_str(), row["grid"].as_str()), (Some("strided(float *)"), Some("64,1,1")));
    assert_eq!((row["total_ms"].as_f64(), row["sol_memory"].as_f64()), (Some(2.5), Some(0.89)));
    assert_eq!((row["excess_sectors"].as_f64(), &row["stall"]), (Some(0.75), &Value::Null));
    let report = json("report", &path);
    assert_eq!(ids(&report), ["uncoalesced-access"]);
    let told = report["findings"][0]["evidence"].to_string();
    assert!(told.contains("A fix saves at most 78 % of the kernel's time"), "{told}");
}

/// `uncoalesced-access` is found exactly where ncu counted sectors that an ideal pattern would not need and memory is
/// what limits the kernel, and nothing is said about steps and timelines that such a profile cannot have.
#[test]
fn verdicts_follow_the_counters() {
    let mut seen = [false; 2];
    for path in files("ncu") {
        let (kernels, report) = (json("kernels", &path), json("report", &path));
        let rows = kernels["rows"].as_array().unwrap();
        assert!(!rows.is_empty() && rows.iter().all(|row| row["count"].as_u64() > Some(0)), "{path:?}");
        let wasteful = rows.iter().any(|row| {
            let limited = row["sol_memory"].as_f64() >= row["sol_compute"].as_f64()
                || ["long_scoreboard", "lg_throttle"].iter().any(|reason| row["stall"] == **reason);
            limited && row["excess_sectors"].as_f64().is_some_and(|share| share >= 0.25)
        });
        seen[usize::from(wasteful)] = true;
        let found = ids(&report);
        assert_eq!(found.contains(&"uncoalesced-access"), wasteful, "{path:?}: {found:?}");
        assert!(
            !found.iter().any(|id| ["no-steps", "no-device-trace", "compute-bound"].contains(id)),
            "{found:?}"
        );
        if wasteful {
            assert_eq!(found[0], "uncoalesced-access", "{path:?}");
        }
        for finding in report["findings"].as_array().unwrap() {
            assert_eq!(finding["gain_ms_per_step"], Value::Null, "{path:?}: no step, no gain");
        }
    }
    assert!(seen[0] == seen[1], "a corpus holds kernels of both sorts");
}

/// A native report and its raw page say the same.
#[test]
fn both_forms_of_a_profile_get_one_verdict() {
    for path in files("ncu").iter().filter(|path| path.extension().is_some_and(|kind| kind == "ncu-rep")) {
        let page = path.with_extension("raw.csv");
        assert_eq!(ids(&json("report", path)), ids(&json("report", &page)), "{path:?}");
    }
}

#[test]
fn logs_of_nvidia_smi_are_summed_up() {
    for path in files("nvidia-smi") {
        let devices = json("devices", &path);
        let gpus = devices["gauges"].as_array().unwrap();
        assert!(!gpus.is_empty(), "{path:?}");
        for gpu in gpus {
            let utilisation = gpu["utilisation"]["mean"].as_f64();
            assert!(utilisation.is_none_or(|mean| (0.0..=1.0).contains(&mean)), "{path:?}: {gpu}");
            assert!(utilisation.or(gpu["power_w"]["mean"].as_f64()).is_some(), "{path:?}: {gpu}");
        }
        // What utilisation means is said where it is shown, and only there.
        let shown = gpus.iter().any(|gpu| !gpu["utilisation"].is_null());
        let explained = devices["notes"].to_string().contains("does not mean that the GPU was used well");
        assert_eq!(explained, shown, "{path:?}");
    }
}
