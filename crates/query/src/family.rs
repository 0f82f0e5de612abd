//! Parents and own times of a track's events. Computed when a query asks for them.

use stepscope_trace::{Form, Trace, Track};

const NONE: u32 = u32::MAX;

/// What surrounds each event of a track, and what is left of it without the events inside.
#[derive(Debug)]
pub(crate) struct Family {
    parents: Vec<u32>,
    own_ps: Vec<i64>,
}

impl Family {
    /// One pass, with the open events of each lane.
    pub(crate) fn of(trace: &Trace, track: &Track) -> Self {
        let nesting = track.nesting();
        let mut open: Vec<Vec<u32>> = vec![Vec::new(); nesting.lanes()];
        let mut parents = Vec::with_capacity(track.len());
        let mut own_ps: Vec<i64> = (0..track.len()).map(|index| track.dur(index).ps()).collect();
        for index in 0..track.len() {
            let Some(above) = open.get_mut(nesting.lane(index)) else {
                parents.push(NONE);
                continue;
            };
            above.truncate(nesting.depth(index));
            let parent = above.last().copied().unwrap_or(NONE);
            parents.push(parent);
            above.push(u32::try_from(index).unwrap_or(NONE));
            // An aggregate has a length but no place in time, so that it takes nothing from what surrounds it.
            if trace.kind(track.kind_of(index)).form != Form::Aggregate
                && let Some(own) = own_ps.get_mut(parent as usize)
            {
                *own = own.saturating_sub(track.dur(index).ps());
            }
        }
        own_ps.iter_mut().for_each(|own| *own = (*own).max(0));
        Family { parents, own_ps }
    }

    /// The place of the event around this one.
    pub(crate) fn parent(&self, index: usize) -> Option<usize> {
        self.parents.get(index).filter(|&&parent| parent != NONE).map(|&parent| parent as usize)
    }

    /// Its time without the events inside, in picoseconds.
    pub(crate) fn own_ps(&self, index: usize) -> i64 {
        self.own_ps.get(index).copied().unwrap_or(0)
    }
}
