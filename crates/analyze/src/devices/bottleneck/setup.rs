//! Setup while the device waits: a context, a library, code that is compiled or loaded on first use. It appears
//! as single calls that take much of the recorded time and do not repeat.

use rustc_hash::FxHashMap;
use stepscope_trace::{Dur, KindId, KindSet, Span, Time, Trace, Track, TrackId, TrackKind};

use super::Device;
use crate::states::launches::Launch;
use crate::states::timeline::{is_inside, united};
use crate::vocabulary::{
    Capture, Framework, Role, capture, is_compiled_region, is_device_call, is_warm_up, prepares_device,
    starts_graph,
};
use stepscope_trace::statistics::median_duration;

/// Longer calls into the device's runtime that do not wait for the device set something up. In a running loop,
/// no call is a tenth as long.
const LONG_CALL: Dur = Dur::from_us(100_000);
/// With fewer steps, it is unknown whether a call recurs.
const LEAST_STEPS: usize = 3;
/// In that case, a single call that takes this share of the step is not one of many.
pub const SINGLE: f64 = 0.05;
/// If the first launch of a kernel takes this many times the usual launch, it loads the kernel's code.
const LOADING: i64 = 20;
/// A later launch that takes as many times the usual one and at least this long was held up.
const LONG_LAUNCH: Dur = Dur::from_us(1_000);
/// Number of launches used to find the usual duration.
const SAMPLES: usize = 4_096;
/// Maximum number of calls reported.
const NAMED: usize = 5;

/// The setup calls, and the time around them.
pub(super) struct Setup {
    calls: Vec<(Span, KindId)>,
    /// Before the first and after the last device work, if a whole program was recorded.
    around: Vec<Span>,
    /// Time spent capturing graphs of kernels, which are replayed later.
    pub(super) captured: Dur,
    /// Time inside ranges that the program calls its warm-up, whatever happens in them.
    pub(super) warm_up: Dur,
    /// Until here a capture without steps has run no kernel: what nothing explains until then is the program's start.
    pub(super) until: Option<Time>,
}

impl Setup {
    pub(super) fn of(device: &Device) -> Self {
        let trace = device.context.trace;
        let threads = device.feeding_threads();
        let few = device.windows.len() < LEAST_STEPS;
        let window = device.windows.iter().map(|window| window.dur()).max().unwrap_or_default();
        let single = Dur::from_ps((window.ps() as f64 * SINGLE) as i64);
        let least = if few { LONG_CALL.min(single) } else { LONG_CALL };
        let counts = |span: &Span| {
            let next = device.windows.partition_point(|window| window.end <= span.start);
            device.windows.get(next).is_some_and(|window| window.start < span.end)
        };
        let mut calls = Vec::new();
        for track in threads.iter().map(|&id| trace.track(id)) {
            let roles = Roles { device, track };
            let long = (0..track.len()).filter(|&index| track.dur(index) >= least);
            calls.extend(
                long.filter(|&index| roles.is_runtime(index))
                    .map(|index| (track.span_of(index), track.kind_of(index))),
            );
            if few {
                calls.extend(long_ops(&roles, single));
            }
        }
        let warm_ups = if few { warm_ups(trace, &threads) } else { Vec::new() };
        let warm_up = warm_ups.iter().map(|(span, _)| span.dur()).sum();
        calls.extend(warm_ups);
        // Setup happens once: a call that is long in every other step is something else.
        let mut times: FxHashMap<KindId, usize> = FxHashMap::default();
        calls.iter().for_each(|(_, kind)| *times.entry(*kind).or_default() += 1);
        let steps = device.windows.len();
        calls.retain(|(span, kind)| {
            let recurs = !few && times.get(kind).is_some_and(|&calls| calls * 2 >= steps);
            !recurs && counts(span)
        });
        // Many short calls add up.
        if few {
            calls.extend(preparing(trace, &threads).into_iter().filter(|(span, _)| counts(span)));
        }
        calls.extend(long_launches(device, few).into_iter().filter(|(span, _)| counts(span)));
        let captures: Vec<(Span, KindId)> =
            captures(trace).into_iter().filter(|(span, _)| counts(span)).collect();
        let captured = captures.iter().map(|(span, _)| span.dur()).sum();
        calls.extend(captures);
        // The first launch of a kernel may be a long call as well.
        calls.sort_by_key(|&(span, kind)| (span.start, span.end, kind.index()));
        calls.dedup();
        Setup { calls, around: around(device), captured, warm_up, until: first_kernel(device) }
    }

