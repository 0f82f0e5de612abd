//! What would break.

use crate::context::Context;
use crate::sketch::{Arg, Sketch};
use crate::steps::{How, Origin, Steps};

/// A program on a device that launches one kernel of 10 µs in each of `launches`, inside ranges and frames
/// `(category, name, start, length)`.
fn program(scopes: &[(&str, &str, i64, i64)], launches: &[i64]) -> Steps {
    let mut sketch = Sketch::new();
    let (thread, stream) = (sketch.thread("python"), sketch.stream());
    for &(category, name, start, length) in scopes {
        sketch.event_of(thread, category, name, start, length, &[]);
    }
    for (id, &at) in launches.iter().enumerate() {
        let args = || [("correlation", Arg::Int(1 + id as i64))];
        sketch.event_of(thread, "cuda_runtime", "cudaLaunchKernel", at, 1, &args());
        let kernel = format!("kernel{}", (id * id) % 37);
        sketch.event_of(stream, "kernel", &kernel, at + 5, 10, &args());
    }
    let trace = sketch.finish();
    Steps::of(&Context::new(&trace, "host"))
}

const FRAME: &str = "python_function";

#[test]
fn a_call_that_repeats_inside_of_one_that_does_not_is_the_step() {
    let mut scopes = vec![(FRAME, "train.py(1): main", 0, 4_000)];
    for turn in 0..4 {
        scopes.push((FRAME, "train.py(9): one", 1_000 * turn, 900));
        scopes.push((FRAME, "model.py(5): part", 1_000 * turn + 10, 300));
        scopes.push((FRAME, "model.py(5): part", 1_000 * turn + 400, 300));
    }
    let launches: Vec<i64> =
        (0..4).flat_map(|turn| [20, 100, 410, 500].map(|at| 1_000 * turn + at)).collect();
    let steps = program(&scopes, &launches);
    assert_eq!((steps.origin, steps.how), (Origin::Inferred, How::FunctionCalls("one".to_owned())));
    assert_eq!(steps.all.len(), 4);
}

#[test]
fn a_forward_and_its_backward_pass_are_one_step() {
    let mut scopes = Vec::new();
    for turn in 0..4 {
        scopes.push(("user_annotation", "fw", 1_000 * turn, 300));
        scopes.push(("user_annotation", "bw", 1_000 * turn + 320, 600));
    }
    let launches: Vec<i64> =
        (0..4).flat_map(|turn| [20, 330, 410, 500].map(|at| 1_000 * turn + at)).collect();
    let steps = program(&scopes, &launches);
    assert_eq!(steps.how, How::Annotations("fw".to_owned()));
    let starts: Vec<i64> = steps.all.iter().map(|step| step.span.start.ps() / 1_000_000).collect();
    assert_eq!(starts, [0, 1_000, 2_000, 3_000]);
    assert_eq!(steps.all.iter().filter(|step| step.excluded.is_some()).count(), 0, "the last ends too");
}

#[test]
fn layers_inside_of_the_only_pass_are_no_steps() {
    let mut scopes = vec![(FRAME, "nn.Module: Net_0", 0, 4_000)];
    scopes.extend((0..8).map(|layer| (FRAME, "nn.Module: Layer_0", 500 * layer, 450)));
    let launches: Vec<i64> = (0..8).flat_map(|layer| [20, 100].map(|at| 500 * layer + at)).collect();
    let steps = program(&scopes, &launches);
    assert_eq!(steps.how, How::FunctionCalls("nn.Module: Net_0".to_owned()));
    assert_eq!(steps.all.len(), 1);
    let named: Vec<_> = (0..8).map(|layer| ("user_annotation", "layer_norm", 500 * layer, 450)).collect();
    assert_eq!(program(&named, &launches).origin, Origin::None, "nothing says how many passes there are");
}

#[test]
fn a_lone_inference_is_one_step() {
    let steps = program(&[("user_annotation", "model_inference", 0, 900)], &[20, 30, 50]);
    assert_eq!(steps.how, How::Annotations("model_inference".to_owned()));
    assert_eq!(steps.all.len(), 1);
}

#[test]
fn a_name_for_the_only_pass_is_its_name() {
    let scopes = [
        ("user_annotation", "execute_32", 0, 900),
        (FRAME, "runner.py(3): execute", 5, 890),
        (FRAME, "nn.Module: Net_0", 10, 700),
    ];
    let steps = program(&scopes, &[20, 30, 50]);
    assert_eq!((steps.how, steps.all.len()), (How::Annotations("execute".to_owned()), 1));
}

