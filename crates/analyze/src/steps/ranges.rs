//! Steps by ranges: those that users and libraries put around iterations, around requests to a server, and around parts of
//! either.

use std::collections::BTreeMap;

use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, Span, Time, TrackId, TrackKind};

use super::names::{Names, is_optimizer_step, is_step};
use super::repetition::{REPEATS, candidate, has_ranges};
use super::work::Work;
use super::{Candidate, How, is_prediction};
use crate::host_trace::HostTrace;
use crate::states::runs_python;
use crate::states::timeline::is_inside;
use crate::vocabulary::Role;

/// A thread's ranges of one family.
type ByThread = (TrackId, Vec<Span>);

/// Ranges around other things than steps, by parts of their names: many steps, or warm-up.
const NO_STEPS: &[&str] = &["epoch", "warm", "init"];

/// Asynchronous ranges that overlap on one track are looked at as this many threads.
const MOST_LANES: usize = 32;

/// Ranges of two families surround one another if their numbers differ by at most one part in this many.
const SAME_COUNT: usize = 20;

/// All ranges of a recording, by family and thread.
pub(super) struct Ranges<'r, 't> {
    recorded: &'r HostTrace<'t>,
    pub(super) names: Names,
    families: BTreeMap<String, Family>,
}

/// Ranges of one family.
#[derive(Default)]
struct Family {
    /// By thread, without those inside another one. Asynchronous ones that overlap are as if on several threads.
    threads: Vec<ByThread>,
    /// True if no profiler says that these are annotations: formats without categories do not.
    unknown: bool,
    /// True if several threads run them at once, each at its own pace.
    concurrent: bool,
}

impl<'r, 't> Ranges<'r, 't> {
    pub(super) fn of(recorded: &'r HostTrace<'t>) -> Self {
        let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
        let names = Names::of(recorded);
        let wanted = trace.kinds_where(|kind| names.family(kind).is_some());
        let mut families: BTreeMap<String, Family> = BTreeMap::new();
        for track in trace.tracks().iter().filter(|track| has_ranges(trace, track)) {
            let by_user = runs_python(trace, vocabulary, track);
            let lanes = if track.kind == TrackKind::Async { MOST_LANES } else { 1 };
            let mut own: BTreeMap<&str, (bool, Vec<Vec<Span>>)> = BTreeMap::new();
            for (index, kind) in track.events_of(&wanted) {
                let (Some(name), span) = (names.family(kind), track.span_of(index)) else { continue };
                let unknown = vocabulary.role(kind) == Role::Unknown;
                if unknown && !by_user || span.is_empty() {
                    continue;
                }
                let (any_unknown, used) = own.entry(name).or_default();
                *any_unknown |= unknown;
                let is_free = |lane: &Vec<Span>| lane.last().is_none_or(|last| last.end <= span.start);
                let lane = used.iter().position(is_free).unwrap_or(used.len());
                if lane == used.len() && lane < lanes {
                    used.push(Vec::new());
                }
                if let Some(lane) = used.get_mut(lane) {
                    lane.push(span);
                }
            }
            for (name, (unknown, used)) in own {
                let family = families.entry(name.to_owned()).or_default();
                family.unknown |= unknown;
                family.threads.extend(used.into_iter().map(|spans| (track.id, spans)));
            }
        }
        for family in families.values_mut() {
            family.concurrent = are_concurrent(recorded, &family.threads);
        }
        Ranges { recorded, names, families }
    }

    /// Whether several threads run ranges of a family at once, each at its own pace: requests, or tasks of a pool.
    pub(super) fn is_concurrent(&self, family: &str) -> bool {
        self.families.get(family).is_some_and(|family| family.concurrent)
    }

    /// Ranges around iterations with names for that: `step 12`, `train_step`, `Iteration: 3`.
    pub(super) fn named_steps(&self) -> Option<Candidate> {
        let (name, family) = self.working(|name, _| is_step(name))?;
        let (track, spans) = longest(&family)?;
        Some(Candidate { ends_known: true, ..candidate(How::Marker(name.to_owned()), track.0, spans, true) })
    }

