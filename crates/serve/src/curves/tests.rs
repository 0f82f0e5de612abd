//! Runs appear, grow and vanish, and a page that asks what changed gets just that.

use std::io::Write as _;
use std::path::Path;

use serde_json::Value;
use stepscope_testkit::tfevents::{record, scalar};

use super::*;
use crate::query::Query;

fn query(text: &str) -> Query {
    Query::of(&format!("/?{text}").parse().unwrap()).unwrap()
}

fn write_run(folder: &Path, run: &str, steps: std::ops::Range<u8>) {
    let folder = folder.join(run);
    std::fs::create_dir_all(&folder).unwrap();
    let mut file = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(folder.join("events.out.tfevents.1.vm"))
        .unwrap();
    for step in steps {
        file.write_all(&record(&scalar(1_800_000_000.0 + f64::from(step), step, "loss", f32::from(step))))
            .unwrap();
        file.write_all(&record(&scalar(1_800_000_000.0 + f64::from(step), step, "lr", 0.5))).unwrap();
    }
}

/// Looks at the files although that was done just now.
fn look_again(curves: &Curves) {
    {
        let mut shelf = curves.shelf();
        (shelf.looked, shelf.searched) = (None, None);
    }
    curves.look();
}

/// The columns of the only line: steps, values, smoothed values.
fn columns(frame: &[u8]) -> (Value, [Vec<f64>; 3]) {
    assert_eq!(&frame[..4], b"SSC1");
    let length = u32::from_le_bytes(frame[4..8].try_into().unwrap()) as usize;
    let header: Value = serde_json::from_slice(&frame[8..8 + length]).unwrap();
    let numbers: Vec<f64> =
        frame[8 + length..].chunks(8).map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap())).collect();
    let count = numbers.len() / 4;
    let column = |place: usize| numbers[place * count..(place + 1) * count].to_vec();
    (header, [column(0), column(2), column(3)])
}

#[test]
fn a_run_that_grows_is_read_on_and_named_as_changed() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), "a", 0..40);
    write_run(folder.path(), "b", 0..40);
    let curves = Curves::of(vec![folder.path().to_owned()]);
    assert_eq!(state(&curves, &query("")).unwrap()["ready"], false, "nothing is read before somebody asks");
    look_again(&curves);
    let first = state(&curves, &query("since=0")).unwrap();
    let changed = |state: &Value| -> Vec<(u64, i64)> {
        let of = |run: &Value| (run["run"].as_u64().unwrap(), run["last_step"].as_i64().unwrap());
        state["changed"].as_array().unwrap().iter().map(of).collect()
    };
    assert_eq!((changed(&first), &first["ready"]), (vec![(0, 39), (1, 39)], &true.into()));
    let listed = listing(&curves);
    assert_eq!(
        (&listed["tags"], &listed["sets"]),
        (&serde_json::json!(["loss", "lr"]), &serde_json::json!([[0, 1]]))
    );
    assert_eq!((&listed["runs"][1]["name"], &listed["runs"][1]["last_step"]), (&"b".into(), &39.into()));
    write_run(folder.path(), "b", 40..41);
    look_again(&curves);
    let version = first["version"].as_u64().unwrap();
    let then = state(&curves, &query(&format!("since={version}"))).unwrap();
    assert_eq!((changed(&then), &then["listing"]), (vec![(1, 40)], &first["listing"]));
    let (header, [steps, values, smoothed]) =
        columns(&points(&curves, &query("tag=loss&runs=1&pixels=900&smooth=0.6")).unwrap());
    assert_eq!((&header["lines"][0]["run"], &header["lines"][0]["total"]), (&1.into(), &41.into()));
    assert_eq!((steps.last(), values.last()), (Some(&40.0), Some(&40.0)));
    assert!(smoothed[40] < 39.5 && smoothed[0] == 0.0, "{smoothed:?}");
}

#[test]
fn a_run_that_is_deleted_goes_and_a_new_one_comes() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), "a", 0..10);
    let curves = Curves::of(vec![folder.path().to_owned()]);
    look_again(&curves);
    std::fs::remove_dir_all(folder.path().join("a")).unwrap();
    write_run(folder.path(), "b", 0..10);
    look_again(&curves);
    let listed = listing(&curves);
    let gone: Vec<&Value> = listed["runs"].as_array().unwrap().iter().map(|run| &run["gone"]).collect();
    assert_eq!(gone, [&Value::Bool(true), &Value::Bool(false)]);
    assert!(points(&curves, &query("tag=loss&runs=0")).is_ok(), "who still shows it may ask");
    assert!(points(&curves, &query("tag=loss&runs=7")).is_err());
}

#[test]
fn ranges_speed_and_all_points_can_be_had() {
    let folder = tempfile::tempdir().unwrap();
    write_run(folder.path(), "a", 0..100);
    let curves = Curves::of(vec![folder.path().to_owned()]);
    look_again(&curves);
    let rows = range(&curves, &query("tag=loss&runs=0&from=10&to=20")).unwrap();
    let row = &rows["rows"][0];
    assert_eq!((&row["start"], &row["end"], &row["mean"]), (&10.0.into(), &20.0.into(), &15.0.into()));
    assert_eq!((&row["min_step"], &row["points"], &row["seconds"]), (&10.into(), &11.into(), &10.0.into()));
    let (_, [_, times, _]) = columns(&points(&curves, &query("tag=@step_time&runs=0")).unwrap());
    assert!(times.iter().all(|ms| (ms - 1000.0).abs() < 1e-6), "{times:?}");
    let text = String::from_utf8(csv(&curves, &query("tag=loss&runs=0")).unwrap()).unwrap();
    assert_eq!(text.lines().count(), 101);
    assert!(range(&curves, &query("tag=loss&runs=0&from=3&to=1")).is_err());
    assert!(points(&curves, &query("tag=loss&runs=0&x=sideways")).is_err());
    assert_eq!(findings(&curves)["timed"], serde_json::json!([0]));
}
