//! Step windows on anything that lags behind the loop: a device, or threads to which a framework hands its
//! programs.
//!
//! Work belongs to the step that launched it, wherever and whenever it runs. If it runs late, a step's own
//! window reaches from the end of the previous step's work to the end of its own.

use std::collections::BTreeMap;

use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use stepscope_trace::{Dur, ProcessId, ProcessKind, Span, StrId, Time, Track, TrackId, TrackKind};

use crate::host_trace::HostTrace;
use crate::states::State;
use crate::states::launches::Launch;
use crate::states::timeline::{Mask, Timeline};
use crate::steps::{Exclusion, Step, called_function};
use crate::vocabulary::{Keys, Role};
use stepscope_trace::statistics::median_duration;

/// If work ends later than the host's step by more than this share of a step in the median, it lags behind the
/// host.
const BEHIND: f64 = 0.02;
/// Steps whose own time contains less than this share of the work per step only launch it.
const HOLDS: f64 = 0.5;

/// A device that lags by more than this share of a step does most of a step's work in the next one.
const NEAR: f64 = 0.25;
/// If its lag changes by more than this share of a step, steps are not as long on the device as on the host.
const EVEN: f64 = 0.15;
/// So they are not if their mean lengths differ by more than this share.
const SAME_MEAN: f64 = 0.05;

/// Whether a device that lags behind keeps the pace of the loop, so that steps are as long on the host as on the device,
/// one by one: what the loop marks is the step.
pub(super) fn keeps_pace(work: &[Span], steps: &[Step]) -> bool {
    let counted = || {
        let pairs = work.iter().zip(steps);
        pairs.filter(|(work, step)| step.excluded.is_none() && !work.is_empty())
    };
    let length = median_duration(counted().map(|(_, step)| step.span.dur()));
    let late = |work: &Span, step: &Step| work.end - step.span.end;
    let usual = median_duration(counted().map(|(work, step)| late(work, step)));
    let share = |time: Dur| time.ps().unsigned_abs() as f64 / length.ps().max(1) as f64;
    let on_device: Dur = counted().map(|(work, _)| work.dur()).sum();
    let on_host: Dur = counted().map(|(_, step)| step.span.dur()).sum();
    share(usual) <= NEAR
        && counted().all(|(work, step)| share(late(work, step) - usual) <= EVEN)
        && (on_device - on_host).ps().unsigned_abs() as f64 <= SAME_MEAN * on_host.ps() as f64
}

/// The step windows on a device that lags behind the host; `None` if it keeps up, or if its launches were not
/// recorded.
pub(super) fn on_device(recorded: &HostTrace, process: ProcessId, steps: &[Step]) -> Option<Vec<Span>> {
    let trace = recorded.trace;
    let mut spans: Vec<Option<Span>> = vec![None; steps.len()];
    let mut before: Vec<Span> = Vec::new();
    let mut first_own: BTreeMap<TrackId, Time> = BTreeMap::new();
    for launch in &recorded.launches().all {
        let track = trace.track(launch.work.track);
        if track.process != process {
            continue;
        }
        let work = track.span_of(launch.work.index as usize);
        let Some(index) = step_at(steps, launch.called) else {
            if steps.first().is_some_and(|first| launch.called < first.span.start) {
                before.push(work);
            }
            continue;
        };
        if index == 0 {
            let first = first_own.entry(track.id).or_insert(work.start);
            *first = work.start.min(*first);
        }
        let slot = &mut spans[index];
        *slot = Some(slot.map_or(work, |span| span.hull(work)));
    }
    if !is_behind(&spans, steps) {
        return None;
    }
    let first = spans.first().copied().flatten();
    let begins = first.and_then(|first| after_backlog(recorded, &before, &first_own, first));
    Some(from_end_to_end(&spans, steps, begins))
}

/// The step that lasts at `at`.
fn step_at(steps: &[Step], at: Time) -> Option<usize> {
    let after = steps.partition_point(|step| step.span.start <= at);
    after.checked_sub(1).filter(|&index| steps[index].span.contains(at))
}

fn is_behind(spans: &[Option<Span>], steps: &[Step]) -> bool {
    let seen = || spans.iter().zip(steps).filter_map(|(span, step)| Some(((*span)?, step)));
    let late = median_duration(seen().map(|(span, step)| span.end - step.span.end));
    let length = median_duration(steps.iter().map(|step| step.span.dur()));
    seen().count() >= 2.min(steps.len()).max(1) && late.fraction_of(length) >= BEHIND
}

