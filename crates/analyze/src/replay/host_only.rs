//! Steps of a host without a device: every instant has one owner, and a change scales what its owners have. Several threads may
//! work at once. What runs alone counts in full; what runs beside other work counts in full only in the best case.

use stepscope_trace::{Dur, ProcessKind, Span, TrackKind};

use super::change::Change;
use super::plan::{Assumption, Side};
use crate::analysis::Analysis;
use crate::breakdown::{Category, Shares};
use crate::context::Context;
use crate::host_trace::merged;
use crate::states::State;
use crate::time::eager::Eager;
use crate::vocabulary::Role;

/// A compiled function dispatches this much faster than the ops that it consists of, at least and at most.
const COMPILED: (f64, f64) = (5.0, 20.0);
/// Fewer eager ops per step are not worth a function.
const EAGER_OPS: u64 = 20;
/// Time that nobody owns, above which nothing is predicted.
const UNKNOWN: f64 = 0.2;

/// The counted steps, summed up.
#[derive(Debug)]
pub(super) struct HostOnly<'c, 't> {
    context: &'c Context<'t>,
    windows: Vec<Span>,
    shares: Shares,
    /// The input works ahead while the loop does something else: both share the processor.
    input_beside: Dur,
    /// Does the loop make its batches itself?
    by_loop: bool,
    /// Ops that the loop starts one by one.
    eager: Eager,
}

/// A step after a change: its categories, and what that rests on.
pub(super) struct Changed {
    pub whole: Dur,
    pub binds: Option<(Category, f64)>,
    pub assumes: Vec<Assumption>,
    pub applies: bool,
}

impl<'c, 't> HostOnly<'c, 't> {
    /// The share of time that nobody owns, if it is too large.
    pub fn of(context: &'c Context<'t>) -> Result<Self, f64> {
        let windows: Vec<Span> = context.breakdown().counted().map(|(_, shares)| shares.window).collect();
        let mut shares = Shares::default();
        context.breakdown().counted().for_each(|(_, step)| shares.add_all(&step.shares));
        let unknown = shares.get(Category::Unknown).fraction_of(shares.total());
        if unknown > UNKNOWN {
            return Err(unknown);
        }
        let host = merged(context, None);
        let nothing = crate::states::timeline::Timeline::default();
        let mut input_beside = Dur::ZERO;
        for &window in &windows {
            host.sweep(&nothing, window, |span, states, _| {
                if states.has(State::InputWork) && !states.has(State::InputWait) {
                    input_beside += span.dur();
                }
            });
        }
        let by_loop = made_by_loop(context, &windows);
        Ok(HostOnly { context, windows, shares, input_beside, by_loop, eager: Eager::of(context) })
    }

    pub fn whole(&self) -> Dur {
        self.shares.total()
    }

    /// Durations of the steps.
    pub fn lengths(&self) -> Vec<Dur> {
        self.windows.iter().map(|window| window.dur()).collect()
    }

    /// The changes that are worth asking about.
    pub fn candidates(&self) -> Vec<Change> {
        let mut all = vec![Change::InputFree, Change::Workers(2), Change::Workers(4), Change::LaunchGraph];
        all.extend([Change::OverlapCommunication, Change::Python(2.0)]);
        all
    }

    pub fn changed(&self, changes: &[Change], side: Side) -> Changed {
        let mut left: Vec<(Category, f64)> =
            self.shares.owners().map(|(category, time)| (category, time.ps() as f64)).collect();
        let mut out =
            Changed { whole: Dur::ZERO, binds: None, assumes: Vec::new(), applies: !changes.is_empty() };
        for change in changes {
            out.applies &= self.apply(change, side, &mut left, &mut out.assumes);
        }
        let whole: f64 = left.iter().map(|(_, time)| *time).sum();
        out.whole = Dur::from_ps(whole as i64);
        let largest = left.iter().max_by(|a, b| a.1.total_cmp(&b.1));
        out.binds = largest.map(|&(category, time)| (category, time / whole.max(1.0)));
        out.assumes.sort_unstable();
        out.assumes.dedup();
        out
    }

