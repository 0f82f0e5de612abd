//! One clock for all hosts of a session: how far each host's time is shifted. The timeline and SQL share it.

use stepscope_trace::{Dur, Time, Trace};

use crate::load::Profile;

impl Profile {
    /// The offset of each host's time to the session's time, and the wall-clock time of its origin.
    ///
    /// Hosts that all know the wall clock share it. If one does not, or if they were clearly not recorded together,
    /// each starts at 0.
    pub fn shifts(&self) -> (Vec<Dur>, Option<i128>) {
        /// Hosts of one run overlap; a session this many times longer than its longest host contains several runs.
        const TOGETHER: i128 = 100;
        let traces = || self.hosts.iter().map(|loaded| &loaded.trace);
        let span = |trace: &Trace| trace.span().unwrap_or_default();
        let own = || traces().map(|trace| Time::ZERO - span(trace).start).collect::<Vec<Dur>>();
        let wall = |trace: &Trace| trace.clock().wall_ns_at_origin.map(|ns| i128::from(ns) * 1_000);
        let Some(walls) = traces().map(wall).collect::<Option<Vec<i128>>>() else { return (own(), None) };
        let ends = || traces().zip(&walls).filter(|(trace, _)| trace.span().is_some());
        let first = ends().map(|(trace, wall)| wall + i128::from(span(trace).start.ps())).min();
        let last = ends().map(|(trace, wall)| wall + i128::from(span(trace).end.ps())).max();
        let (Some(first), Some(last)) = (first, last) else { return (own(), None) };
        let longest = traces().map(|trace| i128::from(span(trace).dur().ps())).max().unwrap_or(0);
        if walls.len() > 1 && last - first > longest.saturating_mul(TOGETHER) {
            return (own(), None);
        }
        let shifted = walls.iter().map(|wall| i64::try_from(wall - first).ok().map(Dur::from_ps));
        match shifted.collect::<Option<Vec<Dur>>>() {
            Some(shifts) => (shifts, Some(first.div_euclid(1_000))),
            None => (own(), None),
        }
    }
}
