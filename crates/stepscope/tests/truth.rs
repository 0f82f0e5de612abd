//! The report compared with a stopwatch that ran with the recording: on the project's own fixtures, and on a
//! corpus of labelled profiles if available.
#![expect(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use stepscope_testkit::corpus::corpus;
use support::{ids, json, root};

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("not a number: {value}"))
}

/// The share of the step that a category owns; 0 where it is left out.
fn share(report: &Value, category: &str) -> f64 {
    let rows = report["breakdown"].as_array().unwrap();
    rows.iter().find(|row| row["category"] == category).map_or(0.0, |row| number(&row["fraction"]))
}

/// The stopwatch's median step in milliseconds, and a part's share of all steps.
struct Watch(Vec<Value>);

impl Watch {
    fn open(file: &Path, key: &str) -> Option<Watch> {
        let label: Value = serde_json::from_str(&fs::read_to_string(file).ok()?).unwrap();
        let steps = label[key].as_array()?.clone();
        (!steps.is_empty()).then_some(Watch(steps))
    }

    fn median_ms(&self, part: &str) -> Option<f64> {
        let mut times: Vec<f64> = self.0.iter().filter_map(|step| step[part].as_f64()).collect();
        times.sort_by(f64::total_cmp);
        let middle = times.len().checked_sub(1)? as f64 / 2.0;
        Some((times[middle.floor() as usize] + times[middle.ceil() as usize]) * 500.0)
    }

    fn share(&self, part: &str) -> Option<f64> {
        let all = |key: &str| self.0.iter().filter_map(|step| step[key].as_f64()).sum::<f64>();
        self.0[0][part].as_f64().map(|_| all(part) / all("step"))
    }
}

fn assert_sums(report: &Value, name: &str) {
    let whole: f64 =
        report["breakdown"].as_array().unwrap().iter().map(|row| number(&row["ms_per_step"])).sum();
    let gains: f64 = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|finding| finding["gain_ms_per_step"].as_f64())
        .sum();
    assert!(gains <= whole * 1.001, "{name}: gains of {gains} ms in a step of {whole} ms");
    if let Some(mean) = report["steps"]["mean_ms"].as_f64() {
        assert!((whole - mean).abs() <= mean * 0.001, "{name}: {whole} ms in categories, {mean} ms in steps");
    }
    for step in report["steps"]["per_step"].as_array().unwrap() {
        let parts: f64 = step["breakdown"].as_object().unwrap().values().map(number).sum();
        let length = number(&step["duration_ms"]);
        assert!(
            (parts - length).abs() <= length * 0.001 + 1e-9,
            "{name}: a step of {length} ms sums to {parts}"
        );
    }
}

#[test]
fn fixtures_agree_with_the_stopwatch() {
    for (name, verdict) in [
        ("tf-train", "compute-bound"),
        ("tf-input-bound", "input-bound"),
        ("keras-fit", "compute-bound"),
        ("keras-plain", "compute-bound"),
        ("jax-train", "compute-bound"),
        ("jax-plain", "compute-bound"),
        ("torch-train", "compute-bound"),
        ("torch-plain", "compute-bound"),
    ] {
        let folder = root().join("fixtures").join(name);
        let report = json("report", &folder);
        assert_sums(&report, name);
        assert_eq!(ids(&report).first(), Some(&verdict), "{name}: {:?}", ids(&report));
        let watch = Watch::open(&folder.join("truth.json"), "steps").unwrap();
        // Unmarked loops are measured from start to start; the stopwatch has that as the period.
        let marked = report["steps"]["origin"] == "marker";
        let truth = if marked { watch.median_ms("step") } else { watch.median_ms("period") };
        let truth = truth.or(watch.median_ms("step")).unwrap();
        let told = number(&report["steps"]["median_ms"]);
        // The stopwatch's own few microseconds weigh more in steps of a few milliseconds.
        assert!((told - truth).abs() <= truth * 0.08, "{name}: {told} ms told, {truth} ms by the stopwatch");
        if let Some(truth) = watch.share("input") {
            let told = share(&report, "input");
            assert!(
                (told - truth).abs() <= 0.10,
                "{name}: input {told:.3} told, {truth:.3} by the stopwatch"
            );
        }
    }
}

