//! Memory: recordings whose truth is known to the byte, and sums that hold for every recording at hand.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stepscope_testkit::corpus::{corpus, files_below, names_in};
use stepscope_testkit::damage::Rng;
use stepscope_testkit::snapshot::{Pickler, Simulated, Writer};
use support::{ids, json, root, run, stepscope};

/// What a command says with options.
fn asked(args: &[&str], path: &Path) -> Value {
    let output = stepscope().arg("memory").arg(path).args(args).arg("--json").output().unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Bytes by the value of a column.
fn by(table: &Value, column: &str) -> BTreeMap<String, i64> {
    let mut sums = BTreeMap::new();
    for row in table["rows"].as_array().unwrap() {
        let name = row[column].as_str().unwrap_or_default().to_owned();
        *sums.entry(name).or_default() += row["bytes"].as_i64().unwrap();
    }
    sums
}

fn expected(truth: &Value) -> BTreeMap<String, i64> {
    let rows = truth.as_object().unwrap().iter();
    rows.map(|(name, bytes)| (name.clone(), bytes.as_i64().unwrap())).collect()
}

#[test]
fn snapshots_give_their_truth_to_the_byte() {
    let Some(folder) = corpus("memory/snapshots") else { return };
    for name in names_in(&folder).into_iter().filter(|name| name.ends_with(".pickle")) {
        let path = folder.join(&name);
        let truth = fs::read_to_string(path.with_extension("truth.json")).unwrap();
        let truth: Value = serde_json::from_str(&truth).unwrap();
        let lines = asked(&["--by", "line"], &path);
        let ours = &lines["allocators"][0];
        assert_eq!(ours["peak_bytes"], truth["peak_bytes"], "{name}");
        assert_eq!(by(&lines, "line"), expected(&truth["by_line_at_peak"]), "{name}");
        let roles = by(&asked(&["--by", "role"], &path), "role");
        for (role, bytes) in expected(&truth["by_role_at_peak"]) {
            let ours = if matches!(role.as_str(), "leak" | "cache") { "kept" } else { role.as_str() };
            assert_eq!(roles.get(ours), Some(&bytes), "{name}: {role}");
        }
        if let Some(oom) = truth["oom"].as_object() {
            let ours = &ours["out_of_memory"];
            assert_eq!(ours["requested_bytes"], oom["requested"], "{name}");
            assert_eq!(ours["allocated_bytes"], oom["allocated"], "{name}");
            assert_eq!(ours["reserved_bytes"], oom["reserved"], "{name}");
        }
    }
}

#[test]
fn only_what_is_kept_every_step_is_a_leak() {
    let Some(folder) = corpus("memory/snapshots") else { return };
    for name in ["leak_p2", "leak_p4", "leak_p5"] {
        let kept = asked(&["--leaks"], &folder.join(name).with_extension("pickle"));
        assert_eq!(kept["rows"][0]["line"], "/home/u/train.py:75 step", "{name}");
        assert_eq!(kept["rows"][0]["bytes_per_step"], 16_777_216.0, "{name}");
        let report = json("report", &folder.join(name).with_extension("pickle"));
        assert_eq!(ids(&report)[0], "memory-growth", "{name}");
    }
    let clean = json("report", &folder.join("clean.pickle"));
    assert_eq!(ids(&clean), ["activation-share"], "the optimizer's state is no leak");
    let fragmented = json("report", &folder.join("frag_oom.pickle"));
    assert_eq!(ids(&fragmented)[..2], ["memory-fragmentation", "oom-risk"]);
    assert!(fragmented["findings"][0]["summary"].as_str().unwrap().contains("model.py:47 cache"));
}

#[test]
fn jax_profiles_sum_to_the_live_arrays_and_differ_by_the_leak() {
    let Some(folder) = corpus("memory/jax") else { return };
    let after = json("memory", &folder.join("after.prof"));
    let sum: i64 =
        after["allocators"].as_array().unwrap().iter().map(|one| one["peak_bytes"].as_i64().unwrap()).sum();
    assert_eq!(sum, 39_845_888);
    let both = support::json_of("memory", &[folder.join("before.prof"), folder.join("after.prof")]);
    let first = &both["rows"][0];
    assert_eq!(first["change_bytes"], 8 * 1_048_576);
    assert!(first["line"].as_str().unwrap().ends_with("jaxmem.py:16 train"));
}

#[test]
fn roles_that_pytorch_records_are_kept() {
    let Some(folder) = corpus("memory/torch_leak") else { return };
    for file in ["profile_snapshot.pickle", "timeline.json", "timeline.raw.json.gz"] {
        let roles = by(&asked(&["--by", "role"], &folder.join(file)), "role");
        assert_eq!(roles.get("parameter"), Some(&8_398_848), "{file}");
        assert_eq!(roles.get("optimizer"), Some(&16_797_720), "{file}");
        assert_eq!(roles.get("gradient"), Some(&8_398_848), "{file}");
    }
    let kept = asked(&["--leaks"], &folder.join("profile_snapshot.pickle"));
    assert_eq!(kept["rows"][0]["bytes_per_step"], 524_288.0);
}

#[test]
fn memory_reserved_by_programs_is_a_holder_of_its_own() {
    let Some(path) = corpus("xplane-public/openxla+xprof/tpu_inference_2.xplane.pb") else { return };
    let memory = json("memory", &path);
    let chips = memory["allocators"].as_array().unwrap();
    let names: Vec<&str> = chips.iter().map(|chip| chip["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["TPU:1 HBM", "TPU:2 HBM", "TPU:0 HBM", "TPU:3 HBM"]);
    for chip in chips {
        assert_eq!(chip["allocations"], chip["frees"], "{}", chip["name"]);
        assert_eq!(chip["program_reserved_bytes"], 21_491_712_000_u64);
        assert_eq!(chip["program"], "jit_f");
        assert_eq!(chip["capacity_bytes"], 33_550_237_696_u64);
    }
    let peaks: Vec<u64> = chips.iter().map(|chip| chip["peak_bytes"].as_u64().unwrap()).collect();
    assert_eq!(peaks, [21_492_671_104, 21_492_671_104, 21_492_569_216, 21_492_569_216]);
}

/// The largest file that is read in the time of a test.
const LARGEST: u64 = 8 << 20;

/// Recordings at hand that may have memory in them.
fn recordings() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = names_in(&root().join("fixtures"))
        .into_iter()
        .filter(|name| !name.ends_with(".md"))
        .map(|name| root().join("fixtures").join(name))
        .collect();
    for folder in ["memory", "xplane-public", "pytorch", "labelled"] {
        let files = corpus(folder).map(|folder| files_below(&folder)).unwrap_or_default();
        let wanted = |path: &PathBuf| {
            let name = path.to_string_lossy().into_owned();
            [".pickle", ".prof", ".xplane.pb", ".json", ".json.gz"]
                .iter()
                .any(|ending| name.ends_with(ending))
                && !name.contains("truth")
        };
        found.extend(files.into_iter().filter(wanted));
    }
    found.retain(|path| fs::metadata(path).is_ok_and(|file| file.is_dir() || file.len() <= LARGEST));
    found
}

#[test]
fn what_is_held_sums_to_the_peak_in_every_recording() {
    let mut checked = 0;
    for path in recordings() {
        let output = stepscope().arg("memory").arg(&path).arg("--json").output().unwrap();
        let Ok(memory) = serde_json::from_slice::<Value>(&output.stdout) else { continue };
        let mut sums: BTreeMap<(String, String), i64> = BTreeMap::new();
        for row in memory["rows"].as_array().unwrap() {
            let key = (row["host"].to_string(), row["allocator"].to_string());
            *sums.entry(key).or_default() += row["bytes"].as_i64().unwrap();
        }
        for allocator in memory["allocators"].as_array().unwrap() {
            let key = (allocator["host"].to_string(), allocator["name"].to_string());
            // Old profilers write no addresses: what was held is unknown then.
            let Some(sum) = sums.get(&key) else { continue };
            assert_eq!(Some(*sum), allocator["peak_bytes"].as_i64(), "{}: {}", path.display(), key.1);
            checked += 1;
        }
    }
    assert!(checked > 0, "no recording has memory");
}

#[test]
fn a_generated_snapshot_is_reported_compared_and_exported() {
    let folder = tempfile::tempdir().unwrap();
    let mut program = Simulated::random(&mut Rng::new(4), 400);
    let write = |name: &str, program: &Simulated| {
        let path = folder.path().join(name);
        fs::write(&path, Pickler::dump(Writer::Python(4), &program.snapshot(usize::MAX))).unwrap();
        path
    };
    let small = write("small.pickle", &program);
    program.allocate(300 << 20, 77);
    program.fail(1 << 30, 78);
    let large = write("large.pickle", &program);
    let change = support::json_of("memory", &[&small, &large]);
    assert_eq!(change["rows"][0]["line"], "/home/u/model.py:77 layer");
    assert_eq!(change["rows"][0]["change_bytes"], 300 << 20);
    let report = json("report", &large);
    assert_eq!(ids(&report)[0], "oom-risk");
    let at = asked(&["--at", "oom", "--by", "block"], &large);
    assert_eq!(at["rows"][0]["bytes"], 300 << 20);
    let peak = |path: &Path| json("memory", path)["allocators"][0]["peak_bytes"].as_f64().unwrap();
    let mut command = stepscope();
    command.arg("memory").args([&small, &large]).args(["--batch", "1,2", "--fit", "2GB", "--json"]);
    let fit: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(fit["fit"]["bytes_per_example"].as_f64(), Some(peak(&large) - peak(&small)));
    assert!(fit["fit"]["largest_batch"].as_u64().unwrap() >= 5);
    for args in [["info", ""], ["health", ""], ["steps", ""], ["export", "--to=csv"]] {
        let mut words = vec![args[0].to_owned(), large.display().to_string()];
        words.extend(Some(args[1].to_owned()).filter(|option| !option.is_empty()));
        let told = run(&words);
        assert!(told.starts_with("exit code: 0"), "{told}");
    }
}