    pub(super) fn spans(&self) -> impl Iterator<Item = Span> {
        self.calls.iter().map(|(span, _)| *span).chain(self.around.iter().copied())
    }

    /// The longest calls by name.
    pub(super) fn named(&self, trace: &Trace) -> Vec<(String, Dur)> {
        let mut by_kind: FxHashMap<KindId, Dur> = FxHashMap::default();
        self.calls.iter().for_each(|(span, kind)| *by_kind.entry(*kind).or_default() += span.dur());
        let named = by_kind.into_iter().map(|(kind, time)| (trace.kind_name(kind).to_owned(), time));
        let named = named.filter(|(name, _)| !is_compiled_region(name));
        let mut named: Vec<(String, Dur)> = named.collect();
        named.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        named.truncate(NAMED);
        named
    }
}

/// Fewer samples say too little.
const LEAST_SAMPLES: usize = 20;
/// A function with a smaller share of the samples is not worth a name.
const LEAST_SAMPLED: f64 = 0.05;

impl Setup {
    /// The functions in which samples of the processor met the threads that feed the device while no call sets anything up, and
    /// their share of those samples; most first.
    pub(super) fn sampled(&self, device: &Device) -> Vec<(String, f64)> {
        let trace = device.context.trace;
        let kinds = trace.kinds_where(|kind| trace.str(trace.kind(kind).category) == "cpu_sample");
        let feeds = |track: &&Track| {
            let same = |id: &TrackId| {
                let thread = trace.track(*id);
                thread.process == track.process && thread.number == track.number
            };
            track.kind == TrackKind::Derived && device.feeding_threads().iter().any(same)
        };
        let in_calls = united(self.calls.iter().map(|(span, _)| *span).collect());
        let unexplained = |at: Time| {
            let inside = |span: &Span| span.start <= at && at < span.end;
            let before_kernels = || self.until.is_some_and(|until| at < until);
            (self.around.iter().any(inside) || before_kernels()) && !is_inside(&in_calls, at)
        };
        let (mut all, mut met) = (0_usize, FxHashMap::<KindId, usize>::default());
        for track in trace.tracks().iter().filter(feeds) {
            for (_, kind) in track.events_of(&kinds).filter(|(index, _)| unexplained(track.start(*index))) {
                all += 1;
                *met.entry(kind).or_default() += 1;
            }
        }
        if all < LEAST_SAMPLES {
            return Vec::new();
        }
        let shares = met.into_iter().map(|(kind, met)| (trace.kind_name(kind), met as f64 / all as f64));
        // An address is not a name.
        let named = shares.filter(|(name, share)| *share >= LEAST_SAMPLED && !name.starts_with("0x"));
        let mut named: Vec<(String, f64)> = named.map(|(name, share)| (name.to_owned(), share)).collect();
        named.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        named.truncate(NAMED);
        named
    }
}

/// Launches that take much longer than usual: the first of a kernel loads its code, and others wait for a lock, for
/// code that is loaded elsewhere or for the system. Fewer launches would not make them shorter.
fn long_launches(device: &Device, few: bool) -> Vec<(Span, KindId)> {
    let (trace, vocabulary) = (device.context.trace, device.context.vocabulary());
    let call_of = |launch: &Launch| {
        let track = trace.track(launch.call.track);
        (track.span_of(launch.call.index as usize), track.kind_of(launch.call.index as usize))
    };
    let kind_of = |launch: &Launch| trace.track(launch.work.track).kind_of(launch.work.index as usize);
    let own = |launch: &&Launch| {
        trace.track(launch.work.track).process == device.process
            && vocabulary.role(kind_of(launch)) == Role::Kernel
    };
    let all: Vec<&Launch> = device.context.launches().all.iter().filter(own).collect();
    let some = all.iter().step_by(all.len() / SAMPLES + 1);
    let usual = median_duration(some.map(|launch| call_of(launch).0.dur()));
    let mut first: FxHashMap<KindId, &Launch> = FxHashMap::default();
    for &launch in &all {
        let known = first.entry(kind_of(launch)).or_insert(launch);
        if launch.called < known.called {
            *known = launch;
        }
    }
    let is_first =
        |launch: &Launch| first.get(&kind_of(launch)).is_some_and(|known| known.call == launch.call);
    let long = all.into_iter().filter(|launch| {
        let time = call_of(launch).0.dur();
        let graph = || starts_graph(trace.kind_name(call_of(launch).1));
        time.ps() >= usual.ps().saturating_mul(LOADING)
            && (is_first(launch) || (time >= LONG_LAUNCH && !graph()))
    });
    let (loading, others): (Vec<&Launch>, Vec<&Launch>) = long.partition(|launch| is_first(launch));
    // What is long in every other step belongs to the loop.
    let rare = few || others.len() * 2 < device.windows.len();
    loading.into_iter().chain(others.into_iter().filter(|_| rare)).map(call_of).collect()
}

