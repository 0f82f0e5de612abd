//! GPU verdicts on synthetic runs with a known truth, as three tools would have recorded them: the same run
//! gets the same verdict, the same steps and the same breakdown from every profiler. If a profiler did not
//! record what would prove the cause, the verdict must say so, and [`expected`] says why.

#![allow(clippy::unwrap_used, clippy::panic, reason = "what helps a test may fail it")]

use std::fs::OpenOptions;
use std::io::Write;

use rayon::prelude::*;
use rusqlite::Connection;
use serde_json::{Value, json};
use stepscope_analyze::Category;
use stepscope_diagnose::{Finding, Severity};
use stepscope_read::{Bytes, Input, Progress};
use stepscope_results::report::Report;
use stepscope_session::Profile;
use stepscope_session::report::report;
use stepscope_testkit::stage::scenes::{self, Shape};
use stepscope_testkit::stage::to_nsys::Ranges;
use stepscope_testkit::stage::to_xplane::Calls;
use stepscope_testkit::stage::{Cause, Scene, scenes_many, scenes_steps, to_kineto, to_nsys, to_xplane};

#[path = "scenes/what_a_step_is.rs"]
mod what_a_step_is;

/// Who recorded the run.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Recorder {
    /// `torch.profiler`.
    Kineto,
    /// Nsight Systems, with the user's own marks only: it sees calls and device work, nothing of the framework.
    Nsys,
    /// Nsight Systems, with every op as a range.
    NsysOps,
    /// JAX.
    Xplane,
    /// JAX, with calls that carry the name of what they launch, as TensorFlow's recorder writes them.
    XplaneByWork,
    /// `torch.profiler` on a device of AMD's.
    Rocm,
}

const ALL: [Recorder; 6] = [
    Recorder::Kineto,
    Recorder::Nsys,
    Recorder::NsysOps,
    Recorder::Xplane,
    Recorder::XplaneByWork,
    Recorder::Rocm,
];

/// AMD's runtime has CUDA's calls under its own prefix. Its call for copies that wait says so.
fn as_rocm(kineto: &str) -> String {
    let mut text = kineto.to_owned();
    if text.contains("Pageable") {
        text = text.replace("cudaMemcpyAsync", "hipMemcpyWithStream");
    }
    for call in ["Launch", "Graph", "Memcpy", "Stream", "Device", "Malloc", "Free", "Event"] {
        text = text.replace(&format!("\"cuda{call}"), &format!("\"hip{call}"));
    }
    text
}

fn inputs(scene: &Scene, recorder: Recorder) -> Vec<(String, Input)> {
    let world = scene.runs.len();
    let nsys = |ranges| {
        let mut database = Connection::open_in_memory().unwrap();
        let export = to_nsys::write(&scene.runs, ranges);
        database.execute_batch(&format!("BEGIN;{}COMMIT;", export.script())).unwrap();
        let bytes = database.serialize("main").unwrap().to_vec();
        vec![("host".to_owned(), Input::from_bytes("export.sqlite", Bytes::held(bytes)))]
    };
    let each = |ending: &str, write: &dyn Fn(usize) -> Vec<u8>| {
        let one = |rank| {
            let name = format!("rank{rank}");
            let input = Input::from_bytes(format!("{name}.{ending}"), Bytes::held(write(rank)));
            (name, input)
        };
        (0..world).map(one).collect()
    };
    match recorder {
        Recorder::Nsys => nsys(Ranges::Marks),
        Recorder::NsysOps => nsys(Ranges::Ops),
        Recorder::Kineto | Recorder::Rocm => each("pt.trace.json", &|rank| {
            let text = to_kineto::write(&scene.runs[rank], (world > 1).then_some((rank, world)));
            (if recorder == Recorder::Rocm { as_rocm(&text) } else { text }).into_bytes()
        }),
        Recorder::Xplane => each("xplane.pb", &|rank| to_xplane::write(&scene.runs[rank], Calls::ByName)),
        Recorder::XplaneByWork => {
            each("xplane.pb", &|rank| to_xplane::write(&scene.runs[rank], Calls::ByWork))
        }
    }
}

