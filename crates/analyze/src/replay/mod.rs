//! What a step would take if one thing in it were different: the recorded steps, replayed with another input, other launches,
//! faster kernels.
//!
//! [`chains`] makes chains of host threads, [`edges`] finds what had to be over before what could begin, [`fetches`] the batches.
//! [`plan`] says what a [`Change`] changes, and [`pass`] plays everything again in the order of recorded time.
//! [`check`] decides whether the replay can be trusted, and how far.
//!
//! Knows nothing about other hosts, about advice and about sentences.

mod candidates;
mod chains;
mod change;
mod check;
mod edges;
mod fetches;
mod host_only;
mod pass;
mod plan;
#[cfg(test)]
mod tests;

use stepscope_trace::{Dur, EventId, Span};

use crate::breakdown::{Category, DeviceBreakdown};
use crate::context::Context;
use crate::time::critical::graph::Graph;
use crate::time::critical::{NoPath, Piece};
use crate::vocabulary::names::kernel_short_name;

use chains::Chain;
pub use change::{BadChange, Change, FORMS};
pub use check::Distrust;
use edges::Edges;
use fetches::Fetches;
use host_only::HostOnly;
use pass::{Mark, Node};
pub use plan::Assumption;

/// Steps that are replayed at most.
const STEPS: usize = 20;
/// Steps before the first one that counts in a replay.
const WARM_UP: usize = 3;
/// A change that wins less than this share of the step is not worth a line.
const NOTICED: f64 = 0.01;

/// Steps of a recording, ready to be replayed.
pub struct Replay<'c, 't> {
    steps: Steps<'c, 't>,
    /// The mean of all counted steps.
    step: Dur,
}

enum Steps<'c, 't> {
    /// A host and its devices.
    Graph(Recorded<'c, 't>),
    /// A host alone.
    Host(HostOnly<'c, 't>),
}

/// What was recorded, as the replay sees it.
struct Recorded<'c, 't> {
    graph: Graph<'c, 't>,
    chains: Vec<Chain>,
    edges: Edges,
    fetches: Fetches,
    /// The steps, with the one before the first that counts.
    spans: Vec<Span>,
    /// The ends of steps; the first is the start of the first one that counts.
    marks: Vec<Mark>,
    /// If the marks are the loop's: the device must keep up, too.
    device: Option<Keeps>,
    order: Vec<Node>,
}

/// The last work of an early step and of the last one, and how many steps lie between.
type Keeps = (usize, usize, usize);

/// How sure a prediction is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Grade {
    /// Nearly all of it rests on what the recording states.
    Firm,
    /// Part of it rests on inferred edges or on assumptions.
    Likely,
}

/// The step after a change.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    /// The changes.
    pub changes: Vec<Change>,
    /// The step as it is: the mean of the counted ones.
    pub step: Dur,
    /// The step that is expected.
    pub expected: Dur,
    /// The shortest that is plausible.
    pub low: Dur,
    /// The longest.
    pub high: Dur,
    /// How sure it is.
    pub grade: Grade,
    /// What it takes for granted.
    pub assumes: Vec<Assumption>,
    /// What determines the step then, with its share of it.
    pub binds: Option<(Category, f64)>,
}

/// Why there is no prediction.
#[derive(Clone, Debug, PartialEq)]
pub enum NoReplay {
    /// The dependencies in the steps are unknown.
    Path(NoPath),
    /// They are known, but cannot be trusted.
    Distrusted(Distrust),
    /// Nothing in the recording is what this change changes.
    Nothing(Change),
}

impl<'c, 't> Replay<'c, 't> {
    /// Prepares the counted steps of a recording, and checks that replaying them without a change gives what was recorded.
    pub fn of(context: &'c Context<'t>) -> Result<Self, NoReplay> {
        let breakdown = context.breakdown();
        if breakdown.steps.whole_capture || breakdown.counted().next().is_none() {
            return Err(NoReplay::Path(NoPath::Steps));
        }
        let alone = breakdown.bound().is_none_or(|device| device.process.is_none());
        let steps = if alone {
            Steps::Host(
                HostOnly::of(context).map_err(|unknown| NoReplay::Distrusted(Distrust::Unknown(unknown)))?,
            )
        } else {
            let recorded = Recorded::of(context).map_err(NoReplay::Path)?;
            check::trusted(&recorded).map_err(NoReplay::Distrusted)?;
            Steps::Graph(recorded)
        };
        let counted: Vec<Dur> = breakdown.counted().map(|(_, shares)| shares.window.dur()).collect();
        let all: Dur = counted.iter().copied().sum();
        Ok(Replay { steps, step: Dur::from_ps(all.ps() / counted.len().max(1) as i64) })
    }

