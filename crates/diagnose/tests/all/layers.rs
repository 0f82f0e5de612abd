//! Rules about layers that could run faster, on steps whose ops are named as TensorFlow names them.
#![allow(clippy::unwrap_used, reason = "what helps a test may fail it")]

use stepscope_analyze::Context;
use stepscope_analyze::session::{HostPartial, Session};
use stepscope_diagnose::Facts;
use stepscope_diagnose::{Finding, diagnose};
use stepscope_trace::{Datum, Dur, Kind, ProcessKind, Time, TraceBuilder, TrackKind};

const STEPS: i64 = 10;
const LENGTH: i64 = 1_000;

/// Findings on marked steps of 1 ms whose ops follow one another, each with its length in microseconds.
fn findings(ops: &[(&str, i64)]) -> Vec<Finding> {
    let mut builder = TraceBuilder::new();
    let name = builder.strings.intern("/host:CPU");
    let host = builder.process(name, ProcessKind::Host, 1);
    let tracks = ["python", "tf_Compute/1"].map(|name| {
        let name = builder.strings.intern(name);
        builder.track(host, name, TrackKind::Thread, 1, TraceBuilder::ARENA)
    });
    let number = builder.strings.intern("step_num");
    let kind = |builder: &mut TraceBuilder, name: &str| {
        let name = builder.strings.intern(name);
        builder.kind(Kind::slice(name))
    };
    for step in 0..STEPS {
        let marker = kind(&mut builder, "train");
        let args = builder.arena.push(&[(number, Datum::Int(step))], &[]);
        builder.event(tracks[0], Time::from_ns(step * LENGTH * 1_000), Dur::from_us(LENGTH), marker, args);
        let mut at = step * LENGTH;
        for (name, length) in ops {
            let op = kind(&mut builder, name);
            builder.event(tracks[1], Time::from_ns(at * 1_000), Dur::from_us(*length), op, None);
            at += length;
        }
    }
    let trace = builder.finish();
    let partial = HostPartial::of(&Context::new(&trace, "host"));
    diagnose(&Facts::of(Session::finish(vec![partial]).unwrap()))
}

fn gain(ops: &[(&str, i64)], id: &str) -> Option<f64> {
    findings(ops).into_iter().find(|finding| finding.id() == id)?.gain_ms
}

#[test]
fn batch_normalisation_of_single_ops_saves_two_thirds_of_its_time() {
    let ops = |length: i64| {
        [
            ("conv1/Conv2D:Conv2D", 1_000 - 2 * length),
            ("conv1/BatchNorm/moments/SquaredDifference:SquaredDifference", length),
            ("conv1/BatchNorm/batchnorm/mul_1:Mul", length),
        ]
    };
    let won = gain(&ops(150), "unfused-batch-norm").unwrap();
    assert!((won - 0.3 * 0.67).abs() < 0.01, "{won}");
    assert_eq!(gain(&ops(40), "unfused-batch-norm"), None, "less than a tenth of the step");
    let fused = [("conv1/Conv2D:Conv2D", 700), ("conv1/BatchNorm:FusedBatchNormV3", 300)];
    assert_eq!(gain(&fused, "unfused-batch-norm"), None);
}

#[test]
fn transposes_of_the_layout_optimizer_can_all_go() {
    let ops = |name: &'static str| [("conv1/Conv2D:Conv2D", 800), (name, 200)];
    let put_in = "conv1/Conv2D-0-TransposeNHWCToNCHW-LayoutOptimizer:Transpose";
    let won = gain(&ops(put_in), "layout-transposes").unwrap();
    assert!((won - 0.2).abs() < 0.01, "{won}");
    assert_eq!(gain(&ops("attention/transpose:Transpose"), "layout-transposes"), None);
}
