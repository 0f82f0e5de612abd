//! Points that a restarted program writes again, and series that two programs write at the same time.

use std::collections::BinaryHeap;

use stepscope_trace::series::{Restart, Series};

use super::event::Event;

/// Points that newer ones replaced.
#[derive(Copy, Clone)]
pub(super) struct Replaced {
    pub(super) last_step: i64,
    pub(super) from_s: f64,
    pub(super) until_s: f64,
}

impl Replaced {
    pub(super) fn and(self, other: Replaced) -> Replaced {
        Replaced {
            last_step: self.last_step.max(other.last_step),
            from_s: self.from_s.min(other.from_s),
            until_s: self.until_s.max(other.until_s),
        }
    }
}

pub(super) fn restart(event: &Event, replaced: Replaced) -> Restart {
    let Replaced { last_step, from_s, until_s } = replaced;
    Restart { step: event.step, wall_s: event.wall_s, last_step, from_s, until_s }
}

/// Removes points from this step on and counts them; `None` of none. Steps mostly grow, so only the end is looked at.
pub(super) fn replace_from(series: &mut Series, step: i64) -> Option<Replaced> {
    let keep = series.steps.iter().rposition(|known| *known < step).map_or(0, |last| last + 1);
    let replaced = Replaced {
        last_step: *series.steps.get(keep..)?.last()?,
        from_s: *series.wall_s.get(keep)?,
        until_s: *series.wall_s.last()?,
    };
    series.replaced += (series.steps.len() - keep) as u64;
    series.steps.truncate(keep);
    series.wall_s.truncate(keep);
    series.values.truncate(keep);
    Some(replaced)
}

/// Where series end, so that a restart only looks at series that reach its step: a program may restart as often as it logs.
/// Costs nothing before the first restart.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// The last step of each series, and the series; entries of series that changed since are out of date.
    ends: BinaryHeap<(i64, usize)>,
    /// Series that changed since the last restart; `None` before the first one.
    changed: Option<Vec<usize>>,
    is_changed: Vec<bool>,
}

impl Ends {
    /// A series got a point.
    #[inline]
    pub(super) fn changed(&mut self, place: usize) {
        let Some(changed) = &mut self.changed else { return };
        if place >= self.is_changed.len() {
            self.is_changed.resize(place + 1, false);
        }
        if !std::mem::replace(&mut self.is_changed[place], true) {
            changed.push(place);
        }
    }

    /// Removes the points of all series from this step on; `None` of none.
    pub(super) fn replace_from(&mut self, all: &mut [Series], step: i64) -> Option<Replaced> {
        let changed = self.changed.replace(Vec::new()).unwrap_or_else(|| (0..all.len()).collect());
        for place in &changed {
            if let Some(is_changed) = self.is_changed.get_mut(*place) {
                *is_changed = false;
            }
        }
        let last = |all: &[Series], place: usize| all.get(place)?.steps.last().map(|&last| (last, place));
        self.ends.extend(changed.into_iter().filter_map(|place| last(all, place)));
        let mut replaced: Option<Replaced> = None;
        while let Some((_, place)) = self.ends.peek().copied().filter(|&(last, _)| last >= step) {
            self.ends.pop();
            // Without points from this step on, the entry was out of date.
            if let Some(now) = all.get_mut(place).and_then(|series| replace_from(series, step)) {
                replaced = Some(replaced.map_or(now, |before| before.and(now)));
                self.ends.extend(last(all, place));
            }
        }
        replaced
    }
}

pub(super) fn by_time(series: &mut Series) {
    let mut order: Vec<usize> = (0..series.steps.len()).collect();
    order.sort_by(|&a, &b| series.wall_s[a].total_cmp(&series.wall_s[b]));
    series.steps = order.iter().map(|&at| series.steps[at]).collect();
    series.values = order.iter().map(|&at| series.values[at]).collect();
    series.wall_s = order.iter().map(|&at| series.wall_s[at]).collect();
}
