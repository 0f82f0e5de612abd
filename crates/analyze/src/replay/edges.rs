//! What has to be over before what may begin, in numbers that can be replayed: of each piece of device work what held it back
//! and the distance that remained, of each blocking call the work that it waited for.
//!
//! Edges that the recording states (a stream runs in order, a call launches its work, a call returns after its work) are
//! certain. Others are inferred from times: which stream waited for which, which thread for which. An edge that the recorded
//! times contradict is dropped and counted.

use rustc_hash::FxHashMap;
use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, Span, Time, TrackId};

use super::chains::{Chain, filled_until, segment};
use crate::states::launches::waits_for_copy;
use crate::time::critical::graph::{Graph, Work};
use crate::vocabulary::{Role, waits_for_all};

/// Clocks of hosts and devices differ by this much: an edge that is wrong by less is right.
const CLOCKS: Dur = Dur::from_us(2);
/// Between the end of one thread's event and the moment another thread continues, if the one woke the other.
const HANDED_OVER: Dur = Dur::from_us(20);
/// A queue that is full holds at least this many pieces of work.
const FULL: usize = 200;
/// A launch that finds the queue full takes this many times as long as usual.
const BLOCKED: i64 = 5;

/// What held a piece of work back.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Held {
    /// The work before it on its stream, and the gap that remains.
    pub before: Option<(usize, Dur)>,
    /// When its call let it go, on which chain, and how long it took to arrive. No chain: before the window.
    pub released: Option<(Option<usize>, Time, Dur)>,
    /// Work of another stream that it seems to have waited for, and the gap that remains.
    pub other: Option<(usize, Dur)>,
    /// The gap to the work before it if nothing of another stream held it back.
    pub without_other: Dur,
}

/// What a stretch of a chain waits for.
#[derive(Clone, Debug)]
pub(super) struct Wait {
    /// All have to be over.
    pub targets: Vec<Target>,
    /// It takes this long even if nothing has to be waited for.
    pub floor: Dur,
    /// From the end of the last target until the thread goes on.
    pub wake: Dur,
    /// Is it a guess from times?
    pub inferred: bool,
}

impl Wait {
    /// For the end of work, and not for room in a queue.
    pub fn is_for_work(&self) -> bool {
        self.targets.iter().any(|target| matches!(target, Target::End(_)))
    }
}

/// What may have to be waited for.
#[derive(Copy, Clone, Debug)]
pub(super) enum Target {
    /// The end of work.
    End(usize),
    /// The start of work: a full queue has room again.
    Start(usize),
    /// A moment of another chain.
    Host(usize, Time),
}

/// All edges of a graph.
#[derive(Debug, Default)]
pub(super) struct Edges {
    /// By work.
    pub held: Vec<Held>,
    /// By chain and stretch.
    pub waits: FxHashMap<(usize, usize), Wait>,
    /// Edges that the recording states.
    pub stated: usize,
    /// Those of them that recorded times contradict.
    pub contradicted: usize,
}

impl Edges {
    pub fn of(graph: &Graph, chains: &[Chain]) -> Self {
        let mut edges = Edges::default();
        let owner = owners(graph, chains);
        let between = usual_gap(graph);
        for work in &graph.works {
            let held = edges.held(graph, work, between, &owner);
            edges.held.push(held);
        }
        let mut find = Finder::new(graph);
        for (number, chain) in chains.iter().enumerate() {
            for place in 0..chain.stretches.len() {
                if let Some(wait) = find.wait(chain, place) {
                    edges.waits.insert((number, place), wait);
                }
            }
        }
        edges.hand_overs(graph, chains);
        edges
    }

    fn held(&mut self, graph: &Graph, work: &Work, between: Dur, owner: &[usize]) -> Held {
        let start = work.span.start;
        let before = work.before.map(|before| (before, graph.works[before].span.end.min(start)));
        let released = work.released();
        self.stated += usize::from(released.is_some());
        // Work cannot start before its call.
        let contradicted = work.call.is_some_and(|call| call.span.start > start + CLOCKS);
        self.contradicted += usize::from(contradicted);
        let released = released.filter(|_| !contradicted).map(|at| at.min(start));
        let free = before.map(|(_, end)| end);
        let known = free.into_iter().chain(released).max();
        let other = known.and_then(|known| other_stream(graph, work, known));
        let left = |at: Time| start - at;
        let by_call = released.is_some_and(|at| free.is_none_or(|free| at >= free));
        // The side that did not hold it back keeps its usual distance, as far as it had that much room.
        let gap = |at: Time, held: bool, usual: Dur| if held { left(at) } else { left(at).min(usual) };
        let chain = work.call.and_then(|call| call.thread).map(|thread| owner[thread]);
        Held {
            before: before.map(|(before, end)| {
                let usual = if other.is_some() { between } else { between.min(left(end)) };
                (before, gap(end, !by_call && other.is_none(), usual))
            }),
            released: released.map(|at| (chain, at, gap(at, by_call && other.is_none(), graph.latency))),
            other: other.map(|other| (other, start - graph.works[other].span.end)),
            without_other: known.map_or(Dur::ZERO, left),
        }
    }

