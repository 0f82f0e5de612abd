//! Host threads as chains: what a thread does one after the other. Threads that take turns, such as that of a loop and that
//! of its backward pass, are one chain, so that the time in which one waits for the other is the other's time.

use stepscope_trace::{Span, Time};

use crate::time::critical::graph::{Graph, SIDE_BY_SIDE, Segment, Thread, overlap, total};

/// Threads that launch are few; a file that claims many gets this many chains to choose from.
const MOST: usize = 32;

/// A piece of a chain: one segment of one thread, or a part of it.
#[derive(Copy, Clone, Debug)]
pub(super) struct Stretch {
    pub span: Span,
    pub thread: usize,
    pub segment: usize,
}

/// Threads that never work at the same time, as one.
#[derive(Debug)]
pub(super) struct Chain {
    /// They tile the window.
    pub stretches: Vec<Stretch>,
}

impl Chain {
    /// All chains; the first has the thread that takes the steps, if it is known.
    pub fn all(graph: &Graph) -> Vec<Chain> {
        let busy: Vec<Vec<Span>> = graph.threads.iter().map(busy_spans).collect();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for thread in 0..graph.threads.len() {
            let fits = |group: &Vec<usize>| {
                group
                    .iter()
                    .all(|&other| graph.take_turns(thread, other) || take_turns(&busy[thread], &busy[other]))
            };
            match groups.iter_mut().take(MOST).find(|group| fits(group)) {
                Some(group) => group.push(thread),
                None => groups.push(vec![thread]),
            }
        }
        groups.iter().map(|group| Chain { stretches: merged(graph, group) }).collect()
    }

    /// The place of the stretch that ends at or after a moment and starts before it.
    pub fn place(&self, at: Time) -> Option<usize> {
        let place = self.stretches.partition_point(|stretch| stretch.span.end < at);
        self.stretches.get(place).is_some_and(|stretch| stretch.span.start < at).then_some(place)
    }
}

/// The segment of a stretch.
pub(super) fn segment<'g>(graph: &'g Graph, stretch: &Stretch) -> &'g Segment {
    &graph.threads[stretch.thread].segments[stretch.segment]
}

fn busy_spans(thread: &Thread) -> Vec<Span> {
    thread.segments.iter().filter(|segment| segment.busy).map(|segment| segment.span).collect()
}

/// Does one wait while the other works? A call during which the other works most of the time is such a wait.
fn take_turns(a: &[Span], b: &[Span]) -> bool {
    let (a, b) = (without_calls(a, b), without_calls(b, a));
    overlap(&a, &b).fraction_of(total(&a).min(total(&b))) <= SIDE_BY_SIDE
}

/// Without the spans that the other thread's work fills.
fn without_calls(spans: &[Span], other: &[Span]) -> Vec<Span> {
    spans.iter().copied().filter(|span| filled_until(other, *span).is_none()).collect()
}

/// The end of the last that another thread did during a call, if that fills most of the call: then the call waited for it.
pub(super) fn filled_until(other: &[Span], call: Span) -> Option<Time> {
    let from = other.partition_point(|span| span.start < call.start);
    let until = other.partition_point(|span| span.end <= call.end);
    let inside = other.get(from..until)?;
    let (first, last) = (inside.first()?, inside.last()?);
    ((last.end - first.start).fraction_of(call.dur()) > 0.5).then_some(last.end)
}

/// At each moment the thread that is busy, the one with the shorter segment if several are; the first one if none is.
fn merged(graph: &Graph, threads: &[usize]) -> Vec<Stretch> {
    let mut places = vec![0usize; threads.len()];
    let mut now = graph.window.start;
    let mut all: Vec<Stretch> = Vec::new();
    while now < graph.window.end {
        let current = |number: usize| graph.threads[threads[number]].segments.get(places[number]);
        let Some(next) =
            (0..threads.len()).filter_map(|number| current(number).map(|one| one.span.end)).min()
        else {
            break;
        };
        let next = next.min(graph.window.end);
        let busy = (0..threads.len()).filter(|&number| current(number).is_some_and(|one| one.busy));
        let busy = busy.min_by_key(|&number| current(number).map(|one| one.span.dur()));
        let first = (0..threads.len()).find(|&number| current(number).is_some());
        if let Some(number) = busy.or(first).filter(|_| next > now) {
            add(
                &mut all,
                Stretch { span: Span::new(now, next), thread: threads[number], segment: places[number] },
            );
        }
        now = now.max(next);
        for (place, &thread) in places.iter_mut().zip(threads) {
            let segments = &graph.threads[thread].segments;
            while segments.get(*place).is_some_and(|segment| segment.span.end <= now) {
                *place += 1;
            }
        }
    }
    all
}

fn add(all: &mut Vec<Stretch>, new: Stretch) {
    match all.last_mut() {
        Some(last) if last.thread == new.thread && last.segment == new.segment => {
            last.span.end = new.span.end;
        }
        _ => all.push(new),
    }
}
