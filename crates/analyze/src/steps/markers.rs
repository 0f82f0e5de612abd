//! Marked steps: `tf.profiler.experimental.Trace(…, step_num=…)`, JAX's StepTraceAnnotation, Keras' `Profiled
//! batch`, PyTorch's `ProfilerStep#N`, and the `Steps` line that profilers derive for devices.

use std::collections::BTreeMap;

use stepscope_trace::{Dur, KindSet, ProcessKind, Span, Trace, Track, TrackKind, Value};

use super::evaluation::is_evaluation;
use super::host_work::host_works;
use super::work::Work;
use super::{Candidate, How};
use crate::host_trace::HostTrace;
use crate::vocabulary::{Keys, Role};

pub(super) fn find(recorded: &HostTrace) -> Option<Candidate> {
    host_markers(recorded).or_else(|| device_steps(recorded))
}

/// Markers with one name on one track.
type Family = BTreeMap<(String, u32), Vec<(i64, Span)>>;

fn host_markers(recorded: &HostTrace) -> Option<Candidate> {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let marks = trace.kinds_where(|kind| {
        vocabulary.role(kind) == Role::StepMarker || vocabulary.signatures.keys(kind).has(Keys::StepNumber)
    });
    let mut families = Family::new();
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
        collect(trace, track, &marks, &mut families);
    }
    // Training is what an evaluation is for, however long that takes.
    if families.keys().any(|(name, _)| !is_evaluation(name)) {
        families.retain(|(name, _), _| !is_evaluation(name));
    }
    // The profiler's own calls may leave a mark around nothing, whose step has none. All work of a recording is a long list,
    // which is only made if some marks have none on the host.
    let host_works = |span: Span| host_works(recorded, span);
    if !families.values().all(|marks| reach(marks).any(host_works)) {
        let work = Work::of(recorded, &[]);
        let works = |span: Span| host_works(span) || !work.within(span).is_zero();
        families.retain(|_, marks| work.all().is_zero() || reach(marks).any(works));
    }
    // There may be several: an outer loop, a part of a step. The one that covers most of the time is the loop; if
    // two cover the same time, the one with more steps.
    let held = |marks: &Vec<(i64, Span)>| marks.iter().map(|(_, span)| span.dur()).sum::<Dur>().ps();
    let most = families.values().map(held).max()?;
    let ((name, track), marks) = families
        .into_iter()
        .filter(|(_, marks)| held(marks) >= most - most / 10)
        .max_by_key(|(_, marks)| marks.len())?;
    let track = Some(stepscope_trace::TrackId(track));
    Some(Candidate {
        how: How::Marker(name),
        marks: outermost(marks),
        track,
        on_host: true,
        ends_known: true,
        breaks: Vec::new(),
    })
}

/// From each mark to the next one, because a loop may do its work between them; the last ends itself.
fn reach(marks: &[(i64, Span)]) -> impl Iterator<Item = Span> {
    let starts = marks.iter().skip(1).map(|(_, next)| Some(next.start)).chain([None]);
    marks
        .iter()
        .zip(starts)
        .map(|((_, own), next)| Span::new(own.start, next.unwrap_or(own.end).max(own.end)))
}

fn collect(trace: &Trace, track: &Track, marks: &KindSet, families: &mut Family) {
    let step_key = trace.strings().find("step_num");
    // Keras once marked batches of training, evaluation and prediction by one name.
    let kind_key = trace.strings().find("graph_type");
    for (index, kind) in track.events_of(marks) {
        let name = trace.kind_name(kind);
        let args = trace.args_at(track, index);
        let number = step_key.and_then(|key| args.get(key)).and_then(|value| value.as_i64());
        let (family, number) = match (number, name.rsplit_once('#')) {
            (Some(number), _) => {
                let kind = kind_key.and_then(|key| args.get(key));
                (kind.and_then(text).unwrap_or_else(|| name.to_owned()), number)
            }
            (None, Some((family, digits))) => match digits.parse() {
                Ok(number) => (family.to_owned(), number),
                Err(_) => continue,
            },
            (None, None) => continue,
        };
        families.entry((family, track.id.0)).or_default().push((number, track.span_of(index)));
    }
}