#[test]
fn labelled_profiles_get_their_verdict_and_agree_with_the_stopwatch() {
    let Some(corpus) = corpus("") else { return };
    for (name, verdict) in [
        ("input_slow_map", "input-bound"),
        ("input_py_generator", "input-bound"),
        ("compute_matmul", "compute-bound"),
        ("compute_conv", "compute-bound"),
        ("concat_dominated", "op-dominates"),
        ("retracing", "retracing"),
        ("eager_tiny_ops", "eager-dispatch"),
        ("python_between_steps", "host-python"),
        ("keras_predict", "inference-latency"),
        ("jax_train", "compute-bound"),
        ("jax_recompile", "recompilation"),
        ("input_slow_map_fixed", "compute-bound"),
        // Its callback prepares and writes a summary in every batch: a fifth of the step, which can be won.
        ("keras_fit", "output-bound"),
        ("memory_pressure", "compute-bound"),
    ] {
        let folder = corpus.join("labelled").join(name);
        let report = json("report", &folder);
        assert_sums(&report, name);
        assert_eq!(ids(&report).first(), Some(&verdict), "{name}: {:?}", ids(&report));
        let Some(watch) = Watch::open(&folder.join("label.json"), "stopwatch_seconds") else { continue };
        let (told, truth) = (number(&report["steps"]["median_ms"]), watch.median_ms("step").unwrap());
        assert!((told - truth).abs() <= truth * 0.05, "{name}: {told} ms told, {truth} ms by the stopwatch");
        for part in ["input", "python"] {
            if let Some(truth) = watch.share(part) {
                let told = share(&report, part);
                assert!(
                    (told - truth).abs() <= 0.05,
                    "{name}: {part} {told:.3} told, {truth:.3} by the stopwatch"
                );
            }
        }
    }
}

#[test]
fn labelled_subjects_are_named() {
    let Some(corpus) = corpus("") else { return };
    let labelled = |name: &str| json("report", &corpus.join("labelled").join(name));
    let first = |report: &Value| report["findings"][0]["subject"].as_str().unwrap_or_default().to_owned();
    assert_eq!(first(&labelled("concat_dominated")), "ConcatV2");
    assert!(first(&labelled("compute_matmul")).contains("MatMul"));
    assert!(first(&labelled("compute_conv")).contains("Conv2D"));
    assert_eq!(first(&labelled("retracing")), "step");
    assert!(ids(&labelled("memory_pressure")).contains(&"memory-growth"));
}

#[test]
fn healthy_profiles_get_no_critical_finding() {
    let Some(corpus) = corpus("") else { return };
    for name in ["compute_matmul", "compute_conv", "input_slow_map_fixed", "jax_train"] {
        let report = json("report", &corpus.join("labelled").join(name));
        let critical = report["findings"].as_array().unwrap().iter().any(|f| f["severity"] == "critical");
        assert!(!critical, "{name}: {:?}", ids(&report));
    }
}

#[test]
fn profiles_without_markers_get_steps_and_every_one_sums() {
    let Some(corpus) = corpus("") else { return };
    let mut profiles = Vec::new();
    for folder in ["xplane-public", "xplane-names", "pytorch"] {
        find(&corpus.join(folder), &mut profiles);
    }
    assert!(profiles.len() > 20, "the corpus has shrunk");
    for path in profiles {
        let name = path.display().to_string();
        if name.contains("corrupt") {
            continue;
        }
        assert_sums(&json("report", &path), &name);
    }
    for (path, least) in [
        ("xplane-public/AMD-AGI+TraceLens/jax_conv_minimal_legacy", 5),
        ("xplane-public/AMD-AGI+TraceLens/jax08_gemm", 5),
        ("xplane-public/openxla+xprof/tpu_inference_2.xplane.pb", 50),
        ("xplane-public/k0styamba+CNN-food-101/2021_04_08_07_18_48", 1),
        ("xplane-names/keras_fit", 10),
    ] {
        let report = json("report", &corpus.join(path));
        assert_eq!(report["steps"]["origin"], "inferred", "{path}");
        assert!(
            number(&report["steps"]["count"]) >= f64::from(least),
            "{path}: {}",
            report["steps"]["count"]
        );
    }
}

#[test]
fn a_loader_without_workers_waits_and_one_with_workers_does_not() {
    let Some(corpus) = corpus("") else { return };
    for (workers, low, high) in [(0, 0.35, 0.45), (4, 0.0, 0.03)] {
        let folder = corpus.join("pytorch");
        let prefix = format!("kineto_resnet50_num_workers_{workers}_");
        let file = fs::read_dir(folder).unwrap().flatten().map(|entry| entry.path());
        let file = file.into_iter().find(|path| path.to_string_lossy().contains(&prefix)).unwrap();
        let told = share(&json("report", &file), "input");
        assert!((low..=high).contains(&told), "{workers} workers: input {told:.3}");
    }
}

fn find(folder: &Path, profiles: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        let name = path.to_string_lossy();
        if path.is_dir() {
            find(&path, profiles);
        } else if name.ends_with(".xplane.pb") || (name.contains("pytorch") && name.ends_with(".json.gz")) {
            profiles.push(path);
        }
    }
}
