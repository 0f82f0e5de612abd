//! What fills the time between two marks: it shows whether two long gaps are the same thing.

use std::cell::OnceCell;

use stepscope_trace::{Dur, Span};

use super::work;
use crate::host_trace::{HostTrace, merged, working_devices};
use crate::states::timeline::{DEVICE_BUSY, Mask, Timeline};
use crate::states::{State, StateLine};

/// What fills a long time between two steps.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Filling {
    /// Another loop runs the model, such as an evaluation.
    AnotherLoop,
    /// The loop waits for its next batch.
    Input,
    /// The loop writes checkpoints, summaries or results.
    Output,
    /// The loop does something else that was recorded.
    Work,
    /// Most of it was not recorded.
    Unknown,
}

/// A state fills a gap that it takes this share of.
const MOST: f64 = 0.5;
/// A gap is filled with the model's work like the steps if it has at least this share of their density …
const SAME_PACE: f64 = 0.5;
/// … or the work of at least this many steps: an evaluation that also sets up its input. No step that is late for some
/// other reason does its work twice.
const SEVERAL_STEPS: i64 = 2;

/// What is known about the time between marks.
pub(super) trait Gaps {
    /// Whether a device works for most of this time. Then it is not a pause: a host that runs ahead is blocked
    /// when all queues are full, and its own pace says nothing.
    fn device_works(&self, gap: Span) -> bool;
    /// What fills it.
    fn filling(&self, gap: Span) -> Filling;
    /// The recorded time.
    fn recorded(&self) -> Option<Span>;
    /// The longest wait for a batch within a time.
    fn wait(&self, within: Span) -> Option<Span>;
}

/// What a recording says about the time between marks. Activity of devices and the density of work are only computed
/// if a gap is long.
pub(super) struct RecordedGaps<'c, 't> {
    recorded: &'c HostTrace<'t>,
    marks: &'c [(i64, Span)],
    /// The thread of the loop.
    line: Option<Timeline<'c>>,
    /// Known pieces of other loops, in time order.
    breaks: &'c [Span],
    ends_known: bool,
    devices: OnceCell<Vec<Timeline<'c>>>,
    /// All work, with what the marks hold of it.
    work: OnceCell<Option<(work::Work, Dur)>>,
}

impl<'c, 't> RecordedGaps<'c, 't> {
    pub(super) fn new(
        recorded: &'c HostTrace<'t>,
        marks: &'c [(i64, Span)],
        line: Option<&'c StateLine>,
        breaks: &'c [Span],
        ends_known: bool,
    ) -> Self {
        RecordedGaps {
            recorded,
            marks,
            line: line.map(|line| Timeline::merge(&[line])),
            breaks,
            ends_known,
            devices: OnceCell::new(),
            work: OnceCell::new(),
        }
    }

    /// Whether another loop runs in this gap.
    pub(super) fn is_another_loop(&self, gap: Span) -> bool {
        let next = self.breaks.partition_point(|other| other.start < gap.start);
        let broken = self.breaks.get(next).is_some_and(|other| other.start < gap.end);
        broken || self.ends_known && self.model_works(gap)
    }

    /// Whether the model works in this gap as it does in the steps: another loop runs there, such as an evaluation
    /// between two epochs. What a device does there may have been launched before, so that without launches nobody
    /// can tell.
    fn model_works(&self, gap: Span) -> bool {
        let known = self.work.get_or_init(|| {
            let unknown = self.recorded.states().has_device && self.recorded.launches().all.is_empty();
            let work = (!unknown).then(|| work::Work::of(self.recorded, &[]))?;
            let done: Dur = self.marks.iter().map(|&(_, span)| work.within(span)).sum();
            Some((work, done))
        });
        let Some((work, done)) = known.as_ref().filter(|(_, done)| !done.is_zero()) else { return false };
        let marked: Dur = self.marks.iter().map(|(_, span)| span.dur()).sum();
        let between = work.within(gap);
        let same_pace = between.fraction_of(gap.dur()) >= SAME_PACE * done.fraction_of(marked);
        let steps = i64::try_from(self.marks.len()).unwrap_or(i64::MAX);
        same_pace || between.ps() >= SEVERAL_STEPS.saturating_mul(done.ps() / steps.max(1))
    }
}

impl Gaps for RecordedGaps<'_, '_> {
    fn device_works(&self, gap: Span) -> bool {
        let lines = self.devices.get_or_init(|| {
            let devices = working_devices(self.recorded).into_iter();
            devices.map(|device| merged(self.recorded, Some(device))).collect()
        });
        lines.iter().any(|line| line.time_in(DEVICE_BUSY, gap).fraction_of(gap.dur()) > MOST)
    }

    fn filling(&self, gap: Span) -> Filling {
        if self.is_another_loop(gap) {
            return Filling::AnotherLoop;
        }
        let Some(line) = &self.line else { return Filling::Unknown };
        let fills = |states: Mask| line.time_in(states, gap).fraction_of(gap.dur()) >= MOST;
        if fills(Mask::of(State::InputWait)) {
            Filling::Input
        } else if fills(Mask::of(State::Output)) {
            Filling::Output
        } else if fills(Mask(u16::MAX)) {
            Filling::Work
        } else {
            Filling::Unknown
        }
    }

    fn recorded(&self) -> Option<Span> {
        self.recorded.trace.span()
    }

    fn wait(&self, within: Span) -> Option<Span> {
        let (mut open, mut longest): (Option<Span>, Option<Span>) = (None, None);
        self.line.as_ref()?.sweep(&Timeline::default(), within, |piece, states, _| {
            open = states.has(State::InputWait).then(|| open.map_or(piece, |wait| wait.hull(piece)));
            longest = longest.into_iter().chain(open).max_by_key(|wait| wait.dur());
        });
        longest
    }
}
