//! The critical path of one step: the chain of host ops, launches, kernels and copies of which each had to wait for the one
//! before it, from the step's end back to its start. Making anything else shorter does not make the step shorter.
//!
//! [`graph`] collects what ran in the step and what is known to depend on what: work on a stream follows the work before
//! it and the call that launched it; a thread does one thing after the other; a call that waits ends after the work that
//! it waits for. [`walk`] follows, from the end backwards, whatever finished last. Its pieces tile the step without gaps
//! or overlaps, so they sum to it. [`slack`] says how much later everything else could have ended.
//!
//! A collective is one piece, whichever rank it waits for. Where calls and work cannot be joined, the answer is [`NoPath`].
//! Knows nothing about other hosts and about sentences.

pub(crate) mod graph;
mod slack;
#[cfg(test)]
mod tests;
mod walk;

use rustc_hash::FxHashMap;
use stepscope_trace::{Dur, EventId, Span};

use crate::breakdown::Category;
use crate::context::Context;
use crate::time::typical_step::typical;

use graph::Graph;

/// What a piece of the path is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub enum Piece {
    /// An op or call on a host thread.
    Host,
    /// A call that launches device work.
    Launch,
    /// A host thread between two ops.
    Between,
    /// From the end of device work until the call that waited for it returns.
    Wake,
    /// From the end of a launching call until its work starts.
    Latency,
    /// A kernel.
    Kernel,
    /// A collective, including the time in which it waits for other ranks.
    Collective,
    /// A copy or fill.
    Copy,
    /// A stream between two pieces of work that were both submitted.
    Queue,
    /// Nothing recorded leads further back.
    Unknown,
}

/// A piece of the path.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// When.
    pub span: Span,
    /// What it is.
    pub piece: Piece,
    /// The event; of a latency or wake the call, of a pause whatever encloses it.
    pub event: Option<EventId>,
    /// Its category.
    pub category: Category,
}

/// Everything in the step with one name.
#[derive(Clone, Debug, PartialEq)]
pub struct Owner {
    /// The op, call or kernel; empty for what has no name.
    pub name: String,
    /// What it is.
    pub piece: Piece,
    /// Its category.
    pub category: Category,
    /// Its time on the path.
    pub on_path: Dur,
    /// How many pieces of the path it has.
    pub pieces: usize,
    /// Its time off the path.
    pub off_path: Dur,
    /// How much later what is off the path could have ended without delaying the step, at least; at most the step. `None`
    /// if all of it is on the path.
    pub slack: Option<Dur>,
}

/// The critical path of one step.
#[derive(Clone, Debug, PartialEq)]
pub struct CriticalPath {
    /// The host.
    pub host: String,
    /// The step's number.
    pub step: i64,
    /// The step, on the device that limits it.
    pub window: Span,
    /// The step as tables show it; the same, unless the device lags behind.
    pub marked: Span,
    /// In order of time; they tile the window.
    pub links: Vec<Link>,
    /// The longest on the path first, then what is off it, the least slack first.
    pub owners: Vec<Owner>,
    /// Are there calls that make streams wait for one another? Then such edges are inferred from times.
    pub inferred: bool,
}

/// Why there is no path.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum NoPath {
    /// There are no steps.
    Steps,
    /// No device work was recorded.
    Device,
    /// No call can be joined with the work that it launched.
    Launches,
    /// The call is known for this share of the device time only.
    Cut(f64),
}

/// Device time whose call is unknown: above this, the chain would end anywhere.
const ORPHANS: f64 = 0.05;

impl CriticalPath {
    /// The path of the step closest to the median.
    pub fn typical(context: &Context) -> Result<Self, NoPath> {
        if context.breakdown().steps.whole_capture {
            return Err(NoPath::Steps);
        }
        let (place, _) = typical(context).ok_or(NoPath::Steps)?;
        CriticalPath::of(context, place)
    }

    /// The path of the step with this number.
    pub fn numbered(context: &Context, number: i64) -> Result<Self, NoPath> {
        let steps = &context.breakdown().steps;
        if steps.whole_capture {
            return Err(NoPath::Steps);
        }
        let place = steps.all.iter().position(|step| step.number == number).ok_or(NoPath::Steps)?;
        CriticalPath::of(context, place)
    }

