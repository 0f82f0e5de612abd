//! The clocks of hosts, compared where their ranks meet.
//!
//! Clocks of hosts differ by microseconds to seconds. A collective ends on all ranks together: none can leave before the
//! last has joined. So the median difference of the ends of common collectives is the difference of two clocks, and how
//! far the single differences scatter around it says how well it is known. What is not known is said, never taken as 0.
//!
//! Knows nothing about steps and waiting; times are those of the traces.

use stepscope_trace::Dur;
use stepscope_trace::statistics::median_duration;

use super::{Rank, common};

/// Fewer common ends than this say nothing about a clock: a median of two is as bad as the worse of both.
const FEWEST: usize = 3;

/// How one host's clock stands beside that of the reference.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Offset {
    /// What the host's trace reads more than the reference's trace at the same moment.
    pub late: Dur,
    /// The median distance of the single differences from that.
    pub spread: Dur,
    /// Number of common ends; 0 for the reference itself.
    pub matched: usize,
    /// What to add to the host's wall clock to get that of the reference; `None` if one of them has none.
    pub shift: Option<Dur>,
}

/// Why a host's clock is unknown.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Unaligned {
    /// Its ranks and those of the reference do not take part in the same collectives.
    Apart,
    /// So few common collectives that one odd one would decide.
    Few(usize),
    /// The ends scatter so much that a shift would not say who was first.
    Loose(Dur),
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostOffset {
    /// Its name.
    pub host: String,
    /// Where its clock stands, or why that is unknown.
    pub offset: Result<Offset, Unaligned>,
}

/// The clocks of all hosts with collectives, beside that of one of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clocks {
    /// The host that the others are compared with.
    pub reference: String,
    /// Sorted by name; at least two.
    pub hosts: Vec<HostOffset>,
}

/// How well clocks are known, over all hosts that are compared.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct Precision {
    /// The largest spread, in milliseconds.
    pub spread_ms: f64,
    /// The smallest number of common ends.
    pub matched: usize,
    /// The farthest that a wall clock is off the reference's, in milliseconds; `None` if not all have one.
    pub apart_ms: Option<f64>,
}

impl Clocks {
    /// Where a host's clock stands; `None` if that is unknown.
    pub fn of(&self, host: &str) -> Option<Offset> {
        let at = self.hosts.binary_search_by(|known| known.host.as_str().cmp(host)).ok()?;
        self.hosts.get(at)?.offset.ok()
    }

    /// What a host's trace reads more than the reference's.
    pub(super) fn late(&self, host: &str) -> Option<Dur> {
        self.of(host).map(|offset| offset.late)
    }

    /// How well the known clocks are known; `None` if none is but the reference's.
    pub fn precision(&self) -> Option<Precision> {
        let known = || {
            let others = self.hosts.iter().filter(|known| known.host != self.reference);
            others.filter_map(|known| known.offset.ok())
        };
        let matched = known().map(|offset| offset.matched).min()?;
        let spread_ms = known().map(|offset| offset.spread.ms()).fold(0.0, f64::max);
        let shifts: Option<Vec<f64>> =
            known().map(|offset| offset.shift.map(|shift| shift.ms().abs())).collect();
        let apart_ms = shifts.map(|shifts| shifts.into_iter().fold(0.0, f64::max));
        Some(Precision { spread_ms, matched, apart_ms })
    }
}

/// The clocks of a group of ranks beside that of the first; `others` belong to no common group. `None` if there is only
/// one clock.
pub(super) fn clocks_of(group: &[Rank], others: &[Rank]) -> Option<Clocks> {
    let first = group.first()?;
    let mut names: Vec<&str> = group.iter().chain(others).map(Rank::clock).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() < 2 {
        return None;
    }
    let mut ranks: rustc_hash::FxHashMap<&str, Vec<&Rank>> = rustc_hash::FxHashMap::default();
    group.iter().for_each(|rank| ranks.entry(rank.clock()).or_default().push(rank));
    let hosts = names.into_iter().map(|host| {
        let own = ranks.get(host).map_or(&[][..], Vec::as_slice);
        HostOffset { host: host.to_owned(), offset: offset_of(first, own) }
    });
    Some(Clocks { reference: first.clock().to_owned(), hosts: hosts.collect() })
}

/// The clock that these ranks share, beside that of `first`.
fn offset_of(first: &Rank, ranks: &[&Rank]) -> Result<Offset, Unaligned> {
    let Some(one) = ranks.first() else { return Err(Unaligned::Apart) };
    if one.clock() == first.clock() {
        return Ok(Offset { late: Dur::ZERO, spread: Dur::ZERO, matched: 0, shift: Some(Dur::ZERO) });
    }
    let pairs = || ranks.iter().flat_map(|rank| common(first, rank));
    let ends: Vec<Dur> = pairs().map(|(own, other)| other.span.end - own.span.end).collect();
    let late = median_duration(ends.iter().copied());
    let off = |end: &Dur| if *end < late { late - *end } else { *end - late };
    let spread = median_duration(ends.iter().map(off));
    if ends.len() < FEWEST {
        return Err(Unaligned::Few(ends.len()));
    }
    // From the first rank's arrival to the common end. If clocks are less certain than half of that, pictures and sums on
    // one clock would show the wrong rank first.
    let met = median_duration(pairs().map(|(own, other)| own.span.dur().max(other.span.dur())));
    if spread.ps() > met.ps() / 2 {
        return Err(Unaligned::Loose(spread));
    }
    let shift = wall_difference(first, one).map(|apart| Dur::ZERO - (late + apart));
    Ok(Offset { late, spread, matched: ends.len(), shift })
}

/// How much later the second trace's origin is on the recorded wall clocks.
fn wall_difference(first: &Rank, rank: &Rank) -> Option<Dur> {
    let apart = rank.wall_ns?.checked_sub(first.wall_ns?)?;
    apart.checked_mul(1_000).map(Dur::from_ps)
}