fn told(scene: &Scene, recorder: Recorder) -> Report {
    let inputs = inputs(scene, recorder).into_iter().map(|(host, input)| (host, Ok(input))).collect();
    let profile = Profile::read("run".to_owned(), Vec::new(), inputs, &Progress::new()).unwrap();
    report(&profile, vec!["run".to_owned()]).unwrap()
}

/// Whose share is compared with which truth.
enum Share {
    /// These categories own what the cause does.
    Cause(&'static [Category]),
    /// All categories in which the device does nothing own what it is idle.
    Idle,
    /// The finding about the cause owns what the cause does: what must be said as well, or the verdict.
    Finding,
    /// Nothing is known in advance.
    Open,
}

struct Expected {
    /// The verdict: one of these.
    first: &'static [&'static str],
    /// What must be said as well.
    also: Option<&'static str>,
    share: Share,
    /// May anything be critical?
    critical: bool,
    /// Can the length of a step be known?
    step: bool,
}

const WORKING: [Category; 5] = [
    Category::Compute,
    Category::Communication,
    Category::TransferIn,
    Category::TransferOut,
    Category::TransferDevice,
];

fn expected(scene: &Scene, recorder: Recorder) -> Expected {
    use Category::{Communication, Compute, Input, Launch, TransferIn};
    // Nsight sees no loader, no Python and no compiler unless somebody tells NVTX: the device is idle, and that is all.
    let blind = recorder == Recorder::Nsys || scene.name.contains("calls alone");
    let critical = |first: &'static [&'static str], share| Expected {
        first,
        also: None,
        share,
        critical: true,
        step: true,
    };
    let fine = |also| Expected {
        first: &["compute-bound"],
        also,
        share: Share::Cause(&[Compute]),
        critical: false,
        step: true,
    };
    match scene.cause {
        Cause::Healthy => fine(None),
        Cause::SmallKernels => fine(Some("small-kernels")),
        Cause::SerialStreams => Expected { share: Share::Finding, ..fine(Some("serial-streams")) },
        // The read that blocks before the gap explains it in part: what it held up would have hidden under compute.
        Cause::Input | Cause::Python if blind && scene.name.contains("read") => {
            critical(&["device-idle", "blocking-copies"], Share::Idle)
        }
        Cause::Input if blind => critical(&["device-idle"], Share::Idle),
        Cause::Input => critical(&["input-bound"], Share::Cause(&[Input])),
        Cause::Launching => critical(&["kernel-launch-bound"], Share::Cause(&[Launch, Category::Dispatch])),
        Cause::Python if blind => critical(&["device-idle"], Share::Idle),
        Cause::Python => critical(&["host-python"], Share::Idle),
        Cause::PinnedCopies if scene.name.contains("without steps") => {
            Expected { also: Some("no-steps"), step: false, ..critical(&["transfer-bound"], Share::Open) }
        }
        Cause::PageableCopies | Cause::PinnedCopies => {
            critical(&["transfer-bound"], Share::Cause(&[TransferIn]))
        }
        // Reading a number copies it first, and it is the copy that blocks.
        Cause::Waiting if scene.name.contains("read") => critical(&["blocking-copies"], Share::Idle),
        Cause::Waiting => critical(&["sync-stall"], Share::Idle),
        Cause::Allocation => critical(&["allocation-stall"], Share::Finding),
        Cause::Communication => critical(&["communication-bound"], Share::Cause(&[Communication])),
        Cause::SinglePrecision => critical(&["low-precision-unused"], Share::Finding),
        Cause::Straggler => critical(&["straggler"], Share::Open),
        // Between steps that nobody marked, a pause of many steps counts as no part of the loop, unless it comes again
        // and again, or twice with the same thing in it.
        Cause::Variance if !scene.marked && scene.steps < if shows_writing(recorder) { 10 } else { 20 } => {
            Expected { share: Share::Open, ..fine(None) }
        }
        Cause::Variance => Expected {
            also: Some("step-variance"),
            ..critical(
                match recorder {
                    recorder if shows_writing(recorder) => &["output-bound"],
                    Recorder::Nsys => &["device-idle"],
                    _ => &["host-python"],
                },
                Share::Open,
            )
        },
        // Before the first step that shows in kernels, nothing tells compiling from anything else.
        Cause::Startup if !scene.marked => Expected { share: Share::Open, ..fine(None) },
        Cause::Startup => {
            Expected { first: &["compute-bound"], share: Share::Open, ..fine(Some("startup-profiled")) }
        }
        // Without marks a pause between requests cannot be told from a slow loop.
        Cause::Requests if !scene.marked => {
            Expected { step: false, ..critical(&["device-idle", "host-python"], Share::Open) }
        }
        Cause::Requests => Expected { first: &["inference-latency"], share: Share::Open, ..fine(None) },
        Cause::SharedDevice => critical(&["sync-stall", "device-idle"], Share::Open),
    }
}

