//! What ran in one step, and what follows what: work on streams with the calls that launched it, and threads as segments of
//! innermost events with the work that a blocking call waited for.

use rustc_hash::FxHashMap;
use stepscope_trace::{Dur, EventId, ProcessId, ProcessKind, Span, Time, Track, TrackId, TrackKind};

use super::Piece;
use crate::breakdown::{Category, owner};
use crate::context::Context;
use crate::states::StateLine;
use crate::states::launches::waits_for_copy;
use crate::states::timeline::Mask;
use crate::vocabulary::{Role, is_stream_wait};

/// Threads whose busy times overlap by more than this share of the shorter one work side by side; others take turns, as
/// the thread of a loop and that of its backward pass do.
pub(crate) const SIDE_BY_SIDE: f64 = 0.05;

/// Work on a device.
pub(crate) struct Work {
    pub event: EventId,
    pub span: Span,
    pub process: ProcessId,
    pub piece: Piece,
    pub category: Category,
    /// The thread and the call that launched it.
    pub call: Option<Call>,
    /// The work before and after it on its stream.
    pub before: Option<usize>,
    pub after: Option<usize>,
}

/// A call that launched work.
#[derive(Copy, Clone)]
pub(crate) struct Call {
    pub event: EventId,
    pub span: Span,
    /// Its thread in the graph; `None` if it made the call before the step.
    pub thread: Option<usize>,
}

impl Work {
    /// When the call let it go: at its end, unless it had already started.
    pub fn released(&self) -> Option<Time> {
        let call = self.call?;
        Some(if call.span.end <= self.span.start { call.span.end } else { call.span.start })
    }
}

/// A stretch of a thread with one innermost event.
pub(crate) struct Segment {
    pub span: Span,
    /// The innermost event, by its place on the track.
    pub event: Option<usize>,
    /// Does the thread do anything that is known, or is it inside Python or an annotation at most?
    pub busy: bool,
    pub piece: Piece,
    pub category: Category,
    /// If it is a blocking call: the work that it waited for, and the call's own start.
    pub waited: Option<(usize, Time)>,
    /// When the thread was busy last before it.
    pub acted: Option<Time>,
}

impl Segment {
    /// When the thread was busy last by its end.
    pub(crate) fn acted_by_end(&self) -> Option<Time> {
        if self.busy { Some(self.span.end) } else { self.acted }
    }
}

/// A thread, from the start of the step to its end.
pub(crate) struct Thread {
    pub track: TrackId,
    pub segments: Vec<Segment>,
}

/// One step.
pub(crate) struct Graph<'c, 't> {
    pub context: &'c Context<'t>,
    pub window: Span,
    /// By stream, then by start.
    pub works: Vec<Work>,
    /// Places of works, by end.
    pub by_end: Vec<usize>,
    /// The thread that takes the steps first, if it is known; then those that launch.
    pub threads: Vec<Thread>,
    /// Does the first thread take the steps?
    pub has_loop: bool,
    /// The device that limits the step.
    pub bound: ProcessId,
    /// The usual time from a call's end until its work starts on an idle stream.
    pub latency: Dur,
    /// Do calls make streams wait for one another?
    pub orders: bool,
    /// Pairs of threads that take turns.
    turns: Vec<(usize, usize)>,
}

impl<'c, 't> Graph<'c, 't> {
    pub fn of(context: &'c Context<'t>, window: Span, bound: ProcessId) -> Self {
        let mut works = works_in(context, window);
        let loop_track = context.steps().track.filter(|&track| is_host(context, track));
        let mut tracks: Vec<TrackId> = loop_track.into_iter().collect();
        let inside = |call: &Call| window.contains(call.span.start);
        let mut launching: Vec<TrackId> =
            works.iter().filter_map(|work| work.call).filter(inside).map(|call| call.event.track).collect();
        launching.sort_unstable();
        launching.dedup();
        launching.retain(|track| Some(*track) != loop_track);
        tracks.extend(launching);
        let place: FxHashMap<TrackId, usize> = (0..).zip(&tracks).map(|(at, track)| (*track, at)).collect();
        for call in works.iter_mut().filter_map(|work| work.call.as_mut()) {
            call.thread = place.get(&call.event.track).copied();
        }
        let mut by_end: Vec<usize> = (0..works.len()).collect();
        by_end.sort_unstable_by_key(|&at| works[at].span.end);
        let trace = context.trace;
        let orders = trace.kinds().iter().any(|kind| is_stream_wait(trace.str(kind.name)));
        let has_loop = loop_track.is_some();
        let latency = usual_latency(&works);
        let mut graph = Graph {
            context,
            window,
            works,
            by_end,
            threads: Vec::new(),
            has_loop,
            bound,
            latency,
            orders,
            turns: Vec::new(),
        };
        graph.threads = tracks.into_iter().map(|track| graph.thread(track)).collect();
        graph.turns = graph.taking_turns();
        graph
    }

