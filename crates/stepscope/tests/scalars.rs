//! `stepscope scalars` on event files written record by record, and on real ones where they are at hand.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Output;

use serde_json::Value;
use stepscope_testkit::corpus::corpus;
use stepscope_testkit::tfevents::{record, scalar};
use support::{code, stepscope};

fn scalars(args: &[&str]) -> Output {
    stepscope().arg("scalars").args(args).output().unwrap()
}

fn rows(args: &[&str]) -> Vec<Value> {
    let output = scalars(&[args, &["--json"]].concat());
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(all["schema"], "stepscope.scalars.v1");
    support::schema::fits(&all);
    all["rows"].as_array().unwrap().clone()
}

fn write(folder: &Path, run: &str, values: &[f32]) {
    let folder = folder.join(run);
    std::fs::create_dir_all(&folder).unwrap();
    let mut bytes = Vec::new();
    for (step, value) in values.iter().enumerate() {
        let wall_s = 1_800_000_000.0 + 0.5 * step as f64;
        bytes.extend(record(&scalar(wall_s, step as u8, "loss", *value)));
        bytes.extend(record(&scalar(wall_s, step as u8, "lr", 0.1)));
    }
    std::fs::write(folder.join("events.out.tfevents.1.vm"), bytes).unwrap();
}

#[test]
fn each_run_and_tag_is_a_row_and_each_point_can_be_had() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a/train", &[3.0, 1.0, 2.0, f32::NAN]);
    write(folder.path(), "b", &[5.0, 0.4]);
    let path = folder.path().to_str().unwrap();
    let all = rows(&[path]);
    let name = |row: &Value| format!("{} {}", row["run"].as_str().unwrap(), row["tag"].as_str().unwrap());
    let names: Vec<String> = all.iter().map(name).collect();
    assert_eq!(names, ["a/train loss", "a/train lr", "b loss", "b lr"]);
    let loss = &all[0];
    assert_eq!((&loss["points"], &loss["first_step"], &loss["last_step"]), (&4.into(), &0.into(), &3.into()));
    assert_eq!((&loss["min"], &loss["max"], &loss["mean"]), (&1.0.into(), &3.0.into(), &2.0.into()));
    assert_eq!((&loss["nan"], &loss["last"], &loss["lost"]), (&1.into(), &Value::Null, &0.into()));
    assert_eq!(loss["steps_per_second"], 2.0);
    assert_eq!(rows(&[path, "--run", "^b", "--tag", "loss"]).len(), 1);
    let points = scalars(&[path, "--tag", "loss", "--run", "train", "--points", "--csv"]);
    let text = String::from_utf8(points.stdout).unwrap();
    assert_eq!(text.lines().next(), Some("run,tag,step,wall_time,value"));
    assert_eq!(text.lines().last(), Some("a/train,loss,3,1800000001.5,NaN"));
    assert_eq!(rows(&[path, "--points", "--tag", "loss"]).len(), 6);
    let reached = rows(&[path, "--until", "loss=1"]);
    assert_eq!((&reached[0]["step"], &reached[0]["seconds"]), (&1.into(), &0.5.into()));
    let text = String::from_utf8(scalars(&[path]).stdout).unwrap();
    assert!(text.starts_with("12 points in 4 tags of 2 runs"), "{text}");
}

#[test]
fn what_cannot_be_read_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    let failed = |args: &[&str], exit: i32, why: &str| {
        let output = scalars(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(code(&output) == exit && said.contains(why), "{}: {said}", code(&output));
    };
    failed(&[path], 3, "no file below it has `tfevents` in its name");
    failed(&["no/such/folder"], 3, "does not exist");
    failed(&[path, "--until", "loss"], 2, "loss=0.5");
    std::fs::write(folder.path().join("tfevents.garbage"), [7; 100]).unwrap();
    failed(&[path], 3, "it contains no records");
}

/// What TensorBoard read from the same files: step and value.
fn reference(file: &Path) -> BTreeMap<i64, f64> {
    let text = std::fs::read_to_string(file).unwrap();
    let point = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        (cells[1].parse().unwrap(), cells[2].parse().unwrap())
    };
    text.lines().skip(1).map(point).collect()
}

#[test]
fn real_logs_hold_what_tensorboard_reads_and_lose_only_what_is_damaged() {
    let Some(folder) = corpus("tfevents") else { return };
    let points = |run: &str, tag: &str| -> BTreeMap<i64, f64> {
        let path = folder.join(run);
        let tag = format!("^{tag}$");
        let all = rows(&[path.to_str().unwrap(), "--tag", &tag, "--points"]);
        let point = |row: &Value| (row["step"].as_i64().unwrap(), row["value"].as_f64().unwrap());
        all.iter().map(point).collect()
    };
    for (run, tag) in [
        ("tf2_scalars/train", "loss"),
        ("tf2_scalars/train", "perf/step_time_sec"),
        ("tf2_scalars/train", "perf/examples_per_sec"),
        ("tf2_scalars/validation", "loss"),
        ("tf1_scalars", "loss"),
        ("tf1_scalars", "global_step/sec"),
        ("keras_epoch/train", "epoch_loss"),
        ("keras_epoch/train", "epoch_steps_per_second"),
        ("keras_profile_batch/train", "batch_loss"),
        ("truncated_tail/in_payload", "loss"),
    ] {
        let name = format!("reference/python__{}__{}.csv", run.replace('/', "_"), tag.replace('/', "_"));
        let (read, expected) = (points(run, tag), reference(&folder.join(name)));
        assert!(read.keys().eq(expected.keys()), "{run} {tag}");
        // Decimal text may cost the last bit.
        assert!(
            read.values().zip(expected.values()).all(|(a, b)| (a - b).abs() <= 1e-12 * b.abs()),
            "{run} {tag}"
        );
    }
    let count = |run: &str| {
        let all = rows(&[folder.join(run).to_str().unwrap()]);
        let sum = |key: &str| all.iter().map(|row| row[key].as_u64().unwrap()).sum::<u64>();
        (sum("points"), sum("lost"))
    };
    let whole = count("tf2_scalars/train").0;
    assert_eq!(count("corrupt_crc/payload"), (whole - 1, 1), "TensorBoard keeps 17 points of each tag");
    assert_eq!(count("corrupt_crc/lengthcrc"), (whole, 0), "only the checksum of a length is damaged");
    let restarted = points("restart_overlap", "loss");
    assert_eq!(restarted.keys().copied().collect::<Vec<_>>(), (0..100).collect::<Vec<i64>>());
    assert!((restarted[&40] - 1.064_137_8).abs() < 1e-6, "the newest wins");
    assert_eq!(code(&scalars(&[folder.join("empty_and_garbage").to_str().unwrap()])), 3);
    assert_eq!(code(&scalars(&[folder.join("corrupt_crc/payload").to_str().unwrap()])), 4);
}