/// What is wrong with a report, in words.
fn faults(scene: &Scene, recorder: Recorder, told: &Report) -> Vec<String> {
    let expected = expected(scene, recorder);
    let (summary, findings) = (&told.summary, &told.findings);
    let length = summary.length_ms();
    let ids: Vec<&str> = findings.iter().map(Finding::id).collect();
    let mut faults = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            faults.push(format!("{} by {recorder:?}: {what}", scene.name));
        }
    };
    let wrong = ["no-device-trace", "recompilation"].into_iter().find(|id| ids.contains(id));
    check(wrong.is_none(), format!("{wrong:?}"));
    check(ids.first().is_some_and(|first| expected.first.contains(first)), format!("verdict of {ids:?}"));
    check(expected.also.is_none_or(|also| ids.contains(&also)), format!("{:?} in {ids:?}", expected.also));
    let all: f64 = summary.breakdown_ms.iter().map(|(_, ms)| ms).sum();
    check((all / length - 1.0).abs() < 0.001, format!("categories add up to {all} of {length}"));
    let worst = findings.iter().map(|finding| finding.severity).min();
    check(expected.critical || worst != Some(Severity::Critical), format!("critical: {ids:?}"));
    let late = findings.iter().find(|finding| finding.id() == "straggler");
    let named = late.and_then(|late| late.subject.as_deref()).is_none_or(|subject| subject.contains("rank2"));
    check(named || told.sources.len() == 1, format!("who is late: {late:?}"));
    let (step, truth) = (summary.step_ms.map_or(0.0, |moments| moments.median), scene.step as f64 / 1e6);
    check(!expected.step || (step / truth - 1.0).abs() < 0.03, format!("step of {step}, not {truth}"));
    let share = match expected.share {
        Share::Cause(categories) => {
            Some((categories.iter().map(|&category| summary.fraction(category)).sum(), scene.share))
        }
        Share::Idle => {
            let working: f64 = WORKING.iter().map(|&category| summary.fraction(category)).sum();
            Some((1.0 - working, scene.idle))
        }
        Share::Finding => {
            let about = findings.iter().find(|finding| expected.also.is_none_or(|also| finding.id() == also));
            about.and_then(|finding| Some((finding.fraction?, scene.share)))
        }
        Share::Open => None,
    };
    if let Some((share, truth)) = share.filter(|(_, truth)| truth.is_finite()) {
        check((share - truth).abs() < 0.03 + edge(scene), format!("share of {share:.3}, not {truth:.3}"));
    }
    faults
}