    /// Ranges around requests to a server.
    pub(super) fn requests(&self) -> Option<Candidate> {
        let (name, family) = self.working(|name, _| is_prediction(name))?;
        if family.concurrent {
            return Some(self.answers(name, &family));
        }
        let (track, spans) = longest(&family)?;
        let how = How::Annotations(name.to_owned());
        Some(Candidate { ends_known: true, ..candidate(how, track.0, spans, true) })
    }

    /// Ranges with any name.
    ///
    /// A library's layer may also cover most of the work, so a period of the kernels themselves comes first. If nothing
    /// but ranges was recorded, their names and their rhythm decided before.
    pub(super) fn any(&self) -> Option<Candidate> {
        let (name, family) = self.working(|_, family| !family.unknown)?;
        if family.concurrent {
            // Tasks of a pool are neither steps nor requests.
            return self.recorded.states().has_device.then(|| self.answers(name, &family));
        }
        let (track, spans) = longest(&family)?;
        Some(candidate(How::Annotations(name.to_owned()), track.0, spans, true))
            .filter(|_| !Work::of(self.recorded, &[]).of_ranges)
    }

    /// Updates of parameters, which end steps. They need not do most of the work.
    pub(super) fn optimizer_steps(&self) -> Option<Candidate> {
        let updates = self.families.iter().filter(|(name, _)| is_optimizer_step(name));
        let repeated = updates.filter_map(|(name, family)| {
            let (track, spans) = longest(family)?;
            (!family.concurrent && spans.len() >= REPEATS).then_some((name, track, spans))
        });
        let (name, track, spans) = repeated.max_by_key(|(.., spans)| spans.len())?;
        let ends = spans.into_iter().map(|span| Span::new(span.end, span.end)).collect();
        Some(candidate(How::OptimizerSteps(name.clone()), track.0, ends, true))
    }

    /// The requests of several threads, by the names of those in [`How::Requests`].
    pub(super) fn overlapping(&self, name: &str) -> Vec<Span> {
        self.families.get(name).map(|family| self.of_one_process(family).1).unwrap_or_default()
    }

    /// The family, however nested, that launches most of the device's work: NVTX around the body of a loop, or a library's
    /// own range around each of its runs. If there are several, the outermost are the loop's.
    ///
    /// Without those in warm-ups.
    fn working(&self, wanted: impl Fn(&str, &Family) -> bool) -> Option<(&str, Family)> {
        let is_wanted = |(name, family): &(&String, &Family)| {
            let lower = name.to_ascii_lowercase();
            !NO_STEPS.iter().any(|part| lower.contains(part))
                && family.threads.iter().any(|(_, spans)| spans.len() >= REPEATS)
                && wanted(name, family)
        };
        let found: Vec<_> = self.families.iter().filter(is_wanted).collect();
        if found.is_empty() {
            return None;
        }
        let warm_ups = super::warm_ups::warm_ups(self.recorded);
        let work = Work::of(self.recorded, &warm_ups);
        let steady = |(track, spans): &ByThread| -> ByThread {
            (*track, spans.iter().filter(|span| !is_inside(&warm_ups, span.start)).copied().collect())
        };
        let working = found.into_iter().filter_map(|(name, family)| {
            let threads: Vec<ByThread> = family.threads.iter().map(steady).collect();
            let repeats = threads.iter().any(|(_, spans)| spans.len() >= REPEATS);
            let spans = || threads.iter().flat_map(|(_, spans)| spans);
            let held: Dur = spans().map(|&span| work.within(span)).sum();
            let (count, length) = (spans().count(), spans().map(|span| span.dur()).sum::<Dur>());
            let family = Family { threads, ..*family };
            (repeats && work.is_most(held)).then_some((count, length, name.as_str(), family))
        });
        let working: Vec<_> = working.collect();
        let fewest = working.iter().map(|(count, ..)| *count).min()?;
        // The recording may have cut off one of them.
        let outer = working.into_iter().filter(|(count, ..)| *count <= fewest + 1 + fewest / SAME_COUNT);
        outer.max_by_key(|(_, length, ..)| *length).map(|(.., name, family)| (name, family))
    }

