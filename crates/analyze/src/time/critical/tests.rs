//! Steps with a known path, drawn by hand. Times are in microseconds.

use stepscope_trace::{Dur, Trace};

use super::*;
use crate::sketch::{Arg, Sketch};

/// What a step of 1,000 µs consists of.
#[derive(Clone, Copy)]
enum Put {
    /// A call that launches a kernel: when, how long; the kernel's name, when, how long.
    Launch(i64, i64, &'static str, i64, i64),
    /// A wait.
    Wait(i64, i64),
    /// An op on the loop's thread.
    Op(&'static str, i64, i64),
    /// An op on another thread, with a launch inside.
    Other(i64, i64, &'static str, i64, i64),
}

/// Five equal steps.
fn trace(of: &[Put]) -> Trace {
    let mut sketch = Sketch::new();
    let (thread, other, stream) = (sketch.thread("python"), sketch.thread("backward"), sketch.stream());
    sketch.steps(thread, 5, 1_000);
    let mut number = 0;
    for step in 0..5 {
        let at = step * 1_000;
        for put in of {
            let id = |number: i64| [("correlation", Arg::Int(number))];
            let mut launch = |sketch: &mut Sketch, from, call: (i64, i64), kernel: (&str, i64, i64)| {
                number += 1;
                sketch.event_of(from, "cuda_runtime", "cudaLaunchKernel", at + call.0, call.1, &id(number));
                sketch.event_of(stream, "kernel", kernel.0, at + kernel.1, kernel.2, &id(number));
            };
            match *put {
                Put::Launch(start, dur, name, from, long) => {
                    launch(&mut sketch, thread, (start, dur), (name, from, long));
                }
                Put::Wait(start, dur) => {
                    sketch.event_of(thread, "cuda_runtime", "cudaStreamSynchronize", at + start, dur, &[]);
                }
                Put::Op(name, start, dur) => {
                    sketch.event_of(thread, "cpu_op", name, at + start, dur, &[]);
                }
                Put::Other(start, dur, name, from, long) => {
                    sketch.event_of(other, "cpu_op", "aten::mm_backward", at + start, dur, &[]);
                    launch(&mut sketch, other, (start + 10, dur - 20), (name, from, long));
                }
            }
        }
    }
    sketch.finish()
}

fn path(of: &[Put]) -> CriticalPath {
    CriticalPath::numbered(&Context::new(&trace(of), "host"), 2).unwrap()
}

/// The path in short: what, name, from and until within the step.
fn told(path: &CriticalPath, trace: &Trace) -> Vec<(Piece, String, i64, i64)> {
    let us = |at: stepscope_trace::Time| at.ns() / 1_000 - 2_000;
    let name = |link: &Link| {
        link.event.map_or(String::new(), |event| {
            trace.kind_name(trace.track(event.track).kind_of(event.index as usize)).to_owned()
        })
    };
    let links = path.links.iter();
    links.map(|link| (link.piece, name(link), us(link.span.start), us(link.span.end))).collect()
}

fn tiles(path: &CriticalPath) {
    let mut now = path.window.start;
    for link in &path.links {
        assert_eq!(link.span.start, now, "{:?}", path.links);
        now = link.span.end;
    }
    assert_eq!(now, path.window.end);
    let sum: Dur = path.categories().into_iter().map(|(_, time)| time).sum();
    assert_eq!(sum, path.window.dur(), "categories sum to the step");
    let owned: Dur = path.owners.iter().map(|owner| owner.on_path).sum();
    assert_eq!(owned, path.window.dur(), "owners sum to the step");
}

#[test]
fn a_step_that_waits_for_its_kernels_is_theirs() {
    // The host launches two kernels, then waits; the second queues behind the first.
    let of = [
        Put::Op("aten::mm", 100, 60),
        Put::Launch(120, 10, "gemm", 140, 500),
        Put::Launch(200, 10, "relu", 640, 200),
        Put::Wait(300, 550),
        Put::Op("aten::log", 860, 100),
    ];
    let found = path(&of);
    tiles(&found);
    let want = [
        (Piece::Between, "", 0, 100),
        (Piece::Host, "aten::mm", 100, 120),
        (Piece::Launch, "cudaLaunchKernel", 120, 130),
        (Piece::Latency, "cudaLaunchKernel", 130, 140),
        (Piece::Kernel, "gemm", 140, 640),
        (Piece::Kernel, "relu", 640, 840),
        (Piece::Wake, "cudaStreamSynchronize", 840, 850),
        (Piece::Between, "", 850, 860),
        (Piece::Host, "aten::log", 860, 960),
        (Piece::Between, "", 960, 1_000),
    ];
    let want: Vec<_> = want.map(|(piece, name, from, to)| (piece, name.to_owned(), from, to)).into();
    assert_eq!(told(&found, &trace(&of)), want);
    // The second launch could have come 430 µs later: its kernel had to queue, and the host waited anyway.
    let launch = found.owners.iter().find(|owner| owner.piece == Piece::Launch).unwrap();
    assert_eq!((launch.on_path, launch.off_path), (Dur::from_us(10), Dur::from_us(10)));
    assert_eq!(launch.slack, Some(Dur::from_us(430)));
    // So could the rest of the op after its launch.
    let op = found.owners.iter().find(|owner| owner.name == "aten::mm").unwrap();
    assert_eq!((op.off_path, op.slack), (Dur::from_us(30), Some(Dur::from_us(430))));
}

#[test]
fn a_step_that_the_host_bounds_leaves_slack_to_kernels() {
    // Kernels are short; the host never waits until the end.
    let of = [
        Put::Launch(100, 10, "gemm", 120, 80),
        Put::Op("aten::item", 300, 400),
        Put::Launch(800, 10, "relu", 820, 50),
        Put::Wait(850, 30),
    ];
    let found = path(&of);
    tiles(&found);
    let on = |piece, name: &str| {
        let owner = found.owners.iter().find(|owner| owner.piece == piece && owner.name == name);
        owner.map(|owner| (owner.on_path, owner.slack))
    };
    assert_eq!(on(Piece::Kernel, "relu"), Some((Dur::from_us(50), None)));
    assert_eq!(on(Piece::Host, "aten::item"), Some((Dur::from_us(400), None)));
    // The first kernel ends at 200; the second starts at 820.
    assert_eq!(on(Piece::Kernel, "gemm"), Some((Dur::ZERO, Some(Dur::from_us(620)))));
}

#[test]
fn the_thread_of_the_backward_pass_is_part_of_the_path() {
    let of = [
        Put::Op("aten::forward", 100, 200),
        Put::Other(310, 290, "gemm_backward", 620, 100),
        Put::Wait(650, 80),
        Put::Op("aten::step", 740, 250),
    ];
    let found = path(&of);
    tiles(&found);
    let names: Vec<(Piece, String)> =
        told(&found, &trace(&of)).into_iter().map(|(piece, name, ..)| (piece, name)).collect();
    for (piece, name) in [
        (Piece::Host, "aten::forward"),
        (Piece::Host, "aten::mm_backward"),
        (Piece::Launch, "cudaLaunchKernel"),
        (Piece::Kernel, "gemm_backward"),
        (Piece::Host, "aten::step"),
    ] {
        assert!(names.contains(&(piece, name.to_owned())), "{piece:?} {name}: {names:?}");
    }
}

#[test]
fn a_stream_that_waits_for_another_follows_it() {
    // The host is far ahead: everything is queued. The exchange runs on a stream of its own, after the kernels.
    let mut sketch = Sketch::new();
    let (thread, stream) = (sketch.thread("python"), sketch.stream());
    let other = sketch.second_stream(stream);
    sketch.steps(thread, 5, 100);
    for step in 0..5 {
        let (call, at) = (step * 100, step * 1_000 + 600);
        let id = |number: i64| [("correlation", Arg::Int(step * 10 + number))];
        let mut launch = |name: &str, from: i64, number: i64, on, start: i64, dur: i64| {
            sketch.event_of(thread, "cuda_runtime", "cudaLaunchKernel", call + from, 5, &id(number));
            sketch.event_of(on, "kernel", name, start, dur, &id(number));
        };
        launch("gemm", 10, 1, stream, at, 700);
        launch("ncclDevKernel_AllReduce(x)", 40, 2, other, at + 702, 290);
        sketch.event_of(thread, "cuda_runtime", "cudaStreamWaitEvent", call + 30, 2, &[]);
    }
    let trace = sketch.finish();
    let found = CriticalPath::numbered(&Context::new(&trace, "host"), 2).unwrap();
    tiles(&found);
    assert!(found.inferred);
    let on = |name: &str| found.owners.iter().find(|owner| owner.name.starts_with(name)).unwrap().on_path;
    assert_eq!(on("gemm"), Dur::from_us(700));
    assert_eq!(on("nccl"), Dur::from_us(290));
    assert_eq!(found.own(), found.window.dur() - Dur::from_us(290));
}

#[test]
fn what_is_not_recorded_is_unknown() {
    let none = |trace: &Trace| CriticalPath::typical(&Context::new(trace, "host")).unwrap_err();
    let mut sketch = Sketch::new();
    let (thread, stream) = (sketch.thread("python"), sketch.stream());
    sketch.steps(thread, 5, 1_000);
    for step in 0..5 {
        sketch.event_of(stream, "kernel", "gemm", step * 1_000 + 100, 500, &[]);
    }
    assert_eq!(none(&sketch.finish()), NoPath::Launches, "no correlation ids");
    let mut sketch = Sketch::new();
    let thread = sketch.thread("python");
    sketch.steps(thread, 5, 1_000);
    sketch.event_of(thread, "cpu_op", "aten::mm", 10, 400, &[]);
    assert_eq!(none(&sketch.finish()), NoPath::Device);
    // Half of the kernels were launched before the recording began.
    let mut sketch = Sketch::new();
    let (thread, stream) = (sketch.thread("python"), sketch.stream());
    sketch.steps(thread, 5, 1_000);
    for step in 0..5 {
        let (at, id) = (step * 1_000, [("correlation", Arg::Int(step + 1))]);
        sketch.event_of(thread, "cuda_runtime", "cudaLaunchKernel", at + 10, 5, &id);
        sketch.event_of(stream, "kernel", "gemm", at + 100, 300, &id);
        sketch.event_of(stream, "kernel", "orphan", at + 400, 300, &[("correlation", Arg::Int(900 + step))]);
    }
    assert_eq!(none(&sketch.finish()), NoPath::Cut(0.5));
}
