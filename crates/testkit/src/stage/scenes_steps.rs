//! Scenes about what a step is: loops that never do exactly the same twice, requests on several threads, a device whose
//! recording ends early, kernels that repeat in a corner of the recording.

use super::host::COMPUTE;
use super::model::GEMM;
use super::scenes::{Owner, Shape, healthy, kernels};
use super::{Call, Cause, Direction, Event, Kernel, Ns, Place, Run, Scene, What};

/// The kernels of a step in another order in every step, some of them left out.
fn shuffled(shape: &Shape, hundredths: Ns, number: i64) -> Vec<(Kernel, Ns)> {
    let mut all = shape.kernels(hundredths, GEMM);
    let (count, turn) = (all.len(), number as usize);
    for at in 1..count {
        all.swap(at, (at * 7 + turn * turn * 13) % (at + 1));
    }
    let without = (turn * 5 % 4).min(count / 8);
    all.truncate(count - without);
    all
}

/// Passes whose kernels differ a little from one to the next; after each, the host waits for the device.
pub fn awaited(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    (host.op_ns, host.launch_ns) = (0, host.launch_ns.min(3_000));
    shape.each_step(&mut host, |host, number| {
        for (kernel, time) in shuffled(&shape, 98, number) {
            host.launch_alone(COMPUTE, kernel, time);
        }
        host.wait(Call::DeviceSynchronize, None);
    });
    shape.recorded(Cause::Healthy, " awaited", vec![host], &Owner::Of(kernels))
}

/// One graph per step, and other kernels that differ from one step to the next.
pub fn replayed(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    (host.op_ns, host.launch_ns) = (0, host.launch_ns.min(3_000));
    let graph = shape.kernels(90, GEMM);
    shape.each_step(&mut host, |host, number| {
        host.launch_graph(&graph, false);
        for (kernel, time) in shuffled(&shape, 8, number) {
            host.launch_alone(COMPUTE, kernel, time);
        }
    });
    shape.recorded(Cause::Healthy, " replayed", vec![host], &Owner::Of(kernels))
}

/// A healthy loop whose device was recorded for the first two thirds of it only.
pub fn device_ends_early(shape: Shape) -> Scene {
    let mut scene = healthy(shape);
    let until = scene.step * shape.steps * 2 / 3;
    for run in &mut scene.runs {
        run.events.retain(|event| matches!(event.place, Place::Thread(_)) || event.end <= until);
    }
    scene.name.push_str(" device ends early");
    scene
}

/// Requests that three threads answer at once on one device, which computes all the time: one answer per step.
pub fn side_by_side(shape: Shape) -> Scene {
    const THREADS: i64 = 3;
    let mut run = Run { pid: 4_000, events: Vec::new() };
    let mut id = 100;
    for number in 0..shape.steps {
        let thread = Place::Thread(1 + number % THREADS);
        let start = 2_000_000 + number * shape.step;
        // Its kernels wait until those of the two requests before are done.
        let mut free = start + (THREADS - 1) * shape.step;
        let end = free + shape.step - 1_000;
        let mut add = |place, what, start, end, id| run.events.push(Event { place, what, start, end, id });
        add(thread, What::Request(number), start, end, 0);
        for (at, (kernel, time)) in (0..).zip(shape.kernels(96, GEMM)) {
            id += 1;
            let called = start + 10_000 + at * 5_000;
            add(thread, What::Call(Call::Launch), called, called + 3_000, id);
            let place = Place::Stream { device: 0, stream: COMPUTE };
            add(place, What::Kernel(kernel), free, free + time, id);
            free += time + 200;
        }
        let last = end - start - 5_000;
        add(thread, What::Call(Call::StreamSynchronize), start + last / 2, start + last, 0);
    }
    let name = format!("Requests side by side {}us x{}", shape.step / 1_000, shape.steps);
    Scene {
        name,
        cause: Cause::Requests,
        runs: vec![run],
        marked: true,
        steps: shape.steps,
        step: shape.step,
        share: f64::NAN,
        idle: f64::NAN,
    }
}

/// Nine kernels that warm up, then nothing but copies.
pub fn copies_after_warm_up(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    for _ in 0..9 {
        host.launch_alone(COMPUTE, GEMM, 300_000);
    }
    let first = host.now;
    for number in 0..shape.steps {
        // As long as the copies before it are: none is like another.
        host.copy(COMPUTE, Direction::In, true, shape.step + shape.part(number * number % 37 * 5));
    }
    host.marked_step(0, first);
    let unmarked = Shape { marked: false, ..shape };
    unmarked.recorded(Cause::PinnedCopies, " without steps", vec![host], &Owner::Open)
}

/// A healthy loop that tells its profiler twice per iteration: after each step comes a mark around nothing.
pub fn empty_marks(shape: Shape) -> Scene {
    let mut scene = healthy(Shape { marked: true, ..shape });
    for run in &mut scene.runs {
        let mut empty = Vec::new();
        for event in &mut run.events {
            let What::Step(number) = event.what else { continue };
            event.what = What::Step(2 * number);
            // The loop goes on 2 µs after a step.
            let (start, end) = (event.end + 200, event.end + 1_800);
            empty.push(Event { what: What::Step(2 * number + 1), start, end, ..event.clone() });
        }
        run.events.extend(empty);
    }
    scene.name.push_str(" empty marks");
    scene
}

/// A healthy loop without marks inside one range that has the name of the program.
pub fn named_program(shape: Shape) -> Scene {
    let mut scene = healthy(Shape { marked: false, ..shape });
    for run in &mut scene.runs {
        let times = || run.events.iter().flat_map(|event| [event.start, event.end]);
        let (start, end) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
        let what = What::Range("experiment");
        run.events.push(Event {
            place: Place::Thread(0),
            what,
            start: start - 1_000,
            end: end + 1_000,
            id: 0,
        });
    }
    scene.name.push_str(" named program");
    scene
}

/// Iterations that never do exactly the same twice, each in a range with a name of the user's.
pub fn named_turns(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, number| {
        host.within(What::Range("turn"), |host| {
            for (kernel, time) in shuffled(&shape, 98, number) {
                host.launch(COMPUTE, kernel, time);
            }
        });
    });
    let unmarked = Shape { marked: false, ..shape };
    unmarked.recorded(Cause::Healthy, " named turns", vec![host], &Owner::Of(kernels))
}

/// Batches of two sizes in turn: every other step takes three times as long.
pub fn alternating(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, number| {
        host.model(&shape.kernels(if number % 2 == 0 { 45 } else { 145 }, GEMM));
        host.wait(Call::DeviceSynchronize, None);
    });
    shape.recorded(Cause::Healthy, " alternating", vec![host], &Owner::Open)
}

/// How many steps an epoch of [`epochs`] has, and how many steps' time passes between two of them.
pub const EPOCH: (i64, i64) = (6, 9);

/// A healthy loop with a pause after each epoch, of which nothing was recorded.
pub fn epochs(shape: Shape) -> Scene {
    let mut host = shape.host(4_000);
    shape.each_step(&mut host, |host, number| {
        if number > 0 && number % EPOCH.0 == 0 {
            host.wait(Call::DeviceSynchronize, None);
            host.pause(EPOCH.1 * shape.step);
        }
        host.model(&shape.kernels(98, GEMM));
    });
    shape.recorded(Cause::Healthy, " epochs", vec![host], &Owner::Open)
}
