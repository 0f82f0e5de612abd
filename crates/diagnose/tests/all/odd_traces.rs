//! Traces that no training loop should leave behind, and some that it may: each gets a correct answer or an
//! honest "unknown", never a number that is not one, and never a crash.
#![allow(clippy::unwrap_used, reason = "what helps a test may fail it")]

use std::time::{Duration, Instant};

use stepscope_analyze::Context;
use stepscope_analyze::recording::health::Trouble;
use stepscope_analyze::session::{HostPartial, Session};
use stepscope_analyze::steps::Origin;
use stepscope_diagnose::{Facts, Finding, diagnose};
use stepscope_trace::{
    Datum, Device, DeviceKind, Dur, Form, Kind, ProcessId, ProcessKind, Time, Trace, TraceBuilder, TrackId,
    TrackKind,
};

struct Sketch {
    builder: TraceBuilder,
    host: ProcessId,
}

impl Sketch {
    fn new() -> Self {
        let mut builder = TraceBuilder::new();
        let name = builder.strings.intern("/host:CPU");
        let host = builder.process(name, ProcessKind::Host, 1);
        Sketch { builder, host }
    }

    fn thread(&mut self, name: &str) -> TrackId {
        let name = self.builder.strings.intern(name);
        self.builder.track(self.host, name, TrackKind::Thread, 1, TraceBuilder::ARENA)
    }

    fn gpu(&mut self, number: i64) -> (ProcessId, TrackId) {
        let name = self.builder.strings.intern(&format!("/device:GPU:{number}"));
        let process = self.builder.process(name, ProcessKind::Device, number);
        let mut device = Device::new(DeviceKind::Gpu, number);
        device.process = Some(process);
        self.builder.device(device);
        let stream = self.builder.strings.intern("Stream #1(Compute)");
        (process, self.builder.track(process, stream, TrackKind::Stream, 1, TraceBuilder::ARENA))
    }

    fn event(&mut self, track: TrackId, name: &str, start_us: i64, us: i64) {
        let name = self.builder.strings.intern(name);
        let kind = self.builder.kind(Kind::slice(name));
        self.builder.event(track, Time::ZERO + Dur::from_us(start_us), Dur::from_us(us), kind, None);
    }

    fn marker(&mut self, track: TrackId, number: i64, start_us: i64, us: i64) {
        let key = self.builder.strings.intern("step_num");
        let args = self.builder.arena.push(&[(key, Datum::Int(number))], &[]);
        let name = self.builder.strings.intern("train");
        let kind = self.builder.kind(Kind::slice(name));
        self.builder.event(track, Time::ZERO + Dur::from_us(start_us), Dur::from_us(us), kind, args);
    }

    fn instant(&mut self, track: TrackId, name: &str, at_us: i64) {
        let name = self.builder.strings.intern(name);
        let kind = self.builder.kind(Kind { form: Form::Instant, ..Kind::slice(name) });
        self.builder.event(track, Time::ZERO + Dur::from_us(at_us), Dur::ZERO, kind, None);
    }

    fn finish(self) -> Trace {
        self.builder.finish()
    }
}

fn judged(traces: &[Trace]) -> (Facts, Vec<Finding>) {
    let partial =
        |(index, trace): (usize, &Trace)| HostPartial::of(&Context::new(trace, format!("host{index}")));
    let gathered = Session::finish(traces.iter().enumerate().map(partial).collect()).unwrap();
    let facts = Facts::of(gathered);
    let findings = diagnose(&facts);
    let whole = facts.summary.length_ms();
    assert!(whole.is_finite() && whole >= 0.0);
    for (category, ms) in &facts.summary.breakdown_ms {
        assert!(ms.is_finite() && *ms >= 0.0, "{category:?}: {ms}");
    }
    if let Some(moments) = facts.summary.step_ms {
        assert!(moments.mean.is_finite() && moments.median.is_finite());
        assert!((moments.mean - whole).abs() <= whole * 1e-3, "{} of {whole}", moments.mean);
    }
    let gains: f64 = findings.iter().filter_map(|finding| finding.gain_ms).sum();
    assert!(gains.is_finite() && gains <= whole * 1.001 + 1e-9, "{gains} of {whole}");
    (facts, findings)
}

