//! `stepscope scalars` on event files written record by record, and on real ones where they are at hand.
#![expect(clippy::unwrap_used, reason = "what helps a test may fail it")]

mod support;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::process::Output;

use flate2::read::GzDecoder;
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

#[test]
fn a_folder_of_event_files_can_be_asked_in_sql() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a/train", &[3.0, 1.0, 2.0]);
    write(folder.path(), "b", &[5.0, 0.4]);
    let sql = |query: &str| {
        let output = stepscope().arg("sql").arg(folder.path()).args([query, "--csv"]).output().unwrap();
        (code(&output), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (exit, rows, said) =
        sql("SELECT run, tag, count(*) AS n, max(value) AS most FROM scalar GROUP BY 1, 2 ORDER BY 1, 2");
    assert_eq!((exit, rows.lines().next()), (0, Some("run,tag,n,most")), "{said}");
    assert!(rows.contains("a/train,loss,3,3") && rows.contains("b,loss,2,5"), "{rows}");
    assert!(said.contains("only the table scalar has rows"), "{said}");
    assert_eq!(sql("SELECT count(name) AS n FROM event").1.lines().last(), Some("0"));
    // A damaged record is left out and reported; a file without any record is no recording.
    let file = folder.path().join("b/events.out.tfevents.1.vm");
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[14] ^= 1;
    std::fs::write(&file, bytes).unwrap();
    let (exit, _, said) = sql("SELECT * FROM scalar");
    assert!(exit == 4 && said.contains("events.out.tfevents.1.vm"), "{exit}: {said}");
    std::fs::remove_dir_all(folder.path().join("a")).unwrap();
    std::fs::write(&file, [7; 100]).unwrap();
    let (exit, _, said) = sql("SELECT * FROM scalar");
    assert!(exit == 3 && said.contains("no profile in"), "{exit}: {said}");
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

/// A run whose stretch before each step takes so many seconds, and whose loss falls so much per step.
fn write_timed(folder: &Path, run: &str, fall: f32, seconds: impl Fn(u8) -> f64) {
    let folder = folder.join(run);
    std::fs::create_dir_all(&folder).unwrap();
    let (mut at, mut bytes) = (1_800_000_000.0, Vec::new());
    for step in 0..200 {
        at += seconds(step) * (1.0 + f64::from(step % 5) / 100.0);
        bytes.extend(record(&scalar(at, step, "loss", 3.0 - fall * f32::from(step))));
    }
    std::fs::write(folder.join("events.out.tfevents.1.vm"), bytes).unwrap();
}

fn document(args: &[&str]) -> Value {
    let output = scalars(&[args, &["--json"]].concat());
    let all: Value = serde_json::from_slice(&output.stdout).unwrap();
    support::schema::fits(&all);
    all
}

#[test]
fn a_run_that_gets_slower_is_named_and_pauses_are_not_slow_steps() {
    let folder = tempfile::tempdir().unwrap();
    write_timed(folder.path(), "steady/train", 0.01, |step| if step % 50 == 49 { 9.0 } else { 1.0 });
    write_timed(folder.path(), "slower/train", 0.01, |step| if step > 120 { 1.3 } else { 1.0 });
    let path = folder.path().to_str().unwrap();
    let all = document(&[path]);
    let findings = all["findings"].as_array().unwrap();
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert_eq!(
        (&findings[0]["id"], &findings[0]["run"]),
        (&"throughput-drop".into(), &"slower/train".into())
    );
    let steady = all["pace"].as_array().unwrap().iter().find(|pace| pace["run"] == "steady/train").unwrap();
    assert_eq!(steady["pauses"].as_array().unwrap().len(), 4);
    assert!((steady["seconds_per_step"].as_f64().unwrap() - 1.02).abs() < 0.03, "{steady}");
    let text = String::from_utf8(scalars(&[path]).stdout).unwrap();
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("4 pauses (4 of unknown cause)"), "{text}");
    assert!(text.contains("Throughput drop: `slower/train` is slower by"), "{text}");
}

#[test]
fn runs_of_two_paths_are_compared_at_equal_step_and_time() {
    let folder = tempfile::tempdir().unwrap();
    write_timed(folder.path(), "old/train", 0.010, |_| 1.0);
    write_timed(folder.path(), "new/train", 0.012, |_| 0.5);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (old, new) = (path("old"), path("new"));
    let all = document(&[&old, &new, "--tag", "^loss$"]);
    let compared = &all["comparison"][0];
    assert_eq!((&compared["tag"], &compared["at_step"]["step"]), (&"loss".into(), &199.0.into()));
    assert!(compared["at_step"]["run"].as_f64() < compared["at_step"]["base"].as_f64());
    let reached = |side: &str| compared["to_value"][side]["seconds"].as_f64().unwrap();
    assert!(reached("base") > 2.0 * reached("run"), "{compared}");
    let text = String::from_utf8(scalars(&[&old, &new]).stdout).unwrap();
    assert!(text.contains("at step 199") && text.contains("times as fast"), "{text}");
    assert_eq!(document(&[&old])["comparison"], Value::Null, "one path has nothing to compare with");
}

/// The bytes of all pages, which are gzip streams.
fn unpacked(parquet: &[u8]) -> Vec<u8> {
    let mut pages = Vec::new();
    for start in
        parquet.windows(3).enumerate().filter(|(_, begin)| begin == b"\x1f\x8b\x08").map(|(at, _)| at)
    {
        // What only looks like the start of a stream adds nothing.
        let _ = GzDecoder::new(&parquet[start..]).read_to_end(&mut pages);
    }
    pages
}

#[test]
fn all_points_can_be_had_as_parquet() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "a", &[3.0, f32::NAN]);
    let file = folder.path().join("points.parquet");
    let output = scalars(&[folder.path().to_str().unwrap(), "--parquet", file.to_str().unwrap()]);
    assert_eq!(code(&output), 0);
    let bytes = std::fs::read(&file).unwrap();
    assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
    let pages = unpacked(&bytes);
    let doubles = |value: f64| pages.windows(8).filter(|window| *window == value.to_le_bytes()).count();
    assert_eq!((doubles(3.0), doubles(1_800_000_000.5)), (1, 2), "values and times are plain");
    let missing = folder.path().join("no/such/folder.parquet");
    assert_eq!(code(&scalars(&[folder.path().to_str().unwrap(), "--parquet", missing.to_str().unwrap()])), 3);
}