/// Calls that prepare the device, a library or code for it, of any length.
fn preparing(trace: &Trace, threads: &[TrackId]) -> Vec<(Span, KindId)> {
    let kinds = trace.kinds_where(|kind| prepares_device(trace.kind_name(kind)));
    outermost(trace, threads, &kinds)
}

/// Ranges that are named as the program's warm-up.
fn warm_ups(trace: &Trace, threads: &[TrackId]) -> Vec<(Span, KindId)> {
    let kinds = trace.kinds_where(|kind| is_warm_up(trace.kind_name(kind)));
    outermost(trace, threads, &kinds)
}

/// The events of some kinds on some threads that lie in no other of them.
fn outermost(trace: &Trace, threads: &[TrackId], kinds: &KindSet) -> Vec<(Span, KindId)> {
    let mut found: Vec<(Span, KindId)> = Vec::new();
    for track in threads.iter().map(|&id| trace.track(id)) {
        let mut until = Time::MIN;
        for (index, kind) in track.events_of(kinds) {
            let span = track.span_of(index);
            if span.start >= until && !span.is_empty() {
                until = span.end;
                found.push((span, kind));
            }
        }
    }
    found
}

/// The start of the device's first kernel in a capture without steps.
fn first_kernel(device: &Device) -> Option<Time> {
    let context = device.context;
    let (trace, vocabulary) = (context.trace, context.vocabulary());
    let kernels = trace.kinds_where(|kind| vocabulary.role(kind) == Role::Kernel);
    let first = |track: &Track| track.events_of(&kernels).next().map(|(index, _)| track.start(index));
    let whole = context.breakdown().steps.whole_capture;
    device.streams().filter(|_| whole).filter_map(first).min()
}

/// From start to end of each graph capture: launches in between run nothing, and it happens once.
fn captures(trace: &Trace) -> Vec<(Span, KindId)> {
    let marks: Vec<Option<Capture>> =
        trace.kinds().iter().map(|kind| capture(trace.str(kind.name))).collect();
    if marks.iter().all(Option::is_none) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
        let mut begun = None;
        for (index, &kind) in track.kinds().iter().enumerate() {
            match marks.get(kind.index()).copied().flatten() {
                Some(Capture::Begins) => begun = Some((track.start(index), kind)),
                Some(Capture::Ends) => {
                    found
                        .extend(begun.take().map(|(start, kind)| (Span::new(start, track.end(index)), kind)));
                }
                None => {}
            }
        }
    }
    found
}

/// A program that calls the device's library itself is recorded from start to end: before the device's first
/// work and after its last, the program prepares and cleans up.
fn around(device: &Device) -> Vec<Span> {
    let context = device.context;
    let whole =
        context.breakdown().steps.whole_capture && context.vocabulary().framework == Framework::Unknown;
    let Some(window) = device.windows.first().filter(|_| whole) else { return Vec::new() };
    let work = device.streams().filter_map(|track| track.span()).reduce(Span::hull);
    let edges = |work: Span| [Span::new(window.start, work.start), Span::new(work.end, window.end)];
    work.map(edges).into_iter().flatten().filter(|span| span.start < span.end).collect()
}

struct Roles<'d, 'c, 't> {
    device: &'d Device<'c, 't>,
    track: &'t Track,
}