fn ids(findings: &[Finding]) -> Vec<&'static str> {
    findings.iter().map(Finding::id).collect()
}

#[test]
fn nothing_at_all() {
    let (facts, findings) = judged(&[Sketch::new().finish()]);
    assert_eq!(facts.summary.count, 0);
    assert!(facts.summary.step_ms.is_none());
    assert!(ids(&findings).contains(&"no-steps"));
}

#[test]
fn instants_only() {
    let mut sketch = Sketch::new();
    let thread = sketch.thread("python");
    (0..100).for_each(|at| sketch.instant(thread, "tick", at));
    let (facts, findings) = judged(&[sketch.finish()]);
    assert_eq!(facts.summary.count, 0);
    assert!(ids(&findings).contains(&"no-steps"));
}

#[test]
fn one_single_step() {
    let mut sketch = Sketch::new();
    let thread = sketch.thread("python");
    sketch.marker(thread, 7, 0, 1_000);
    sketch.event(thread, "dense/MatMul:MatMul", 50, 900);
    let (facts, findings) = judged(&[sketch.finish()]);
    assert_eq!(facts.summary.count, 1);
    assert!(facts.summary.step_ms.unwrap().stddev.is_none(), "one step has no spread");
    assert_eq!(ids(&findings), ["compute-bound", "too-few-steps"]);
}

#[test]
fn steps_of_no_length() {
    let mut sketch = Sketch::new();
    let thread = sketch.thread("python");
    (0..10).for_each(|number| sketch.marker(thread, number, 0, 0));
    judged(&[sketch.finish()]);
}

#[test]
fn steps_without_device_work() {
    let mut sketch = Sketch::new();
    let thread = sketch.thread("python");
    sketch.gpu(0);
    for number in 0..5 {
        sketch.marker(thread, number, number * 1_000, 1_000);
    }
    let (_, findings) = judged(&[sketch.finish()]);
    assert_eq!(findings[0].id(), "no-device-trace");
}

#[test]
fn a_device_without_steps() {
    let mut sketch = Sketch::new();
    let (_, stream) = sketch.gpu(0);
    for (at, name) in [(0, "gemm"), (10, "relu"), (30, "softmax")] {
        sketch.event(stream, name, at, 5);
    }
    let (facts, findings) = judged(&[sketch.finish()]);
    assert_eq!(facts.summary.bound().unwrap().origin, Origin::None);
    assert!((facts.summary.length_ms() - 0.035).abs() < 1e-9, "the whole capture is looked at");
    assert!(ids(&findings).contains(&"no-steps"));
}

#[test]
fn steps_that_interleave_on_several_streams() {
    let mut sketch = Sketch::new();
    let thread = sketch.thread("python");
    let (process, first) = sketch.gpu(0);
    let name = sketch.builder.strings.intern("Stream #2(Compute)");
    let second = sketch.builder.track(process, name, TrackKind::Stream, 2, TraceBuilder::ARENA);
    for number in 0..8 {
        let start = number * 1_000;
        sketch.marker(thread, number, start, 1_000);
        sketch.event(first, "gemm", start + 200, 900);
        sketch.event(second, "gemm", start - 300, 900);
    }
    let (facts, _) = judged(&[sketch.finish()]);
    assert_eq!(facts.summary.count, 8);
}

#[test]
fn a_million_steps_take_seconds_at_most() {
    let mut sketch = Sketch::new();
    let thread = sketch.thread("python");
    for number in 0..1_000_000 {
        sketch.marker(thread, number, number * 10, 9);
        sketch.event(thread, "dense/MatMul:MatMul", number * 10 + 1, 7);
    }
    let trace = sketch.finish();
    let begin = Instant::now();
    let (facts, _) = judged(&[trace]);
    assert_eq!(facts.summary.count, 1_000_000);
    assert!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
}

