//! Comparisons of synthetic runs with a known truth, as three tools would have recorded them: a fix leaves the same program, and
//! another model is refused.

#![allow(clippy::unwrap_used, reason = "what helps a test may fail it")]

use rusqlite::Connection;
use stepscope_diagnose::compare::{Margins, Verdict, compare};
use stepscope_read::{Bytes, Input, Progress};
use stepscope_session::side::run_of;
use stepscope_session::{Hosts, Profile};
use stepscope_testkit::stage::scenes::{self, Shape};
use stepscope_testkit::stage::to_nsys::Ranges;
use stepscope_testkit::stage::to_xplane::Calls;
use stepscope_testkit::stage::{Scene, to_kineto, to_nsys, to_xplane};

const SHAPE: Shape = Shape { step: 50_000_000, steps: 24, kernels: 40, marked: true };

/// The first process of a scene, as each recorder writes it.
fn recordings(scene: &Scene) -> Vec<(&'static str, Vec<u8>)> {
    let nsys = |ranges| {
        let mut database = Connection::open_in_memory().unwrap();
        let export = to_nsys::write(&scene.runs, ranges);
        database.execute_batch(&format!("BEGIN;{}COMMIT;", export.script())).unwrap();
        database.serialize("main").unwrap().to_vec()
    };
    vec![
        ("run.pt.trace.json", to_kineto::write(&scene.runs[0], None).into_bytes()),
        ("run.sqlite", nsys(Ranges::Ops)),
        ("kernels.sqlite", nsys(Ranges::Marks)),
        ("run.xplane.pb", to_xplane::write(&scene.runs[0], Calls::ByName)),
    ]
}

/// What each recorder's pair of recordings says.
fn verdicts(base: &Scene, new: &Scene) -> Vec<(&'static str, Verdict)> {
    let run = |name: &str, bytes: Vec<u8>| {
        let input = Input::from_bytes(name, Bytes::held(bytes));
        let inputs = vec![("host".to_owned(), Ok(input))];
        let profile = Profile::read("run".to_owned(), Vec::new(), inputs, &Progress::new()).unwrap();
        run_of(&Hosts::of(&profile), "run").unwrap()
    };
    let pairs = recordings(base).into_iter().zip(recordings(new));
    pairs
        .map(|((name, base), (_, new))| {
            (name, compare(&[run(name, base)], &[run(name, new)], Margins::default()).verdict)
        })
        .collect()
}

#[test]
fn another_model_is_refused_by_what_every_recorder_shows() {
    for (name, verdict) in verdicts(&scenes::healthy(SHAPE), &scenes::image_model(SHAPE)) {
        assert_eq!(verdict, Verdict::NotComparable, "{name}");
    }
}

#[test]
fn a_fix_leaves_the_same_program() {
    let healthy = scenes::healthy(SHAPE);
    let fixes = [
        ("batches", scenes::input(SHAPE, false)),
        ("pinned memory", scenes::pageable_copies(SHAPE)),
        ("reads of the loss", scenes::waiting(SHAPE, true)),
        ("precision", scenes::single_precision(SHAPE)),
        ("a graph", scenes::launching(SHAPE)),
    ];
    for (fix, before) in &fixes {
        let after = if *fix == "a graph" { scenes::healthy_graph(SHAPE, true) } else { healthy.clone() };
        for (name, verdict) in verdicts(before, &after) {
            assert_ne!(verdict, Verdict::NotComparable, "{fix}, {name}");
        }
    }
}
