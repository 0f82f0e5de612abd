//! One clock for all hosts of a session: how far each host's time is shifted. The timeline, the server and SQL share it.

use stepscope_analyze::devices::collectives::clock::Clocks;
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

/// How a host's times of the session have to move to be on the clock of the reference.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct HostMove {
    /// What to add to them.
    pub shift: Dur,
    /// The median distance of the ends of common collectives from that.
    pub spread: Dur,
    /// How many ends say so; 0 for the reference itself.
    pub matched: usize,
}

/// How each host has to move, by the ends of common collectives; `None` if that is unknown. `shifts` are those of
/// [`shifts`].
pub fn moves<'h>(
    hosts: impl Iterator<Item = &'h str>,
    shifts: &[Dur],
    clocks: &Clocks,
) -> Vec<Option<HostMove>> {
    let hosts: Vec<&str> = hosts.collect();
    let reference = hosts.iter().position(|host| *host == clocks.reference);
    let reference = reference.and_then(|at| shifts.get(at)).copied();
    let one = |(host, shift): (&&str, &Dur)| {
        let known = clocks.of(host)?;
        let shift = reference? - *shift - known.late;
        Some(HostMove { shift, spread: known.spread, matched: known.matched })
    };
    hosts.iter().zip(shifts).map(one).collect()
}

/// The shifts of hosts on recorded clocks moved by as much as is known, so that the first event of the session stays at 0.
pub fn moved(
    hosts: &[HostClock],
    (shifts, origin): (Vec<Dur>, Option<i128>),
    moves: &[Option<HostMove>],
) -> (Vec<Dur>, Option<i128>) {
    let moved = |(shift, by): (&Dur, &Option<HostMove>)| *shift + by.map_or(Dur::ZERO, |by| by.shift);
    let moved: Vec<Dur> = shifts.iter().zip(moves).map(moved).collect();
    let starts = hosts.iter().zip(&moved).filter_map(|(host, shift)| Some(host.span?.start + *shift));
    let first = starts.min().unwrap_or(Time::ZERO) - Time::ZERO;
    let origin = origin.map(|origin| origin + i128::from(first.ps().div_euclid(1_000)));
    (moved.into_iter().map(|shift| shift - first).collect(), origin)
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::devices::collectives::clock::{HostOffset, Offset, Unaligned};

    use super::*;

    #[test]
    fn hosts_move_onto_the_clock_of_the_reference_and_the_session_still_begins_at_0() {
        let us = Dur::from_us;
        let host = |start: i64| HostClock {
            span: Some(Span::new(Time::ZERO + us(start), Time::ZERO + us(start + 900))),
            wall_ns_at_origin: None,
        };
        // The second began 250 µs after the first and its clock is 300 µs ahead; nothing is known of the third.
        let offset = |late, matched| Offset { late, spread: Dur::ZERO, matched, shift: None };
        let known = |host: &str, offset| HostOffset { host: host.into(), offset };
        let clocks = Clocks {
            reference: "a".into(),
            hosts: vec![
                known("a", Ok(offset(Dur::ZERO, 0))),
                known("b", Ok(offset(us(50), 5))),
                known("c", Err(Unaligned::Few(1))),
            ],
        };
        let shifts = vec![us(0), us(250), us(10)];
        let moves = moves(["a", "b", "c"].into_iter(), &shifts, &clocks);
        let by: Vec<Option<Dur>> = moves.iter().map(|one| one.map(|one| one.shift)).collect();
        assert_eq!(by, [Some(us(0)), Some(us(-300)), None]);
        let (moved, origin) = moved(&[host(0), host(0), host(5)], (shifts, Some(7_000_000)), &moves);
        assert_eq!(moved, [us(50), us(0), us(60)]);
        assert_eq!(origin, Some(7_000_000 - 50_000));
    }
}