    fn apply(
        &self,
        change: &Change,
        side: Side,
        left: &mut [(Category, f64)],
        assumes: &mut Vec<Assumption>,
    ) -> bool {
        let between = |(least, most): (f64, f64)| match side {
            Side::Best => most,
            Side::Expected => (least * most).sqrt(),
            Side::Worst => least,
        };
        match change {
            Change::InputFree => {
                let any = scale(left, |category| category == Category::Input, 0.0);
                self.without_input(side, left, assumes);
                any
            }
            Change::Workers(count) => self.ahead(*count, side, left, assumes),
            Change::Prefetch(_) => self.ahead(1, side, left, assumes),
            Change::LaunchGraph => {
                assumes.push(Assumption::Compiled);
                self.compiled(between(COMPILED), left)
            }
            Change::Python(times) => scale(left, |category| category == Category::Python, 1.0 / times),
            Change::OverlapCommunication => {
                assumes.push(Assumption::Beside);
                let factor = if side == Side::Worst { 0.5 } else { 0.0 };
                scale(left, |category| category == Category::Communication, factor)
            }
            Change::Batch(times) => {
                assumes.push(Assumption::Scaling);
                let compute = if side == Side::Best { times.min(1.0) } else { *times };
                let grows = |category| matches!(category, Category::Compute | Category::Input);
                scale(left, grows, compute)
            }
            Change::Op(name, times) | Change::Scope(name, times) => {
                self.named(name, *times, side, left, assumes)
            }
            // There is no device to wait for, and no kernel.
            Change::NoSync | Change::KernelsHalf => false,
        }
    }

    /// Ops that are started one by one become one function: what starting them costs goes, and the Python between them.
    fn compiled(&self, times: f64, left: &mut [(Category, f64)]) -> bool {
        if self.eager.ops < EAGER_OPS * self.eager.steps.max(1) {
            return false;
        }
        let python = self.shares.get(Category::Python).ps() as f64;
        let between = (self.eager.between.ps() as f64).min(python);
        scale(left, |category| category == Category::Python, 1.0 - between / python.max(1.0));
        scale(left, |category| category == Category::Dispatch, 1.0 / times)
    }

    /// What ran beside the input has the processor for itself then, in the best case.
    fn without_input(&self, side: Side, left: &mut [(Category, f64)], assumes: &mut Vec<Assumption>) {
        if self.input_beside.fraction_of(self.whole()) > 0.02 {
            assumes.push(Assumption::SharedProcessor);
        }
        if side == Side::Best {
            let whole: f64 = left.iter().map(|(_, time)| *time).sum();
            let less = 1.0 - (self.input_beside.ps() as f64 / 2.0 / whole.max(1.0)).min(0.5);
            scale(left, |_| true, less);
        }
    }

    /// Workers that make batches while the loop does the rest.
    fn ahead(
        &self,
        count: usize,
        side: Side,
        left: &mut [(Category, f64)],
        assumes: &mut Vec<Assumption>,
    ) -> bool {
        if !self.by_loop {
            return false;
        }
        assumes.push(Assumption::Cores(count));
        let input = self.shares.get(Category::Input).ps() as f64;
        let rest: f64 =
            left.iter().filter(|(category, _)| *category != Category::Input).map(|(_, time)| *time).sum();
        let each = input / count as f64;
        let waits = match side {
            Side::Worst => each,
            Side::Best | Side::Expected => (each - rest).max(0.0),
        };
        scale(left, |category| category == Category::Input, waits / input.max(1.0))
    }

