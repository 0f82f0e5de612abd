//! The states of one track over time, put together change by change.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use stepscope_trace::{Dur, Span, Time, prefer_huge_pages};

use super::State;
use super::timeline::Mask;
use stepscope_trace::statistics::median_duration;

/// The states of one track over time.
#[derive(Debug, Default)]
pub struct StateLine {
    /// Start of each state; it lasts until the next one starts.
    pub times: Vec<Time>,
    /// The states. The last is always [`State::Nothing`].
    pub states: Vec<Mask>,
}

/// Lines of consecutive pieces of a track, put together while others are still being walked.
#[derive(Debug)]
pub(super) struct Joining(Mutex<Joined>);

#[derive(Debug, Default)]
struct Joined {
    all: StateLine,
    /// The number of the piece that comes next.
    next: usize,
    /// Those that were done before an earlier one.
    early: BTreeMap<usize, StateLine>,
}

impl Joining {
    /// `events` is how many the track has; there are rarely more changes than that.
    pub(super) fn new(events: usize) -> Self {
        let mut joined = Joined::default();
        joined.all.times.reserve_exact(events);
        joined.all.states.reserve_exact(events);
        prefer_huge_pages(joined.all.times.spare_capacity_mut());
        prefer_huge_pages(joined.all.states.spare_capacity_mut());
        Joining(Mutex::new(joined))
    }

    /// Adds the `number`th piece, which starts at or after the end of the one before it. Leaves an empty line.
    pub(super) fn add(&self, number: usize, line: &mut StateLine) {
        let mut joined = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if number != joined.next {
            joined.early.insert(number, std::mem::take(line));
            return;
        }
        joined.all.append(line);
        line.times.clear();
        line.states.clear();
        joined.next += 1;
        loop {
            let next = joined.next;
            let Some(early) = joined.early.remove(&next) else { break };
            joined.all.append(&early);
            joined.next += 1;
        }
    }

    /// The whole line.
    pub(super) fn finish(self) -> StateLine {
        let mut line = self.0.into_inner().unwrap_or_else(PoisonError::into_inner).all;
        line.shrink();
        line
    }
}

impl StateLine {
    /// Gives back memory that is not used.
    pub(super) fn shrink(&mut self) {
        self.times.shrink_to_fit();
        self.states.shrink_to_fit();
    }

    fn append(&mut self, later: &StateLine) {
        if self.times.last() == later.times.first() {
            self.times.pop();
            self.states.pop();
        }
        self.times.extend_from_slice(&later.times);
        self.states.extend_from_slice(&later.states);
    }

    /// Fills the pauses between launching calls, if a profiler recorded device calls but nothing of the
    /// framework that makes them. A launching loop has pauses of similar length between calls; a much longer
    /// pause is something else, and stays unknown.
    pub(super) fn bridge_launches(&mut self) {
        const LEAST_CALLS: usize = 20;
        const LONG_PAUSE: i64 = 10;
        /// The pause between two launches is of the order of a launch: if most pauses are much longer, the loop
        /// does something else.
        const LONG_FOR_A_CALL: i64 = 20;
        let launch = Mask::of(State::Launch);
        // An annotation around the loop says nothing about what happens inside.
        let quiet = |state: Mask| state == Mask::default() || state == Mask::of(State::Present);
        let is_pause =
            |states: &[Mask], index: usize| quiet(states[index]) && index > 0 && index + 1 < states.len();
        let pauses = (0..self.states.len()).filter(|&index| is_pause(&self.states, index));
        let lengths: Vec<Dur> = pauses.map(|index| self.times[index + 1] - self.times[index]).collect();
        if lengths.len() < LEAST_CALLS || !self.states.contains(&launch) {
            return;
        }
        let calls = (0..self.states.len().saturating_sub(1)).filter(|&index| self.states[index] == launch);
        let call = median_duration(calls.map(|index| self.times[index + 1] - self.times[index]));
        let usual = median_duration(lengths.into_iter()).ps().saturating_mul(LONG_PAUSE);
        let longest = Dur::from_ps(usual.min(call.ps().saturating_mul(LONG_FOR_A_CALL)));
        for index in 1..self.states.len().saturating_sub(1) {
            let length = self.times[index + 1] - self.times[index];
            let between = self.states[index - 1] == launch || self.states[index + 1] == launch;
            if quiet(self.states[index]) && between && length <= longest {
                self.states[index] = launch;
            }
        }
    }

