//! Marked steps: `tf.profiler.experimental.Trace(…, step_num=…)`, JAX's StepTraceAnnotation, Keras' `Profiled
//! batch`, PyTorch's `ProfilerStep#N`, and the `Steps` line that profilers derive for devices.

use std::collections::BTreeMap;

use stepscope_trace::{Dur, KindSet, ProcessKind, Span, Trace, Track, TrackKind};

use super::evaluation::is_evaluation;
use super::{Candidate, How};
use crate::host_trace::HostTrace;
use crate::vocabulary::{Keys, Role};

pub(super) fn find(recorded: &HostTrace) -> Option<Candidate> {
    host_markers(recorded).or_else(|| device_steps(recorded.trace))
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

fn collect(trace: &Trace, track: &Track, marks: &KindSet, families: &mut Family) {
    let step_key = trace.strings().find("step_num");
    for (index, kind) in track.events_of(marks) {
        let name = trace.kind_name(kind);
        let args = trace.args_at(track, index);
        let number = step_key.and_then(|key| args.get(key)).and_then(|value| value.as_i64());
        let (family, number) = match (number, name.rsplit_once('#')) {
            (Some(number), _) => (name, number),
            (None, Some((family, digits))) => match digits.parse() {
                Ok(number) => (family, number),
                Err(_) => continue,
            },
            (None, None) => continue,
        };
        families.entry((family.to_owned(), track.id.0)).or_default().push((number, track.span_of(index)));
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

fn device_steps(trace: &Trace) -> Option<Candidate> {
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
    let marks = outermost(marks);
    (!marks.is_empty()).then_some(Candidate {
        how: How::DeviceSteps,
        marks,
        track: Some(track.id),
        on_host: false,
        ends_known: true,
        breaks: Vec::new(),
    })
}
