//! Predictions for synthetic runs: each scene is played twice, as it is and changed. Only the first is recorded, as several
//! tools would have done it, and the step that is predicted from it is held against the second.

#![allow(clippy::unwrap_used, reason = "what helps a test may fail it")]

use rusqlite::Connection;
use stepscope_analyze::replay::{Change, NoReplay, Prediction, Replay};
use stepscope_read::{Bytes, Input, Progress};
use stepscope_session::{Hosts, Profile};
use stepscope_testkit::stage::scenes::Shape;
use stepscope_testkit::stage::scenes_changed::{self, Changed};
use stepscope_testkit::stage::to_nsys::Ranges;
use stepscope_testkit::stage::to_xplane::Calls;
use stepscope_testkit::stage::{Scene, to_kineto, to_nsys, to_xplane};

/// A recorder, and how far a prediction from its recording may be off.
#[derive(Copy, Clone, Debug, PartialEq)]
enum Recorder {
    Kineto,
    NsysWithOps,
    NsysAlone,
    Xplane,
}

impl Recorder {
    const ALL: [Recorder; 4] =
        [Recorder::Kineto, Recorder::NsysWithOps, Recorder::NsysAlone, Recorder::Xplane];

    fn allowed(self) -> f64 {
        if self == Recorder::Xplane { 0.05 } else { 0.03 }
    }

    fn write(self, scene: &Scene) -> (&'static str, Vec<u8>) {
        let nsys = |ranges| {
            let mut database = Connection::open_in_memory().unwrap();
            let export = to_nsys::write(&scene.runs, ranges);
            database.execute_batch(&format!("BEGIN;{}COMMIT;", export.script())).unwrap();
            database.serialize("main").unwrap().to_vec()
        };
        match self {
            Recorder::Kineto => ("run.pt.trace.json", to_kineto::write(&scene.runs[0], None).into_bytes()),
            Recorder::NsysWithOps => ("run.sqlite", nsys(Ranges::Ops)),
            Recorder::NsysAlone => ("run.sqlite", nsys(Ranges::Marks)),
            Recorder::Xplane => ("run.xplane.pb", to_xplane::write(&scene.runs[0], Calls::ByName)),
        }
    }

    fn change(self, change: scenes_changed::Change) -> Change {
        match change {
            scenes_changed::Change::InputFree => Change::InputFree,
            scenes_changed::Change::LaunchGraph => Change::LaunchGraph,
            scenes_changed::Change::NoSync => Change::NoSync,
            scenes_changed::Change::PythonHalf => Change::Python(2.0),
            scenes_changed::Change::Faster(kernel, times) => {
                let name = if self == Recorder::Xplane { kernel.xla } else { kernel.torch };
                Change::Op(name.to_owned(), times)
            }
        }
    }
}

fn predicted(scene: &Scene, recorder: Recorder, change: Change) -> Result<Prediction, NoReplay> {
    let (name, bytes) = recorder.write(scene);
    let input = Input::from_bytes(name, Bytes::held(bytes));
    let inputs = vec![("host".to_owned(), Ok(input))];
    let profile = Profile::read("run".to_owned(), Vec::new(), inputs, &Progress::new()).unwrap();
    let answers = Hosts::of(&profile).visit(|host| {
        Replay::of(&host.context()).and_then(|replay| replay.predict(std::slice::from_ref(&change)))
    });
    answers.into_iter().next().unwrap()
}

#[test]
fn what_is_predicted_is_what_happens() {
    let mut faults = Vec::new();
    let (mut answered, mut all, mut inside) = (0, 0, 0);
    for shape in [
        Shape { step: 50_000_000, steps: 24, kernels: 40, marked: true },
        Shape { step: 8_000_000, steps: 16, kernels: 120, marked: true },
    ] {
        for Changed { before, change, after } in scenes_changed::all(shape) {
            for recorder in Recorder::ALL {
                all += 1;
                let after = after as f64 / 1e6;
                match predicted(&before, recorder, recorder.change(change)) {
                    Ok(told) => {
                        answered += 1;
                        let off = told.expected.ms() / after - 1.0;
                        inside += usize::from(told.low.ms() <= after && after <= told.high.ms());
                        if off.abs() > recorder.allowed() {
                            faults.push(format!(
                                "{} {change:?} {recorder:?}: {:.2} → {:.2} ms instead of {after:.2} ({:+.1} %)",
                                before.name,
                                told.step.ms(),
                                told.expected.ms(),
                                off * 100.0
                            ));
                        }
                    }
                    Err(why) => println!("{} {change:?} {recorder:?}: refused, {why:?}", before.name),
                }
            }
        }
    }
    assert!(faults.is_empty(), "{} of {answered} wrong:\n{}", faults.len(), faults.join("\n"));
    assert!(answered * 4 >= all * 3, "only {answered} of {all} answered");
    assert!(inside * 10 >= answered * 9, "the truth lies in {inside} of {answered} ranges only");
}