    /// Requests that several threads answer: from one answer to the next. What runs meanwhile serves several of them.
    fn answers(&self, name: &str, family: &Family) -> Candidate {
        let (threads, mut spans) = self.of_one_process(family);
        spans.sort_unstable_by_key(|span| (span.end, span.start));
        let mut before: Option<Time> = None;
        let marks = spans.iter().enumerate().map(|(number, span)| {
            let start = before.unwrap_or(span.start);
            before = Some(span.end);
            (number as i64, Span::new(start.min(span.end), span.end))
        });
        let marks = marks.filter(|(_, span)| !span.is_empty()).collect();
        Candidate {
            how: How::Requests { name: name.to_owned(), threads },
            marks,
            track: None,
            on_host: true,
            ends_known: true,
            breaks: Vec::new(),
        }
    }

    /// The ranges of the process that has most of them, and the number of their threads.
    fn of_one_process(&self, family: &Family) -> (usize, Vec<Span>) {
        let all = by_process(self.recorded, &family.threads);
        let most =
            all.into_values().max_by_key(|threads| threads.iter().map(|spans| spans.len()).sum::<usize>());
        let threads = most.unwrap_or_default();
        let mut spans: Vec<Span> = threads.iter().flat_map(|spans| spans.iter().copied()).collect();
        spans.sort_unstable_by_key(|span| (span.start, span.end));
        (threads.len(), spans)
    }
}

fn longest(family: &Family) -> Option<(TrackId, Vec<Span>)> {
    family.threads.iter().max_by_key(|(_, spans)| spans.len()).cloned()
}

fn by_process<'s>(recorded: &HostTrace, threads: &'s [ByThread]) -> BTreeMap<usize, Vec<&'s [Span]>> {
    let mut all: BTreeMap<usize, Vec<&[Span]>> = BTreeMap::new();
    for (track, spans) in threads {
        all.entry(recorded.trace.track(*track).process.index()).or_default().push(spans);
    }
    all
}

/// Fewer ranges do not show whether threads take turns.
const LEAST_CONCURRENT: usize = 6;
/// The share of ranges that must begin while another thread is inside one.
const OVERLAPPING: f64 = 0.5;
/// Threads that begin within this share of a range of one another do the same step at once, each on its own device.
const LOCKSTEP: f64 = 0.1;

