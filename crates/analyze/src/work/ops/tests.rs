use super::*;
use crate::sketch::{Arg, Sketch};

fn ops_of(sketch: Sketch) -> Ops {
    OpsPartial::of(&Context::new(&sketch.finish(), "host")).finish()
}

fn row<'o>(ops: &'o Ops, name: &str) -> &'o OpRow {
    ops.rows.iter().find(|row| row.key.name == name).unwrap_or_else(|| panic!("no {name} in {ops:#?}"))
}

#[test]
fn self_time_leaves_out_the_ops_inside() {
    let mut sketch = Sketch::new();
    let python = sketch.thread("python");
    sketch.steps(python, 4, 1_000);
    let worker = sketch.thread("tf_Compute/1");
    for step in 0..4 {
        let at = step * 1_000;
        sketch.event(worker, "while/body:While", at + 100, 500, &[]);
        sketch.event(worker, "a/MatMul:MatMul", at + 150, 200, &[("shape", Arg::Text("(float[2,2])"))]);
        sketch.event(worker, "b/MatMul:MatMul", at + 400, 100, &[]);
    }
    let ops = ops_of(sketch);
    assert_eq!(ops.window, Window::Steps(4));
    assert_eq!(row(&ops, "while/body").self_ms, 0.8);
    assert_eq!(row(&ops, "while/body").total_ms, 2.0);
    assert_eq!(row(&ops, "a/MatMul").shapes.as_deref(), Some("(float[2,2])"));
    let types = ops.by_type();
    let matmul = row(&types, "MatMul");
    assert_eq!((matmul.count, matmul.self_ms), (8, 1.2));
    assert!((matmul.fraction - 0.6).abs() < 1e-9);
    assert_eq!(types.rows.last().map(|row| row.cumulative), Some(1.0));
}

#[test]
fn of_an_eager_op_only_its_kernel_is_its_own() {
    let mut sketch = Sketch::new();
    let python = sketch.thread("python");
    sketch.steps(python, 3, 1_000);
    for step in 0..3 {
        let at = step * 1_000;
        sketch.event(python, "EagerExecute", at + 90, 320, &[]);
        sketch.event(python, "EagerLocalExecute: MatMul", at + 100, 300, &[]);
        sketch.event(python, "KernelAndDeviceFunc::Run", at + 200, 150, &[]);
        sketch.event(python, "EagerLocalExecute: __inference_f_12", at + 500, 300, &[]);
    }
    let ops = ops_of(sketch);
    assert_eq!(ops.rows.len(), 1, "a function is not an op: {ops:#?}");
    let matmul = row(&ops, "MatMul");
    assert_eq!((matmul.total_ms, matmul.self_ms, matmul.eager), (0.9, 0.45, Some(true)));
}

#[test]
fn ops_of_the_input_pipeline_are_kept_apart() {
    let mut sketch = Sketch::new();
    let python = sketch.thread("python");
    sketch.steps(python, 3, 1_000);
    let pipeline = sketch.thread("tf_data_private_threadpool/1");
    let worker = sketch.thread("tf_Compute/1");
    for step in 0..3 {
        let at = step * 1_000;
        sketch.event(pipeline, "Iterator::Root::Map", at + 10, 500, &[]);
        sketch.event(pipeline, "map/DecodeJpeg:DecodeJpeg", at + 20, 400, &[]);
        sketch.event(worker, "a/MatMul:MatMul", at + 600, 100, &[]);
    }
    let ops = ops_of(sketch);
    assert!(row(&ops, "map/DecodeJpeg").key.input);
    let model: Vec<&str> = ops.model().map(|row| row.key.name.as_str()).collect();
    assert_eq!(model, ["a/MatMul"]);
    assert_eq!(row(&ops, "a/MatMul").fraction, 1.0);
}

#[test]
fn kernels_belong_to_the_op_that_launched_them() {
    let mut sketch = Sketch::new();
    let python = sketch.thread("thread 1 (python)");
    sketch.steps(python, 3, 1_000);
    let stream = sketch.stream();
    for step in 0..3 {
        let at = step * 1_000;
        let id = || [("correlation", Arg::Int(step + 1))];
        sketch.event_of(python, "cpu_op", "aten::linear", at, 100, &[]);
        sketch.event_of(python, "cpu_op", "aten::addmm", at + 10, 80, &[]);
        sketch.event_of(python, "cuda_runtime", "cudaLaunchKernel", at + 20, 10, &id());
        sketch.event_of(stream, "kernel", "void gemm<float>(float*)", at + 200, 300, &id());
        let tf = [("level 0", Arg::Text("dense/MatMul:MatMul"))];
        sketch.event(stream, "volta_sgemm", at + 600, 50, &tf);
        sketch.event(stream, "MemcpyH2D", at + 700, 10, &[("memcpy_details", Arg::Text("size:1000 dest:0"))]);
    }
    let ops = ops_of(sketch);
    assert_eq!(ops.side(), Where::Device);
    let device =
        |name: &str| ops.rows.iter().find(|row| row.key.side == Where::Device && row.key.name == name);
    assert_eq!(device("aten::addmm").map(|row| row.total_ms), Some(0.9));
    assert_eq!(device("dense/MatMul").map(|row| row.key.kind.as_str()), Some("MatMul"));
    let copy = device("MemcpyH2D").unwrap();
    assert_eq!((copy.key.kind.as_str(), copy.bytes_per_s), ("Memcpy", Some(1e8)));
}

#[test]
fn long_threads_are_cut_without_changing_a_figure() {
    let mut sketch = Sketch::new();
    let worker = sketch.thread("tf_Compute/1");
    let rounds = 150_000;
    for round in 0..rounds {
        let at = round * 10;
        sketch.event(worker, "outer:Outer", at, 9, &[]);
        sketch.event(worker, "inner:Inner", at + 1, 4, &[]);
        sketch.event(worker, "x", at + 6, 1, &[]);
    }
    // One op that spans several cuts.
    sketch.event(worker, "long:Long", rounds * 10, 3_000_000, &[]);
    for round in 0..300_000 {
        sketch.event(worker, "inner:Inner", rounds * 10 + round * 10, 5, &[]);
    }
    let ops = ops_of(sketch);
    assert_eq!(row(&ops, "outer").count, 150_000);
    assert_eq!(row(&ops, "outer").self_ms, 750.0);
    assert_eq!(row(&ops, "long").self_ms, 1_500.0);
    assert_eq!(row(&ops, "inner").count, 450_000);
}

#[test]
fn hosts_add_up() {
    let host = || {
        let mut sketch = Sketch::new();
        let python = sketch.thread("python");
        sketch.steps(python, 3, 1_000);
        let worker = sketch.thread("tf_Compute/1");
        (0..3).for_each(|step| sketch.event(worker, "a/MatMul:MatMul", step * 1_000 + 10, 100, &[]));
        OpsPartial::of(&Context::new(&sketch.finish(), "host"))
    };
    let mut all = OpsPartial::default();
    all.merge(host());
    all.merge(host());
    let ops = all.finish();
    assert_eq!(ops.window, Window::Steps(6));
    assert_eq!((row(&ops, "a/MatMul").count, row(&ops, "a/MatMul").total_ms), (6, 0.6));
}