    /// What the track does at an instant.
    pub(crate) fn at(&self, at: Time) -> Mask {
        let after = self.times.partition_point(|time| *time <= at);
        after.checked_sub(1).and_then(|index| self.states.get(index)).copied().unwrap_or_default()
    }

    /// Whether the track is in one state for a whole span.
    pub(crate) fn all_in(&self, span: Span, state: State) -> bool {
        let after = self.times.partition_point(|time| *time <= span.start);
        self.at(span.start).has(state) && self.times.get(after).is_none_or(|next| *next >= span.end)
    }

    /// Overrides some spans, which are in time order and do not overlap, with one state.
    pub(super) fn cover(&mut self, spans: &[Span], state: State) {
        if spans.is_empty() {
            return;
        }
        let old = std::mem::take(self);
        let mut changes = old.times.iter().copied().zip(old.states.iter().copied()).peekable();
        let mut current = Mask::default();
        for span in spans {
            while let Some((at, next)) = changes.next_if(|(at, _)| *at < span.start) {
                self.put(at, next);
                current = next;
            }
            self.put(span.start, Mask::of(state));
            while let Some((_, next)) = changes.next_if(|(at, _)| *at <= span.end) {
                current = next;
            }
            self.put(span.end, current);
        }
        changes.for_each(|(at, next)| self.put(at, next));
    }

    /// Puts one state into those parts of some spans, which are in time order and do not overlap, in which the track does
    /// nothing of its own.
    pub(super) fn fill(&mut self, spans: &[Span], state: State) {
        let idle = |mask: Mask| mask.0 & !(State::Dispatch as u16 | State::Present as u16) == 0;
        let mut free = Vec::new();
        for span in spans {
            let mut at = span.start;
            let mut index = self.times.partition_point(|&time| time <= at);
            let mut current = index.checked_sub(1).map_or(Mask::default(), |before| self.states[before]);
            while at < span.end {
                let next = self.times.get(index).copied().unwrap_or(span.end).min(span.end);
                if idle(current) && next > at {
                    free.push(Span::new(at, next));
                }
                current = self.states.get(index).copied().unwrap_or_default();
                (at, index) = (next, index + 1);
            }
        }
        self.cover(&free, state);
    }

    /// Adds a change at or after the last one.
    pub(super) fn put(&mut self, at: Time, state: Mask) {
        if self.times.last().is_some_and(|last| *last == at) {
            self.times.pop();
            self.states.pop();
        }
        if self.states.last().copied().unwrap_or_default() != state {
            self.times.push(at);
            self.states.push(state);
        }
    }

    pub(super) fn change(&mut self, at: Time, state: State) {
        let (state, nothing) = (Mask::of(state), Mask::default());
        match (self.times.last(), self.states.last()) {
            (Some(&last), Some(&current)) => {
                if current == state {
                    return;
                }
                if at <= last {
                    // A zero-length state is replaced by the newer one.
                    if let Some(slot) = self.states.last_mut() {
                        *slot = state;
                    }
                    let repeats = self.states.len() >= 2 && self.states[self.states.len() - 2] == state;
                    if repeats {
                        self.times.pop();
                        self.states.pop();
                    }
                    return;
                }
            }
            _ if state == nothing => return,
            _ => {}
        }
        self.times.push(at);
        self.states.push(state);
    }
}