    /// Threads that wait for one another without a call that says so. One goes on right after an event of the other ends, or
    /// while the other is in a call that it made in the meantime; and such a call returns after the last that it caused.
    fn hand_overs(&mut self, graph: &Graph, chains: &[Chain]) {
        // Threads that launch are few; a file that claims many gets no such edges.
        const MOST: usize = 16;
        if chains.len() < 2 || chains.len() > MOST {
            return;
        }
        let busy: Vec<Vec<Span>> = chains.iter().map(|chain| busy_spans(graph, chain)).collect();
        for (number, chain) in chains.iter().enumerate() {
            for (place, stretch) in chain.stretches.iter().enumerate() {
                let span = stretch.span;
                if span.dur() <= HANDED_OVER || self.waits.contains_key(&(number, place)) {
                    continue;
                }
                let others = (0..chains.len()).filter(|&other| other != number);
                let found = match segment(graph, stretch).busy {
                    false => others
                        .filter_map(|other| Some((other, woken_by(&busy[other], span)?)))
                        .max_by_key(|(_, at)| *at),
                    true => others
                        .filter_map(|other| Some((other, filled_until(&busy[other], span)?)))
                        .max_by_key(|(_, at)| *at),
                };
                if let Some((other, at)) = found {
                    let targets = vec![Target::Host(other, at)];
                    let wait = Wait { targets, floor: Dur::ZERO, wake: span.end - at, inferred: true };
                    self.waits.insert((number, place), wait);
                }
            }
        }
    }
}

/// What a chain does, without gaps.
fn busy_spans(graph: &Graph, chain: &Chain) -> Vec<Span> {
    chain
        .stretches
        .iter()
        .filter(|stretch| segment(graph, stretch).busy)
        .map(|stretch| stretch.span)
        .collect()
}

/// The moment of another thread after which one went on that had nothing to do: the end of an event just before, or the start
/// of what the other is doing.
fn woken_by(other: &[Span], gap: Span) -> Option<Time> {
    let until = other.partition_point(|span| span.end <= gap.end);
    let last = until.checked_sub(1).map(|at| other[at]);
    let ended =
        last.filter(|last| last.start >= gap.start && last.end + HANDED_OVER >= gap.end).map(|last| last.end);
    let around = other.get(until).filter(|span| span.start > gap.start && span.start < gap.end);
    ended.or(around.map(|span| span.start))
}

/// By thread, its chain.
fn owners(graph: &Graph, chains: &[Chain]) -> Vec<usize> {
    let mut owner = vec![0; graph.threads.len()];
    for (number, chain) in chains.iter().enumerate() {
        chain.stretches.iter().for_each(|stretch| owner[stretch.thread] = number);
    }
    owner
}

/// The usual gap between two pieces of work that were both submitted.
fn usual_gap(graph: &Graph) -> Dur {
    median_duration(graph.works.iter().filter_map(|work| {
        let free = graph.works[work.before?].span.end;
        (work.released()? <= free).then(|| (work.span.start - free).at_least_zero())
    }))
}

/// The work of another stream of the device that ended last before this one, if neither its own stream nor its call explains
/// why it did not start earlier. Where no call orders streams, it has to have ended just before.
fn other_stream(graph: &Graph, work: &Work, known: Time) -> Option<usize> {
    let start = work.span.start;
    if (start - known).ps() <= graph.latency.ps().saturating_mul(2).max(HANDED_OVER.ps()) {
        return None;
    }
    let since = if graph.orders { known } else { known.max(start - HANDED_OVER) };
    let other = |other: &Work| other.process == work.process && other.event.track != work.event.track;
    graph.ended_by(start, since, other)
}

/// Finds what blocking calls wait for.
struct Finder<'g, 'c, 't> {
    graph: &'g Graph<'c, 't>,
    /// Of each stream its works in order.
    streams: Vec<Vec<usize>>,
    /// The usual duration of calls that wait and did not have to, and of launches.
    short: Dur,
    launch: Dur,
    wake: Dur,
}

