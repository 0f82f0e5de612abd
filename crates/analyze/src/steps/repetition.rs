//! Steps by what the framework itself repeats. Each way yields the events that begin a step; the first that
//! repeats often enough is taken.

use std::collections::BTreeMap;

use stepscope_trace::{Dur, Form, KindId, ProcessKind, Span, Time, Track, TrackKind};

use super::{Candidate, How};
use crate::context::Context;
use crate::states::is_python_thread;
use crate::vocabulary::Role;

/// Fewer repetitions than this are a coincidence.
const REPEATS: usize = 3;

pub(super) fn find(context: &Context) -> Option<Candidate> {
    // A program that runs on a device shows its true pace there; calls on the host may only queue it.
    module_runs(context)
        .or_else(|| function_calls(context, REPEATS))
        .or_else(|| optimizer_steps(context))
        .or_else(|| batches(context))
        .or_else(|| annotations(context))
}

/// The last resort: one or two calls of a function are steps too, of which each says where it ended.
pub(super) fn single(context: &Context) -> Option<Candidate> {
    function_calls(context, 1).map(|calls| Candidate { ends_known: true, ..calls })
}

/// All events of a name on one track, those inside an equal one left out.
type Repeats = BTreeMap<(String, u32), Vec<Span>>;

fn repeats(
    context: &Context,
    wanted: impl Fn(&Track) -> bool,
    name_of: impl Fn(&str, Role) -> Option<String>,
) -> Repeats {
    let (trace, vocabulary) = (context.trace, context.vocabulary());
    let names: Vec<Option<String>> = (0..trace.kinds().len())
        .map(|index| {
            let kind = KindId::from_index(index);
            name_of(trace.kind_name(kind), vocabulary.role(kind))
        })
        .collect();
    let mut all = Repeats::new();
    for track in trace.tracks().iter().filter(|track| wanted(track)) {
        let mut inside_until = Time::MIN;
        for (index, &kind) in track.kinds().iter().enumerate() {
            let Some(name) = &names[kind.index()] else { continue };
            let span = track.span_of(index);
            // The outermost call is the loop's; what it calls is part of it.
            if span.start < inside_until || span.is_empty() {
                continue;
            }
            inside_until = span.end;
            all.entry((name.clone(), track.id.0)).or_default().push(span);
        }
    }
    all
}

/// Those that hold most time, if they repeat.
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
    Candidate { how, marks, track: Some(stepscope_trace::TrackId(track)), on_host, ends_known: false }
}

fn host_thread(track: &Track) -> bool {
    track.kind == TrackKind::Thread
}

fn function_calls(context: &Context, least: usize) -> Option<Candidate> {
    let trace = context.trace;
    let python = |track: &Track| host_thread(track) && is_python_thread(trace.str(track.name));
    let name = |name: &str, role| (role == Role::FunctionCall).then(|| call_name(name));
    let calls = repeats(context, python, name);
    let launched = launched_work(context);
    // Calls that only queue work are short on the host: what they start on a device is their weight.
    let weight = |span: &Span| {
        let first = launched.partition_point(|&(at, _)| at < span.start);
        let work = launched[first..]
            .iter()
            .take_while(|&&(at, _)| at < span.end)
            .map(|&(_, work)| work)
            .sum::<Dur>();
        if launched.is_empty() { span.dur() } else { work }
    };
    let ((name, track), spans) = heaviest(calls, least, weight)?;
    Some(candidate(How::FunctionCalls(name), track, spans, true))
}

/// When work was launched, and how long it took on its device; in the order of launching.
fn launched_work(context: &Context) -> Vec<(Time, Dur)> {
    let work = |launch: &crate::launches::Launch| {
        (launch.called, context.trace.track(launch.work.track).dur(launch.work.index as usize))
    };
    let mut all: Vec<(Time, Dur)> = context.launches().all.iter().map(work).collect();
    all.sort_unstable();
    all
}