    /// The step with some changes at once.
    pub fn predict(&self, changes: &[Change]) -> Result<Prediction, NoReplay> {
        let answer = |changes: &[Change]| match &self.steps {
            Steps::Graph(recorded) => check::replayed(recorded, changes),
            Steps::Host(host) => check::scaled_shares(host, changes),
        };
        let Some(found) = answer(changes) else {
            let alone = |change: &&Change| answer(std::slice::from_ref(*change)).is_none();
            let nothing = changes.iter().find(alone).or(changes.first()).cloned();
            return Err(nothing.map_or(NoReplay::Path(NoPath::Steps), NoReplay::Nothing));
        };
        let scale = |time: Dur| pass::scaled(self.step, time.fraction_of(found.before));
        Ok(Prediction {
            changes: changes.to_vec(),
            step: self.step,
            expected: scale(found.expected),
            low: scale(found.low),
            high: scale(found.high),
            grade: if found.assumes.is_empty() { Grade::Firm } else { Grade::Likely },
            assumes: found.assumes,
            binds: found.binds,
        })
    }

    /// The changes that win something, one at a time, the one that wins most first.
    pub fn outlook(&self) -> Vec<Prediction> {
        let all = match &self.steps {
            Steps::Graph(recorded) => candidates::candidates(recorded),
            Steps::Host(host) => host.candidates(),
        };
        let mut found: Vec<Prediction> =
            all.into_iter().filter_map(|change| self.predict(&[change]).ok()).collect();
        found.retain(|one| (one.step - one.expected).fraction_of(one.step) >= NOTICED);
        found.sort_by_key(|prediction| prediction.expected);
        found
    }

    /// The step as it is: the mean of the counted ones.
    pub fn step(&self) -> Dur {
        self.step
    }

    /// Number of steps that are replayed.
    pub fn steps(&self) -> usize {
        match &self.steps {
            Steps::Graph(recorded) => recorded.marks.len().saturating_sub(1),
            Steps::Host(host) => host.lengths().len(),
        }
    }
}

impl<'c, 't> Recorded<'c, 't> {
    fn of(context: &'c Context<'t>) -> Result<Self, NoPath> {
        let breakdown = context.breakdown();
        if breakdown.steps.whole_capture {
            return Err(NoPath::Steps);
        }
        let device = breakdown.bound().ok_or(NoPath::Device)?;
        let process = device.process.ok_or(NoPath::Device)?;
        if context.launches().all.is_empty() {
            return Err(NoPath::Launches);
        }
        let counted = chosen(context).ok_or(NoPath::Steps)?;
        // The steps before bring queues and buffers to their usual state.
        let spare = if counted.len() > 2 * WARM_UP { WARM_UP.saturating_sub(counted.start) } else { 0 };
        let counted = counted.start + spare..counted.end;
        let first = counted.start.saturating_sub(WARM_UP);
        let spans: Vec<Span> = device.steps[first..counted.end].iter().map(|step| step.window).collect();
        let hull = |all: Span, step: &crate::breakdown::StepShares| all.hull(step.window).hull(step.work);
        let begin = device.steps[first].window;
        let window = device.steps[first..counted.end].iter().fold(begin, hull);
        let graph = Graph::of(context, window, process);
        let known = graph.known_share().ok_or(NoPath::Device)?;
        if known < 1.0 - check::ORPHANS {
            return Err(NoPath::Cut(known));
        }
        let chains = Chain::all(&graph);
        let edges = Edges::of(&graph, &chains);
        let fetches = Fetches::of(&graph, &chains);
        let (marks, device) = marks(&graph, device, counted).ok_or(NoPath::Steps)?;
        let mut recorded =
            Recorded { graph, chains, edges, fetches, spans, marks, device, order: Vec::new() };
        recorded.order = pass::order(&recorded);
        Ok(recorded)
    }

    /// How long the steps took, from the first mark to the last.
    fn whole(&self) -> Dur {
        let at = |mark: &Mark| match *mark {
            Mark::Host(at) => at,
            Mark::Work(work) => self.graph.works[work].span.end,
        };
        match (self.marks.first(), self.marks.last()) {
            (Some(first), Some(last)) => at(last) - at(first),
            _ => Dur::ZERO,
        }
    }