/// When the device has finished what was launched before the first step; `None` if it had nothing left to do.
///
/// Work launched before the recording comes first on each stream that the step uses.
fn after_backlog(
    recorded: &HostTrace,
    before: &[Span],
    first_own: &BTreeMap<TrackId, Time>,
    first: Span,
) -> Option<Time> {
    let launched = before.iter().map(|work| work.end);
    // If launches are missing throughout, work without one is not backlog.
    let pieces: usize = first_own.keys().map(|&track| recorded.trace.track(track).len()).sum();
    let of_tracks = |launch: &&Launch| first_own.contains_key(&launch.work.track);
    let known = recorded.launches().all.iter().filter(of_tracks).count();
    let are_known = known * 2 >= pieces;
    let unknown = first_own.iter().filter(|_| are_known).filter_map(|(&track, &own)| {
        let end = last_before(recorded, recorded.trace.track(track), own)?;
        Some(end.min(own))
    });
    launched.chain(unknown).filter(|&end| end < first.end).max()
}

/// The end of the last work on a stream that started before `at`.
fn last_before(recorded: &HostTrace, track: &Track, at: Time) -> Option<Time> {
    let is_work = |&index: &usize| {
        matches!(
            recorded.vocabulary().role(track.kind_of(index)),
            Role::Kernel | Role::Collective | Role::Copy(_) | Role::Memset
        )
    };
    (0..track.first_from(at)).rev().take(LOOK_BACK).find(is_work).map(|index| track.end(index))
}

/// Number of events examined to find the last work on a stream.
const LOOK_BACK: usize = 64;

/// The windows of steps that only hand programs to the framework's own threads, by the programs' runs; `None`
/// if the work is done inside the steps, or if the launching step is unknown.
pub(super) fn on_host(recorded: &HostTrace, host: &Timeline, steps: &[Step]) -> Option<Vec<Span>> {
    // Only XLA numbers the runs of its programs.
    let strings = recorded.trace.strings();
    let keys = (strings.find("run_id")?, strings.find("hlo_module")?);
    let computes = Mask::of(State::HostCompute);
    let all = host.time_in(computes, host.span()?);
    let held = median_duration(steps.iter().map(|step| host.time_in(computes, step.span)));
    if held.ps() as f64 * steps.len() as f64 >= all.ps() as f64 * HOLDS {
        return None;
    }
    let mut spans: Vec<Option<Span>> = vec![None; steps.len()];
    let mut calls = calls(recorded);
    for (program, runs) in runs(recorded, keys) {
        let Some(calls) = calls.remove(&program) else { continue };
        // Calls from before the recording run first, and the last calls may never be seen to run.
        let older = runs.len().saturating_sub(calls.len());
        for (run, &called) in runs.iter().skip(older).zip(&calls) {
            let index = step_at(steps, called)?;
            if run.start < called {
                return None;
            }
            let slot = &mut spans[index];
            *slot = Some(slot.map_or(*run, |span| span.hull(*run)));
        }
    }
    is_behind(&spans, steps).then(|| from_end_to_end(&spans, steps, None))
}

/// Times of the calls of each compiled function, without nested calls.
fn calls(recorded: &HostTrace) -> BTreeMap<String, Vec<Time>> {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let mut all: BTreeMap<String, Vec<Time>> = BTreeMap::new();
    let on_host = |track: &&Track| trace.process(track.process).kind == ProcessKind::Host;
    let calls = trace.kinds_where(|kind| vocabulary.role(kind) == Role::FunctionCall);
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread).filter(on_host) {
        let mut inside_until = Time::MIN;
        for (index, kind) in track.events_of(&calls) {
            if track.start(index) < inside_until {
                continue;
            }
            inside_until = track.end(index);
            all.entry(program_name(&called_function(trace.kind_name(kind))))
                .or_default()
                .push(track.start(index));
        }
    }
    all.values_mut().for_each(|calls| calls.sort_unstable());
    all
}

/// The name that JAX gives the program of a function: `<lambda>` becomes `_lambda_`, or `_lambda` in later versions.
fn program_name(function: &str) -> String {
    let kept = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '-');
    let name: String = function.chars().map(|c| if kept(c) { c } else { '_' }).collect();
    name.trim_matches('_').to_owned()
}

/// Times of the runs of each program on the host, by the function it was made from.
fn runs(recorded: &HostTrace, (run_key, program_key): (StrId, StrId)) -> BTreeMap<String, Vec<Span>> {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let mut runs: HashMap<i64, (Span, String), FxBuildHasher> = HashMap::default();
    let ops = trace.kinds_where(|kind| vocabulary.signatures.keys(kind).has(Keys::HloOp));
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
        for (index, _) in track.events_of(&ops) {
            let args = trace.args_at(track, index);
            let Some(run) = args.get(run_key).and_then(|run| run.as_i64()) else { continue };
            let span = track.span_of(index);
            runs.entry(run).and_modify(|(known, _)| *known = known.hull(span)).or_insert_with(|| {
                let program = args.get(program_key);
                let name = program.as_ref().and_then(|program| program.as_str()).unwrap_or_default();
                (span, program_name(name.strip_prefix("jit_").unwrap_or(name)))
            });
        }
    }
    let mut all: BTreeMap<String, Vec<Span>> = BTreeMap::new();
    runs.into_values().for_each(|(span, program)| all.entry(program).or_default().push(span));
    all.values_mut().for_each(|runs| runs.sort_unstable_by_key(|run| (run.start, run.end)));
    all
}

