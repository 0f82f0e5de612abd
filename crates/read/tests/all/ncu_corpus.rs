//! Nsight Compute: real reports. The native file must yield what ncu itself printed, digit by digit, and the
//! printed pages must yield the same metrics.
//!
//! Runs if the corpus is available.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use stepscope_read::{Progress, open};
use stepscope_testkit::corpus::corpus;
use stepscope_trace::{Trace, TrackKind, Value};

fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.retain(|path| path.to_string_lossy().ends_with(ending));
    found.sort();
    found
}

fn read(path: &Path) -> Trace {
    let opened = open(path, &Progress::new()).unwrap();
    assert_eq!(opened.format.name, "ncu", "{}", path.display());
    assert!(opened.trace.notes().is_empty(), "{}: {:?}", path.display(), opened.trace.notes());
    opened.trace
}

/// All metrics of every launch, with its name and duration in picoseconds.
fn launches(trace: &Trace) -> Vec<(String, i64, BTreeMap<String, Value<'_>>)> {
    let track = trace.tracks().iter().find(|track| track.kind == TrackKind::Derived).unwrap();
    let one = |index: usize| {
        let args = trace.args_at(track, index).collect();
        let metrics = args.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        (trace.kind_name(track.kind_of(index)).to_owned(), track.dur(index).ps(), metrics)
    };
    (0..track.len()).map(one).collect()
}

/// The fields of a line in which every field is quoted.
fn fields(line: &str) -> Vec<String> {
    let inner = line.trim_end().strip_prefix('"').unwrap().strip_suffix('"').unwrap();
    inner.split("\",\"").map(|field| field.replace("\"\"", "\"")).collect()
}

/// How much of the base unit one printed unit is.
fn scale(unit: &str) -> f64 {
    match unit {
        "us" | "Kbyte" | "Kbyte/s" | "Kbyte/block" => 1e3,
        "ms" | "Mbyte" | "Mbyte/s" | "Mhz" | "sector/us" => 1e6,
        "s" | "Gbyte" | "Gbyte/s" | "Ghz" | "sector/ns" => 1e9,
        "Tbyte/s" => 1e12,
        _ => 1.0,
    }
}

/// Is it the same number, as far as it was printed?
fn same_digits(value: f64, printed: &str, unit: &str) -> bool {
    let plain = printed.replace(',', "");
    let digits = plain.split_once('.').map_or(0, |(_, digits)| digits.len());
    let Ok(wanted) = plain.parse::<f64>() else { return false };
    // A half may be rounded either way, and no more than that.
    (value / scale(unit) - wanted).abs()
        <= 0.500_001 * 10f64.powi(-(digits as i32)) * (1.0 + 1e-12) + wanted.abs() * 1e-15
}

#[test]
fn native_values_equal_the_raw_page_digit_by_digit() {
    let Some(folder) = corpus("ncu") else { return };
    let mut compared = 0;
    for path in files(&folder, ".ncu-rep") {
        let trace = read(&path);
        let native = launches(&trace);
        let raw = fs::read_to_string(path.to_string_lossy().replace(".ncu-rep", ".raw.csv")).unwrap();
        let mut lines = raw.lines().map(fields);
        let (names, units) = (lines.next().unwrap(), lines.next().unwrap());
        let rows: Vec<_> = lines.collect();
        assert_eq!(rows.len(), native.len());
        for (row, (kernel, _, metrics)) in rows.iter().zip(&native) {
            assert_eq!(&row[4], kernel);
            for column in 11..names.len() {
                let (name, unit, printed) = (&names[column], &units[column], &row[column]);
                let Some(value) = metrics.get(name) else {
                    assert!(printed.is_empty(), "{name} is missing: {printed}");
                    continue;
                };
                let same = match value.as_f64() {
                    Some(number) if printed.parse::<f64>().is_ok() => same_digits(number, printed, unit),
                    // ncu knows the names of some numbers.
                    Some(_) => true,
                    None => value.as_str() == Some(printed.as_str()),
                };
                assert!(same, "{}: {name} [{unit}]: {value:?} is not {printed}", path.display());
                compared += 1;
            }
        }
        let device = &trace.devices()[0];
        assert!(device.multiprocessors.is_some() && device.memory_bandwidth.is_some());
        eprintln!(
            "{}: {} launches, {} SMs, {} GB/s, {:?}",
            trace.str(device.name),
            native.len(),
            device.multiprocessors.unwrap(),
            device.memory_bandwidth.unwrap() / 1_000_000_000,
            device.compute_capability
        );
    }
    eprintln!("{compared} values compared");
    assert!(compared > 1_000);
}

#[test]
fn both_pages_give_the_metrics_of_the_native_file() {
    let Some(folder) = corpus("ncu") else { return };
    for path in files(&folder, ".ncu-rep") {
        let native = read(&path);
        let native = launches(&native);
        for page in [".raw.csv", ".details.csv"] {
            let printed = read(Path::new(&path.to_string_lossy().replace(".ncu-rep", page)));
            let printed = launches(&printed);
            assert_eq!(printed.len(), native.len());
            let mut compared = 0;
            for ((kernel, dur, metrics), (wanted_kernel, wanted_dur, wanted)) in printed.iter().zip(&native) {
                assert_eq!(kernel, wanted_kernel);
                assert!((*dur as f64 / *wanted_dur as f64 - 1.0).abs() < 0.01);
                for key in
                    ["grid", "block", "context", "stream", "device", "registers per thread", "shared memory"]
                {
                    assert_eq!(metrics.get(key), wanted.get(key), "{key}");
                }
                for (name, value) in metrics {
                    let (Some(ours), Some(theirs)) =
                        (value.as_f64(), wanted.get(name).and_then(Value::as_f64))
                    else {
                        continue;
                    };
                    // The details page prints two digits, of numbers from 0.01 to millions.
                    let near = (ours - theirs).abs() <= 0.005_01 * theirs.abs().max(1.0);
                    assert!(near, "{}{page}: {name}: {ours} is not {theirs}", path.display());
                    compared += 1;
                }
            }
            eprintln!("{page}: {compared} values");
            assert!(compared > 40);
        }
    }
}

#[test]
fn what_a_terminal_showed_is_read_too() {
    let Some(folder) = corpus("ncu") else { return };
    for path in files(&folder, "_cli.txt") {
        let trace = read(&path);
        let launches = launches(&trace);
        eprintln!("{}: {} launches", path.file_name().unwrap().display(), launches.len());
        assert!(!launches.is_empty());
        for (kernel, dur, metrics) in launches {
            assert!(kernel.contains("kernel"), "{kernel}");
            assert!(dur > 0 && metrics.contains_key("sm__warps_active.avg.pct_of_peak_sustained_active"));
            assert!(metrics.contains_key("grid") && metrics.contains_key("registers per thread"));
        }
    }
}
