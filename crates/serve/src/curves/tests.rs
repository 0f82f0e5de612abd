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

/// The runs that TensorFlow and PyTorch logged for the fixtures.
fn logged() -> Curves {
    let curves = Curves::of(vec![stepscope_testkit::corpus::repository().join("fixtures/events")]);
    look_again(&curves);
    curves
}

fn id_of(curves: &Curves, name: &str) -> usize {
    let runs = listing(curves)["runs"].as_array().unwrap().clone();
    let run = runs.iter().find(|run| run["name"] == name).unwrap_or_else(|| panic!("{name}"));
    run["id"].as_u64().unwrap() as usize
}

#[test]
fn pictures_of_all_writers_are_sent_as_what_they_are() {
    let curves = logged();
    for (run, tag, steps, samples) in [
        ("tensorflow/pictures", "inputs", vec![0, 10, 20, 30], 2),
        ("tensorflow1", "image/image/1", vec![0, 1], 1),
        ("torch/net", "sample", vec![0, 10, 20], 1),
    ] {
        let at = format!("run={}&tag={tag}", id_of(&curves, run));
        let listed = pictures::steps(&curves, &query(&at)).unwrap();
        assert_eq!(listed["steps"], serde_json::json!(steps), "{run}");
        assert_eq!(listed["samples"][0], samples, "{run}");
        let sent: Vec<_> = (0..steps.len())
            .map(|place| pictures::picture(&curves, &query(&format!("{at}&at={place}"))).ok().unwrap())
            .collect();
        assert!(
            sent.iter().all(|reply| reply.kind == "image/png" && reply.body.starts_with(b"\x89PNG")),
            "{run}"
        );
        assert_ne!(sent[0].body, sent[1].body, "{run}: each step has its own");
        for wrong in ["&at=99", "&at=0&sample=99", "&at=-1", ""] {
            assert!(pictures::picture(&curves, &query(&format!("{at}{wrong}"))).is_err(), "{run}{wrong}");
        }
    }
}

/// An event with a picture, as PyTorch writes it.
fn picture_event(step: u8, bytes: &[u8]) -> Vec<u8> {
    let message = [&[0x22, bytes.len() as u8][..], bytes].concat();
    let value = [&[0x0a, 1, b'p', 0x22, message.len() as u8][..], &message].concat();
    stepscope_testkit::tfevents::with_value(1.0, step, &value)
}

#[test]
fn what_only_claims_to_be_a_picture_is_never_sent() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("events.out.tfevents.1.vm");
    let png =
        |width: u8| [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0"[..], &[width, 0, 0, 0, width, 0, 8, 2]].concat();
    let pages: [&[u8]; 4] = [b"<svg onload='alert(1)'/>", b"<!doctype html>", b"GIF<script>", &png(0xff)];
    let mut bytes: Vec<u8> =
        pages.iter().enumerate().flat_map(|(step, page)| record(&picture_event(step as u8, page))).collect();
    bytes.extend(record(&picture_event(9, &png(1))));
    std::fs::write(&file, &bytes).unwrap();
    let curves = Curves::of(vec![folder.path().to_owned()]);
    look_again(&curves);
    for place in 0..pages.len() {
        let asked = query(&format!("run=0&tag=p&at={place}"));
        assert!(pictures::picture(&curves, &asked).is_err(), "{place}");
    }
    let good = query(&format!("run=0&tag=p&at={}", pages.len()));
    assert!(pictures::picture(&curves, &good).is_ok());
    // A file that was replaced since has something else there, or nothing.
    std::fs::write(&file, vec![b'<'; bytes.len()]).unwrap();
    assert!(pictures::picture(&curves, &good).is_err());
    std::fs::write(&file, b"").unwrap();
    assert!(pictures::picture(&curves, &good).is_err());
}

