//! What all tracks do together at any time: the state lines of many tracks merged into one line of bit sets,
//! and sums over windows of it.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use stepscope_trace::{Dur, Span, Time};

use crate::states::{State, StateLine};

/// A set of states.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Default)]
pub struct Mask(pub u16);

impl Mask {
    /// A single state.
    #[inline]
    pub const fn of(state: State) -> Mask {
        Mask(state as u16)
    }

    /// Whether any track is in `state`.
    #[inline]
    pub fn has(self, state: State) -> bool {
        self.0 & state as u16 != 0
    }

    /// The union.
    #[inline]
    pub fn or(self, other: Mask) -> Mask {
        Mask(self.0 | other.0)
    }
}

/// The states of many tracks over time.
#[derive(Debug, Default)]
pub struct Timeline<'s> {
    times: Cow<'s, [Time]>,
    masks: Cow<'s, [Mask]>,
}

impl<'s> Timeline<'s> {
    /// Merges lines; O(changes × log lines). A single line is borrowed.
    pub fn merge(lines: &[&'s StateLine]) -> Self {
        if let [only] = lines {
            return Timeline { times: Cow::Borrowed(&only.times), masks: Cow::Borrowed(&only.states) };
        }
        let mut heap: BinaryHeap<Reverse<(Time, usize, usize)>> = lines
            .iter()
            .enumerate()
            .filter_map(|(line, states)| Some(Reverse((*states.times.first()?, line, 0))))
            .collect();
        let mut counts = [0u32; 16];
        let mut merged = Changes::default();
        while let Some(Reverse((at, line, index))) = heap.pop() {
            let states = lines[line];
            if let Some(before) = index.checked_sub(1) {
                count(&mut counts, states.states[before], |n| n.saturating_sub(1));
            }
            count(&mut counts, states.states[index], |n| n + 1);
            if let Some(&next) = states.times.get(index + 1) {
                heap.push(Reverse((next, line, index + 1)));
            }
            merged.change(at, mask_of(&counts));
        }
        Timeline { times: Cow::Owned(merged.times), masks: Cow::Owned(merged.masks) }
    }

    /// From the first change to the last.
    pub fn span(&self) -> Option<Span> {
        Some(Span::new(*self.times.first()?, *self.times.last()?))
    }

    /// Calls `visit` with each piece of `window` in which nothing changes on either timeline.
    pub fn sweep(&self, other: &Timeline<'_>, window: Span, mut visit: impl FnMut(Span, Mask, Mask)) {
        if other.times.is_empty() {
            return self.sweep_alone(window, |span, mask| visit(span, mask, Mask::default()));
        }
        let (mut a, mut b) = (self.cursor(window.start), other.cursor(window.start));
        let mut now = window.start;
        while now < window.end {
            let next = a.next.min(b.next).min(window.end);
            if next > now {
                visit(Span::new(now, next), a.mask, b.mask);
            }
            now = next;
            a.advance(self, now);
            b.advance(other, now);
        }
    }

    /// The same without another timeline: a host without devices has millions of changes, and nothing to compare them with.
    fn sweep_alone(&self, window: Span, mut visit: impl FnMut(Span, Mask)) {
        let Cursor { index, mut mask, .. } = self.cursor(window.start);
        let mut now = window.start;
        for (&next, &then) in self.times[index..].iter().zip(&self.masks[index..]) {
            if next >= window.end {
                break;
            }
            if next > now {
                visit(Span::new(now, next), mask);
            }
            (now, mask) = (next, then);
        }
        if now < window.end {
            visit(Span::new(now, window.end), mask);
        }
    }

    fn cursor(&self, at: Time) -> Cursor {
        let index = self.times.partition_point(|&time| time <= at);
        let mask = index.checked_sub(1).map_or(Mask::default(), |before| self.masks[before]);
        Cursor { index, mask, next: self.times.get(index).copied().unwrap_or(Time::MAX) }
    }

    /// The maximal spans in which some track is in `state`, in time order.
    pub(crate) fn spans_in(&self, state: State) -> impl Iterator<Item = Span> {
        let mut open: Option<Time> = None;
        self.times.iter().zip(self.masks.iter()).filter_map(move |(&at, mask)| {
            match (open, mask.has(state)) {
                (None, true) => {
                    open = Some(at);
                    None
                }
                (Some(start), false) => {
                    open = None;
                    Some(Span::new(start, at))
                }
                _ => None,
            }
        })
    }

    /// The maximal spans between the first change and the last in which no track is in any of `states`, in time
    /// order.
    pub(crate) fn spans_without(&self, states: Mask) -> impl Iterator<Item = Span> {
        let (mut open, last): (Option<Time>, _) = (None, self.times.last().copied());
        self.times.iter().zip(self.masks.iter()).filter_map(move |(&at, mask)| {
            match (open, mask.0 & states.0 != 0 || Some(at) == last) {
                (None, false) => {
                    open = Some(at);
                    None
                }
                (Some(start), true) => {
                    open = None;
                    Some(Span::new(start, at))
                }
                _ => None,
            }
        })
    }

    /// The states just before `at`.
    pub fn before(&self, at: Time) -> Mask {
        let index = self.times.partition_point(|&time| time < at);
        index.checked_sub(1).map_or(Mask::default(), |before| self.masks[before])
    }

    /// How long any of `states` lasted within `window`.
    pub fn time_in(&self, states: Mask, window: Span) -> Dur {
        let mut total = Dur::ZERO;
        self.sweep(&Timeline::default(), window, |span, mask, _| {
            if mask.0 & states.0 != 0 {
                total += span.dur();
            }
        });
        total
    }
}

#[derive(Default)]
struct Changes {
    times: Vec<Time>,
    masks: Vec<Mask>,
}

impl Changes {
    fn change(&mut self, at: Time, mask: Mask) {
        if self.times.last() == Some(&at) {
            if let Some(slot) = self.masks.last_mut() {
                *slot = mask;
            }
        } else if self.masks.last() != Some(&mask) {
            self.times.push(at);
            self.masks.push(mask);
        }
    }
}

struct Cursor {
    /// The next change.
    index: usize,
    mask: Mask,
    next: Time,
}

impl Cursor {
    #[inline]
    fn advance(&mut self, line: &Timeline<'_>, now: Time) {
        while self.next <= now && self.index < line.times.len() {
            self.mask = line.masks[self.index];
            self.index += 1;
            self.next = line.times.get(self.index).copied().unwrap_or(Time::MAX);
        }
    }
}

fn count(counts: &mut [u32; 16], state: Mask, change: impl Fn(u32) -> u32) {
    let bits = state.0;
    if bits != 0 {
        let slot = &mut counts[bits.trailing_zeros() as usize];
        *slot = change(*slot);
    }
}

fn mask_of(counts: &[u32; 16]) -> Mask {
    Mask(counts.iter().enumerate().fold(0, |mask, (bit, &n)| mask | (u16::from(n > 0) << bit)))
}

/// A device does anything at all.
pub(crate) const DEVICE_BUSY: Mask = Mask(
    State::DeviceCompute as u16
        | State::Communication as u16
        | State::CopyIn as u16
        | State::CopyOut as u16
        | State::CopyDevice as u16,
);

/// Whether one of the spans, which are in time order and do not overlap, contains an instant.
pub(crate) fn is_inside(spans: &[Span], at: Time) -> bool {
    let after = spans.partition_point(|span| span.start <= at);
    after.checked_sub(1).is_some_and(|index| spans[index].contains(at))
}

/// Spans in time order without overlaps: adjacent ones are merged.
pub(crate) fn united(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable_by_key(|span| span.start);
    let mut all: Vec<Span> = Vec::with_capacity(spans.len());
    for span in spans {
        match all.last_mut().filter(|last| span.start <= last.end) {
            Some(last) => last.end = last.end.max(span.end),
            None => all.push(span),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn line(changes: &[(i64, State)]) -> StateLine {
        StateLine {
            times: changes.iter().map(|&(at, _)| Time::from_ps(at)).collect(),
            states: changes.iter().map(|&(_, state)| Mask::of(state)).collect(),
        }
    }

    #[test]
    fn merging_keeps_every_tracks_state() {
        let a = line(&[(0, State::Dispatch), (10, State::Nothing)]);
        let b = line(&[(5, State::HostCompute), (15, State::Nothing)]);
        let merged = Timeline::merge(&[&a, &b]);
        let window = Span::new(Time::from_ps(0), Time::from_ps(20));
        assert_eq!(merged.time_in(Mask::of(State::Dispatch), window), Dur::from_ps(10));
        assert_eq!(merged.time_in(Mask::of(State::HostCompute), window), Dur::from_ps(10));
        let mut both = Dur::ZERO;
        merged.sweep(&Timeline::default(), window, |span, mask, _| {
            if mask.has(State::Dispatch) && mask.has(State::HostCompute) {
                both += span.dur();
            }
        });
        assert_eq!(both, Dur::from_ps(5));
    }

    proptest! {
        #[test]
        fn a_sweep_covers_its_window_exactly_once(
            times in prop::collection::btree_set(0i64..100, 0..12),
            others in prop::collection::btree_set(0i64..100, 0..12),
            start in -10i64..110, len in 0i64..120,
        ) {
            let make = |times: &std::collections::BTreeSet<i64>| {
                let states = [State::Dispatch, State::HostCompute];
                let mut changes: Vec<_> = times.iter().enumerate().map(|(i, &at)| (at, states[i % 2])).collect();
                if let Some(last) = changes.last_mut() { last.1 = State::Nothing; }
                line(&changes)
            };
            let (a, b) = (make(&times), make(&others));
            let nothing = StateLine::default();
            let (a, b) = (Timeline::merge(&[&a]), Timeline::merge(&[&b, &nothing]));
            let window = Span::new(Time::from_ps(start), Time::from_ps(start + len));
            for other in [&b, &Timeline::default()] {
                let mut now = window.start;
                a.sweep(other, window, |span, mask, _| {
                    assert_eq!(span.start, now);
                    assert!(!span.is_empty());
                    assert_eq!(mask, a.before(span.end));
                    now = span.end;
                });
                prop_assert_eq!(now, window.end);
            }
        }
    }
}
