//! The views of ops, kernels, scopes and functions: snapshots of the project's own profiles, and real ones
//! compared with XProf's figures.
#![expect(clippy::unwrap_used, reason = "a test may fail")]

mod support;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;
use stepscope_testkit::corpus::corpus;
use support::{json, run};

#[test]
fn ops_by_name_and_by_type() {
    for fixture in ["tf-train", "tf-input-bound", "jax-train", "torch-train"] {
        let path = format!("fixtures/{fixture}");
        insta::assert_snapshot!(format!("ops_{fixture}"), run(&["ops", &path, "--top", "8"]));
        let by_type = run(&["ops", &path, "--by", "type", "--top", "5"]);
        insta::assert_snapshot!(format!("ops_by_type_{fixture}"), by_type);
    }
    insta::assert_snapshot!("ops_csv", run(&["ops", "fixtures/torch-train", "--csv", "--top", "3"]));
}

#[test]
fn scopes_as_a_tree() {
    for fixture in ["tf-train", "jax-train", "torch-plain"] {
        insta::assert_snapshot!(
            format!("scopes_{fixture}"),
            run(&["scopes", &format!("fixtures/{fixture}")])
        );
    }
}

#[test]
fn functions_with_their_cost() {
    for fixture in ["tf-train", "keras-fit", "jax-plain", "torch-train"] {
        let path = format!("fixtures/{fixture}");
        insta::assert_snapshot!(format!("functions_{fixture}"), run(&["functions", &path]));
    }
}

#[test]
fn profiles_without_a_gpu_have_no_kernels() {
    insta::assert_snapshot!(run(&["kernels", "fixtures/tf-train"]));
}

fn find(folder: &Path, ending: &str) -> Option<PathBuf> {
    let mut entries: Vec<PathBuf> = folder.read_dir().ok()?.flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries.iter().find_map(|path| {
        if path.is_dir() {
            find(path, ending)
        } else {
            path.to_str().filter(|path| path.ends_with(ending)).map(PathBuf::from)
        }
    })
}

/// (name, type) and (count, total ms, self ms) of a host op, as XProf says it.
type XprofRow = ((String, String), (f64, f64, f64));

fn xprof(file: &Path) -> Vec<XprofRow> {
    let tables: Value = serde_json::from_reader(GzDecoder::new(File::open(file).unwrap())).unwrap();
    let rows = tables[0]["rows"].as_array().unwrap();
    rows.iter()
        .map(|row| {
            let text = |at: usize| row["c"][at]["v"].as_str().unwrap_or_default().to_owned();
            let number = |at: usize| row["c"][at]["v"].as_f64().unwrap_or(f64::NAN);
            ((text(3), text(2)), (number(4), number(5) / 1e3, number(7) / 1e3))
        })
        // Idle time is no op, and stages of tf.data belong to the input view.
        .filter(|((_, kind), _)| kind != "IDLE" && kind != "Dataset")
        .collect()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= (b.abs() * 1e-3).max(1e-3)
}

/// Times agree to a thousandth on every op that both know. XProf's occurrences may be higher: it counts each
/// `MemoryAllocation` that names an op as an execution of it.
#[test]
fn times_of_host_ops_agree_with_xprof() {
    let Some(corpus) = corpus("") else { return };
    let mut compared = 0;
    for profile in corpus.join("labelled").read_dir().unwrap().flatten() {
        let Some(file) = find(&profile.path(), ".framework_op_stats.json.gz") else { continue };
        let ours = json("ops", &profile.path());
        let mut rows: HashMap<(String, String), (f64, f64, f64)> = HashMap::new();
        for row in ours["rows"].as_array().unwrap() {
            let text = |key: &str| row[key].as_str().unwrap().to_owned();
            let number = |key: &str| row[key].as_f64().unwrap();
            let sum = rows.entry((text("name"), text("type"))).or_default();
            *sum = (sum.0 + number("count"), sum.1 + number("total_ms"), sum.2 + number("self_ms"));
        }
        for (op, theirs) in xprof(&file) {
            let Some(ours) = rows.get(&op) else { continue };
            assert!(near(ours.1, theirs.1), "total of {op:?} in {:?}: {ours:?}, {theirs:?}", profile.path());
            assert!(near(ours.2, theirs.2), "self of {op:?} in {:?}: {ours:?}, {theirs:?}", profile.path());
            assert!(ours.0 <= theirs.0, "count of {op:?} in {:?}: {ours:?}, {theirs:?}", profile.path());
            compared += 1;
        }
    }
    assert!(compared > 500, "only {compared} ops to compare");
}