    /// What has a name: the time in which it runs alone counts, and beside other work in the best case.
    fn named(
        &self,
        name: &str,
        times: f64,
        side: Side,
        left: &mut [(Category, f64)],
        assumes: &mut Vec<Assumption>,
    ) -> bool {
        let (alone, beside) = self.time_of(name);
        if beside.fraction_of(alone + beside) > 0.05 {
            assumes.push(Assumption::Parallel);
        }
        let counts = match side {
            Side::Best => alone + beside,
            Side::Expected => alone + Dur::from_ps(beside.ps() / 2),
            Side::Worst => alone,
        };
        let saved = counts.ps() as f64 * (1.0 - 1.0 / times);
        let whole: f64 = left.iter().map(|(_, time)| *time).sum();
        let compute: f64 =
            left.iter().filter(|(category, _)| *category == Category::Compute).map(|(_, time)| *time).sum();
        // It is taken from the computation first: that is what ops are.
        if compute > saved {
            scale(left, |category| category == Category::Compute, 1.0 - saved / compute.max(1.0));
        } else {
            scale(left, |_| true, 1.0 - (saved / whole.max(1.0)).min(1.0));
        }
        !(alone + beside).is_zero()
    }

    /// In the steps: the time in which events with this name run and no other thread computes, and in which one does.
    fn time_of(&self, name: &str) -> (Dur, Dur) {
        let trace = self.context.trace;
        let wanted = trace.kinds_where(|kind| trace.kind_name(kind) == name);
        let mut changes: Vec<(stepscope_trace::Time, i32, i32)> = Vec::new();
        for (id, line) in &self.context.states().lines {
            let track = trace.track(*id);
            if track.kind != TrackKind::Thread || trace.process(track.process).kind == ProcessKind::Device {
                continue;
            }
            let mut spans: Vec<Span> =
                track.events_of(&wanted).map(|(index, _)| track.span_of(index)).collect();
            spans.dedup_by(|inner, outer| inner.start < outer.end);
            changes.extend(spans.iter().flat_map(|span| [(span.start, 1, 0), (span.end, -1, 0)]));
            let computes = |at: usize| line.states[at].has(State::HostCompute);
            for at in (0..line.times.len().saturating_sub(1)).filter(|&at| computes(at)) {
                changes.extend([(line.times[at], 0, 1), (line.times[at + 1], 0, -1)]);
            }
        }
        changes.sort_unstable_by_key(|(at, ..)| *at);
        let (mut named, mut computing) = (0, 0);
        let (mut alone, mut beside) = (Dur::ZERO, Dur::ZERO);
        let mut last = None;
        for (at, by, other) in changes {
            if let Some(last) = last.filter(|_| named > 0) {
                let time = self.inside(Span::new(last, at));
                if computing > named { beside += time } else { alone += time }
            }
            (named, computing, last) = (named + by, computing + other, Some(at));
        }
        (alone, beside)
    }

    /// How much of a span is in the steps.
    fn inside(&self, span: Span) -> Dur {
        let first = self.windows.partition_point(|window| window.end <= span.start);
        let touching = self.windows[first..].iter().take_while(|window| window.start < span.end);
        touching.map(|window| window.intersect(span).dur()).sum()
    }
}

/// Whether there was anything.
fn scale(left: &mut [(Category, f64)], fits: impl Fn(Category) -> bool, factor: f64) -> bool {
    let mut any = false;
    for (_, time) in left.iter_mut().filter(|(category, _)| fits(*category)) {
        any |= *time > 0.0;
        *time *= factor;
    }
    any
}

/// Do stages of the input work on the loop's own thread for most of its waits?
fn made_by_loop(context: &Context, windows: &[Span]) -> bool {
    let (Some(id), Some(first), Some(last)) = (context.steps().track, windows.first(), windows.last()) else {
        return false;
    };
    let (trace, vocabulary) = (context.trace, context.vocabulary());
    let track = trace.track(id);
    let sum = |wanted: &dyn Fn(Role) -> bool| {
        let mut until = first.start;
        let mut sum = Dur::ZERO;
        for index in 0..track.first_from(last.end) {
            let span = track.span_of(index);
            if span.start >= until && wanted(vocabulary.host_role(track.kind_of(index))) {
                sum += span.dur();
                until = span.end;
            }
        }
        sum
    };
    let waits = sum(&|role| role == Role::InputWait);
    let works = sum(&|role| matches!(role, Role::InputStage | Role::InputFunction | Role::PythonFrame));
    !waits.is_zero() && works.fraction_of(waits) > 0.5
}
