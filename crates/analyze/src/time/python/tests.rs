//! What would break.

use super::*;
use stepscope_trace::{Kind, TraceBuilder};

#[test]
fn frames_of_both_tracers_are_taken_apart() {
    let frame = |name| {
        let Frame { file, line, function, user } = Frame::of(name);
        (file, line, function, user)
    };
    assert_eq!(frame("$train.py:12 load"), ("train.py".into(), Some(12), "load".into(), true));
    assert_eq!(frame("$pjit.py:98 cache_miss"), ("pjit.py".into(), Some(98), "cache_miss".into(), false));
    assert_eq!(frame("$builtins next"), ("builtins".into(), None, "next".into(), false));
    assert_eq!(frame("train.py(7): <module>"), ("train.py".into(), Some(7), "<module>".into(), true));
    assert!(!Frame::of("torch/nn/modules/module.py(1511): _call_impl").user);
    assert!(!Frame::of("/usr/lib/python3.12/site-packages/x/y.py(1): f").user);
    assert!(!Frame::of("<built-in method len>").user);
    assert!(!Frame::of("nn.Module: Linear_0").user);
    assert!(LIBRARY_FILES.is_sorted(), "looked up by bisection");
}

#[test]
fn windows_count_only_what_lies_inside() {
    let span = |a, b| Span::new(Time::from_ps(a), Time::from_ps(b));
    let windows = Windows::new([span(10, 20), span(30, 40)].into_iter());
    assert_eq!(windows.within(span(0, 100)), Dur::from_ps(20));
    assert_eq!(windows.within(span(15, 35)), Dur::from_ps(10));
    assert_eq!(windows.within(span(20, 30)), Dur::ZERO);
    assert!(windows.any_inside(span(5, 25)) && windows.any_inside(span(30, 40)));
    assert!(!windows.any_inside(span(11, 39)) && !windows.any_inside(span(31, 99)));
    assert_eq!(Windows::new(std::iter::empty()).within(span(0, 9)), Dur::ZERO);
}

#[test]
fn what_a_library_does_is_its_callers_and_an_op_is_nobodys() {
    let mut builder = TraceBuilder::new();
    let python = builder.strings.intern("python");
    let process = builder.process(python, ProcessKind::Host, 1);
    let track = builder.track(process, python, TrackKind::Thread, 1, TraceBuilder::ARENA);
    for (name, start, len) in [
        ("$train.py:1 main", 0, 100),
        ("$train.py:20 load", 10, 60),
        ("$random.py:5 shuffle", 15, 40),
        ("dense/MatMul:MatMul", 80, 10),
    ] {
        let name = builder.strings.intern(name);
        let kind = builder.kind(Kind::slice(name));
        builder.event(track, Time::from_ns(start * 1_000_000), Dur::from_us(len * 1_000), kind, None);
    }
    let trace = builder.finish();
    let frames = PythonPartial::of(&Context::new(&trace, "host")).finish();
    let rows: Vec<(&str, u64, f64, f64)> = frames
        .frames
        .iter()
        .map(|frame| (frame.function.as_str(), frame.calls, frame.inclusive_ms, frame.own_ms))
        .collect();
    assert_eq!(rows, [("load", 1, 60.0, 60.0), ("main", 1, 100.0, 30.0)]);
    assert!(frames.traced && frames.steps == 0);
}

#[test]
fn the_wait_is_charged_to_the_innermost_function_with_most_of_it() {
    let culprit = |frames: &[(&str, i64, i64)]| {
        let mut sketch = crate::sketch::Sketch::new();
        let thread = sketch.thread("python");
        frames.iter().for_each(|&(name, start, dur)| {
            sketch.event_of(thread, "python_function", name, start, dur, &[]);
        });
        let found = PythonPartial::of(&Context::new(&sketch.finish(), "host")).finish();
        found.waiting.first().map(|frame| frame.function.clone())
    };
    let runner = ("run_profiler.py(3): main", 0, 100);
    let next = ("torch/utils/data/dataloader.py(7): __next__", 0, 90);
    let library = ("transformers/pipelines/video.py(40): preprocess", 5, 80);
    let numpy = ("numpy/lib/x.py(2): mean", 8, 70);
    assert_eq!(culprit(&[runner, next, library, numpy]).as_deref(), Some("preprocess"), "not the runner");
    let user = ("load.py(40): read_images", 2, 85);
    assert_eq!(culprit(&[runner, next, user, library, numpy]).as_deref(), Some("read_images"));
    assert_eq!(culprit(&[runner]), None);
}

#[test]
fn a_frame_says_which_library_call_takes_most_of_its_time() {
    let mut sketch = crate::sketch::Sketch::new();
    let thread = sketch.thread("python");
    for (name, start, dur) in [
        ("train.py(9): body", 0, 200),
        ("queue.py(154): get", 10, 80),
        ("<built-in method acquire of _thread.lock object at 0x7f01>", 12, 70),
        ("<built-in method acquire of _thread.lock object at 0x7f02>", 100, 50),
        ("<built-in method acquire of _thread.lock object at 0x7f03>", 150, 45),
    ] {
        sketch.event_of(thread, "python_function", name, start, dur, &[]);
    }
    let found = PythonPartial::of(&Context::new(&sketch.finish(), "host")).finish();
    let through = found.frames.first().and_then(|frame| frame.through.clone());
    let lock = "<built-in method acquire of _thread.lock object>".to_owned();
    assert_eq!(through, Some((lock, 0.095)), "of two locks, both count, and not what `get` calls");
}

#[test]
fn without_a_tracer_the_users_ranges_own_the_python_inside_them() {
    let mut sketch = crate::sketch::Sketch::new();
    let thread = sketch.thread("python");
    for step in 0..3 {
        let at = step * 100;
        let marker = format!("ProfilerStep#{step}");
        for (category, name, start, dur) in [
            ("user_annotation", marker.as_str(), 0, 100),
            ("user_annotation", "get_batch", 5, 25),
            ("user_annotation", "forward", 30, 20),
            ("cpu_op", "aten::mm", 32, 15),
            ("user_annotation", "metrics", 50, 45),
        ] {
            sketch.event_of(thread, category, name, at + start, dur, &[]);
        }
    }
    let found = PythonPartial::of(&Context::new(&sketch.finish(), "host")).finish();
    assert!(!found.traced && found.frames.is_empty());
    let rows: Vec<(&str, f64)> = found
        .ranges
        .iter()
        .map(|range| (range.file.as_str(), range.own_ms))
        .filter(|row| row.1 > 0.0)
        .collect();
    assert_eq!(rows, [("metrics", 0.135), ("forward", 0.015)]);
    assert_eq!(found.waiting.first().map(|range| range.file.as_str()), Some("get_batch"));
}