/// `PjitFunction(f)` is a call of `f`.
fn call_name(name: &str) -> String {
    name.strip_prefix("PjitFunction(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(name).to_owned()
}

fn module_runs(context: &Context) -> Option<Candidate> {
    let trace = context.trace;
    let modules = |track: &Track| {
        track.kind == TrackKind::Derived
            && trace.str(track.name).starts_with("XLA Modules")
            && trace.process(track.process).kind == ProcessKind::Device
    };
    let name = |name: &str, _| Some(name.split('(').next().unwrap_or(name).to_owned());
    let ((name, track), spans) = longest(repeats(context, modules, name))?;
    Some(candidate(How::ModuleRuns(name), track, spans, false))
}

fn optimizer_steps(context: &Context) -> Option<Candidate> {
    let name = |name: &str, _| name.strip_prefix("Optimizer.step#").map(str::to_owned);
    let ((name, track), mut spans) = longest(repeats(context, host_thread, name))?;
    // The optimizer ends a step, so a step reaches from the end of one to the end of the next.
    for span in &mut spans {
        span.start = span.end;
    }
    Some(candidate(How::OptimizerSteps(name), track, spans, true))
}

fn batches(context: &Context) -> Option<Candidate> {
    let name = |name: &str, role| (role == Role::InputWait).then(|| name.to_owned());
    let ((name, track), spans) = longest(repeats(context, host_thread, name))?;
    Some(candidate(How::Batches(name), track, spans, true))
}

fn annotations(context: &Context) -> Option<Candidate> {
    let trace = context.trace;
    let python = |track: &Track| host_thread(track) && is_python_thread(trace.str(track.name));
    let name = |name: &str, role| (role == Role::Annotation).then(|| name.to_owned());
    let ((name, track), spans) = longest(repeats(context, python, name))?;
    let covered: Dur = spans.iter().map(|span| span.dur()).sum();
    let whole = spans.last()?.end - spans.first()?.start;
    // An annotation that holds little of the time is no loop.
    (covered.ps() > whole.ps() / 4).then(|| candidate(How::Annotations(name), track, spans, true))
}

/// A thread's ranges of one name.
type ByThread = (u32, Vec<Span>);

/// Ranges around other things than steps, by parts of their names: what holds many steps, and what only warms up.
const NO_STEPS: &[&str] = &["epoch", "warm", "init"];

/// Words by which people call a turn of their loop …
const STEPS: &[&str] = &["step", "iter", "iteration", "batch"];
/// … and parts of names of what they do in it: `load_batch`, `optimizer step`.
const PARTS: &[&str] = &["optim", "load", "data", "fetch", "next", "read", "copy"];

/// Ranges that somebody put around the turns of a loop and called so: `step 12`, `train_step`, `Iteration: 3`.
pub(super) fn named_steps(context: &Context) -> Option<Candidate> {
    let is_step = |name: &str| {
        let name = name.to_ascii_lowercase();
        super::words(&name).next_back().is_some_and(|last| STEPS.contains(&last))
            && !PARTS.iter().any(|part| name.contains(part))
    };
    let (name, track, spans) = working_ranges(context, is_step, true)?;
    Some(Candidate { ends_known: true, ..candidate(How::Marker(name), track, spans, true) })
}

/// Ranges around requests to a server.
pub(super) fn requests(context: &Context) -> Option<Candidate> {
    let (name, track, spans) = working_ranges(context, super::is_prediction, true)?;
    Some(Candidate { ends_known: true, ..candidate(How::Annotations(name), track, spans, true) })
}

/// Ranges of any name.
///
/// A library's layer may hold most of the work too, so a period of the kernels themselves comes before.
pub(super) fn ranges(context: &Context) -> Option<Candidate> {
    let (name, track, spans) = working_ranges(context, |_| true, false)?;
    Some(candidate(How::Annotations(name), track, spans, true))
}

/// Ranges of one name, wherever they are nested, inside which most of the device's work is launched: NVTX around the
/// body of a loop, or a library's own around each of its runs. Of several, the outermost are the loop's.
///
/// With `any_name` also events of a Python thread that no table knows: formats without categories do not say what is an
/// annotation.
fn working_ranges(
    context: &Context,
    wanted: impl Fn(&str) -> bool,
    any_name: bool,
) -> Option<(String, u32, Vec<Span>)> {
    let launched = launched_work(context);
    let before: Vec<Dur> = std::iter::once(Dur::ZERO)
        .chain(launched.iter().scan(Dur::ZERO, |sum, &(_, work)| {
            *sum += work;
            Some(*sum)
        }))
        .collect();
    let all = *before.last().filter(|all| !all.is_zero())?;
    let until = |at: Time| before[launched.partition_point(|&(called, _)| called < at)];
    let mut families: BTreeMap<String, (Dur, Vec<ByThread>)> = BTreeMap::new();
    for ((name, track), spans) in outermost_of_their_name(context, wanted, any_name) {
        let (work, threads) = families.entry(name).or_default();
        *work += spans.iter().map(|span| until(span.end) - until(span.start)).sum();
        threads.push((track, spans));
    }
    let (name, threads) = families
        .into_iter()
        .filter(|(_, (work, _))| work.ps() > all.ps() / 2)
        .map(|(name, (_, threads))| (name, threads))
        .filter(|(_, threads)| threads.iter().any(|(_, spans)| spans.len() >= REPEATS))
        .min_by_key(|(_, threads)| threads.iter().map(|(_, spans)| spans.len()).sum::<usize>())?;
    let (track, spans) = threads.into_iter().max_by_key(|(_, spans)| spans.len())?;
    Some((name, track, spans))
}

/// Annotations by name and thread, without those inside one of the same name. `step 7` is a `step`.
fn outermost_of_their_name(context: &Context, wanted: impl Fn(&str) -> bool, any_name: bool) -> Repeats {
    let (trace, vocabulary) = (context.trace, context.vocabulary());
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
    let mut all = Repeats::new();
    for track in trace.tracks().iter().filter(|track| host_thread(track)) {
        let mut own: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
        let by_user = is_python_thread(trace.str(track.name));
        for (index, &kind) in track.kinds().iter().enumerate() {
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
    use crate::sketch::{Arg, Sketch};
    use crate::steps::{Origin, StepKind, Steps};

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

    #[test]
    fn ranges_that_launch_little_of_the_work_or_only_warm_up_are_no_steps() {
        assert_eq!(ranged("turn", 3).origin, Origin::None);
        assert_eq!(ranged("warm-up ", 10).origin, Origin::None);
    }
}