    /// The share of device time whose call is known; `None` if there is no work in the step.
    pub(crate) fn known_share(&self) -> Option<f64> {
        let sum = |known: bool| -> Dur {
            let all = self.works.iter().filter(|work| !known || work.call.is_some());
            all.map(|work| work.span.intersect(self.window).dur()).sum()
        };
        let all = sum(false);
        (!all.is_zero()).then(|| sum(true).fraction_of(all))
    }

    /// The id of an event of a thread.
    pub(crate) fn event_of(&self, thread: usize, event: usize) -> EventId {
        self.context.trace.track(self.threads[thread].track).event_id(event)
    }

    /// Do two threads take turns?
    pub(crate) fn take_turns(&self, a: usize, b: usize) -> bool {
        self.turns.contains(&(a.min(b), a.max(b)))
    }

    /// The last work that ended by `at` and fulfils a condition, if it ended after `since`.
    pub fn ended_by(&self, at: Time, since: Time, fits: impl Fn(&Work) -> bool) -> Option<usize> {
        let until = self.by_end.partition_point(|&work| self.works[work].span.end <= at);
        let recent = self.by_end[..until].iter().rev().take_while(|&&work| self.works[work].span.end > since);
        recent.copied().find(|&work| fits(&self.works[work]))
    }

    fn thread(&self, id: TrackId) -> Thread {
        let track = self.context.trace.track(id);
        let line = self.context.states().lines.iter().find(|(track, _)| *track == id).map(|(_, line)| line);
        let mut segments: Vec<Segment> = Vec::new();
        innermost(self.context, track, self.window, &mut |span, event| {
            let acted = segments.last().and_then(|last| last.acted_by_end());
            segments.push(Segment { acted, ..self.segment(track, line, span, event) });
        });
        Thread { track: id, segments }
    }

    fn segment(&self, track: &Track, line: Option<&StateLine>, span: Span, event: Option<usize>) -> Segment {
        let vocabulary = self.context.vocabulary();
        let role = event.map_or(Role::Annotation, |event| vocabulary.host_role(track.kind_of(event)));
        let busy = !matches!(role, Role::Annotation | Role::PythonFrame);
        let piece = match role {
            Role::Launch | Role::LaunchCopy => Piece::Launch,
            _ if busy => Piece::Host,
            _ => Piece::Between,
        };
        let state = line.map_or(Mask::default(), |line| line.at(span.start));
        let category = owner(state, Mask::default(), &self.context.breakdown().ground, span.start);
        let waited = event.and_then(|event| self.waited_for(track, event, role));
        Segment { span, event, busy, piece, category, waited, acted: None }
    }

    /// The work that a blocking call waited for: its own copy, or the last to end of what was launched before.
    fn waited_for(&self, track: &Track, event: usize, role: Role) -> Option<(usize, Time)> {
        let span = track.span_of(event);
        let id = track.event_id(event);
        let found = match role {
            Role::LaunchCopy => {
                let name = self.context.trace.kind_name(track.kind_of(event));
                let own = |work: &Work| work.call.is_some_and(|call| call.event == id);
                waits_for_copy(name, span.dur()).then(|| self.ended_by(span.end, span.start, own)).flatten()
            }
            Role::Sync | Role::DeviceMemory => {
                let before = |work: &Work| work.call.is_none_or(|call| call.span.start < span.start);
                self.ended_by(span.end, span.start, before)
            }
            _ => None,
        };
        found.map(|work| (work, span.start))
    }

    fn taking_turns(&self) -> Vec<(usize, usize)> {
        // Threads that launch are few; a file that claims many gets no turns.
        const MOST: usize = 32;
        let count = self.threads.len().min(MOST);
        let busy = |thread: usize| -> Vec<Span> {
            self.threads[thread].segments.iter().filter(|one| one.busy).map(|one| one.span).collect()
        };
        let all: Vec<Vec<Span>> = (0..count).map(busy).collect();
        let mut turns = Vec::new();
        for a in 0..count {
            for b in a + 1..count {
                let shorter = total(&all[a]).min(total(&all[b]));
                if overlap(&all[a], &all[b]).fraction_of(shorter) <= SIDE_BY_SIDE {
                    turns.push((a, b));
                }
            }
        }
        turns
    }
}

