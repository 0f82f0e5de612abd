//! One clock for all hosts of a session: how far each host's time is shifted. The timeline, the server and SQL share it.

use stepscope_trace::{Dur, Span, Time, Trace};

use crate::load::Profile;

/// What places a host on the session's clock.
#[derive(Copy, Clone, Debug)]
pub struct HostClock {
    span: Option<Span>,
    wall_ns_at_origin: Option<i64>,
}

impl HostClock {
    /// That of one trace.
    pub fn of(trace: &Trace) -> Self {
        HostClock { span: trace.span(), wall_ns_at_origin: trace.clock().wall_ns_at_origin }
    }
}

impl Profile {
    /// The offset of each host's time to the session's time, and the wall-clock time of its origin.
    pub fn shifts(&self) -> (Vec<Dur>, Option<i128>) {
        let clocks: Vec<HostClock> = self.hosts.iter().map(|loaded| HostClock::of(&loaded.trace)).collect();
        shifts(&clocks)
    }
}

/// The offset of each host's time to the session's time, and the wall-clock time of its origin.
///
/// Hosts that all know the wall clock share it. If one does not, or if they were clearly not recorded together,
/// each starts at 0.
pub fn shifts(hosts: &[HostClock]) -> (Vec<Dur>, Option<i128>) {
    /// Hosts of one run overlap; a session this many times longer than its longest host contains several runs.
    const TOGETHER: i128 = 100;
    let span = |host: &HostClock| host.span.unwrap_or_default();
    let own = || hosts.iter().map(|host| Time::ZERO - span(host).start).collect::<Vec<Dur>>();
    let wall = |host: &HostClock| host.wall_ns_at_origin.map(|ns| i128::from(ns) * 1_000);
    let Some(walls) = hosts.iter().map(wall).collect::<Option<Vec<i128>>>() else { return (own(), None) };
    let ends = || hosts.iter().zip(&walls).filter(|(host, _)| host.span.is_some());
    let first = ends().map(|(host, wall)| wall + i128::from(span(host).start.ps())).min();
    let last = ends().map(|(host, wall)| wall + i128::from(span(host).end.ps())).max();
    let (Some(first), Some(last)) = (first, last) else { return (own(), None) };
    let longest = hosts.iter().map(|host| i128::from(span(host).dur().ps())).max().unwrap_or(0);
    if walls.len() > 1 && last - first > longest.saturating_mul(TOGETHER) {
        return (own(), None);
    }
    let shifted = walls.iter().map(|wall| i64::try_from(wall - first).ok().map(Dur::from_ps));
    match shifted.collect::<Option<Vec<Dur>>>() {
        Some(shifts) => (shifts, Some(first.div_euclid(1_000))),
        None => (own(), None),
    }
}
