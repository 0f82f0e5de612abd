//! What would break.

use super::*;
use crate::sketch::{Arg, Sketch};

fn functions(sketch: Sketch) -> Functions {
    FunctionsPartial::of(&Context::new(&sketch.finish(), "host")).finish()
}

fn tf_calls(counts: &[i64]) -> Functions {
    let mut sketch = Sketch::new();
    let python = sketch.thread("python");
    sketch.steps(python, counts.len() as i64, 1_000);
    for (step, &count) in counts.iter().enumerate() {
        let at = step as i64 * 1_000;
        let traced = if count > 0 { "traced-nonXla" } else { "notTraced-nonXla" };
        let args = [("tf_function_call", Arg::Text(traced)), ("tracing_count", Arg::Int(count.abs()))];
        sketch.event(python, "step", at + 10, 800, &args);
        if count > 0 {
            sketch.event(python, "tf.function-graph_building", at + 20, 500, &[]);
        }
        let run = format!("EagerLocalExecute: __inference_step_{}", if count > 0 { step } else { 0 });
        sketch.event(python, &run, at + 600, 100, &[]);
    }
    functions(sketch)
}

#[test]
fn climbing_counts_mean_that_arguments_vary() {
    let found = tf_calls(&[1, 2, 3, 4]);
    let row = &found.rows[0];
    assert_eq!((row.calls, row.traces, row.sign), (4, 4, Some(Sign::ArgumentsVary)));
    assert_eq!((row.tracing_ms, row.lost_ms_per_step), (2.0, Some(0.5)));
    assert_eq!(row.concrete_functions, 4);
}

#[test]
fn a_count_that_stays_one_means_a_new_function_each_time() {
    assert_eq!(tf_calls(&[1, 1, 1]).rows[0].sign, Some(Sign::Recreated));
    assert_eq!(tf_calls(&[1, -1, -1]).rows[0].sign, Some(Sign::FirstCallOnly));
    assert_eq!(tf_calls(&[-1, -1, -1]).rows[0].sign, None);
}

#[test]
fn jitted_calls_are_counted_once_though_recorded_twice() {
    let mut sketch = Sketch::new();
    let python = sketch.thread("python");
    sketch.steps(python, 3, 1_000);
    let pool = sketch.thread("tf_PjRtCompilerThreadPool/1");
    for step in 0..3 {
        let at = step * 1_000;
        sketch.event(python, "PjitFunction(f)", at + 10, 900, &[]);
        sketch.event(python, "PjitFunction(f)", at + 11, 898, &[]);
        sketch.event(python, "PjitFunction(tanh)", at + 20, 50, &[]);
        sketch.event(python, "backend_compile_and_load", at + 110, 500, &[]);
        sketch.event(pool, "CpuCompiler::RunBackend", at + 150, 300, &[("name", Arg::Text("jit_f"))]);
    }
    let found = functions(sketch);
    assert_eq!(found.rows.len(), 1, "{found:#?}");
    let row = &found.rows[0];
    assert_eq!((row.name.as_str(), row.calls, row.compiles), ("f", 3, 3));
    assert_eq!((row.compile_ms, row.tracing_ms), (1.5, 0.3));
    let unknown = Some(Sign::ShapesVaryOrRecreated);
    assert_eq!((row.sign, row.modules.as_slice()), (unknown, &["jit_f".to_owned()][..]));
}

#[test]
fn a_frame_of_jit_before_each_call_means_a_new_function_each_time() {
    let sign = |made: bool| {
        let mut sketch = Sketch::new();
        let python = sketch.thread("python");
        sketch.steps(python, 3, 1_000);
        for step in 0..3 {
            let at = step * 1_000;
            let frame = if made { "$train.py:7 body" } else { "$dispatch.py:98 xla_primitive_callable" };
            sketch.event(python, frame, at + 1, 15, &[]);
            sketch.event(python, "$api.py:194 jit", at + 5, 10, &[]);
            sketch.event(python, "PjitFunction(ones)", at + 16, 10, &[]);
            sketch.event(python, "PjitFunction(f)", at + 30, 900, &[]);
            sketch.event(python, "backend_compile_and_load", at + 110, 500, &[]);
        }
        functions(sketch).rows[0].sign
    };
    assert_eq!(sign(true), Some(Sign::Recreated));
    assert_eq!(sign(false), Some(Sign::ShapesVary));
}