pub(crate) fn total(spans: &[Span]) -> Dur {
    spans.iter().map(|span| span.dur()).sum()
}

/// Time in which both are busy; both are in order.
pub(crate) fn overlap(a: &[Span], b: &[Span]) -> Dur {
    let (mut at, mut sum) = (0, Dur::ZERO);
    for span in a {
        while b.get(at).is_some_and(|other| other.end <= span.start) {
            at += 1;
        }
        let both = b[at.min(b.len())..].iter().take_while(|other| other.start < span.end);
        sum += both.map(|other| span.intersect(*other).dur()).sum();
    }
    sum
}

fn is_host(context: &Context, track: TrackId) -> bool {
    let track = context.trace.track(track);
    track.kind == TrackKind::Thread && context.trace.process(track.process).kind != ProcessKind::Device
}

/// The device work that touches the window, by stream and start; on each stream, what came right before that too.
fn works_in(context: &Context, window: Span) -> Vec<Work> {
    let trace = context.trace;
    let mut works: Vec<Work> = Vec::new();
    let streams = trace.tracks().iter().filter(|track| {
        track.kind == TrackKind::Stream && trace.process(track.process).kind == ProcessKind::Device
    });
    for track in streams {
        let mut earlier: Option<usize> = None;
        let mut before: Option<usize> = None;
        for index in 0..track.first_from(window.end) {
            let span = track.span_of(index);
            if span.is_empty() || piece_of(context, track, index).is_none() {
                continue;
            }
            if span.end <= window.start {
                earlier = Some(index);
                continue;
            }
            for index in earlier.take().into_iter().chain([index]) {
                let place = works.len();
                if let Some(before) = before {
                    works[before].after = Some(place);
                }
                works.extend(work_of(context, track, index, before));
                before = Some(place);
            }
        }
    }
    works
}

/// What a device event is on a path; `None` if it is no work.
fn piece_of(context: &Context, track: &Track, index: usize) -> Option<Piece> {
    match context.vocabulary().role(track.kind_of(index)) {
        Role::Kernel => Some(Piece::Kernel),
        Role::Collective => Some(Piece::Collective),
        Role::Copy(_) | Role::Memset => Some(Piece::Copy),
        _ => None,
    }
}

fn work_of(context: &Context, track: &Track, index: usize, before: Option<usize>) -> Option<Work> {
    let event = track.event_id(index);
    let call = context.launches().of_work(event).map(|launch| Call {
        event: launch.call,
        span: context.trace.track(launch.call.track).span_of(launch.call.index as usize),
        thread: None,
    });
    let role = context.vocabulary().role(track.kind_of(index));
    Some(Work {
        event,
        span: track.span_of(index),
        process: track.process,
        piece: piece_of(context, track, index)?,
        category: Category::of_role(role, true).unwrap_or(Category::Compute),
        call,
        before,
        after: None,
    })
}

/// The time from a call's end until its work starts on an idle stream; 0 if none was ever idle. Work that waits for another
/// stream starts later, so it is the lower quartile.
fn usual_latency(works: &[Work]) -> Dur {
    let mut all: Vec<Dur> = works
        .iter()
        .filter_map(|work| {
            let released = work.released()?;
            let idle = works[work.before?].span.end <= released;
            idle.then(|| work.span.start - released)
        })
        .collect();
    all.sort_unstable();
    all.get(all.len() / 4).copied().unwrap_or_default()
}

/// Visits the window of a thread in order, cut wherever the innermost event changes.
fn innermost(context: &Context, track: &Track, window: Span, visit: &mut dyn FnMut(Span, Option<usize>)) {
    let says = |index: usize| {
        !matches!(context.vocabulary().host_role(track.kind_of(index)), Role::StepMarker | Role::Bookkeeping)
    };
    let mut open: Vec<usize> = Vec::new();
    let mut now = window.start;
    let mut until = |now: &mut Time, end: Time, event: Option<usize>| {
        let end = end.min(window.end);
        if end > *now {
            visit(Span::new(*now, end), event);
            *now = end;
        }
    };
    for index in 0..track.first_from(window.end) {
        let span = track.span_of(index);
        if span.end <= window.start || span.is_empty() || !says(index) {
            continue;
        }
        while let Some(inner) = open.pop_if(|inner| track.end(*inner) <= span.start) {
            until(&mut now, track.end(inner), Some(inner));
        }
        until(&mut now, span.start, open.last().copied());
        open.push(index);
    }
    while let Some(inner) = open.pop() {
        until(&mut now, track.end(inner), Some(inner));
    }
    until(&mut now, window.end, None);
}