/// One line per report for `cargo xtask truth`, in the file that `STEPSCOPE_SCENE_ROWS` names.
fn record(scene: &Scene, recorder: Recorder, told: &Report, faults: usize) {
    let Some(file) = std::env::var_os("STEPSCOPE_SCENE_ROWS") else { return };
    let expected = expected(scene, recorder);
    // Either the first finding of all or the first about the program is the verdict.
    let verdict = told.findings.iter().position(|finding| !finding.is_about_trust());
    let row = |(index, finding): (usize, &Finding)| {
        let leads = index == 0 || Some(index) == verdict;
        let named = leads && expected.first.contains(&finding.id()) || expected.also == Some(finding.id());
        let misleads = index == 0 && !named;
        let critical = !expected.critical && finding.severity == Severity::Critical;
        let right = match (named, misleads || critical) {
            (_, true) => Some(false),
            (true, false) => Some(true),
            (false, false) => None,
        };
        let (id, warns) = (finding.id(), finding.severity != Severity::Info);
        json!({"id": id, "warns": warns, "leads": Some(index) == verdict, "right": right})
    };
    let findings: Vec<Value> = told.findings.iter().enumerate().map(row).collect();
    let line = json!({"faults": faults, "findings": findings}).to_string() + "\n";
    let mut file = OpenOptions::new().create(true).append(true).open(file).unwrap();
    // In one piece: tests write side by side.
    file.write_all(line.as_bytes()).unwrap();
}

/// Nobody else records graphs as a whole.
fn records(scene: &Scene, recorder: Recorder) -> bool {
    !scene.name.contains("whole graph") || matches!(recorder, Recorder::Nsys | Recorder::NsysOps)
}

/// What the first and the last step may add to a share: nothing was under way before the one, and nobody sees the end
/// of the other.
fn edge(scene: &Scene) -> f64 {
    0.4 / scene.steps as f64
}

/// JAX's tracer sees the function that writes; the others see time in which nothing is recorded.
fn shows_writing(recorder: Recorder) -> bool {
    matches!(recorder, Recorder::Xplane | Recorder::XplaneByWork)
}

fn busy(told: &Report) -> f64 {
    told.summary.bound().and_then(|host| host.devices.first()?.busy_fraction).unwrap_or(-1.0)
}

