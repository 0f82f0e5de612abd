//! What figures cover: which steps, what was excluded and why, and what there would be to select.

use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, Span};

use crate::breakdown::Breakdown;
use crate::breakdown::selection::{Range, Selection};
use crate::context::Context;
use crate::steps::{Exclusion, Numbers, StepKind, Steps};

/// What figures cover, and what else exists.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Coverage {
    /// What was asked for.
    pub selection: Selection,
    /// The counted steps; `None` for one piece of time.
    pub steps: Option<Numbers>,
    /// From the first instant to the last; `None` if there is none.
    pub span: Option<Span>,
    /// Excluded steps within the range, by reason.
    pub excluded: Vec<(Exclusion, usize)>,
    /// Time between the steps that belongs to none of them: another loop, such as an evaluation.
    #[serde(default)]
    pub between: Dur,
    /// The same, for pauses.
    #[serde(default)]
    pub paused: Dur,
    /// The share of the recording's busy time that lies in the counted steps: of the device that limits them, or of the host.
    /// `None` for one piece of time, or if nothing is busy.
    #[serde(default)]
    pub busy: Option<f64>,
    /// All steps that were found.
    pub found: Option<Numbers>,
    /// The whole recorded time.
    pub recorded: Option<Span>,
}

impl Coverage {
    /// What the figures of one host cover.
    pub fn of(context: &Context) -> Self {
        let (steps, breakdown) = (context.steps(), context.breakdown());
        let counted = || steps.all.iter().filter(|step| step.excluded.is_none());
        let windows = breakdown.counted().map(|(_, shares)| shares.window);
        let count = |reason| steps.all.iter().filter(|step| step.excluded == Some(reason)).count();
        let excluded = Exclusion::ALL.map(|reason| (reason, count(reason)));
        let numbers = (!steps.whole_capture).then(|| Numbers::of(counted().map(|step| step.number)));
        Coverage {
            selection: context.selection,
            steps: numbers.map(Option::unwrap_or_default),
            span: windows.reduce(Span::hull),
            excluded: excluded.into_iter().filter(|(_, count)| *count > 0).collect(),
            between: between(steps, false),
            paused: between(steps, true),
            busy: busy(breakdown),
            found: steps.found,
            recorded: context.trace.span(),
        }
    }

    /// Coverage of figures about a whole recording, whatever was selected.
    pub fn of_recording(recorded: Option<Span>) -> Self {
        let selection = Selection { range: Range::Whole, ..Selection::default() };
        Coverage { selection, span: recorded, recorded, ..Coverage::default() }
    }

    /// Combines two hosts of one session, which run the same steps.
    pub fn merge(self, other: Coverage) -> Self {
        let both = |a: Option<Numbers>, b: Option<Numbers>| match (a, b) {
            (Some(a), Some(b)) => Some(a.and(&b, a.count.max(b.count))),
            (a, b) => a.or(b),
        };
        let hull = |a: Option<Span>, b| a.into_iter().chain(b).reduce(Span::hull);
        Coverage {
            selection: self.selection,
            steps: both(self.steps.filter(|steps| steps.count > 0), other.steps).or(self.steps),
            span: hull(self.span, other.span),
            excluded: if self.excluded.is_empty() { other.excluded } else { self.excluded },
            between: self.between.max(other.between),
            paused: self.paused.max(other.paused),
            busy: self.busy.into_iter().chain(other.busy).reduce(f64::min),
            found: both(self.found, other.found),
            recorded: hull(self.recorded, other.recorded),
        }
    }

    /// Whether the selection is empty.
    pub fn is_missed(&self) -> bool {
        let asked = !matches!(self.selection.range, Range::Counted | Range::Whole);
        asked && (self.span.is_none() || self.steps.is_some_and(|steps| steps.count == 0))
    }
}

/// The share of the busy time in the counted steps.
fn busy(breakdown: &Breakdown) -> Option<f64> {
    let device = breakdown.bound().filter(|_| !breakdown.steps.whole_capture)?;
    let within: Dur = device.steps.iter().map(|shares| shares.own_busy).sum();
    let counted: Dur = breakdown.counted().map(|(_, shares)| shares.own_busy).sum();
    let all = within + device.busy_outside;
    (!all.is_zero()).then(|| counted.fraction_of(all))
}

/// Shorter gaps between steps are the cost of their markers.
const NOTABLE: f64 = 0.1;

/// The time in notable gaps between steps, in pauses or in others. A server is free between its requests.
fn between(steps: &Steps, pauses: bool) -> Dur {
    if steps.whole_capture || steps.kind == StepKind::Inference {
        return Dur::ZERO;
    }
    let usual = median_duration(steps.counted().map(|step| step.span.dur()));
    let gaps = steps.all.windows(2).filter(|pair| {
        let paused = pair[0].excluded == Some(Exclusion::Interrupted);
        paused == pauses && pair[0].excluded != Some(Exclusion::Incomplete)
    });
    let lengths = gaps.map(|pair| pair[1].span.start - pair[0].span.end);
    lengths.filter(|gap| gap.fraction_of(usual) >= NOTABLE).sum()
}

