//! Slack: how much later something could have ended without delaying the end of the step, if everything that follows it
//! keeps its length. What follows is known in part, so this is the least that is known to be free.
//!
//! One pass from the end of the step to its start. A piece of work may be late by the gap to the next on its stream plus
//! that one's slack, and must be done by the next call that waits for it. The host may be late by what its launches and
//! waits leave; threads count as one host.

use stepscope_trace::{Dur, Time};

use super::graph::Graph;

/// By place.
pub(super) struct Slacks {
    pub works: Vec<Dur>,
    pub segments: Vec<Vec<Dur>>,
}

/// What happens at a moment. Of equal moments the pass takes the last one here first: a segment that starts when a call
/// ends comes after the call.
#[derive(Copy, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    WaitBegins(usize, usize),
    Call(usize),
    Work(usize),
    WaitEnds(usize, usize),
    Segment(usize, usize),
}

pub(super) fn slacks(graph: &Graph, lags: bool) -> Slacks {
    let most = graph.window.dur();
    let mut events = events_of(graph);
    events.sort_unstable_by(|a, b| b.cmp(a));
    let mut all = Slacks {
        works: vec![most; graph.works.len()],
        segments: graph.threads.iter().map(|thread| vec![most; thread.segments.len()]).collect(),
    };
    // What the host may be late by at this moment: at the end of its own step, by nothing.
    let mut host = if lags { most } else { Dur::ZERO };
    // The next wait: when the last work that it waits for ends, and how late that may be. Waking up takes the same time later.
    let mut wait: Option<(Time, Dur)> = None;
    let mut next_start: Option<(Time, Dur)> = None;
    for (_, event) in events {
        match event {
            Event::WaitEnds(thread, place) => {
                let waited = graph.threads[thread].segments[place].waited;
                wait = waited.map(|(work, _)| (graph.works[work].span.end, host)).or(wait);
            }
            Event::Work(place) => {
                all.works[place] = of_work(graph, place, &all.works, wait, next_start, lags);
                next_start = Some((graph.works[place].span.start, all.works[place]));
            }
            Event::Call(place) => {
                let work = &graph.works[place];
                let free = work.released().map_or(Dur::ZERO, |at| (work.span.start - at).at_least_zero());
                host = host.min(free + all.works[place]);
            }
            Event::WaitBegins(thread, place) => {
                let waited = graph.threads[thread].segments[place].waited;
                let free = waited.map_or(Dur::ZERO, |(work, at)| graph.works[work].span.end - at);
                host = (host + free.at_least_zero()).min(most);
            }
            Event::Segment(thread, place) => all.segments[thread][place] = host,
        }
    }
    all
}

fn events_of(graph: &Graph) -> Vec<(Time, Event)> {
    let mut events: Vec<(Time, Event)> = Vec::new();
    for (place, work) in graph.works.iter().enumerate() {
        events.push((work.span.start, Event::Work(place)));
        let inside = work.call.filter(|call| call.thread.is_some());
        events.extend(inside.map(|call| (call.span.end.min(work.span.start), Event::Call(place))));
    }
    for (thread, own) in graph.threads.iter().enumerate() {
        for (place, segment) in own.segments.iter().enumerate() {
            events.push((segment.span.start, Event::Segment(thread, place)));
            if segment.waited.is_some() {
                events.push((segment.span.end, Event::WaitEnds(thread, place)));
                events.push((segment.span.start, Event::WaitBegins(thread, place)));
            }
        }
    }
    events
}

/// The least of what follows a piece of work.
fn of_work(
    graph: &Graph,
    place: usize,
    works: &[Dur],
    wait: Option<(Time, Dur)>,
    next_start: Option<(Time, Dur)>,
    lags: bool,
) -> Dur {
    let work = &graph.works[place];
    let until = |(at, slack): (Time, Dur)| (at - work.span.end).at_least_zero() + slack;
    let mut slack = graph.window.dur();
    if let Some(after) = work.after {
        slack = slack.min(until((graph.works[after].span.start, works[after])));
    }
    // A wait that is over before the work ends waited for something else.
    if let Some(wait) = wait.filter(|(at, _)| *at >= work.span.end) {
        slack = slack.min(until(wait));
    }
    // Streams wait for one another, and nobody knows which: the next work on any may have waited.
    if graph.orders
        && let Some(next) = next_start.filter(|(at, _)| *at >= work.span.end)
    {
        slack = slack.min(until(next));
    }
    if lags && work.process == graph.bound {
        slack = slack.min(until((graph.window.end, Dur::ZERO)));
    }
    slack
}