impl<'g, 'c, 't> Finder<'g, 'c, 't> {
    fn new(graph: &'g Graph<'c, 't>) -> Self {
        let mut streams: FxHashMap<TrackId, Vec<usize>> = FxHashMap::default();
        for (number, work) in graph.works.iter().enumerate() {
            streams.entry(work.event.track).or_default().push(number);
        }
        let segments = || graph.threads.iter().flat_map(|thread| &thread.segments);
        let launches = segments().filter(|one| one.piece == crate::time::critical::Piece::Launch);
        let launch = median_duration(launches.map(|one| one.span.dur()));
        let waited = segments().filter_map(|one| one.waited.map(|(work, _)| (one.span.end, work)));
        let wake =
            median_duration(waited.map(|(end, work)| (end - graph.works[work].span.end).at_least_zero()));
        let mut finder =
            Finder { graph, streams: streams.into_values().collect(), short: Dur::ZERO, launch, wake };
        finder.short = finder.usual_short();
        finder
    }

    /// A tenth of the calls that did not have to wait are shorter than this.
    fn usual_short(&self) -> Dur {
        let mut lengths: Vec<Dur> = Vec::new();
        for thread in &self.graph.threads {
            let track = self.graph.context.trace.track(thread.track);
            let calls = thread.segments.iter().filter(|one| one.waited.is_none());
            lengths.extend(calls.filter_map(|one| {
                let role = self.graph.context.vocabulary().host_role(track.kind_of(one.event?));
                (role == Role::Sync).then_some(one.span.dur())
            }));
        }
        lengths.sort_unstable();
        lengths.get(lengths.len() / 10).copied().unwrap_or_default()
    }

    fn wait(&mut self, chain: &Chain, place: usize) -> Option<Wait> {
        let graph = self.graph;
        let stretch = &chain.stretches[place];
        let one = segment(graph, stretch);
        let track = graph.context.trace.track(graph.threads[stretch.thread].track);
        let event = one.event?;
        let kind = track.kind_of(event);
        let (call, id) = (track.span_of(event), track.event_id(event));
        // A call that is cut into pieces by events inside waits at its end.
        if stretch.span.end != call.end {
            return None;
        }
        let name = graph.context.trace.kind_name(kind);
        let targets: Vec<usize> = match graph.context.vocabulary().host_role(kind) {
            Role::LaunchCopy if waits_for_copy(name, call.dur()) => {
                // A copy that starts after its call was staged by the driver: the call waited for something else.
                let own =
                    |work: &Work| work.call.is_some_and(|of| of.event == id) && work.span.start < call.end;
                graph.ended_by(call.end + CLOCKS, call.start, own).into_iter().collect()
            }
            Role::Launch => return self.full_queue(call, stretch.span.dur()),
            Role::Sync if waits_for_all(name) => self.all_before(call.start, call.end),
            Role::Sync | Role::DeviceMemory => {
                let before = |work: &Work| work.call.is_none_or(|of| of.span.start < call.start);
                let since = if graph.context.vocabulary().host_role(kind) == Role::Sync {
                    graph.window.start
                } else {
                    call.start
                };
                graph.ended_by(call.end, since, before).into_iter().collect()
            }
            _ => return None,
        };
        let last = targets.iter().map(|&work| graph.works[work].span.end).max()?;
        let waited = last > call.start;
        let left = (stretch.span.end - last).at_least_zero();
        let (floor, wake) = match waited {
            true => (self.short.min(stretch.span.dur()), left),
            false => (stretch.span.dur(), left.min(self.wake)),
        };
        let targets = targets.into_iter().map(Target::End).collect();
        Some(Wait { targets, floor, wake, inferred: false })
    }

    /// Of each stream the last work that was launched before a call and ended before it returned.
    fn all_before(&self, called: Time, returned: Time) -> Vec<usize> {
        let launched = |work: &Work| work.call.map_or(work.span.start, |call| call.span.start) < called;
        let last = |stream: &Vec<usize>| {
            let until = stream.partition_point(|&work| launched(&self.graph.works[work]));
            let work = *stream.get(until.checked_sub(1)?)?;
            (self.graph.works[work].span.end <= returned + CLOCKS).then_some(work)
        };
        self.streams.iter().filter_map(last).collect()
    }

    /// A launch that takes far longer than usual while much is pending waits for room in the queue.
    fn full_queue(&self, call: Span, length: Dur) -> Option<Wait> {
        if self.launch.is_zero() || length.ps() < self.launch.ps().saturating_mul(BLOCKED) {
            return None;
        }
        for stream in &self.streams {
            let works = &self.graph.works;
            let launched =
                stream.partition_point(|&work| works[work].call.is_none_or(|of| of.span.start < call.start));
            let begun = stream.partition_point(|&work| works[work].span.start < call.end);
            if launched.saturating_sub(begun) < FULL {
                continue;
            }
            let work = *stream.get(begun.checked_sub(1)?)?;
            let since = call.end - works[work].span.start;
            if since <= HANDED_OVER && since >= Dur::ZERO {
                let targets = vec![Target::Start(work)];
                return Some(Wait { targets, floor: self.launch, wake: since, inferred: false });
            }
        }
        None
    }
}
