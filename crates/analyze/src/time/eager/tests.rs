//! What would break.

use super::*;
use crate::sketch::{Arg, Sketch};

#[test]
fn each_program_that_jax_starts_counts_and_so_does_the_python_between_them() {
    let mut sketch = Sketch::new();
    let thread = sketch.thread("python");
    for step in 0..3 {
        let start = step * 1_000;
        sketch.event(thread, "train", start, 1_000, &[("step_num", Arg::Int(step))]);
        for call in 0..30 {
            let at = start + call * 20;
            // JAX writes every call twice, one inside the other.
            sketch.event(thread, "PjitFunction(add)", at, 15, &[]);
            sketch.event(thread, "PjitFunction(add)", at + 1, 13, &[]);
            sketch.event(thread, "ThunkExecutor::Execute", at + 5, 5, &[]);
        }
        sketch.event(thread, "DevicePut", start + 700, 100, &[]);
        sketch.event(thread, "TFE_DeleteTensorHandle", start + 800, 150, &[]);
    }
    let trace = sketch.finish();
    let eager = Eager::of(&Context::new(&trace, "host"));
    assert_eq!((eager.ops, eager.steps), (90, 3));
    assert_eq!(eager.types, BTreeMap::from([("add".to_owned(), 90)]));
    assert_eq!(eager.between, Dur::from_us(3 * 29 * 5));
    assert_eq!(eager.longest_call().map(|(name, _)| name), Some("DevicePut"));
}

/// Python between ops that is long in each step at the same place, and once per step anywhere.
#[test]
fn a_pause_at_a_place_that_is_short_elsewhere_is_an_interruption() {
    let between = |random: bool| {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let mut at = 0;
        for step in 0..4 {
            let start = at;
            for op in 0..40 {
                let here = if random { op == 3 + 7 * step } else { op == 39 };
                let name = if op == 39 { "aten::sum" } else { "aten::mul" };
                sketch.event_of(thread, "cpu_op", name, at, 10, &[]);
                at += 10 + if here { 4_000 } else { 10 };
            }
            sketch.event_of(thread, "cpu_op", "aten::mean", at, 10, &[]);
            at += 10;
            let marker = format!("ProfilerStep#{step}");
            sketch.event_of(thread, "user_annotation", &marker, start, at - start, &[]);
        }
        let trace = sketch.finish();
        Eager::of(&Context::new(&trace, "host")).between
    };
    assert_eq!(between(true), Dur::from_us(4 * (39 * 10 + 4_000)));
    assert_eq!(between(false), Dur::from_us(4 * 39 * 10));
}

/// Twelve marked steps of 30 eager ops of TensorFlow, with a pause of 8 ms in each: at one place, or at another each time.
#[test]
fn a_pause_at_another_place_in_each_step_is_an_interruption() {
    let between = |moves: bool| {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let mut at = 0;
        for step in 0..12 {
            let start = at;
            for op in 0..30 {
                sketch.event(thread, "TFE_Py_FastPathExecute_C", at, 20, &[]);
                let long = if moves { op == 2 * step + 1 } else { op == 7 };
                at += 20 + if long { 8_000 } else { 10 };
            }
            sketch.event(thread, "train", start, at - start, &[("step_num", Arg::Int(step))]);
        }
        let trace = sketch.finish();
        Eager::of(&Context::new(&trace, "host")).between
    };
    assert_eq!(between(true), Dur::from_us(12 * (28 * 10 + 8_000)));
    assert_eq!(between(false), Dur::from_us(12 * 28 * 10), "the program's own");
}

/// The Python between eager ops of four marked steps: `ops` of 10 µs each, with the same pause after each but every
/// fourth.
fn between(ops: i64, pause: i64, fourth: i64) -> Dur {
    let mut sketch = Sketch::new();
    let thread = sketch.thread("python");
    let mut at = 0;
    for step in 0..4 {
        let start = at;
        for op in 0..ops {
            sketch.event_of(thread, "cpu_op", "aten::mul", at, 10, &[]);
            at += 10 + if op % 4 == 3 { fourth } else { pause };
        }
        let marker = format!("ProfilerStep#{step}");
        sketch.event_of(thread, "user_annotation", &marker, start, at - start, &[]);
    }
    let trace = sketch.finish();
    Eager::of(&Context::new(&trace, "host")).between
}

/// Four marked steps of nested ops: 30 of 40 µs with one of 30 µs inside, and one of 5 ms.
#[test]
fn own_times_of_short_ops_and_python_of_ordinary_calls_are_known() {
    let mut sketch = Sketch::new();
    let thread = sketch.thread("python");
    for step in 0..4 {
        let start = step * 10_000;
        let marker = format!("ProfilerStep#{step}");
        sketch.event_of(thread, "user_annotation", &marker, start, 10_000, &[]);
        for op in 0..30 {
            sketch.event_of(thread, "cpu_op", "aten::linear", start + 300 + op * 50, 40, &[]);
            sketch.event_of(thread, "cpu_op", "aten::addmm", start + 305 + op * 50, 30, &[]);
        }
        sketch.event_of(thread, "cpu_op", "aten::mm", start + 2_100, 5_000, &[]);
    }
    let trace = sketch.finish();
    let eager = Eager::of(&Context::new(&trace, "host"));
    assert_eq!((eager.all_ops, eager.short_ops), (4 * 61, Dur::from_us(4 * 30 * 40)));
    assert_eq!(eager.types.get("aten::linear"), Some(&(4 * 30)), "{:?}", eager.types);
    assert_eq!(eager.between, Dur::from_us(4 * 29 * 10));
    assert_eq!(eager.around, Dur::from_us(4 * (300 + 310)), "the wait at the end is too long for a call");
}

#[test]
fn wrappers_of_a_layer_or_a_parameter_are_the_cost_of_eager_ops_and_other_python_is_not() {
    assert_eq!(between(40, 10, 150), Dur::from_us(4 * (30 * 10 + 9 * 150)), "the last has no next op");
    assert_eq!(between(40, 10, 1_000), Dur::from_us(4 * 30 * 10));
    assert_eq!(between(40, 5_000, 5_000), Dur::ZERO, "alike, but too long for any wrapper");
}
