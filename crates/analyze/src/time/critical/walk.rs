//! The walk along the critical path: from the step's end backwards, always to what finished last of all that had to finish.

use stepscope_trace::{Span, Time};

use super::graph::Graph;
use super::{Link, Piece};
use crate::breakdown::Category;

/// The path, and what of the graph is on it.
pub(super) struct Walked {
    pub links: Vec<Link>,
    /// By place of the work.
    pub works: Vec<bool>,
    /// By thread and segment.
    pub segments: Vec<Vec<bool>>,
}

/// Where the walk is. The moment is that up to which everything later is explained.
#[derive(Copy, Clone)]
enum At {
    Host(usize),
    Device(usize),
}

struct Walk<'g, 'c, 't> {
    graph: &'g Graph<'c, 't>,
    now: Time,
    done: Walked,
}

/// Walks from the end of the step. A step that ends on a device that lags behind ends with its last work.
pub(super) fn walk(graph: &Graph, lags: bool) -> Walked {
    let done = Walked {
        links: Vec::new(),
        works: vec![false; graph.works.len()],
        segments: graph.threads.iter().map(|thread| vec![false; thread.segments.len()]).collect(),
    };
    let mut walk = Walk { graph, now: graph.window.end, done };
    let last = || graph.ended_by(graph.window.end, graph.window.start, |work| work.process == graph.bound);
    let start = if graph.has_loop && !lags { Some(At::Host(0)) } else { last().map(At::Device) };
    // Every turn explains some time or changes the place once; a damaged file must not make it run in circles.
    let segments: usize = graph.threads.iter().map(|thread| thread.segments.len()).sum();
    let mut turns = 4 * (graph.works.len() + segments) + 16;
    let mut at = start;
    while let Some(place) = at.filter(|_| walk.now > graph.window.start && turns > 0) {
        turns -= 1;
        at = match place {
            At::Host(thread) => walk.host(thread),
            At::Device(work) => walk.device(work),
        };
    }
    walk.explain(graph.window.start, Piece::Unknown, None, Category::Unknown);
    walk.done.links.reverse();
    walk.done.links.dedup_by(|later, first| {
        let same = later.event == first.event && later.piece == first.piece && later.event.is_some();
        if same {
            first.span.end = later.span.end;
        }
        same
    });
    walk.done
}

impl Walk<'_, '_, '_> {
    /// Says what the time since `from` was.
    fn explain(
        &mut self,
        from: Time,
        piece: Piece,
        event: Option<stepscope_trace::EventId>,
        category: Category,
    ) {
        let from = from.max(self.graph.window.start);
        if from < self.now {
            self.done.links.push(Link { span: Span::new(from, self.now), piece, event, category });
            self.now = from;
        }
    }

    /// Work on a device, then what it waited for.
    fn device(&mut self, place: usize) -> Option<At> {
        let graph = self.graph;
        let work = &graph.works[place];
        // The caller has already explained the time from the end of the work to this moment.
        self.explain(work.span.end, Piece::Unknown, None, Category::Unknown);
        self.done.works[place] = true;
        self.explain(work.span.start, work.piece, Some(work.event), work.category);
        let start = work.span.start;
        let queued = work.before.map(|before| (graph.works[before].span.end.min(start), before));
        let released = work.released();
        let known = queued.map(|(end, _)| end).into_iter().chain(released).max()?;
        // Neither the stream nor the call explains the wait: another stream, if calls order them.
        if graph.orders && (start - known).ps() > graph.latency.ps().saturating_mul(2) {
            let other = |other: &super::graph::Work| {
                other.process == work.process && other.event.track != work.event.track
            };
            if let Some(before) = graph.ended_by(start, known, other) {
                self.explain(graph.works[before].span.end, Piece::Queue, None, Category::Idle);
                return Some(At::Device(before));
            }
        }
        match (queued, released) {
            (Some((end, before)), released) if released.is_none_or(|released| end >= released) => {
                self.explain(end, Piece::Queue, None, Category::Idle);
                Some(At::Device(before))
            }
            (_, Some(released)) => {
                let call = work.call?;
                self.explain(released, Piece::Latency, Some(call.event), Category::Launch);
                call.thread.map(At::Host)
            }
            _ => None,
        }
    }

    /// A thread, back to a wait, to a turn of another thread or to the start.
    fn host(&mut self, thread: usize) -> Option<At> {
        let graph = self.graph;
        let segments = &graph.threads[thread].segments;
        let mut at = segments.partition_point(|segment| segment.span.start < self.now);
        while let Some(place) = at.checked_sub(1) {
            let segment = &segments[place];
            let event = segment.event.map(|event| graph.event_of(thread, event));
            let waited = segment.waited.filter(|&(work, called)| {
                let end = graph.works[work].span.end;
                called < end && end <= self.now
            });
            if let Some((work, _)) = waited {
                self.done.segments[thread][place] = true;
                self.explain(graph.works[work].span.end, Piece::Wake, event, Category::Sync);
                return Some(At::Device(work));
            }
            if !segment.busy
                && let Some((other, since)) = self.turn_of(thread, segment.acted)
            {
                self.explain(since.max(segment.span.start), segment.piece, event, segment.category);
                if since >= segment.span.start {
                    return Some(At::Host(other));
                }
            }
            self.done.segments[thread][place] |= segment.span.start < self.now;
            self.explain(segment.span.start, segment.piece, event, segment.category);
            at = place;
        }
        None
    }

    /// The thread that acted last before this moment, if it acted after `since` and takes turns with this one; and when.
    fn turn_of(&self, thread: usize, since: Option<Time>) -> Option<(usize, Time)> {
        let acted = |other: usize| {
            let segments = &self.graph.threads[other].segments;
            let at = segments.partition_point(|segment| segment.span.start < self.now);
            let last = segments[..at].last()?;
            // A segment that is still going on counts up to now.
            last.acted_by_end().map(|at| at.min(self.now))
        };
        let others = (0..self.graph.threads.len())
            .filter(|&other| other != thread && self.graph.take_turns(thread, other));
        let acted = others.filter_map(|other| Some((other, acted(other)?)));
        acted
            .filter(|(_, at)| since.is_none_or(|since| *at > since))
            .max_by_key(|&(other, at)| (at, std::cmp::Reverse(other)))
    }
}
