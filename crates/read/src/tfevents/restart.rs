//! Points that a restarted program writes again, and series that two programs write at the same time.

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

pub(super) fn by_time(series: &mut Series) {
    let mut order: Vec<usize> = (0..series.steps.len()).collect();
    order.sort_by(|&a, &b| series.wall_s[a].total_cmp(&series.wall_s[b]));
    series.steps = order.iter().map(|&at| series.steps[at]).collect();
    series.values = order.iter().map(|&at| series.values[at]).collect();
    series.wall_s = order.iter().map(|&at| series.wall_s[at]).collect();
}
