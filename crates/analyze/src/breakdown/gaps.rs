//! Pauses in which the host recorded nothing. In a loop they recur, and are Python in the training loop; a long
//! one that occurs once may be anything: a library being loaded, a program being compiled, a thread that was
//! never recorded.

use stepscope_trace::{Dur, Span, TrackKind};

use crate::host_trace::HostTrace;
use crate::states::timeline::{Mask, Timeline};
use crate::states::{State, is_range};
use crate::steps::Steps;
use stepscope_trace::statistics::median_duration;

/// From this many steps on, recurrence is visible.
const STEPS: usize = 3;
/// A pause is long if it takes this share of the step …
const LONG: f64 = 0.05;
/// … and is this many times the usual pause, if there are enough to know the usual one.
const LONG_PAUSE: i64 = 10;
const ENOUGH: usize = 20;
/// A range with a larger share of the step is the step itself, and says nothing about a part of it.
const WHOLE: f64 = 0.9;

/// The long pauses of a recording with too few steps to show whether they recur. Pauses inside recorded Python
/// or inside a named range do not count.
pub(super) fn unrecorded(recorded: &HostTrace, steps: &Steps, host: &Timeline, frames: bool) -> Vec<Span> {
    let counted = || steps.counted();
    let (Some(whole), Some(own)) = (recorded.trace.span(), host.span()) else { return Vec::new() };
    if counted().count() >= STEPS {
        return Vec::new();
    }
    let window = match counted().count() {
        0 => whole.dur(),
        _ => median_duration(counted().map(|step| step.span.dur())),
    };
    let quiet = State::InputWork as u16 | if frames { 0 } else { State::Present as u16 };
    let mut pauses: Vec<Span> = host.spans_without(Mask(!quiet)).collect();
    let usual = median_duration(pauses.iter().map(|pause| pause.dur()));
    let enough = pauses.len() >= ENOUGH;
    let least = if enough { Dur::from_ps(usual.ps().saturating_mul(LONG_PAUSE)) } else { Dur::ZERO };
    // Before the host's first record and after its last.
    pauses.insert(0, Span::new(whole.start.min(own.start), own.start));
    let end = pauses.last().map_or(own.end, |pause| pause.end.max(own.end));
    pauses.push(Span::new(end, whole.end.max(end)));
    let long = |pause: &Span| pause.dur().fraction_of(window) >= LONG && pause.dur() >= least;
    pauses.retain(long);
    if !pauses.is_empty() {
        let named = ranges(recorded, window);
        pauses.retain(|pause| !named.iter().any(|range| covers(*range, *pause)));
    }
    pauses
}

/// Whether a range covers most of a pause.
fn covers(range: Span, pause: Span) -> bool {
    range.start < pause.end && pause.start < range.end && {
        range.intersect(pause).dur().fraction_of(pause.dur()) > 0.5
    }
}

/// User-defined ranges around parts of a step.
fn ranges(recorded: &HostTrace, window: Dur) -> Vec<Span> {
    let (trace, vocabulary) = (recorded.trace, recorded.vocabulary());
    let kinds = trace.kinds_where(|kind| is_range(trace, vocabulary, kind));
    let mut found = Vec::new();
    for track in trace.tracks().iter().filter(|track| track.kind == TrackKind::Thread) {
        let spans = track
            .events_of(&kinds)
            .map(|(index, _)| index)
            .filter(|&index| (LONG..WHOLE).contains(&track.dur(index).fraction_of(window)));
        found.extend(spans.map(|index| track.span_of(index)));
    }
    found
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Dur;

    use crate::breakdown::Category;
    use crate::context::Context;
    use crate::sketch::Sketch;

    /// Passes of 50 ops with pauses of 5 µs, each after a pause of 3 ms.
    fn owned(passes: i64, category: Category) -> Dur {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("python"), sketch.stream());
        for pass in 0..passes {
            let at = pass * 10_000;
            sketch.event_of(thread, "user_annotation", &format!("ProfilerStep#{pass}"), at, 10_000, &[]);
            for op in 0..50 {
                sketch.event_of(thread, "cpu_op", "aten::mm", at + 3_000 + op * 140, 135, &[]);
                sketch.event_of(stream, "kernel", "gemm", at + 3_000 + op * 140, 10, &[]);
            }
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        context.breakdown().counted().map(|(_, shares)| shares.shares.get(category)).sum()
    }

    #[test]
    fn a_pause_is_python_only_if_it_recurs() {
        assert_eq!(owned(1, Category::Unknown), Dur::from_us(3_000));
        assert_eq!(owned(1, Category::Python), Dur::from_us(50 * 5), "pauses between ops are Python");
        assert_eq!(owned(6, Category::Unknown), Dur::ZERO);
        assert!(owned(6, Category::Python) >= Dur::from_us(6 * 3_000));
    }
}