#[test]
fn the_slowest_of_many_hosts_bounds_the_step_and_is_named() {
    // Steps that touch: hosts that do not wait for one another.
    let host = |length: i64| {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        for number in 0..10 {
            sketch.marker(thread, number, number * length, length);
            sketch.event(thread, "dense/MatMul:MatMul", number * length, length - 50);
        }
        sketch.finish()
    };
    let traces: Vec<Trace> =
        (0..64).map(|index| host(if index == 41 { 1_400 } else { 1_000 + index % 5 })).collect();
    let (facts, findings) = judged(&traces);
    assert_eq!(facts.summary.hosts.len(), 64);
    assert_eq!(facts.summary.bound().unwrap().host, "host41");
    let straggler = findings.iter().find(|finding| finding.id() == "straggler").unwrap();
    assert_eq!(straggler.subject.as_deref(), Some("host41"));
}

#[test]
fn of_hosts_in_step_the_one_that_works_longest_bounds_it() {
    let host = |work: i64| {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let (_, stream) = sketch.gpu(0);
        for number in 0..10 {
            let start = number * 1_000;
            sketch.marker(thread, number, start, 1_000);
            sketch.event(stream, "gemm", start, work);
            sketch.event(stream, "ncclDevKernel_AllReduce", start + work, 1_000 - work);
        }
        sketch.finish()
    };
    let traces: Vec<Trace> = (0..8).map(|index| host(if index == 5 { 900 } else { 600 })).collect();
    let (facts, findings) = judged(&traces);
    assert_eq!(facts.summary.bound().unwrap().host, "host5");
    assert!(ids(&findings).contains(&"straggler"));
}

/// Utilisation of a GPU, sampled twice, from so many hours after 1970 on.
fn samples(hours: i64) -> Trace {
    let mut builder = TraceBuilder::new();
    let (gpu, metric) = (builder.strings.intern("GPU 0"), builder.strings.intern("utilization.gpu [%]"));
    let process = builder.process(gpu, ProcessKind::Device, 0);
    let track = builder.track(process, metric, TrackKind::Counter, 0, TraceBuilder::ARENA);
    builder.clock.wall_ns_at_origin = Some(hours * 3_600_000_000_000);
    builder.sample(track, Time::ZERO, 40.0);
    builder.sample(track, Time::ZERO + Dur::from_us(1_000_000), 60.0);
    builder.finish()
}

#[test]
fn samples_of_another_day_are_not_taken_for_those_of_the_run() {
    let run = |hours: i64| {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("main");
        sketch.event(thread, "MatMul", 0, 100);
        sketch.builder.clock.wall_ns_at_origin = Some(hours * 3_600_000_000_000);
        sketch.builder.finish()
    };
    let gathered = |traces: [Trace; 2]| {
        let partial =
            |(place, trace): (usize, &Trace)| HostPartial::of(&Context::new(trace, format!("h{place}")));
        Session::finish(traces.iter().enumerate().map(partial).collect()).unwrap()
    };
    let left_out =
        |gathered: &Session| gathered.issues.iter().any(|issue| issue.trouble == Trouble::OtherTime);
    // The log's time is local and does not say where.
    let same = gathered([run(1_000), samples(1_010)]);
    assert!(same.gpu_samples.len() == 1 && !left_out(&same));
    let other = gathered([run(1_000), samples(1_100)]);
    assert!(other.gpu_samples.is_empty() && left_out(&other));
    let before = gathered([run(1_000), samples(900)]);
    assert!(before.gpu_samples.is_empty() && left_out(&before));
}

#[test]
fn markers_and_annotations_longer_together_than_time_itself_do_not_overflow() {
    const LONG_US: i64 = i64::MAX / 1_000_000;
    let mut marked = Sketch::new();
    let python = marked.thread("python");
    (0..4).for_each(|step| marked.marker(python, step, step, LONG_US));
    judged(&[marked.finish()]);

    let mut annotated = Sketch::new();
    let python = annotated.thread("python");
    let strings = &mut annotated.builder.strings;
    let (category, name) = (strings.intern("user_annotation"), strings.intern("iteration"));
    let kind = annotated.builder.kind(Kind { category, ..Kind::slice(name) });
    for start in 0..4 {
        annotated.builder.event(python, Time::from_ps(start), Dur::from_us(LONG_US), kind, None);
    }
    judged(&[annotated.finish()]);
}
