//! Steps by what the framework itself repeats. Each method yields the events that start a step; the first that
//! repeats often enough wins.

use std::collections::BTreeMap;

use stepscope_trace::{Dur, Form, KindId, KindSet, ProcessKind, Span, Time, Trace, Track, TrackKind};

use super::work::Work;
use super::{Candidate, How};
use crate::host_trace::HostTrace;
use crate::states::runs_python;
use crate::states::timeline::is_inside;
use crate::vocabulary::{Role, is_library_function};

/// Fewer repetitions are a coincidence.
const REPEATS: usize = 3;

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

fn candidate(how: How, track: u32, spans: Vec<Span>, on_host: bool) -> Candidate {
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

pub(super) fn module_runs(recorded: &HostTrace) -> Option<Candidate> {
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
    let ((name, track), spans) = longest(runs)?;
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

/// A thread's ranges with one name.
type ByThread = (u32, Vec<Span>);

/// Ranges around other things than steps, by parts of their names: many steps, or warm-up.
const NO_STEPS: &[&str] = &["epoch", "warm", "init"];

/// Words that users give to an iteration of their loop …
const STEPS: &[&str] = &["step", "iter", "iteration", "batch"];
/// … and parts of names of what they do in it: `load_batch`, `optimizer step`.
const PARTS: &[&str] = &["optim", "load", "data", "fetch", "next", "read", "copy"];

/// User-defined ranges around iterations with such names: `step 12`, `train_step`, `Iteration: 3`.
pub(super) fn named_steps(recorded: &HostTrace) -> Option<Candidate> {
    let is_step = |name: &str| {
        let name = name.to_ascii_lowercase();
        super::words(&name).next_back().is_some_and(|last| STEPS.contains(&last))
            && !PARTS.iter().any(|part| name.contains(part))
    };
    let (name, track, spans) = working_ranges(recorded, is_step, true)?;
    Some(Candidate { ends_known: true, ..candidate(How::Marker(name), track, spans, true) })
}

/// Ranges around requests to a server.
pub(super) fn requests(recorded: &HostTrace) -> Option<Candidate> {
    let (name, track, spans) = working_ranges(recorded, super::is_prediction, true)?;
    Some(Candidate { ends_known: true, ..candidate(How::Annotations(name), track, spans, true) })
}

/// Ranges with any name.
///
/// A library's layer may also cover most of the work, so a period of the kernels themselves comes first. If nothing
/// but ranges was recorded, their names and their rhythm decided before.
pub(super) fn ranges(recorded: &HostTrace) -> Option<Candidate> {
    if Work::of(recorded, &[]).of_ranges {
        return None;
    }
    let (name, track, spans) = working_ranges(recorded, |name| !super::outer::is_part(name), false)?;
    Some(candidate(How::Annotations(name), track, spans, true))
}

/// Ranges with one name, however nested, that launch most of the device's work: NVTX around the body of a loop,
/// or a library's own around each of its runs. If there are several, the outermost are the loop's.
///
/// With `any_name` also unknown events of a Python thread: formats without categories do not say what is an
/// annotation.
fn working_ranges(
    recorded: &HostTrace,
    wanted: impl Fn(&str) -> bool,
    any_name: bool,
) -> Option<(String, u32, Vec<Span>)> {
    let warm_ups = super::outer::warm_ups(recorded);
    let work_of = Work::of(recorded, &warm_ups);
    let mut families: BTreeMap<String, (Dur, Vec<ByThread>)> = BTreeMap::new();
    for ((name, track), mut spans) in outermost_of_their_name(recorded, wanted, any_name) {
        spans.retain(|span| !is_inside(&warm_ups, span.start));
        let (work, threads) = families.entry(name).or_default();
        *work += spans.iter().map(|&span| work_of.within(span)).sum();
        threads.push((track, spans));
    }
    let (name, threads) = families
        .into_iter()
        .filter(|(_, (work, _))| work_of.is_most(*work))
        .map(|(name, (_, threads))| (name, threads))
        .filter(|(_, threads)| threads.iter().any(|(_, spans)| spans.len() >= REPEATS))
        .min_by_key(|(_, threads)| threads.iter().map(|(_, spans)| spans.len()).sum::<usize>())?;
    let (track, spans) = threads.into_iter().max_by_key(|(_, spans)| spans.len())?;
    Some((name, track, spans))
}

/// Annotations by name and thread, without those inside one with the same name. `step 7` is a `step`.
fn outermost_of_their_name(recorded: &HostTrace, wanted: impl Fn(&str) -> bool, any_name: bool) -> Repeats {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let family = |kind: KindId| {
        let name = trace.kind_name(kind);
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let stem = if stem.len() < name.len() {
            stem.trim_end_matches([' ', '_', '#', ':', '-', '='])
        } else {
            name
        };
        let lower = stem.to_ascii_lowercase();
        let role = vocabulary.role(kind);
        let fits = (role == Role::Annotation || any_name && role == Role::Unknown)
            && trace.kind(kind).form == Form::Slice
            && !stem.is_empty()
            && wanted(stem)
            && !NO_STEPS.iter().any(|part| lower.contains(part));
        fits.then(|| stem.to_owned())
    };
    let names: Vec<Option<String>> =
        (0..trace.kinds().len()).map(|index| family(KindId::from_index(index))).collect();
    let named = trace.kinds_where(|kind| names[kind.index()].is_some());
    let mut all = Repeats::new();
    for track in trace.tracks().iter().filter(|track| has_ranges(trace, track)) {
        let mut own: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
        let by_user = runs_python(trace, recorded.vocabulary(), track);
        for (index, kind) in track.events_of(&named) {
            let Some(name) = &names[kind.index()] else { continue };
            if !by_user && vocabulary.role(kind) == Role::Unknown {
                continue;
            }
            let (spans, span) = (own.entry(name).or_default(), track.span_of(index));
            if !span.is_empty() && spans.last().is_none_or(|last| last.end <= span.start) {
                spans.push(span);
            }
        }
        all.extend(own.into_iter().map(|(name, spans)| ((name.to_owned(), track.id.0), spans)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};
    use crate::steps::{Origin, StepKind, Steps};

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

    /// Kernels that no period shows, launched inside ranges of `name` (with their number, if it ends in a blank)
    /// on a thread of no known name, all inside one range `benchmark`.
    fn ranged(name: &str, inside: i64) -> Steps {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("worker"), sketch.stream());
        sketch.event_of(thread, "user_annotation", "benchmark", 0, 10_000, &[]);
        for step in 0..8 {
            let at = 1_000 * step;
            let numbered = format!("{name}{step}");
            let range = if name.ends_with(' ') { &numbered } else { name };
            sketch.event_of(thread, "user_annotation", range, at, 100, &[]);
            for kernel in 0..10 {
                let id = 1 + 10 * step + kernel;
                let called = if kernel < inside { at + 5 * kernel } else { at + 200 + 5 * kernel };
                sketch.event_of(
                    thread,
                    "cuda_runtime",
                    "cudaLaunchKernel",
                    called,
                    2,
                    &[("correlation", Arg::Int(id))],
                );
                let kernel_name = format!("kernel{}", (id * id) % 37);
                sketch.event_of(
                    stream,
                    "kernel",
                    &kernel_name,
                    at + 300 + 40 * kernel,
                    40,
                    &[("correlation", Arg::Int(id))],
                );
            }
        }
        let trace = sketch.finish();
        Steps::of(&Context::new(&trace, "host"))
    }

    #[test]
    fn ranges_that_launch_most_of_the_work_are_steps_on_any_thread_and_at_any_depth() {
        for name in ["turn", "turn "] {
            let steps = ranged(name, 10);
            assert_eq!((steps.origin, steps.how), (Origin::Inferred, How::Annotations("turn".to_owned())));
            assert_eq!(steps.all.len(), 8);
            assert_eq!(steps.all[0].span.dur(), Dur::from_us(1_000), "from start to start");
        }
    }

    #[test]
    fn ranges_that_are_called_steps_are_marks() {
        for (name, family) in [("step ", "step"), ("train_step", "train_step"), ("Iteration: ", "Iteration")]
        {
            let steps = ranged(name, 10);
            assert_eq!((steps.origin, steps.how), (Origin::Marker, How::Marker(family.to_owned())));
            assert_eq!(steps.all.len(), 8);
        }
        assert_eq!(ranged("step ", 3).origin, Origin::None, "most of the work is elsewhere");
        assert_eq!(ranged("load_batch", 10).origin, Origin::Inferred, "that is a part of a step");
    }

    #[test]
    fn ranges_around_requests_keep_their_own_length() {
        let steps = ranged("request ", 10);
        assert_eq!((steps.kind, steps.all.len()), (StepKind::Inference, 8));
        assert!(steps.all.iter().all(|step| step.span.dur() == Dur::from_us(100)), "{:?}", steps.all);
    }

    /// Nothing but ranges on one thread: (name, start, length) in microseconds, per iteration of 1 ms; `{}` in a name
    /// is its number.
    fn ranges_alone(parts: &[(&str, i64, i64)], turns: i64) -> Steps {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("worker");
        sketch.event_of(thread, "cuda_driver", "cuModuleGetLoadingMode", 0, 1, &[]);
        for turn in 0..turns {
            for (name, at, us) in parts {
                let name = name.replace("{}", &turn.to_string());
                sketch.event_of(thread, "user_annotation", &name, 1_000 * turn + at, *us, &[]);
            }
        }
        let trace = sketch.finish();
        Steps::of(&Context::new(&trace, "host"))
    }

    #[test]
    fn ranges_alone_that_repeat_are_steps() {
        let pair = [("forward", 10, 300), ("backward", 320, 600)];
        let steps = ranges_alone(&pair, 8);
        assert_eq!((steps.origin, steps.how), (Origin::Inferred, How::Annotations("forward".to_owned())));
        assert_eq!((steps.all.len(), steps.all[0].span.dur()), (8, Dur::from_us(1_000)));
        let parts = [("reader", 0, 100), ("backbone", 100, 300), ("encoder", 110, 200), ("head", 450, 400)];
        assert_eq!(ranges_alone(&parts, 8).how, How::Annotations("reader".to_owned()));
        for (name, family) in
            [("iteration", "iteration"), ("step {}", "step"), ("train_batch", "train_batch")]
        {
            let steps = ranges_alone(&[(name, 0, 400), ("forward", 10, 200)], 8);
            assert_eq!((steps.origin, steps.how), (Origin::Marker, How::Marker(family.to_owned())));
            assert_eq!((steps.all.len(), steps.all[0].span.dur()), (8, Dur::from_us(1_000)));
        }
    }

    #[test]
    fn ranges_alone_that_are_rare_or_cover_little_are_no_steps() {
        assert_eq!(ranges_alone(&[("forward", 0, 900)], 2).origin, Origin::None);
        assert_eq!(ranges_alone(&[("poll", 0, 20)], 50).origin, Origin::None);
        assert_eq!(ranges_alone(&[("layer {}", 0, 900)], 12).origin, Origin::None);
    }

    #[test]
    fn ranges_that_launch_little_of_the_work_or_only_warm_up_are_no_steps() {
        assert_eq!(ranged("turn", 3).origin, Origin::None);
        assert_eq!(ranged("warm-up ", 10).origin, Origin::None);
    }
}
