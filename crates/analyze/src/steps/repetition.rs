//! Steps by what the framework itself repeats. Each method yields the events that start a step; the first that
//! repeats often enough wins.

use std::collections::BTreeMap;

use stepscope_trace::{Dur, KindId, KindSet, ProcessKind, Span, Time, Trace, Track, TrackKind};

use super::work::Work;
use super::{Candidate, How};
use crate::host_trace::HostTrace;
use crate::states::runs_python;
use crate::vocabulary::{Role, is_library_function};

/// Fewer repetitions are a coincidence.
pub(super) const REPEATS: usize = 3;

/// The last resort: one or two calls of a function are steps too, if each has a known end.
pub(super) fn single(recorded: &HostTrace) -> Option<Candidate> {
    calls(recorded, 1).map(|(calls, _)| Candidate { ends_known: true, ..calls })
}

/// All events with one name on one track, without those inside an equal one.
pub(super) type Repeats = BTreeMap<(String, u32), Vec<Span>>;

fn repeats(
    recorded: &HostTrace,
    wanted: impl Fn(&Track) -> bool,
    name_of: impl Fn(&str, Role) -> Option<String>,
) -> Repeats {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let names: Vec<Option<String>> = (0..trace.kinds().len())
        .map(|index| {
            let kind = KindId::from_index(index);
            name_of(trace.kind_name(kind), vocabulary.role(kind))
        })
        .collect();
    let named = trace.kinds_where(|kind| names[kind.index()].is_some());
    let mut all = Repeats::new();
    for track in trace.tracks().iter().filter(|track| wanted(track)) {
        let mut inside_until = Time::MIN;
        for (index, kind) in track.events_of(&named) {
            let Some(name) = &names[kind.index()] else { continue };
            let span = track.span_of(index);
            // The outermost call belongs to the loop; what it calls is part of it.
            if span.start < inside_until || span.is_empty() {
                continue;
            }
            inside_until = span.end;
            all.entry((name.clone(), track.id.0)).or_default().push(span);
        }
    }
    all
}

/// The spans of a track's events of some kinds, without those inside another one.
pub(super) fn outermost(track: &Track, kinds: &KindSet) -> Vec<Span> {
    let mut spans: Vec<Span> = Vec::new();
    for (index, _) in track.events_of(kinds) {
        let span = track.span_of(index);
        if !span.is_empty() && spans.last().is_none_or(|last| last.end <= span.start) {
            spans.push(span);
        }
    }
    spans
}

/// Those that cover most time, if they repeat.
fn longest(all: Repeats) -> Option<((String, u32), Vec<Span>)> {
    heaviest(all, REPEATS, |span| span.dur())
}

fn heaviest(all: Repeats, least: usize, weight: impl Fn(&Span) -> Dur) -> Option<((String, u32), Vec<Span>)> {
    all.into_iter()
        .filter(|(_, spans)| spans.len() >= least)
        .max_by_key(|(_, spans)| spans.iter().map(&weight).sum::<Dur>())
}

pub(super) fn candidate(how: How, track: u32, spans: Vec<Span>, on_host: bool) -> Candidate {
    let marks = spans.into_iter().enumerate().map(|(number, span)| (number as i64, span)).collect();
    Candidate {
        how,
        marks,
        track: Some(stepscope_trace::TrackId(track)),
        on_host,
        ends_known: false,
        breaks: Vec::new(),
    }
}

pub(super) fn host_thread(track: &Track) -> bool {
    track.kind == TrackKind::Thread
}

/// Tracks with user-defined ranges: threads, and ranges that may end on another thread than they started on.
pub(super) fn has_ranges(trace: &Trace, track: &Track) -> bool {
    let on_host = || trace.process(track.process).kind != ProcessKind::Device;
    host_thread(track) || (track.kind == TrackKind::Async && on_host())
}

/// Calls of the compiled function that does most of the work.
pub(super) fn function_calls(recorded: &HostTrace) -> Option<Candidate> {
    calls(recorded, REPEATS).filter(|(_, most)| *most).map(|(calls, _)| calls)
}