/// Plays all scenes for all recorders, and says all that is wrong.
fn play(scenes: &[Scene]) {
    let faults: Vec<String> = scenes
        .par_iter()
        .flat_map_iter(|scene| {
            let recorders = ALL.into_iter().filter(|&recorder| records(scene, recorder));
            let told: Vec<(Recorder, Report)> =
                recorders.map(|recorder| (recorder, told(scene, recorder))).collect();
            let judged = told.iter().flat_map(|(recorder, told)| {
                let faults = faults(scene, *recorder, told);
                record(scene, *recorder, told, faults.len());
                faults
            });
            let mut all: Vec<String> = judged.collect();
            let busy: Vec<f64> = told.iter().map(|(_, told)| busy(told)).collect();
            let apart = busy.iter().copied().fold(0.0, f64::max) - busy.iter().copied().fold(1.0, f64::min);
            // Whether a pause is part of the loop depends on what shows in it.
            let paused = scene.cause == Cause::Variance && !scene.marked;
            if apart > 0.02 + edge(scene) && !paused {
                all.push(format!("{}: recorders do not agree how busy the device is: {busy:?}", scene.name));
            }
            all
        })
        .collect();
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

/// Steps of 2 milliseconds to 2 seconds, few and many, of few and many kernels, marked and not.
fn shapes() -> Vec<Shape> {
    let figures = [(2_000_000, 40, 8), (30_000_000, 10, 60), (2_000_000_000, 6, 24)];
    let shape = |(step, steps, kernels), marked| Shape { step, steps, kernels, marked };
    figures.into_iter().flat_map(|one| [shape(one, true), shape(one, false)]).collect()
}

fn for_each_shape(scene: impl Fn(Shape) -> Scene) {
    play(&shapes().into_iter().map(scene).collect::<Vec<_>>());
}

#[test]
fn a_device_that_computes_is_healthy() {
    for_each_shape(scenes::healthy);
    for_each_shape(scenes::healthy_with_loss);
    for_each_shape(scenes::healthy_collectives);
    for_each_shape(scenes_many::two_devices);
    for_each_shape(|shape| scenes_many::ranks(shape, 2, false));
    for_each_shape(|shape| scenes::healthy(Shape { kernels: 1, steps: 60, ..shape }));
    let many = |marked| Shape { step: 90_000_000, steps: 8, kernels: 200, marked };
    play(&[true, false].map(many).map(scenes::healthy));
}

#[test]
fn graphs_are_healthy_whether_their_kernels_were_recorded_or_not() {
    for_each_shape(|shape| scenes::healthy_graph(shape, false));
    for_each_shape(|shape| scenes::healthy_graph(shape, true));
}

#[test]
fn the_end_of_a_run_is_enough() {
    let shapes = [(2_000_000, 30, 8), (120_000_000, 12, 60)];
    let shape = |(step, steps, kernels)| Shape { step, steps, kernels, marked: false };
    play(&shapes.map(shape).map(scenes_many::tail));
}

#[test]
fn kernels_that_are_launched_too_slowly_are_told_from_those_that_are_only_short() {
    for marked in [true, false] {
        for (step, steps, kernels) in [(2_400_000, 12, 200), (500_000, 40, 40)] {
            let shape = Shape { step, steps, kernels, marked };
            play(&[scenes::launching(shape)]);
        }
        play(&[scenes::small_kernels(Shape { step: 1_000_000, steps: 10, kernels: 200, marked })]);
    }
}

#[test]
fn shorter_kernels_are_no_cure_where_launches_set_the_pace() {
    let scene =
        scenes::launching_single_precision(Shape { step: 2_400_000, steps: 12, kernels: 200, marked: true });
    play(std::slice::from_ref(&scene));
    for recorder in [Recorder::Kineto, Recorder::Nsys] {
        let report = told(&scene, recorder);
        let precision = report.findings.iter().find(|finding| finding.id() == "low-precision-unused");
        let quiet = |finding: &Finding| finding.severity == Severity::Info && finding.gain_ms.is_none();
        assert!(precision.is_none_or(quiet), "{recorder:?}: {precision:?}");
    }
}

#[test]
fn a_slow_loader_is_named_where_it_was_seen() {
    for read in [true, false] {
        for_each_shape(|shape| scenes::input(shape, read));
    }
    for_each_shape(|shape| scenes_many::calls_alone(scenes::input(shape, true)));
}

#[test]
fn python_between_kernels_is_named_where_it_was_seen() {
    for read in [true, false] {
        for_each_shape(|shape| scenes::python(shape, read));
    }
}

#[test]
fn copies_fill_the_step() {
    for_each_shape(scenes::pageable_copies);
    for_each_shape(scenes::pinned_copies);
}

#[test]
fn copies_without_kernels_are_what_the_device_did() {
    let marked = shapes().into_iter().filter(|shape| shape.marked);
    play(&marked.map(scenes::copies_alone).collect::<Vec<_>>());
}

#[test]
fn waiting_for_results_keeps_the_host_from_preparing() {
    for read in [true, false] {
        for_each_shape(|shape| scenes::waiting(shape, read));
    }
}

#[test]
fn memory_that_is_allocated_in_every_step_stalls_it_however_long_it_takes() {
    for_each_shape(scenes::allocation);
}

#[test]
fn collectives_count_where_nothing_hides_them() {
    for_each_shape(scenes::communication);
    for_each_shape(|shape| scenes_many::ranks(shape, 4, true));
}

#[test]
fn what_kernels_do_is_told() {
    for_each_shape(scenes::single_precision);
    for_each_shape(scenes::serial_streams);
}

#[test]
fn steps_that_are_not_like_the_others_do_not_hide_the_usual_one() {
    for_each_shape(scenes::variance);
    for_each_shape(scenes::startup);
}

#[test]
fn code_that_is_loaded_at_first_is_not_compiled_again_and_again() {
    let marked = shapes().into_iter().filter(|shape| shape.marked);
    play(&marked.map(scenes::loading).collect::<Vec<_>>());
}

#[test]
fn requests_last_from_their_arrival_to_their_answer() {
    for_each_shape(scenes::requests);
}

#[test]
fn two_processes_share_a_device() {
    for_each_shape(scenes_many::shared_device);
}
