//! Pipelines that are set up inside the loop. `model.predict`, `fit` and `evaluate` create datasets, their
//! functions and an iterator for every call, and `next(iter(dataset))` creates an iterator; one batch costs a
//! small part of that.
//!
//! For a step that initialises an iterator, this covers its Python thread from the first set-up op to the last,
//! the first batch of such an iterator, and its release. Model work in between is excluded, and so is a long pause:
//! between two epochs a loop also does other things.

use stepscope_trace::{Dur, Span, Time, Track, TrackKind};

use crate::analysis::Analysis;
use crate::breakdown::Shares;
use crate::context::Context;
use crate::states::activities::{Activity, Does, Kinds, activities};
use crate::states::runs_python;
use crate::states::timeline::united;
use crate::time::recurrence::Recurrence;
use stepscope_trace::statistics::median_duration;

/// Releasing a tensor takes less than this; releasing an iterator, with its threads and buffers, takes more.
const LONG_DELETE: Dur = Dur::from_us(100);

/// A pause between two calls of the framework that is this many times longer than usual is something else …
const LONG_PAUSE: i64 = 10;
/// … unless it is shorter than this: a thread that loses its processor pauses for some slices of 4 ms.
const SHORT: Dur = Dur::from_us(20_000);

/// Partial result: set-up in the counted steps.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct SetUp {
    /// Number of initialised iterators.
    pub iterators: u64,
    /// The breakdown of the time.
    pub shares: Shares,
    /// How often it happens; with several hosts, the first host that has it.
    pub recurrence: Recurrence,
    /// Number of steps analysed.
    pub steps: u64,
}

impl Analysis for SetUp {
    type Output = Self;

    /// Walks the Python threads; nothing if no iterator is created.
    fn of(context: &Context) -> Self {
        let (trace, breakdown) = (context.trace, context.breakdown());
        let kinds = Kinds::of(trace, context.vocabulary());
        let windows: Vec<Span> = breakdown.counted().map(|(step, _)| step.span).collect();
        let mut all = SetUp { steps: windows.len() as u64, ..SetUp::default() };
        if breakdown.steps.whole_capture || !kinds.any(Does::MAKES_ITERATOR) {
            return all;
        }
        let makes_iterator = kinds.that_do(Does::MAKES_ITERATOR);
        let python = |track: &&Track| {
            track.kind == TrackKind::Thread
                && runs_python(trace, context.vocabulary(), track)
                && track.has_any(&makes_iterator)
        };
        let mut happens = vec![false; windows.len()];
        let mut spans = Vec::new();
        for track in trace.tracks().iter().filter(python) {
            let longest = longest_pause(&kinds, track);
            for (window, happens) in windows.iter().zip(&mut happens) {
                let found = set_up_in(&kinds, track, *window, longest);
                *happens |= found.iterators > 0;
                all.iterators += found.iterators;
                spans.extend(found.spans);
            }
        }
        all.recurrence = Recurrence::of(happens);
        all.shares = breakdown.owned_within(context, &united(spans));
        all
    }

    /// Adds another host's.
    fn merge(&mut self, other: SetUp) {
        self.iterators += other.iterators;
        self.steps += other.steps;
        self.shares.add_all(&other.shares);
        if self.recurrence.steps == 0 {
            self.recurrence = other.recurrence;
        }
    }

    fn finish(self) -> Self {
        self
    }
}

#[derive(Default)]
struct Found {
    iterators: u64,
    spans: Vec<Span>,
}

/// The longest pause between two calls of the framework on a thread in which it may still do one thing.
fn longest_pause(kinds: &Kinds, track: &Track) -> Dur {
    let all = || activities(kinds, track, 0);
    let pauses = all().zip(all().skip(1)).map(|(before, after)| after.span.start - before.span.end);
    SHORT.max(Dur::from_ps(median_duration(pauses).ps().saturating_mul(LONG_PAUSE)))
}