impl Roles<'_, '_, '_> {
    fn role(&self, index: usize) -> Role {
        self.device.context.vocabulary().host_role(self.track.kind_of(index))
    }

    /// A call into the device's runtime that neither waits nor copies.
    fn is_runtime(&self, index: usize) -> bool {
        let name = || self.device.context.trace.kind_name(self.track.kind_of(index));
        match self.role(index) {
            Role::Launch | Role::DeviceMemory => true,
            Role::Framework => is_device_call(name()),
            _ => false,
        }
    }

    fn is_op(&self, index: usize) -> bool {
        matches!(self.role(index), Role::Op | Role::EagerKernel)
    }
}

/// Ops that take `least` or more themselves: most of it is not inside anything recorded.
fn long_ops(roles: &Roles, least: Dur) -> Vec<(Span, KindId)> {
    struct OpenOp {
        index: usize,
        end: Time,
        inside: Dur,
    }
    let track = roles.track;
    let (mut open, mut found): (Vec<OpenOp>, Vec<(Span, KindId)>) = (Vec::new(), Vec::new());
    let mut close = |open: OpenOp| {
        let span = track.span_of(open.index);
        let own = span.dur() - open.inside;
        if own >= least && own >= open.inside && roles.is_op(open.index) {
            found.push((span, track.kind_of(open.index)));
        }
    };
    for index in 0..track.len() {
        let (start, dur) = (track.start(index), track.dur(index));
        while let Some(ended) = open.pop_if(|open| open.end <= start) {
            close(ended);
        }
        if let Some(outer) = open.last_mut() {
            outer.inside += dur;
        }
        open.push(OpenOp { index, end: start + dur, inside: Dur::ZERO });
    }
    open.into_iter().rev().for_each(close);
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::devices::bottleneck::{DeviceDetail, IdleCause};
    use crate::sketch::{Arg, Sketch};

    /// 200 different ops of 50 µs that launch a kernel each, and one call of `us` before them.
    fn detail(category: &str, name: &str, us: i64) -> DeviceDetail {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("python"), sketch.stream());
        sketch.event_of(thread, category, name, 0, us, &[]);
        for turn in 0..200 {
            let (at, id) = (us + turn * 60, || [("correlation", Arg::Int(turn + 1))]);
            sketch.event_of(thread, "cpu_op", &format!("aten::op_{turn}"), at, 50, &[]);
            sketch.event_of(thread, "cuda_runtime", "cudaLaunchKernel", at + 30, 10, &id());
            sketch.event_of(stream, "kernel", &format!("kernel_{turn}"), at + 45, 5, &id());
        }
        let trace = sketch.finish();
        DeviceDetail::of(&Context::new(&trace, "host")).unwrap_or_default()
    }

    /// A program that prepares its data for 100 ms, of which every millisecond is sampled, creates a context for 50 ms, and runs
    /// a kernel.
    fn sampled(functions: &[&str]) -> Vec<(String, f64)> {
        let mut sketch = Sketch::new();
        let (thread, stream, samples) = (sketch.thread("main"), sketch.stream(), sketch.samples());
        sketch.event_of(thread, "cuda_runtime", "cuModuleGetLoadingMode", 0, 1, &[]);
        for turn in 0..150 {
            let met = if turn < 100 {
                functions.get(turn as usize % functions.len().max(1))
            } else {
                Some(&"ioctl")
            };
            if let Some(met) = met {
                sketch.event_of(samples, "cpu_sample", met, turn * 1_000 + 5, 0, &[]);
            }
        }
        sketch.event_of(thread, "cuda_runtime", "cudaMalloc", 100_000, 50_000, &[]);
        let id = || [("correlation", Arg::Int(1))];
        sketch.event_of(thread, "cuda_runtime", "cudaLaunchKernel", 151_000, 10, &id());
        sketch.event_of(stream, "kernel", "add", 151_020, 500, &id());
        let trace = sketch.finish();
        DeviceDetail::of(&Context::new(&trace, "host")).unwrap_or_default().idle.sampled
    }

    #[test]
    fn samples_say_what_a_program_does_before_it_uses_the_device() {
        let met = sampled(&["rand", "rand", "rand", "main"]);
        assert_eq!(met, [("rand".to_owned(), 0.75), ("main".to_owned(), 0.25)], "not inside the first call");
        assert_eq!(sampled(&["0x7f00", "rand"]), [("rand".to_owned(), 0.5)], "an address is no name");
        assert_eq!(sampled(&[]), [], "no samples");
    }

    #[test]
    fn one_call_that_takes_most_of_a_pass_sets_something_up() {
        for (category, name) in [
            ("cpu_op", "scripted"),
            ("cuda_runtime", "cudaStreamCreate"),
            ("cuda_runtime", "cudaLaunchKernel"),
        ] {
            let idle = detail(category, name, 60_000).idle;
            assert_eq!(idle.get(IdleCause::Startup), Dur::from_us(60_000), "{name}");
            let named = idle.startup_calls.first().map(|(call, time)| (call.as_str(), *time));
            assert_eq!(named, Some((name, Dur::from_us(60_000))), "{name}");
        }
        let idle = detail("cpu_op", "aten::mm", 50).idle;
        assert_eq!((idle.get(IdleCause::Startup), idle.startup_calls), (Dur::ZERO, Vec::new()));
    }

    /// 40 kernels of 1 ms, each after a module of 2 ms is loaded for it, and a range of 600 ms before them.
    fn loading(range: &str) -> DeviceDetail {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("main"), sketch.stream());
        sketch.event(thread, range, 0, 600_000, &[]);
        for turn in 0..40 {
            let (at, id) = (600_000 + turn * 4_000, || [("correlation", Arg::Int(turn + 1))]);
            sketch.event_of(thread, "cuda_driver", "cuModuleLoadData", at, 2_000, &[]);
            sketch.event_of(thread, "cuda_driver", "cuLaunchKernel", at + 2_000, 10, &id());
            sketch.event_of(stream, "kernel", &format!("kernel_{turn}"), at + 2_100, 1_000, &id());
        }
        let trace = sketch.finish();
        DeviceDetail::of(&Context::new(&trace, "host")).unwrap_or_default()
    }

    #[test]
    fn many_short_calls_and_named_ranges_are_set_up_too() {
        let idle = loading("load_data").idle;
        let modules = idle.startup_calls.iter().find(|(name, _)| name == "cuModuleLoadData");
        assert_eq!(modules.map(|(_, time)| *time), Some(Dur::from_us(80_000)), "{idle:?}");
        assert_eq!(idle.warm_up, Dur::ZERO);
        let idle = loading("warm up").idle;
        assert_eq!(idle.warm_up, Dur::from_us(600_000), "{idle:?}");
        assert!(idle.get(IdleCause::Startup) >= Dur::from_us(680_000), "{idle:?}");
    }

    /// Ten steps of 20 launches of one kernel; one launch in each of the last `stalled` steps takes 40 ms.
    fn stalled(stalled: i64) -> DeviceDetail {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("worker"), sketch.stream());
        let mut at = 0;
        for step in 0..10 {
            let begin = at;
            for turn in 0..20 {
                let us = if turn == 7 && step >= 10 - stalled { 40_000 } else { 10 };
                let id = || [("correlation", Arg::Int(step * 20 + turn + 1))];
                sketch.event_of(thread, "cuda_runtime", "cudaLaunchKernel", at, us, &id());
                sketch.event_of(stream, "kernel", "small", at + us + 1, 3, &id());
                at += us + 5;
            }
            let args = [("step_num", Arg::Int(step)), ("_r", Arg::Int(1))];
            sketch.event(thread, "train", begin, at - begin, &args);
        }
        let trace = sketch.finish();
        DeviceDetail::of(&Context::new(&trace, "host")).unwrap_or_default()
    }

    #[test]
    fn one_launch_that_is_held_up_is_not_the_cost_of_launching() {
        let idle = stalled(1).idle;
        assert!(idle.get(IdleCause::Startup) >= Dur::from_us(39_990), "{idle:?}");
        assert!(idle.get(IdleCause::Launch) < Dur::from_us(3_000), "{idle:?}");
        let idle = stalled(10).idle;
        assert_eq!(idle.get(IdleCause::Startup), Dur::ZERO, "it happens in every step");
        assert!(idle.get(IdleCause::Launch) > Dur::from_us(10 * 39_000), "{idle:?}");
    }

    #[test]
    fn a_call_that_waits_for_the_device_sets_nothing_up() {
        let idle = detail("cuda_runtime", "hipMemcpyWithStream", 60_000).idle;
        assert_eq!(idle.get(IdleCause::Startup), Dur::ZERO);
        assert_eq!(idle.get(IdleCause::Copy), Dur::from_us(60_000));
    }
}