    /// The path of a step by its position.
    fn of(context: &Context, place: usize) -> Result<Self, NoPath> {
        let breakdown = context.breakdown();
        let step = breakdown.steps.all.get(place).ok_or(NoPath::Steps)?;
        let device = breakdown.bound().ok_or(NoPath::Device)?;
        let process = device.process.ok_or(NoPath::Device)?;
        if context.launches().all.is_empty() {
            return Err(NoPath::Launches);
        }
        let window = device.steps.get(place).ok_or(NoPath::Steps)?.work;
        let graph = Graph::of(context, window, process);
        let known = graph.known_share().ok_or(NoPath::Device)?;
        if known < 1.0 - ORPHANS {
            return Err(NoPath::Cut(known));
        }
        let walked = walk::walk(&graph, device.asynchronous);
        let owners = owners(&graph, &walked, &slack::slacks(&graph, device.asynchronous));
        Ok(CriticalPath {
            host: context.host.clone(),
            step: step.number,
            window,
            marked: device.steps.get(place).map_or(window, |step| step.window),
            links: walked.links,
            owners,
            inferred: graph.orders,
        })
    }

    /// The path without collectives, which wait for other ranks: what the host itself contributes.
    pub fn own(&self) -> Dur {
        let own = self.links.iter().filter(|link| link.piece != Piece::Collective);
        own.map(|link| link.span.dur()).sum()
    }

    /// Time on the path by category, the longest first; sums to the step.
    pub fn categories(&self) -> Vec<(Category, Dur)> {
        let mut sums: FxHashMap<Category, Dur> = FxHashMap::default();
        self.links.iter().for_each(|link| *sums.entry(link.category).or_default() += link.span.dur());
        let mut sums: Vec<(Category, Dur)> = sums.into_iter().collect();
        sums.sort_by_key(|&(category, time)| (std::cmp::Reverse(time), category as usize));
        sums
    }
}

/// Sums everything by name.
fn owners(graph: &Graph, walked: &walk::Walked, slacks: &slack::Slacks) -> Vec<Owner> {
    let mut found: FxHashMap<(Piece, String), Owner> = FxHashMap::default();
    let mut owner = |piece: Piece, event: Option<EventId>, category: Category, add: &dyn Fn(&mut Owner)| {
        let name = name_of(graph, piece, event);
        let fresh = || Owner {
            name: name.clone(),
            piece,
            category,
            on_path: Dur::ZERO,
            pieces: 0,
            off_path: Dur::ZERO,
            slack: None,
        };
        add(found.entry((piece, name.clone())).or_insert_with(fresh));
    };
    for link in &walked.links {
        owner(link.piece, link.event, link.category, &|owner| {
            owner.on_path += link.span.dur();
            owner.pieces += 1;
        });
    }
    let least = |owner: &mut Owner, slack: Dur, time: Dur| {
        owner.off_path += time;
        owner.slack = Some(owner.slack.map_or(slack, |known| known.min(slack)));
    };
    for (number, work) in graph.works.iter().enumerate().filter(|(number, _)| !walked.works[*number]) {
        let time = work.span.intersect(graph.window).dur();
        if time.is_zero() {
            continue;
        }
        let slack = slacks.works[number];
        owner(work.piece, Some(work.event), work.category, &|owner| least(owner, slack, time));
    }
    for (thread, (own, on)) in graph.threads.iter().zip(&walked.segments).enumerate() {
        for (number, segment) in own.segments.iter().enumerate().filter(|(at, one)| one.busy && !on[*at]) {
            let slack = slacks.segments[thread][number];
            let event = segment.event.map(|event| graph.event_of(thread, event));
            owner(segment.piece, event, segment.category, &|owner| least(owner, slack, segment.span.dur()));
        }
    }
    let mut all: Vec<Owner> = found.into_values().collect();
    all.sort_by(|a, b| {
        let by_path = b.on_path.cmp(&a.on_path);
        by_path
            .then(a.slack.cmp(&b.slack))
            .then(b.off_path.cmp(&a.off_path))
            .then_with(|| a.name.cmp(&b.name))
    });
    all
}

/// What a piece is called in the trace; pieces without an event of their own have no name.
fn name_of(graph: &Graph, piece: Piece, event: Option<EventId>) -> String {
    let name = |event: EventId| {
        let trace = graph.context.trace;
        trace.kind_name(trace.track(event.track).kind_of(event.index as usize))
    };
    match (piece, event) {
        (Piece::Latency | Piece::Queue | Piece::Unknown, _) | (_, None) => String::new(),
        (_, Some(event)) => name(event).to_owned(),
    }
}
