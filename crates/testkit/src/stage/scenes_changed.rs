//! Scenes that are played twice: as they are, and with one thing changed. Only the first is recorded; how long a step takes
//! in the second is the truth for a prediction.

use super::host::{COLLECTIVES, COMPUTE, Host};
use super::model::{ALL_REDUCE, GEMM, SGEMM};
use super::scenes::{Owner, Shape};
use super::{Call, Cause, Direction, Kernel, Ns, Scene, What};

/// A scene, a change, and the step after it.
pub struct Changed {
    /// What is played before.
    pub before: Scene,
    /// What is changed.
    pub change: Change,
    /// How long a step takes then.
    pub after: Ns,
}

/// What is changed.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum Change {
    /// Batches are there at once.
    InputFree,
    /// One call launches everything.
    LaunchGraph,
    /// This kernel becomes so many times as fast.
    Faster(Kernel, f64),
    /// The host does not wait for the device.
    NoSync,
    /// Python takes half as long.
    PythonHalf,
}

/// All scenes of a shape.
pub fn all(shape: Shape) -> Vec<Changed> {
    let mut all = Vec::new();
    for read in [false, true] {
        let input = |wait: Ns| {
            played(shape, |host| {
                host.wait_for_batch(shape.part(wait));
                host.copy(COMPUTE, Direction::In, true, shape.part(1));
                host.model(&shape.kernels(45, GEMM));
                if read {
                    host.item();
                }
            })
        };
        all.push(pair(shape, Cause::Input, Change::InputFree, input(60), input(0)));
        let python = |part: Ns| {
            played(shape, |host| {
                host.model(&shape.kernels(35, GEMM));
                if read {
                    host.item();
                }
                host.python("update_metrics", shape.part(part));
            })
        };
        all.push(pair(shape, Cause::Python, Change::PythonHalf, python(60), python(30)));
        let products = |kernel_time: f64| {
            played(shape, |host| {
                host.copy(COMPUTE, Direction::In, true, shape.part(1));
                host.model(&faster(shape.kernels(98, SGEMM), SGEMM, kernel_time));
                if read {
                    host.item();
                }
            })
        };
        let change = Change::Faster(SGEMM, 2.0);
        all.push(pair(shape, Cause::SinglePrecision, change, products(1.0), products(0.5)));
    }
    all.push(pair(
        shape,
        Cause::Launching,
        Change::LaunchGraph,
        launching(shape, false),
        launching(shape, true),
    ));
    all.push(pair(shape, Cause::Waiting, Change::NoSync, waiting(shape, true), waiting(shape, false)));
    let free = Change::Faster(ALL_REDUCE, 4.0);
    all.push(pair(shape, Cause::Communication, free, communication(shape, 40), communication(shape, 10)));
    all
}

fn pair(shape: Shape, cause: Cause, change: Change, before: Host, after: Host) -> Changed {
    let after = after.usual_step();
    Changed { before: shape.recorded(cause, " changed", vec![before], &Owner::Open), change, after }
}

fn played(shape: Shape, mut inside: impl FnMut(&mut Host)) -> Host {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, _| inside(host));
    host
}

fn faster(kernels: Vec<(Kernel, Ns)>, which: Kernel, factor: f64) -> Vec<(Kernel, Ns)> {
    let scaled = |time: Ns| (time as f64 * factor) as Ns;
    kernels
        .into_iter()
        .map(|(kernel, time)| (kernel, if kernel == which { scaled(time) } else { time }))
        .collect()
}

/// Kernels that take a third of the time needed to launch them, one by one or as a graph.
fn launching(shape: Shape, graph: bool) -> Host {
    let mut host = Host::new(4_000);
    host.launch_ns = shape.step / shape.kernels as Ns / 2;
    host.op_ns = host.launch_ns;
    let kernels = shape.kernels(30, GEMM);
    shape.each_step(&mut host, |host, _| match graph {
        true => host.within(What::Function("train_step"), |host| host.launch_graph(&kernels, false)),
        false => host.model(&kernels),
    });
    host
}

/// After each of four parts the host waits, or does not.
fn waiting(shape: Shape, waits: bool) -> Host {
    let mut host = shape.host(4_000);
    host.op_ns = 0;
    shape.each_step(&mut host, |host, _| {
        let kernels = shape.kernels(60, GEMM);
        for part in kernels.chunks(kernels.len().div_ceil(4)) {
            host.within(What::Op("aten::where"), |host| host.pause(shape.part(10)));
            host.function("part", part);
            if waits {
                host.wait(Call::StreamSynchronize, Some(COMPUTE));
            }
        }
    });
    host
}

/// Gradients are summed after the backward pass, and the next step waits for them.
fn communication(shape: Shape, part: Ns) -> Host {
    played(shape, |host| {
        host.model(&shape.kernels(60, GEMM));
        host.order(COLLECTIVES, COMPUTE);
        host.launch(COLLECTIVES, ALL_REDUCE, shape.part(part));
        host.order(COMPUTE, COLLECTIVES);
    })
}
