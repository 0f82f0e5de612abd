//! Steps drawn by hand whose time after a change is known. Times are in microseconds.

use stepscope_trace::Trace;

use super::*;
use crate::sketch::{Arg, Sketch};

/// Twelve steps of a loop that loads a batch, launches one kernel and waits for it, or not.
fn trace(load: i64, kernel: i64, waits: bool) -> Trace {
    let mut sketch = Sketch::new();
    let (thread, stream) = (sketch.thread("python"), sketch.stream());
    let (mut now, mut free) = (0, 0);
    let mut starts = Vec::new();
    for step in 0..12 {
        starts.push(now);
        let id = [("correlation", Arg::Int(step + 1))];
        let name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__";
        sketch.event_of(thread, "user_annotation", name, now, load, &[]);
        now += load;
        sketch.event_of(thread, "cuda_runtime", "cudaLaunchKernel", now, 10, &id);
        now += 10;
        let start = (now + 5).max(free + 1);
        free = start + kernel;
        sketch.event_of(stream, "kernel", "gemm", start, kernel, &id);
        if waits {
            sketch.event_of(thread, "cuda_runtime", "cudaStreamSynchronize", now, free + 5 - now, &[]);
            now = free + 5;
        }
    }
    for (number, start) in (0..).zip(&starts) {
        let end = starts.get(number + 1).copied().unwrap_or(now);
        let args = [("step_num", Arg::Int(number as i64)), ("_r", Arg::Int(1))];
        sketch.event(thread, "train", *start, end - start, &args);
    }
    sketch.finish()
}

fn expected(trace: &Trace, change: &str) -> Result<f64, NoReplay> {
    let context = Context::new(trace, "host");
    let answer = Replay::of(&context)?.predict(&[change.parse().unwrap()])?;
    assert!(answer.low <= answer.expected && answer.expected <= answer.high, "{answer:?}");
    Ok(answer.expected.ms() * 1_000.0)
}

fn near(told: Result<f64, NoReplay>, truth: f64) {
    let told = told.unwrap();
    assert!((told / truth - 1.0).abs() < 0.02, "{told} instead of {truth}");
}

#[test]
fn a_batch_that_is_there_saves_its_whole_wait_if_nothing_hides_it() {
    let trace = trace(400, 500, true);
    near(expected(&trace, "input=free"), 520.0);
    // Half of the kernel goes, too.
    near(expected(&trace, "op:gemm=x2"), 670.0);
}

#[test]
fn what_runs_under_the_kernels_saves_nothing() {
    let trace = trace(400, 500, false);
    let context = Context::new(&trace, "host");
    let replay = Replay::of(&context).unwrap();
    let left = |change: &str| {
        let answer = replay.predict(&[change.parse().unwrap()]).unwrap();
        answer.expected.fraction_of(answer.step)
    };
    assert!((left("input=free") - 1.0).abs() < 0.01, "{}", left("input=free"));
    // Then the loop takes longest.
    assert!((left("op:gemm=x2") - 410.0 / 501.0).abs() < 0.01, "{}", left("op:gemm=x2"));
}

#[test]
fn a_loop_that_does_not_wait_is_as_fast_as_its_slower_side() {
    near(expected(&trace(400, 500, true), "sync=off"), 501.0);
    near(expected(&trace(400, 100, true), "sync=off"), 410.0);
}

#[test]
fn workers_load_while_the_loop_works() {
    // One batch takes 2,000 µs, the rest of the step 3,020; a batch from a worker costs 1,500.
    let trace = trace(2_000, 3_000, true);
    near(expected(&trace, "workers=1"), 4_520.0);
    near(expected(&trace, "workers=4"), 4_520.0);
}

#[test]
fn what_is_not_there_cannot_be_changed() {
    let trace = trace(400, 500, true);
    assert_eq!(expected(&trace, "comm=overlap"), Err(NoReplay::Nothing(Change::OverlapCommunication)));
    assert!(matches!(expected(&trace, "op:relu=x2"), Err(NoReplay::Nothing(_))));
}

#[test]
fn changes_add_up_as_far_as_they_can() {
    let trace = trace(400, 500, true);
    let context = Context::new(&trace, "host");
    let both = [Change::InputFree, Change::Op("gemm".to_owned(), f64::INFINITY)];
    let answer = Replay::of(&context).unwrap().predict(&both).unwrap();
    assert!((answer.expected.ms() * 1_000.0 - 20.0).abs() < 2.0, "{answer:?}");
}