#[test]
fn graphs_of_all_writers_are_walked_from_scope_to_node() {
    let curves = logged();
    for (run, tag, scope, child, op) in [
        ("tensorflow/graph", "__run_graph__", "encoder/dense", "encoder/dense/product", "MatMul"),
        ("tensorflow/traced", "step", "encoder/dense", "encoder/dense/activation", "Relu"),
        ("tensorflow/keras/train", "keras", "", "hidden", "Dense"),
        ("tensorflow1", "__meta_graph__", "layer", "layer/conv", "Conv2D"),
        ("torch/net", "__run_graph__", "Net/Linear[head]", "Net/Linear[head]/output.1", ""),
    ] {
        let at = format!("run={}&tag={tag}", id_of(&curves, run));
        let top = model::level(&curves, &query(&at)).unwrap_or_else(|_| panic!("{run}"));
        assert!(!top["children"].as_array().unwrap().is_empty() && top["cut"] == false, "{run}");
        assert!(top["total"].as_u64().unwrap() >= top["children"].as_array().unwrap().len() as u64, "{run}");
        let level = if scope.is_empty() {
            top.clone()
        } else {
            model::level(&curves, &query(&format!("{at}&under={scope}")))
                .unwrap_or_else(|_| panic!("{run} {top}"))
        };
        let children = level["children"].as_array().unwrap();
        let found = children.iter().find(|node| node["name"] == child);
        if !op.is_empty() {
            assert_eq!(found.unwrap_or_else(|| panic!("{run} {level}"))["op"], op, "{run}");
        }
        assert!(model::level(&curves, &query(&format!("{at}&under=nowhere"))).is_err());
    }
    let at = format!("run={}&tag=__run_graph__", id_of(&curves, "tensorflow1"));
    let hits = model::find(&curves, &query(&format!("{at}&q=conv2d"))).unwrap();
    assert!(hits["hits"].as_array().unwrap().iter().any(|node| node["op"] == "Conv2D"), "{hits}");
    let layer = model::level(&curves, &query(&format!("{at}&under=layer"))).unwrap();
    assert!(layer["under"]["params"] == 54 && layer["timed"] == true, "{layer}");
    assert!(!layer["edges"].as_array().unwrap().is_empty() && layer["inputs"]["total"].as_u64().unwrap() > 0);
    let plain = format!("run={}&tag=__run_graph__", id_of(&curves, "tensorflow/graph"));
    let first = model::level(&curves, &query(&plain)).unwrap()["children"][0].clone();
    assert!(first["micros"].is_null() && first["params"].is_null(), "unknown is not 0: {first}");
}

#[test]
fn trials_of_both_writers_have_settings_and_metrics() {
    let curves = logged();
    let study = study::study(&curves);
    let trials = study["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 5, "{study}");
    assert_eq!(study["settings"], serde_json::json!(["batch", "frozen", "lr", "optimizer", "rate", "units"]));
    assert_eq!(study["metrics"], serde_json::json!(["accuracy", "hparam/accuracy"]));
    let sweep = trials.iter().find(|trial| trial["run"] == "torch/sweep/trial-1").unwrap();
    assert_eq!(sweep["settings"], serde_json::json!([32.0, 0.0, 0.01, "adam", null, null]));
    assert_eq!((&sweep["status"], sweep["metrics"][0].is_null()), (&"success".into(), true));
    assert!((sweep["metrics"][1].as_f64().unwrap() - 0.9).abs() < 1e-6);
    assert_eq!(sweep["run_id"], id_of(&curves, "torch/sweep/trial-1"));
}

#[test]
fn damaged_logs_with_pictures_graphs_and_settings_break_nothing() {
    let fixtures = stepscope_testkit::corpus::repository().join("fixtures/events");
    let mut rng = stepscope_testkit::damage::Rng::new(31);
    for run in [
        "tensorflow/pictures",
        "tensorflow/traced",
        "tensorflow/keras/train",
        "tensorflow1",
        "torch/net",
        "torch/sweep/trial-0",
    ] {
        let whole = std::fs::read(fixtures.join(run).join("events.out.tfevents.1767225600.trainer")).unwrap();
        let folder = tempfile::tempdir().unwrap();
        for _ in 0..6 {
            let mut bytes = whole.clone();
            bytes.truncate(rng.below(whole.len() + 1));
            for _ in 0..rng.below(6) {
                if let Some(byte) = bytes.get_mut(rng.below(whole.len())) {
                    *byte ^= 1 << rng.below(8);
                }
            }
            std::fs::write(folder.path().join("events.out.tfevents.1.vm"), &bytes).unwrap();
            let curves = Curves::of(vec![folder.path().to_owned()]);
            look_again(&curves);
            study::study(&curves);
            for tag in ["inputs", "image/image/0", "sample"] {
                let _ = pictures::steps(&curves, &query(&format!("run=0&tag={tag}")));
                let _ = pictures::picture(&curves, &query(&format!("run=0&tag={tag}&at=0")));
            }
            for tag in ["__run_graph__", "__meta_graph__", "step", "keras"] {
                let _ = model::level(&curves, &query(&format!("run=0&tag={tag}")));
                let _ = model::find(&curves, &query(&format!("run=0&tag={tag}&q=a")));
            }
        }
    }
}