fn text(value: Value<'_>) -> Option<String> {
    match value {
        Value::Str(text) if !text.is_empty() => Some(text.into_owned()),
        _ => None,
    }
}

/// Without markers inside another one.
fn outermost(marks: Vec<(i64, Span)>) -> Vec<(i64, Span)> {
    let mut kept: Vec<(i64, Span)> = Vec::with_capacity(marks.len());
    for (number, span) in marks {
        match kept.last_mut() {
            Some((_, last)) if span.end <= last.end => {}
            // Overlapping markers are steps of a loop that runs ahead: shorten the earlier one.
            Some((_, last)) if span.start < last.end => {
                last.end = span.start;
                kept.push((number, span));
            }
            _ => kept.push((number, span)),
        }
    }
    kept
}

/// The steps that a profiler derived for a device.
///
/// It gives all that comes after a program to its step, for the last one also what the host does at the end of an epoch.
fn device_steps(recorded: &HostTrace) -> Option<Candidate> {
    let trace = recorded.trace;
    let track = trace
        .tracks()
        .iter()
        .filter(|track| track.kind == TrackKind::Derived && trace.str(track.name) == "Steps")
        .filter(|track| trace.process(track.process).kind == ProcessKind::Device)
        .max_by_key(|track| track.len())?;
    let marks: Vec<_> = (0..track.len())
        .map(|index| {
            let number = trace.kind_name(track.kind_of(index)).parse().unwrap_or(index as i64);
            (number, track.span_of(index))
        })
        .collect();
    let mut marks = outermost(marks);
    let work = Work::on_device(recorded);
    if let Some((_, last)) = marks.last_mut() {
        *last = before_pause(*last, &work);
    }
    if let [(_, only)] = marks.as_mut_slice() {
        *only = before_pause(after_pause(*only, &work, |span| host_works(recorded, span)), &work);
    }
    (!marks.is_empty()).then_some(Candidate {
        how: How::DeviceSteps,
        marks,
        track: Some(track.id),
        on_host: false,
        ends_known: true,
        breaks: Vec::new(),
    })
}

/// After a pause, a step with less than one part in this many of its work is over.
const REST: i64 = 10;

/// A step without a pause of the device that takes most of its time, and the little that follows: it is not known whether
/// that recurs.
fn before_pause(step: Span, work: &Work) -> Span {
    let is_end = |gap: &Span| {
        let rest = work.within(Span::new(gap.end, step.end));
        gap.dur().ps() > step.dur().ps() / 2 && rest.ps() < work.within(step).ps() / REST
    };
    let end = work.longest_gap(step).filter(is_end).map_or(step.end, |gap| gap.start);
    Span::new(step.start, end)
}

