//! Scenes with several devices or processes, and partial recordings of a scene.

use super::host::{COLLECTIVES, COMPUTE, Host, all_reduce};
use super::model::{ALL_REDUCE, GEMM};
use super::scenes::{Owner, Shape, healthy};
use super::{Call, Cause, Ns, Scene, What};

/// Ranks that sum their gradients in every step; with `slow`, one of them computes longer.
pub fn ranks(shape: Shape, count: i64, slow: bool) -> Scene {
    let mut hosts: Vec<Host> = (0..count).map(|rank| shape.host(4_000 + rank)).collect();
    for number in 0..shape.steps {
        let begun: Vec<Ns> = hosts.iter().map(|host| host.now).collect();
        for (rank, host) in (0..).zip(&mut hosts) {
            let late = slow && rank == 2;
            host.model(&shape.kernels(if late { 110 } else { 60 }, GEMM));
            host.order(COLLECTIVES, COMPUTE);
        }
        all_reduce(&mut hosts, ALL_REDUCE, shape.part(5));
        for (host, begun) in hosts.iter_mut().zip(begun) {
            host.order(COMPUTE, COLLECTIVES);
            host.marked_step(number, begun);
        }
    }
    let cause = if slow { Cause::Straggler } else { Cause::Healthy };
    shape.recorded(cause, " ranks", hosts, &Owner::Open)
}

/// One process that gives two devices the same work.
pub fn two_devices(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    host.op_ns /= 2;
    host.launch_ns /= 2;
    shape.each_step(&mut host, |host, _| {
        host.within(What::Function("train_step"), |host| {
            for (kernel, time) in shape.kernels(98, GEMM) {
                for device in [1, 0] {
                    host.device = device;
                    host.launch(COMPUTE, kernel, time);
                }
            }
        });
    });
    shape.recorded(Cause::Healthy, " two devices", vec![host], &Owner::Open)
}

/// Two processes that alternate on one device: each computes half of the time, and waits for the other.
pub fn shared_device(shape: Shape) -> Scene {
    let mut hosts: Vec<Host> = (0..2).map(|process| shape.host(4_000 + process)).collect();
    for number in 0..shape.steps {
        let begun: Vec<Ns> = hosts.iter().map(|host| host.now).collect();
        for (process, begun) in begun.into_iter().enumerate() {
            let other = hosts[1 - process].device_end();
            let host = &mut hosts[process];
            host.busy_until(COMPUTE, other);
            host.model(&shape.kernels(48, GEMM));
            host.wait(Call::StreamSynchronize, Some(COMPUTE));
            host.marked_step(number, begun);
        }
    }
    shape.recorded(Cause::SharedDevice, "", hosts, &Owner::Open)
}

/// The end of a healthy scene, recorded from the middle of a step on.
pub fn tail(shape: Shape) -> Scene {
    let mut scene = healthy(Shape { marked: false, ..shape });
    let until = scene.runs.iter().flat_map(|run| &run.events).map(|event| event.end).max().unwrap_or(0);
    let from = until - scene.step * shape.steps * 6 / 10;
    scene.runs = scene.runs.into_iter().map(|run| run.cut(from, until)).collect();
    scene.name.push_str(" tail");
    scene
}

/// A scene of which only the device side and the device calls were recorded.
pub fn calls_alone(mut scene: Scene) -> Scene {
    for run in &mut scene.runs {
        run.events.retain(|event| {
            !matches!(
                event.what,
                What::Op(_) | What::Python(_) | What::WaitForBatch | What::Function(_) | What::Compile
            )
        });
    }
    scene.name.push_str(" calls alone");
    scene
}