/// Windows from the end of one step's work to the end of the next. The first one starts with its step, or when
/// earlier work is done.
fn from_end_to_end(spans: &[Option<Span>], steps: &[Step], begins: Option<Time>) -> Vec<Span> {
    let mut before: Option<Time> = None;
    let mut interrupted = false;
    let windows = spans.iter().zip(steps).map(|(span, step)| {
        // A pause belongs to no step, not even to the one after it.
        let resumed = interrupted.then_some(step.span.start);
        interrupted = step.excluded == Some(Exclusion::Interrupted);
        let first = || begins.map_or(step.span.start, |begins| begins.max(step.span.start));
        let start = before.map_or_else(first, |before| resumed.map_or(before, |at| at.max(before)));
        // A step without work on this device is empty there.
        let end = span.map_or(start, |span| span.end.max(start));
        before = Some(end);
        Span::new(start, end)
    });
    windows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};

    fn steps() -> [Step; 3] {
        let step =
            |a, b| Step { number: 0, span: Span::new(Time::from_ps(a), Time::from_ps(b)), excluded: None };
        [step(0, 10), step(10, 20), step(20, 30)]
    }

    #[test]
    fn windows_of_a_late_device_follow_one_another() {
        let at = Time::from_ps;
        let spans = [Some(Span::new(at(5), at(14))), None, Some(Span::new(at(25), at(40)))];
        let windows = from_end_to_end(&spans, &steps(), None);
        assert_eq!(windows, [Span::new(at(0), at(14)), Span::new(at(14), at(14)), Span::new(at(14), at(40))]);
    }

    #[test]
    fn programs_that_run_on_other_threads_give_the_step_its_length() {
        lagging("update", "jit_update");
    }

    #[test]
    fn a_program_without_a_proper_name_is_found_by_the_one_that_jax_makes_of_it() {
        lagging("<lambda>", "jit__lambda_");
        lagging("<lambda>", "jit__lambda");
    }

    fn lagging(function: &str, program: &'static str) {
        let mut sketch = Sketch::new();
        let (python, worker) = (sketch.thread("python"), sketch.thread("tf_XLAEigen/1"));
        for step in 0..8 {
            let number = [("step_num", Arg::Int(step)), ("_r", Arg::Int(1))];
            sketch.event(python, "train", 100 * step, 50, &number);
            sketch.event(python, &format!("PjitFunction({function})"), 100 * step + 5, 40, &[]);
            for op in 0..4 {
                let args = [
                    ("hlo_op", Arg::Text("dot.1")),
                    ("hlo_module", Arg::Text(program)),
                    ("run_id", Arg::Int(-70 + step)),
                ];
                sketch.event(worker, "dot.1", 60 + 10_000 * step + 2_500 * op, 2_400, &args);
            }
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        let host = context.breakdown().bound().unwrap();
        assert!(host.asynchronous);
        let lengths: Vec<i64> = host.steps.iter().map(|step| step.window.dur().ps() / 1_000_000).collect();
        assert_eq!(lengths, [9_960, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000, 10_000]);
        assert!(host.steps.iter().all(|step| step.busy.fraction_of(step.window.dur()) > 0.9));
    }

    /// Kernels of 80 µs that start this long after the marks of their steps.
    fn late_by(late: impl Fn(i64) -> i64) -> Vec<(Span, Span)> {
        let mut sketch = Sketch::new();
        let (python, stream) = (sketch.thread("python"), sketch.stream());
        sketch.steps(python, 8, 100);
        for step in 0..8 {
            let id = [("correlation", Arg::Int(1 + step))];
            sketch.event_of(python, "cuda_runtime", "cudaLaunchKernel", 100 * step + 5, 5, &id);
            sketch.event_of(stream, "kernel", "gemm", 100 * step + late(step), 80, &id);
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        let breakdown = context.breakdown();
        let device = breakdown.bound().unwrap();
        assert!(device.asynchronous);
        breakdown
            .steps
            .all
            .iter()
            .zip(&device.steps)
            .map(|(step, shares)| (step.span, shares.window))
            .collect()
    }

    #[test]
    fn a_step_is_what_the_loop_marks_while_the_device_keeps_its_pace() {
        let paced = late_by(|_| 30);
        assert!(paced.iter().all(|(mark, window)| mark == window), "{paced:?}");
    }

    #[test]
    fn marks_of_a_host_that_runs_ahead_are_not_the_steps() {
        let ahead = late_by(|step| 30 + 40 * step);
        assert!(ahead.iter().all(|(mark, window)| mark.end < window.end), "{ahead:?}");
    }

    #[test]
    fn work_of_the_step_before_the_recording_is_not_the_first_steps() {
        let at = Time::from_ps;
        let spans = [Some(Span::new(at(95), at(105))), Some(Span::new(at(105), at(115)))];
        let windows = from_end_to_end(&spans, &steps(), Some(at(95)));
        assert_eq!(windows, [Span::new(at(95), at(105)), Span::new(at(105), at(115))]);
    }
}
