//! The part of a recording to analyse: the counted steps by default, or other steps, a time range or
//! everything. A thin layer over the steps that were found: it selects among them and finds none itself.

use stepscope_trace::Span;

use super::Breakdown;
use crate::steps::{Exclusion, Step};

/// The selection.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Selection {
    /// The range.
    pub range: Range,
    /// Whether warm-up steps count.
    pub warm_up: bool,
}

/// A part of a recording.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
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
        if *self == Selection::default() || breakdown.steps.whole_capture {
            return;
        }
        let asked = |step: &Step| match self.range {
            Range::Steps(first, last) => (first..=last).contains(&step.number),
            Range::Time(time) => lies_within(step.span, time),
            Range::Counted | Range::Whole | Range::Piece(_) => true,
        };
        let kept: Vec<bool> = breakdown.steps.all.iter().map(asked).collect();
        keep(&mut breakdown.steps.all, &kept);
        for device in &mut breakdown.devices {
            let left = device.steps.iter().zip(&kept).filter(|(_, kept)| !**kept);
            device.busy_outside += left.map(|(step, _)| step.own_busy).sum();
            keep(&mut device.steps, &kept);
            device.steps_seen = device.steps.iter().filter(|step| !step.own_busy.is_zero()).count();
        }
        let named = matches!(self.range, Range::Steps(..));
        for step in &mut breakdown.steps.all {
            let counts = match step.excluded {
                Some(Exclusion::Startup) => named || self.warm_up,
                Some(Exclusion::Interrupted | Exclusion::IncompleteCycle) => named,
                // Its length is unknown.
                Some(Exclusion::Incomplete | Exclusion::Unrecorded | Exclusion::Empty) | None => false,
            };
            step.excluded = step.excluded.filter(|_| !counts);
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
