//! The part of a recording to analyse: the counted steps by default, or other steps, a time range or
//! everything. A thin layer over the steps that were found: it selects among them and finds none itself.

use stepscope_trace::Span;

use crate::breakdown::Breakdown;
use crate::context::Context;
use crate::steps::{SetApart, Step};

/// The selection.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// The range.
    pub range: Range,
    /// Whether warm-up steps count.
    pub warm_up: bool,
}

/// A part of a recording.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub enum Range {
    /// The steps that count.
    #[default]
    Counted,
    /// The whole recording as one piece.
    Whole,
    /// The steps with these numbers, inclusive, including warm-up steps.
    Steps(i64, i64),
    /// The steps within this time range; if there are none, the time range itself as one piece.
    Time(Span),
    /// This time range as one piece, whatever steps it contains.
    Piece(Span),
}

impl Selection {
    /// Whether there is one window instead of steps.
    pub(crate) fn is_one_piece(&self, steps: &[Step]) -> bool {
        match self.range {
            Range::Counted | Range::Steps(..) => steps.is_empty(),
            Range::Whole | Range::Piece(_) => true,
            Range::Time(time) => !steps.iter().any(|step| lies_within(step.span, time)),
        }
    }

    /// The requested time range.
    pub(crate) fn time(&self) -> Option<Span> {
        match self.range {
            Range::Time(time) | Range::Piece(time) => Some(time),
            Range::Counted | Range::Whole | Range::Steps(..) => None,
        }
    }

    /// Restricts the single window to the requested time range; empty if nothing was recorded in it.
    pub(crate) fn cut(&self, whole: Vec<Step>) -> Vec<Step> {
        let Some(time) = self.time() else { return whole };
        let cut = whole.into_iter().map(|step| Step { span: step.span.intersect(time), ..step });
        cut.filter(|step| !step.span.is_empty()).collect()
    }

    /// Keeps the requested steps.
    pub(crate) fn narrow(&self, breakdown: &mut Breakdown) {
        if *self == Selection::default() || breakdown.whole_capture {
            return;
        }
        let asked = |step: &Step| match self.range {
            Range::Steps(first, last) => (first..=last).contains(&step.number),
            Range::Time(time) => lies_within(step.span, time),
            Range::Counted | Range::Whole | Range::Piece(_) => true,
        };
        let kept: Vec<bool> = breakdown.steps.iter().map(asked).collect();
        keep(&mut breakdown.steps, &kept);
        for device in &mut breakdown.devices {
            keep(&mut device.steps, &kept);
            device.steps_seen = device.steps.iter().filter(|step| !step.own_busy.is_zero()).count();
        }
        let named = matches!(self.range, Range::Steps(..));
        for step in &mut breakdown.steps {
            let counts = match step.set_apart {
                Some(SetApart::Startup) => named || self.warm_up,
                Some(SetApart::Interrupted) => named,
                // Its length is unknown.
                Some(SetApart::Incomplete) | None => false,
            };
            step.set_apart = step.set_apart.filter(|_| !counts);
        }
    }
}

fn lies_within(span: Span, time: Span) -> bool {
    time.start <= span.start && span.end <= time.end
}

fn keep<T>(all: &mut Vec<T>, kept: &[bool]) {
    let mut kept = kept.iter();
    all.retain(|_| kept.next().copied().unwrap_or(false));
}

/// What figures cover, and what else exists.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Coverage {
    /// What was asked for.
    pub selection: Selection,
    /// The counted steps; `None` for one piece of time.
    pub steps: Option<Numbers>,
    /// From the first instant to the last; `None` if there is none.
    pub span: Option<Span>,
    /// Excluded steps within the range, by reason.
    pub excluded: Vec<(SetApart, usize)>,
    /// All steps that were found.
    pub found: Option<Numbers>,
    /// The whole recorded time.
    pub recorded: Option<Span>,
}

/// Some steps.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Numbers {
    /// How many.
    pub count: usize,
    /// The lowest number.
    pub first: i64,
    /// The highest.
    pub last: i64,
}

impl Numbers {
    fn of(numbers: impl Iterator<Item = i64>) -> Option<Self> {
        numbers.fold(None, |all, number| {
            let one = Numbers { count: 1, first: number, last: number };
            Some(all.map_or(one, |all: Numbers| all.and(&one, all.count + 1)))
        })
    }

    fn and(&self, other: &Numbers, count: usize) -> Self {
        Numbers { count, first: self.first.min(other.first), last: self.last.max(other.last) }
    }
}

impl Coverage {
    /// What the figures of one host cover.
    pub fn of(context: &Context) -> Self {
        let breakdown = context.breakdown();
        let counted = || breakdown.steps.iter().filter(|step| step.set_apart.is_none());
        let windows = breakdown.counted().map(|(_, shares)| shares.window);
        let reasons = [SetApart::Startup, SetApart::Incomplete, SetApart::Interrupted];
        let count = |reason| breakdown.steps.iter().filter(|step| step.set_apart == Some(reason)).count();
        let excluded = reasons.map(|reason| (reason, count(reason)));
        let numbers = (!breakdown.whole_capture).then(|| Numbers::of(counted().map(|step| step.number)));
        Coverage {
            selection: context.selection,
            steps: numbers.map(Option::unwrap_or_default),
            span: windows.reduce(Span::hull),
            excluded: excluded.into_iter().filter(|(_, count)| *count > 0).collect(),
            found: Numbers::of(context.steps().all.iter().map(|step| step.number)),
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
        let steps = &context.breakdown().steps;
        let rows = steps.iter().map(|step| (step.number, step.set_apart.is_none())).collect();
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
        assert_eq!(covers.excluded, [(SetApart::Startup, 1)]);
        let (covers, _) = looked_at(Selection { warm_up: true, ..Selection::default() });
        assert_eq!(covers.steps.map(|steps| steps.count), Some(10));
        assert_eq!(looked_at(range(Range::Steps(0, 2))).1, [(0, true), (1, true), (2, true)], "named");
    }

    #[test]
    fn a_time_holds_the_steps_within_it_or_is_looked_at_itself() {
        let (covers, rows) = looked_at(range(Range::Time(ms(9, 12))));
        assert_eq!(rows, [(1, true), (2, true), (3, true)]);
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
