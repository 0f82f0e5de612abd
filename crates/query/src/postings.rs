//! The events of a host by kind. Grouping by name then needs no sorting, and a join by name no scan.

use stepscope_trace::{KindId, Trace};

/// For each kind, its events in the order of their ids.
#[derive(Debug)]
pub(crate) struct Postings {
    /// Where the events of each kind begin, and one more.
    starts: Vec<usize>,
    /// Track and place.
    events: Vec<(u32, u32)>,
}

impl Postings {
    /// Two passes: count, then place.
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut starts = vec![0_usize; trace.kinds().len() + 1];
        let tracks = || (0_u32..).zip(trace.tracks());
        for kind in tracks().flat_map(|(_, track)| track.kinds()) {
            if let Some(count) = starts.get_mut(kind.index() + 1) {
                *count += 1;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut events = vec![(0, 0); sum];
        for (place, track) in tracks() {
            for (index, kind) in (0_u32..).zip(track.kinds()) {
                let Some(at) = next.get_mut(kind.index()) else { continue };
                if let Some(event) = events.get_mut(*at) {
                    *event = (place, index);
                }
                *at += 1;
            }
        }
        Postings { starts, events }
    }

    /// Where the events of a kind are.
    pub(crate) fn range(&self, kind: KindId) -> std::ops::Range<usize> {
        let at = |place: usize| self.starts.get(place).copied().unwrap_or(0);
        at(kind.index())..at(kind.index() + 1)
    }

    /// Track and place of an event.
    #[inline]
    pub(crate) fn event(&self, at: usize) -> Option<(u32, u32)> {
        self.events.get(at).copied()
    }
}