/// The only step without the time before its first work, if that is most of it and the host does nothing for it either: the
/// profiler was waiting for the program.
fn after_pause(step: Span, work: &Work, host_works: impl Fn(Span) -> bool) -> Span {
    let idle = work.first_in(step).map(|first| Span::new(step.start, first));
    let is_pause = |idle: &Span| idle.dur().ps() > step.dur().ps() / 2 && !host_works(*idle);
    idle.filter(is_pause).map_or(step, |idle| Span::new(idle.end, step.end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use crate::sketch::{Arg, Sketch};
    use crate::steps::{Exclusion, Origin, Steps};

    /// Marks `ProfilerStep#…` at `(start, length)`, and kernels of 50 µs launched at `launches`; all in µs.
    fn marked(marks: &[(i64, i64)], launches: &[i64]) -> Steps {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("python"), sketch.stream());
        for (number, &(start, length)) in marks.iter().enumerate() {
            let name = format!("ProfilerStep#{number}");
            sketch.event_of(thread, "user_annotation", &name, start, length, &[]);
        }
        for (id, &at) in launches.iter().enumerate() {
            let args = || [("correlation", Arg::Int(1 + id as i64))];
            sketch.event_of(thread, "cuda_runtime", "cudaLaunchKernel", at, 5, &args());
            sketch.event_of(stream, "kernel", &format!("kernel{}", (id * id) % 37), at + 10, 50, &args());
        }
        let trace = sketch.finish();
        Steps::of(&Context::new(&trace, "host"))
    }

    #[test]
    fn marks_around_nothing_are_no_steps() {
        let only = marked(&[(1_000, 14)], &[100, 300, 500]);
        assert_eq!(only.origin, Origin::None, "{only:?}");
        let launches: Vec<i64> = (0..4).map(|step| 1_000 * step + 100).collect();
        let twice: Vec<(i64, i64)> =
            (0..4).flat_map(|step| [(1_000 * step, 980), (1_000 * step + 985, 14)]).collect();
        let twice = marked(&twice, &launches);
        let excluded: Vec<_> = twice.all.iter().map(|step| step.excluded).collect();
        assert_eq!(excluded[..4], [None, Some(Exclusion::Empty), None, Some(Exclusion::Empty)]);
        let outside = marked(&[(0, 14), (1_000, 14), (2_000, 14), (3_000, 14)], &launches);
        assert_eq!((outside.origin, outside.all.len()), (Origin::Marker, 4), "the work follows each mark");
    }

    #[test]
    fn evaluated_batches_of_the_same_name_are_no_steps() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let batches =
            [("train", 0, 900), ("train", 1_000, 900), ("test", 2_000, 30_000), ("train", 33_000, 900)];
        for (number, &(kind, start, length)) in batches.iter().enumerate() {
            let args = [("step_num", Arg::Int(number as i64)), ("graph_type", Arg::Text(kind))];
            sketch.event(thread, "TraceContext", start, length, &args);
            sketch.event(thread, "dense/MatMul:MatMul", start + 10, length - 20, &[]);
        }
        let trace = sketch.finish();
        let steps = Steps::of(&Context::new(&trace, "host"));
        assert_eq!(steps.how, How::Marker("train".to_owned()));
        assert_eq!(steps.all.len(), 3);
    }

    /// The step that a profiler derived, around kernels at `(start, length)`; all in µs.
    fn derived(step: (i64, i64), kernels: &[(i64, i64)]) -> i64 {
        let mut sketch = Sketch::new();
        let (stream, line) = (sketch.stream(), sketch.derived("Steps"));
        sketch.event_of(line, "", "0", step.0, step.1, &[]);
        for &(start, length) in kernels {
            sketch.event_of(stream, "kernel", "gemm", start, length, &[]);
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        device_steps(&context).map_or(0, |found| found.marks[0].1.dur().ps() / 1_000_000)
    }

    #[test]
    fn a_derived_step_ends_before_a_long_pause_that_little_follows() {
        assert_eq!(derived((0, 1_000), &[(0, 100), (120, 200), (990, 5)]), 320);
        assert_eq!(derived((0, 1_000), &[(0, 100), (120, 200)]), 320, "nothing follows");
        assert_eq!(derived((0, 1_000), &[(0, 100), (120, 200), (800, 200)]), 1_000, "work follows");
        assert_eq!(derived((0, 1_000), &[(0, 100), (300, 400), (990, 5)]), 1_000, "a short pause");
    }

    #[test]
    fn the_only_derived_step_has_no_pauses_at_its_ends() {
        assert_eq!(derived((0, 1_000), &[(600, 30)]), 30, "idle before and after");
        assert_eq!(derived((0, 1_000), &[(400, 10), (415, 15)]), 30, "the longer pause follows");
        assert_eq!(derived((0, 1_000), &[(300, 700)]), 1_000, "a short one before");
    }
}