/// Calls of compiled functions from Python, without those inside another one.
pub(super) fn compiled_calls(recorded: &HostTrace) -> Repeats {
    let trace = recorded.trace;
    let python = |track: &Track| host_thread(track) && runs_python(trace, recorded.vocabulary(), track);
    let name = |name: &str, role| {
        (role == Role::FunctionCall && !is_library_function(name)).then(|| called_function(name))
    };
    repeats(recorded, python, name)
}

/// Calls of the function that does most, and whether that is also most of all known work.
fn calls(recorded: &HostTrace, least: usize) -> Option<(Candidate, bool)> {
    let calls = compiled_calls(recorded);
    let work = Work::of(recorded, &[]);
    let sum = |spans: &[Span]| spans.iter().map(|&span| work.within(span)).sum::<Dur>();
    // Calls that only hand work to other threads contain none of it: then their own duration is all there is.
    let holds = work.is_most(calls.values().map(|spans| sum(spans)).sum());
    let weight = |span: &Span| if holds { work.within(*span) } else { span.dur() };
    let ((name, track), spans) = heaviest(calls, least, weight)?;
    let most = !holds || work.is_most(sum(&spans));
    Some((candidate(How::FunctionCalls(name), track, spans, true), most))
}

/// `PjitFunction(f)` is a call of `f`.
pub(crate) fn called_function(name: &str) -> String {
    name.strip_prefix("PjitFunction(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(name).to_owned()
}

/// One or two runs of the device's program that does most of its work.
pub(super) fn few_module_runs(recorded: &HostTrace) -> Option<Candidate> {
    runs_of_modules(recorded, 1).map(|runs| Candidate { ends_known: true, ..runs })
}

pub(super) fn module_runs(recorded: &HostTrace) -> Option<Candidate> {
    runs_of_modules(recorded, REPEATS)
}

fn runs_of_modules(recorded: &HostTrace, least: usize) -> Option<Candidate> {
    let trace = recorded.trace;
    let modules = |track: &Track| {
        track.kind == TrackKind::Derived
            && trace.str(track.name).starts_with("XLA Modules")
            && trace.process(track.process).kind == ProcessKind::Device
    };
    let name = |name: &str, _| Some(name.split('(').next().unwrap_or(name).to_owned());
    let runs = repeats(recorded, modules, name);
    let mut on_track: BTreeMap<u32, Dur> = BTreeMap::new();
    for ((_, track), spans) in &runs {
        *on_track.entry(*track).or_default() += spans.iter().map(|span| span.dur()).sum::<Dur>();
    }
    let ((name, track), spans) = heaviest(runs, least, |span| span.dur())?;
    // If ops are separate programs, the longest one is not a step.
    let own: Dur = spans.iter().map(|span| span.dur()).sum();
    let all = on_track.get(&track).copied().unwrap_or_default();
    (own.ps() >= all.ps() / 2).then(|| candidate(How::ModuleRuns(name), track, spans, false))
}

pub(super) fn optimizer_steps(recorded: &HostTrace) -> Option<Candidate> {
    let name = |name: &str, _| name.strip_prefix("Optimizer.step#").map(str::to_owned);
    let ((name, track), mut spans) = longest(repeats(recorded, host_thread, name))?;
    // The optimizer ends a step, so a step reaches from the end of one to the end of the next.
    for span in &mut spans {
        span.start = span.end;
    }
    let turn = optimizers(&gradients_before(recorded, &spans));
    let last_of_turn = spans.into_iter().enumerate().filter(|(at, _)| at % turn == turn - 1);
    let spans = last_of_turn.map(|(_, span)| span).collect();
    Some(candidate(How::OptimizerSteps(name), track, spans, true))
}

/// How many parameters got a gradient before each end of an optimizer's step, and after the end before.
fn gradients_before(recorded: &HostTrace, ends: &[Span]) -> Vec<usize> {
    let trace = recorded.trace;
    let leaves = trace.kinds_where(|kind| trace.kind_name(kind).ends_with("AccumulateGrad"));
    let mut counts = vec![0; ends.len()];
    for track in trace.tracks().iter().filter(|track| host_thread(track)) {
        for (index, _) in track.events_of(&leaves) {
            let before = ends.partition_point(|end| end.end <= track.start(index));
            if let Some(count) = counts.get_mut(before) {
                *count += 1;
            }
        }
    }
    counts
}

/// How many optimizers take turns within one step, as those of a generator and a discriminator do: the shortest period in
/// the numbers of parameters that got gradients. The first is left out, because the recording may begin within it.
fn optimizers(gradients: &[usize]) -> usize {
    /// More than this take turns nowhere.
    const MOST: usize = 8;
    let seen = gradients.get(1..).unwrap_or_default();
    let repeats = |turn: usize| seen.iter().zip(seen.iter().skip(turn)).all(|(a, b)| a == b);
    let period = (1..=MOST).take_while(|turn| seen.len() >= 3 * turn).find(|&turn| repeats(turn));
    period.unwrap_or(1)
}

pub(super) fn batches(recorded: &HostTrace) -> Option<Candidate> {
    let name = |name: &str, role| (role == Role::InputWait).then(|| name.to_owned());
    let ((name, track), spans) = longest(repeats(recorded, host_thread, name))?;
    // Work follows each batch; other iterators may be used for anything.
    let work = Work::of(recorded, &[]);
    let turns = || spans.windows(2).map(|pair| Span::new(pair[0].start, pair[1].start));
    let working = turns().filter(|turn| !work.within(*turn).is_zero()).count();
    let fed = work.all().is_zero() || working * 5 >= turns().count() * 4;
    fed.then(|| candidate(How::Batches(name), track, spans, true))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::sketch::Sketch;

    /// Ends of steps found by optimizer steps, in µs: per step `gradients` parameters, then an optimizer, in turn.
    fn optimized(gradients: &[i64], turns: i64) -> Vec<i64> {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let mut at = 0;
        for _ in 0..turns {
            for &count in gradients {
                for _ in 0..count {
                    let name = "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad";
                    sketch.event_of(thread, "cpu_op", name, at, 5, &[]);
                    at += 10;
                }
                sketch.event_of(thread, "user_annotation", "Optimizer.step#Adam.step", at, 50, &[]);
                at += 100;
            }
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        let found = optimizer_steps(&context).unwrap();
        found.marks.iter().map(|(_, span)| span.end.ps() / 1_000_000).collect()
    }

    #[test]
    fn optimizers_that_take_turns_end_one_step_together() {
        assert_eq!(optimized(&[2], 6).len(), 6);
        assert_eq!(optimized(&[2, 3], 6), (1..=6).map(|turn| turn * 250 - 50).collect::<Vec<_>>());
        assert_eq!(optimized(&[2, 2, 3], 4).len(), 4);
        assert_eq!(optimized(&[2, 3], 2).len(), 4, "twice is no turn yet");
        assert_eq!(optimizers(&[0, 4, 4, 4, 9, 4, 4, 4]), 1, "an odd one is no turn");
        assert_eq!(optimizers(&[]), 1);
    }

    #[test]
    fn one_run_of_a_program_is_a_step_where_threads_only_wait_for_it() {
        use crate::steps::Steps;

        let mut sketch = Sketch::new();
        let (waiting, starting) = (sketch.thread("reads"), sketch.thread("engine"));
        let (modules, ops) = (sketch.derived("XLA Modules"), sketch.stream());
        sketch.event(waiting, "$api.py:2902 device_get", 1_000, 66_000, &[]);
        sketch.event(waiting, "$tree_util.py:354 tree_map", 1_010, 65_900, &[]);
        sketch.event(starting, "$core.py:378 schedule", 0, 900, &[]);
        sketch.event_of(modules, "", "jit_step(123)", 1_200, 65_000, &[]);
        sketch.event_of(modules, "", "jit_sample(7)", 66_300, 100, &[]);
        for op in 0..60_i64 {
            sketch.event_of(
                ops,
                "kernel",
                &format!("fusion.{}", op * op % 41),
                1_200 + op * 1_083,
                1_080,
                &[],
            );
        }
        let trace = sketch.finish();
        let steps = Steps::of(&Context::new(&trace, "host"));
        assert_eq!((steps.how, steps.all.len()), (How::ModuleRuns("jit_step".to_owned()), 1));
        assert_eq!(steps.all[0].span.dur(), Dur::from_us(65_000));
    }
}