/// Whether threads of one process are inside ranges of one family at once, and not in lockstep.
fn are_concurrent(recorded: &HostTrace, threads: &[ByThread]) -> bool {
    let is_concurrent = |threads: &Vec<&[Span]>| {
        let mut all: Vec<(usize, Span)> = threads
            .iter()
            .enumerate()
            .flat_map(|(thread, spans)| spans.iter().map(move |&span| (thread, span)))
            .collect();
        if threads.len() < 2 || all.len() < LEAST_CONCURRENT {
            return false;
        }
        all.sort_unstable_by_key(|(_, span)| (span.start, span.end));
        let usual = median_duration(all.iter().map(|(_, span)| span.dur()));
        let (mut overlapping, mut together) = (0, 0);
        // The latest end, its thread, and the latest end of another thread.
        let (mut latest, mut of_thread, mut of_another) = (Time::MIN, usize::MAX, Time::MIN);
        let mut before: Option<(usize, Time)> = None;
        for &(thread, span) in &all {
            let others = if of_thread == thread { of_another } else { latest };
            if others > span.start {
                overlapping += 1;
                let near = |(other, start): (usize, Time)| {
                    other != thread && (span.start - start).fraction_of(usual) < LOCKSTEP
                };
                together += usize::from(before.is_some_and(near));
            }
            if of_thread == thread {
                latest = latest.max(span.end);
            } else if span.end > latest {
                (of_another, latest, of_thread) = (latest, span.end, thread);
            } else {
                of_another = of_another.max(span.end);
            }
            before = Some((thread, span.start));
        }
        overlapping as f64 >= OVERLAPPING * all.len() as f64 && together * 2 < overlapping
    };
    by_process(recorded, threads).values().any(is_concurrent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
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

    /// Ranges of 1 ms on `threads` threads, the next one `apart` µs after the one before; each launches a kernel.
    fn side_by_side(name: &str, threads: usize, apart: i64, device: bool) -> Steps {
        let mut sketch = Sketch::new();
        let tracks: Vec<_> = (0..threads).map(|thread| sketch.thread(&format!("pool-{thread}"))).collect();
        let stream = device.then(|| sketch.stream());
        for number in 0..40_i64 {
            let (track, at) = (tracks[number as usize * 7 % threads], number * apart);
            sketch.event_of(track, "user_annotation", name, at, 1_000, &[]);
            let Some(stream) = stream else { continue };
            let args = || [("correlation", Arg::Int(number + 1))];
            sketch.event_of(track, "cuda_runtime", "cudaLaunchKernel", at + 100, 5, &args());
            let kernel = format!("kernel{}", (number * number) % 37);
            sketch.event_of(stream, "kernel", &kernel, at + 110, apart * 9 / 10, &args());
        }
        let trace = sketch.finish();
        Steps::of(&Context::new(&trace, "host"))
    }

    #[test]
    fn requests_on_several_threads_last_from_answer_to_answer() {
        let steps = side_by_side("Task::run", 5, 400, true);
        assert_eq!(steps.how, How::Requests { name: "Task::run".to_owned(), threads: 5 });
        assert_eq!((steps.kind, steps.all.len()), (StepKind::Inference, 40));
        assert!(steps.all.iter().skip(1).all(|step| step.span.dur() == Dur::from_us(400)), "{:?}", steps.all);
    }

    #[test]
    fn slices_of_a_pool_of_threads_are_no_steps() {
        assert_eq!(side_by_side("render tile", 2, 600, false).origin, Origin::None);
        assert_eq!(
            side_by_side("render tile", 1, 1_100, false).origin,
            Origin::Inferred,
            "one after another"
        );
    }

    #[test]
    fn threads_that_begin_together_do_one_step_each() {
        let mut sketch = Sketch::new();
        let threads = [sketch.thread("replica-0"), sketch.thread("replica-1")];
        for step in 0..20 {
            for (thread, late) in threads.iter().zip([0, 20]) {
                sketch.event_of(*thread, "user_annotation", "replica", step * 1_000 + late, 900, &[]);
            }
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        assert!(!Ranges::of(&context).is_concurrent("replica"));
    }

    #[test]
    fn updates_are_ends_of_steps_and_no_steps() {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("worker"), sketch.stream());
        for number in 0..80_i64 {
            let args = || [("correlation", Arg::Int(number + 1))];
            let at = number * 100;
            sketch.event_of(thread, "cuda_runtime", "cudaLaunchKernel", at, 5, &args());
            let kernel = format!("kernel{}", (number * number) % 37);
            sketch.event_of(stream, "kernel", &kernel, at + 10, 80, &args());
            if number % 10 == 9 {
                sketch.event_of(thread, "user_annotation", "optimizer_step", at - 20, 60, &[]);
            }
        }
        let trace = sketch.finish();
        let steps = Steps::of(&Context::new(&trace, "host"));
        assert_eq!((&steps.how, steps.all.len()), (&How::OptimizerSteps("optimizer_step".to_owned()), 8));
        assert!(steps.counted().all(|step| step.span.dur() == Dur::from_us(1_000)), "{:?}", steps.all);
    }
}