/// The set-up of one step, in pieces without model work and longer pauses; none in a step that creates no iterator.
fn set_up_in(kinds: &Kinds, track: &Track, window: Span, longest: Dur) -> Found {
    let mut found = Found::default();
    let mut piece: Option<Span> = None;
    // Python before the first and after the last set-up op belongs to it, up to the length of the rest, unless the
    // pause is too long for that.
    let mut free = window.start;
    let around = |piece: Span, free: Time, until: Time| {
        let before = if piece.start - free > longest { Dur::ZERO } else { piece.dur() };
        let after = if until - piece.end > longest { Dur::ZERO } else { piece.dur() };
        Span::new((piece.start - before).max(free), (piece.end + after).min(until))
    };
    let inside = activities(kinds, track, track.first_from(window.start))
        .take_while(|activity| activity.span.start < window.end);
    for Activity { span, does } in inside {
        found.iterators += u64::from(does.has(Does::MAKES_ITERATOR));
        let belongs = does.has(Does::SETS_UP)
            || (does.has(Does::FETCHES) && found.iterators > 0)
            || (does.has(Does::DELETES) && span.dur() >= LONG_DELETE);
        if let Some(paused) = piece.take_if(|piece| span.start - piece.end > longest) {
            found.spans.push(around(paused, free, span.start));
            free = paused.end;
        }
        if does.has(Does::MODEL) {
            found.spans.extend(piece.take().map(|piece| around(piece, free, span.start)));
            free = span.end;
        } else if belongs {
            piece = Some(piece.map_or(span, |piece| piece.hull(span)));
        }
    }
    found.spans.extend(piece.map(|piece| around(piece, free, window.end)));
    if found.iterators == 0 {
        found.spans.clear();
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::breakdown::Category;
    use crate::sketch::{Arg, Sketch};

    #[test]
    fn all_around_a_new_iterator_is_set_up_and_the_function_between_is_not() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        sketch.steps(thread, 4, 1_000);
        for step in 0..4 {
            let at = step * 1_000;
            let mut eager = |op: &str, start: i64, dur: i64| {
                sketch.event(thread, "TFE_Py_FastPathExecute_C", at + start, dur, &[]);
                sketch.event(thread, &format!("EagerLocalExecute: {op}"), at + start + 1, dur - 2, &[]);
            };
            eager("TensorDataset", 100, 50);
            eager("MakeIterator", 300, 200);
            eager("IteratorGetNext", 550, 50);
            let call = [("tf_function_call", Arg::Text("notTraced-nonXla"))];
            sketch.event(thread, "one_step", at + 600, 100, &call);
            sketch.event(thread, "TFE_DeleteTensorHandle", at + 750, 150, &[]);
        }
        let trace = sketch.finish();
        let setup = SetUp::of(&Context::new(&trace, "host"));
        assert_eq!((setup.iterators, setup.recurrence.steps, setup.recurrence.every), (4, 4, Some(1)));
        assert_eq!(setup.shares.total(), Dur::from_us(4 * 900), "600 before the call and 300 after it");
        assert_eq!(setup.shares.get(Category::Python), Dur::from_us(4 * 450), "with the Python around");
    }
    #[test]
    fn a_long_pause_between_two_epochs_is_not_set_up() {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        sketch.steps(thread, 4, 200_000);
        for step in 0..4 {
            let at = step * 200_000;
            let call = [("tf_function_call", Arg::Text("notTraced-nonXla"))];
            sketch.event(thread, "one_step", at, 10_000, &call);
            sketch.event(thread, "TFE_DeleteTensorHandle", at + 11_000, 1_000, &[]);
            // A callback of 100 ms.
            for op in 0..10 {
                sketch.event(
                    thread,
                    "EagerLocalExecute: MakeIterator",
                    at + 112_000 + 2_000 * op,
                    1_000,
                    &[],
                );
            }
        }
        let trace = sketch.finish();
        let setup = SetUp::of(&Context::new(&trace, "host"));
        assert_eq!(setup.shares.total(), Dur::from_us(4 * (2_000 + 19_000)), "release, then set-up");
    }
}