#[cfg(test)]
mod tests {
    use stepscope_trace::Time;

    use super::*;
    use crate::sketch::{Arg, Sketch};

    /// Ten marked steps of 1 ms each, of which the first takes 9 ms to trace.
    fn looked_at(selection: Selection) -> (Coverage, Vec<(i64, bool)>) {
        let mut sketch = Sketch::new();
        let (thread, stream) = (sketch.thread("python"), sketch.stream());
        for step in 0..10 {
            let (at, length) = if step == 0 { (0, 9_000) } else { (8_000 + step * 1_000, 1_000) };
            sketch.event(thread, "train", at, length, &[("step_num", Arg::Int(step)), ("_r", Arg::Int(1))]);
            sketch.event_of(stream, "kernel", "gemm", at + 200, if step == 0 { 100 } else { 500 }, &[]);
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host").selecting(selection);
        let steps = &context.steps().all;
        let rows = steps.iter().map(|step| (step.number, step.excluded.is_none())).collect();
        (Coverage::of(&context), rows)
    }

    fn ms(from: i64, to: i64) -> Span {
        Span::new(Time::from_ps(from * 1_000_000_000), Time::from_ps(to * 1_000_000_000))
    }

    fn range(range: Range) -> Selection {
        Selection { range, warm_up: false }
    }

    #[test]
    fn warm_up_counts_where_it_is_asked_for() {
        let (covers, rows) = looked_at(Selection::default());
        assert_eq!((rows[0], rows.len()), ((0, false), 10));
        assert_eq!(covers.steps, Some(Numbers { count: 9, first: 1, last: 9 }));
        assert_eq!(covers.excluded, [(Exclusion::Startup, 1)]);
        assert_eq!(covers.busy, Some(4_500.0 / 4_600.0), "the first step computes for 100 µs");
        let (covers, _) = looked_at(Selection { warm_up: true, ..Selection::default() });
        assert_eq!(covers.steps.map(|steps| steps.count), Some(10));
        assert_eq!(looked_at(range(Range::Steps(0, 2))).1, [(0, true), (1, true), (2, true)], "named");
    }

    /// Twelve marked batches of 1 ms; evaluated ones take 2.5 ms.
    fn evaluating(evaluates: impl Fn(i64) -> bool) -> (Coverage, Dur) {
        let mut sketch = Sketch::new();
        let thread = sketch.thread("python");
        let mut at = 0;
        for step in 0..12 {
            let (name, length) = if evaluates(step) { ("eval", 2_500) } else { ("train", 1_000) };
            sketch.event(thread, name, at, length, &[("step_num", Arg::Int(step))]);
            sketch.event(thread, "a/MatMul:MatMul", at, length, &[]);
            at += length;
        }
        let trace = sketch.finish();
        let context = Context::new(&trace, "host");
        (Coverage::of(&context), context.steps().counted().map(|step| step.span.dur()).sum())
    }

    #[test]
    fn another_loop_is_excluded_once_and_part_of_the_loop_if_it_recurs() {
        let (once, counted) = evaluating(|step| (4..6).contains(&step));
        assert_eq!((once.between, once.paused), (Dur::from_us(5_000), Dur::ZERO));
        assert_eq!(counted, Dur::from_us(10_000));
        let (again, counted) = evaluating(|step| step % 4 == 3);
        assert_eq!((again.between, again.paused), (Dur::ZERO, Dur::ZERO));
        assert_eq!(counted, Dur::from_us(6_000 + 2 * 2_500), "the last cycle lacks its evaluation");
    }

    #[test]
    fn a_time_holds_the_steps_within_it_or_is_looked_at_itself() {
        let (covers, rows) = looked_at(range(Range::Time(ms(9, 12))));
        assert_eq!(rows, [(1, true), (2, true), (3, true)]);
        assert_eq!(covers.busy, Some(1_500.0 / 4_600.0));
        assert_eq!(covers.span, Some(ms(9, 12)));
        let within = Span::new(Time::from_ps(9_100_000_000), Time::from_ps(9_900_000_000));
        let (covers, _) = looked_at(range(Range::Time(within)));
        assert_eq!((covers.steps, covers.span, covers.is_missed()), (None, Some(within), false));
        let (covers, _) = looked_at(range(Range::Piece(ms(9, 12))));
        assert_eq!((covers.steps, covers.span), (None, Some(ms(9, 12))));
    }

    #[test]
    fn what_holds_nothing_is_known_with_what_there_is() {
        for selection in [Range::Steps(50, 60), Range::Time(ms(500, 600)), Range::Piece(ms(500, 600))] {
            let (covers, _) = looked_at(range(selection));
            assert!(covers.is_missed(), "{covers:?}");
            assert_eq!(covers.found, Some(Numbers { count: 10, first: 0, last: 9 }));
        }
        let (covers, _) = looked_at(range(Range::Whole));
        assert!(!covers.is_missed() && covers.steps.is_none() && covers.span.is_some());
    }
}