    /// By step: the calls that launch its kernels in order of time, and from the start of the first to the end of the last.
    fn kernel_calls(&self) -> Vec<(Option<Span>, Vec<Span>)> {
        let mut steps: Vec<(Option<Span>, Vec<Span>)> = vec![(None, Vec::new()); self.spans.len()];
        let kernels = self.graph.works.iter().filter(|work| work.piece == Piece::Kernel);
        for call in kernels.filter_map(|work| work.call) {
            let step = self.spans.partition_point(|span| span.end <= call.span.start);
            if let Some((hull, calls)) =
                steps.get_mut(step).filter(|_| self.spans[step].contains(call.span.start))
            {
                *hull = Some(hull.map_or(call.span, |hull| hull.hull(call.span)));
                calls.push(call.span);
            }
        }
        steps.iter_mut().for_each(|(_, calls)| calls.sort_unstable_by_key(|call| call.start));
        steps
    }

    /// Does the host wait for the device between two kernels of one step? Then they cannot be launched by one call.
    fn waits_between_kernels(&self) -> bool {
        let steps = self.kernel_calls();
        let waits = self.edges.waits.iter().filter(|(_, wait)| !wait.inferred && wait.is_for_work());
        let mut ends = waits.map(|(&(chain, place), _)| self.chains[chain].stretches[place].span.end);
        ends.any(|end| {
            let step = self.spans.partition_point(|span| span.end <= end);
            let hull = steps.get(step).and_then(|(hull, _)| *hull);
            hull.is_some_and(|hull| hull.start < end && end < hull.end)
        })
    }

    fn name(&self, event: EventId) -> &str {
        let trace = self.graph.context.trace;
        trace.kind_name(trace.track(event.track).kind_of(event.index as usize))
    }

    fn is_named(&self, event: EventId, name: &str) -> bool {
        let own = self.name(event);
        own == name || kernel_short_name(own) == name
    }

    /// Outermost events of the host's threads with this name, in order of time.
    fn ranges_named(&self, name: &str) -> Vec<Span> {
        let trace = self.graph.context.trace;
        let wanted: Vec<bool> = trace.kinds().iter().map(|kind| trace.str(kind.name) == name).collect();
        let mut spans: Vec<Span> = Vec::new();
        if !wanted.contains(&true) {
            return spans;
        }
        for thread in &self.graph.threads {
            let track = trace.track(thread.track);
            let until = track.first_from(self.graph.window.end);
            let own = track.kinds().iter().take(until).enumerate().filter(|(_, kind)| wanted[kind.index()]);
            spans.extend(own.map(|(index, _)| track.span_of(index)));
        }
        spans.sort_unstable_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
        spans.dedup_by(|later, first| later.start < first.end);
        spans
    }
}

/// The longest run of counted steps, at most [`STEPS`] of it, from its middle.
fn chosen(context: &Context) -> Option<std::ops::Range<usize>> {
    let all = &context.breakdown().steps.all;
    let (mut best, mut from) = (0..0, 0);
    for place in 0..=all.len() {
        if all.get(place).is_some_and(|step| step.excluded.is_none()) {
            continue;
        }
        if place - from > best.len() {
            best = from..place;
        }
        from = place + 1;
    }
    if best.is_empty() {
        return None;
    }
    let more = best.len().saturating_sub(STEPS);
    Some(best.start + more / 2..best.end - (more - more / 2))
}

/// Where steps end: on the loop's thread, or with their last work on a device that lags behind. And where the device's work
/// begins and ends, if the loop tells the steps.
fn marks(
    graph: &Graph,
    device: &DeviceBreakdown,
    counted: std::ops::Range<usize>,
) -> Option<(Vec<Mark>, Option<Keeps>)> {
    let steps = device.steps.get(counted)?;
    let last = |at| graph.ended_by(at, graph.window.start, |work| Some(work.process) == device.process);
    let (first, end) = (steps.first()?, steps.last()?);
    if graph.has_loop && !device.asynchronous {
        let ends = steps.iter().map(|step| Mark::Host(step.window.end));
        let marks = [Mark::Host(first.window.start)].into_iter().chain(ends).collect();
        let before = last(first.work.start).map(|work| (work, steps.len()));
        let early = before.or_else(|| last(first.work.end).map(|work| (work, steps.len() - 1)));
        let device = early.zip(last(end.work.end)).map(|((early, count), end)| (early, end, count));
        return Some((marks, device.filter(|(.., count)| *count > 0)));
    }
    let ends = steps.iter().map(|step| last(step.work.end));
    let all: Vec<Mark> = [last(first.work.start)].into_iter().chain(ends).flatten().map(Mark::Work).collect();
    (all.len() > 1).then_some((all, None))
}