#[test]
fn what_warms_up_is_no_part_of_the_loop() {
    let mut scopes = vec![("user_annotation", "warmup", 0, 5_000)];
    scopes.extend((0..4).map(|turn| ("user_annotation", "turn", 6_000 + 100 * turn, 90)));
    scopes.extend((0..6).map(|turn| ("user_annotation", "turn", 500 * turn, 450)));
    let mut launches: Vec<i64> = (0..6).flat_map(|turn| [20, 100].map(|at| 500 * turn + at)).collect();
    launches.extend((0..4).map(|turn| 6_010 + 100 * turn));
    let steps = program(&scopes, &launches);
    assert_eq!((steps.how, steps.all.len()), (How::Annotations("turn".to_owned()), 4));
}

/// Iterations that begin with a helper, followed by `times` calls that launch most of the work, and one that launches some.
fn after_a_helper(times: i64) -> Steps {
    let (mut scopes, mut launches) = (Vec::new(), Vec::new());
    for turn in (0..6).map(|turn| 1_000 * turn) {
        scopes.push((FRAME, "buffer.py(3): clear", turn, 10));
        for call in (0..times).map(|call| turn + 50 + 300 * call) {
            scopes.push((FRAME, "train.py(9): one", call, 200));
            launches.extend([call + 20, call + 60]);
        }
        scopes.push((FRAME, "train.py(20): sum_up", turn + 950, 40));
        launches.push(turn + 960);
    }
    program(&scopes, &launches)
}

#[test]
fn steps_are_called_after_what_does_the_work_and_not_after_a_helper() {
    let once = after_a_helper(1);
    assert_eq!((once.how, once.all.len()), (How::FunctionCalls("one".to_owned()), 6));
    let thrice = after_a_helper(3);
    assert_eq!((thrice.how, thrice.all.len()), (How::Sequence("one".to_owned()), 6));
    assert_eq!(thrice.all[0].span.start.ps(), 0, "the helper still begins the step");
}

#[test]
fn one_range_around_a_program_is_no_step() {
    let launches: Vec<i64> = (0..9).map(|id| 5_100 + id * id * 20).collect();
    let named = |start, length| ("user_annotation", "experiment", start, length);
    assert_eq!(program(&[named(0, 7_000)], &launches).origin, Origin::None, "all that was recorded");
    let part = program(&[named(5_000, 2_000), ("user_annotation", "report", 7_000, 9_000)], &launches);
    assert_eq!((part.how, part.all.len()), (How::Annotations("experiment".to_owned()), 1));
    let scopes = [
        named(4_000, 3_000),
        ("user_annotation", "warmup", 4_100, 500),
        (FRAME, "f.py(1): report", 7_000, 9_000),
    ];
    assert_eq!(program(&scopes, &launches).origin, Origin::None, "with its warm-up");
    let framed = |name| {
        program(&[("user_annotation", name, 0, 7_000), (FRAME, "f.py(1): body", 10, 6_980)], &launches)
    };
    assert_eq!(framed("experiment").origin, Origin::None, "frames inside show no loop");
    assert_eq!(framed("model_inference").all.len(), 1, "the name is one for a pass");
}

#[test]
fn frames_that_only_wait_do_not_hold_the_work_of_others() {
    let waits = ["$threading.py:637 wait", "$queue.py:154 get"];
    for wait in waits {
        let mut sketch = Sketch::new();
        let (waiting, working, stream) = (sketch.thread("waits"), sketch.thread("main"), sketch.stream());
        for turn in 0..2 {
            sketch.event(waiting, wait, 10_000 * turn, 9_900, &[]);
        }
        sketch.event(working, "$engine.py:985 process", 12_000, 2_000, &[]);
        for id in 0..6_i64 {
            let args = || [("correlation", Arg::Int(1 + id))];
            sketch.event_of(working, "cuda_runtime", "cudaLaunchKernel", 12_100 + id * id * 20, 5, &args());
            sketch.event_of(stream, "kernel", &format!("kernel{id}"), 12_200 + id * 300, 200, &args());
        }
        let trace = sketch.finish();
        let steps = Steps::of(&Context::new(&trace, "host"));
        assert_eq!((steps.how, steps.all.len()), (How::FunctionCalls("process".to_owned()), 1), "{wait}");
    }
}

#[test]
fn two_calls_in_a_corner_of_the_recording_are_no_loop() {
    let calls = |wait: i64| {
        let scopes = [
            (FRAME, "evaluate.py(1): main", 0, wait + 2_000),
            (FRAME, "evaluate.py(9): wait_for_workers", 0, wait),
            (FRAME, "files.py(5): save_image", wait, 900),
            (FRAME, "files.py(5): save_image", wait + 1_000, 900),
        ];
        program(&scopes, &[wait + 20, wait + 100, wait + 1_020, wait + 1_100])
    };
    assert_ne!(calls(200_000).how, How::FunctionCalls("save_image".to_owned()), "a hundredth of the time");
    let most = calls(200);
    assert_eq!((most.how, most.all.len()), (How::FunctionCalls("save_image".to_owned()), 2));
}
