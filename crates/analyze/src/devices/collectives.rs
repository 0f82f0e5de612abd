//! Collectives of several ranks compared: how long each rank waits for the last one to arrive, and how long the
//! transfer itself takes.
//!
//! A collective's kernel runs from the moment its own rank is ready until all have exchanged their data. On one
//! rank alone, waiting for others looks like communication. Only the same collective on all ranks shows the
//! difference: the others wait for the last to start, and what follows is the transfer.
//!
//! Some recorders number a collective alike on all ranks. Without that, equal collectives can only be distinguished by
//! their order, which fails if ranks also exchange data with unrecorded ranks: ranks whose calls do not overlap in time
//! did not take part in the same collective.
//!
//! Ranks are devices, of one host or of many; without devices, processes, or replicas inside one ([`on_host`]). Hosts'
//! clocks differ; [`clock`] puts them on one. Ranks of hosts whose clocks cannot be compared are left out.
//!
//! One partial result per host ([`CollectivesPartial::of`]) → [`CollectivesPartial::merge`] →
//! [`CollectivesPartial::align`].

pub mod clock;
mod meetings;
mod on_device;
mod on_host;

use stepscope_trace::{Datum, Dur, EventId, Span, Trace};

use crate::analysis::Analysis;
use crate::context::Context;
use crate::states::host_collectives::group_size;

use clock::{Clocks, clocks_of};
pub use meetings::{HeldStep, RankRun, RankWaiting, StepWaits, Waiting};
use meetings::{shared, split};

/// Number of collectives kept per rank; later ones are ignored. Enough for thousands of steps, in a megabyte or
/// two.
const KEPT: usize = 50_000;
/// The share of a rank's collectives that another rank must have for the two to belong together.
const COMMON: f64 = 0.5;

/// One collective on one rank.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Run {
    /// The number that the recorder gives it on all ranks; without one, the step and the order count.
    #[serde(default)]
    at: Option<i64>,
    /// The step number.
    step: i64,
    /// What it exchanges and with whom: name, group and size.
    what: u64,
    /// How many equal ones came before it in the step.
    nth: u32,
    /// From the rank's arrival to the end.
    span: Span,
    /// How much of that passes before the exchange itself begins.
    #[serde(default)]
    setup: Dur,
    /// The number of elements that it exchanges, if the recorder says.
    #[serde(default)]
    elements: Option<u64>,
    /// For pictures of the trace; not part of a partial that is stored.
    #[serde(skip)]
    event: Option<EventId>,
}

impl Run {
    fn key(&self) -> (i64, u64, u32) {
        (self.at.unwrap_or(self.step), self.what, self.nth)
    }
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Rank {
    name: String,
    /// Its place in the host if that has several without devices, such as a replica's; empty elsewhere.
    #[serde(default)]
    inside: String,
    /// A processor, rather than a device?
    #[serde(default)]
    on_host: bool,
    /// Its host, which has one clock; empty in partials of older versions.
    #[serde(default)]
    host: String,
    /// The wall-clock time of the host's origin, in nanoseconds since 1970.
    #[serde(default)]
    wall_ns: Option<i64>,
    /// Sorted by key.
    runs: Vec<Run>,
    steps: usize,
}

/// The collectives of one host's devices, or of several merged hosts.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct CollectivesPartial {
    ranks: Vec<Rank>,
    /// Ranks of the job, if the recorder says.
    #[serde(default)]
    world_size: Option<u64>,
}

/// What the collectives of all ranks say together.
#[derive(Clone, Debug, Default)]
pub struct Collectives {
    /// How long ranks wait for one another; `None` of one rank.
    pub waiting: Option<Waiting>,
    /// Ranks of one group that were recorded and can be compared; 0 without any.
    pub recorded: usize,
    /// Ranks of the job, recorded or not; `None` if no recorder says.
    pub world_size: Option<u64>,
    /// How the hosts' clocks stand to one another; `None` if there is one clock.
    pub clocks: Option<Clocks>,
}

impl Analysis for CollectivesPartial {
    type Output = Collectives;

    /// The collectives of one host in the counted steps.
    fn of(context: &Context) -> Self {
        let mut ranks = on_device::ranks(context);
        if ranks.is_empty() && !context.states().has_device {
            ranks = on_host::ranks(context);
        }
        let of_group = if ranks.is_empty() { None } else { group_size(context.trace) };
        CollectivesPartial { ranks, world_size: world_size(context.trace).max(of_group) }
    }

    /// Adds another host.
    fn merge(&mut self, other: CollectivesPartial) {
        self.ranks.extend(other.ranks);
        self.world_size = self.world_size.max(other.world_size);
    }

    /// Keeps the first steps, as many as fit.
    fn bound(&mut self) {
        const RUNS: usize = 2_048;
        for rank in self.ranks.iter_mut().filter(|rank| rank.runs.len() > RUNS) {
            let steps = |runs: &[Run]| runs.chunk_by(|a, b| a.step == b.step).count().max(1);
            let all = steps(&rank.runs);
            // The step in which the limit falls goes too, unless it is the only one.
            let cut = rank.runs[RUNS].key().0;
            let whole = rank.runs.partition_point(|run| run.key().0 < cut);
            rank.runs.truncate(if whole == 0 { RUNS } else { whole });
            rank.steps = (rank.steps * steps(&rank.runs)).div_ceil(all.max(1)).max(1);
        }
    }

    fn finish(self) -> Collectives {
        let world_size = self.world_size;
        let ranks = self.align();
        let recorded = ranks.ranks.len();
        Collectives { waiting: ranks.waiting(), recorded, world_size, clocks: ranks.clocks }
    }
}

impl CollectivesPartial {
    /// The largest group of ranks that belong together, on the clock of the first.
    pub fn align(self) -> Aligned {
        let mut ranks = self.ranks;
        ranks.sort_by(|a, b| a.name.cmp(&b.name));
        let (mut ranks, others) = largest_group(ranks);
        let clocks = clocks_of(&ranks, &others);
        ranks.retain_mut(|rank| {
            let Some(late) = clocks.as_ref().map_or(Some(Dur::ZERO), |clocks| clocks.late(rank.clock()))
            else {
                return false;
            };
            rank.runs
                .iter_mut()
                .for_each(|run| run.span = Span::new(run.span.start - late, run.span.end - late));
            true
        });
        name_without_host(&mut ranks);
        Aligned { ranks, clocks }
    }
}

/// Where all ranks are inside one process, its name says nothing.
fn name_without_host(ranks: &mut [Rank]) {
    let one = ranks.windows(2).all(|two| two[0].host == two[1].host);
    if one && ranks.iter().all(|rank| !rank.inside.is_empty()) {
        ranks.iter_mut().for_each(|rank| rank.name.clone_from(&rank.inside));
    }
}

impl Rank {
    /// The name of the clock that its times come from.
    fn clock(&self) -> &str {
        if self.host.is_empty() { &self.name } else { &self.host }
    }
}

/// Ranks that exchange data with one another, on one clock.
#[derive(Clone, Debug)]
pub struct Aligned {
    ranks: Vec<Rank>,
    /// The clocks of the hosts; `None` if all ranks share one.
    pub clocks: Option<Clocks>,
}

/// Why nothing is known about ranks that wait for one another.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum NoWaiting {
    /// No rank has collectives.
    NoCollectives,
    /// Only one rank has collectives that can be compared.
    OneRank,
    /// The ranks have no collective in common.
    NothingInCommon,
}

impl Aligned {
    /// Why [`Aligned::waiting`] says nothing; `None` if it does.
    pub fn no_waiting(&self) -> Option<NoWaiting> {
        match self.ranks.len() {
            0 => Some(NoWaiting::NoCollectives),
            1 => Some(NoWaiting::OneRank),
            _ => self.waiting().is_none().then_some(NoWaiting::NothingInCommon),
        }
    }

    /// How long the ranks wait for one another; `None` if fewer than two have common collectives.
    pub fn waiting(&self) -> Option<Waiting> {
        if self.ranks.len() < 2 {
            return None;
        }
        split(&self.ranks, self.clocks.as_ref().and_then(Clocks::precision))
    }

    /// Every collective of the compared ranks, with its waiting; empty if fewer than two have common ones.
    pub fn runs(&self) -> Vec<RankRun> {
        if self.ranks.len() < 2 {
            return Vec::new();
        }
        let Some(meetings) = shared(&self.ranks) else { return Vec::new() };
        let mut runs = Vec::new();
        for (number, rank) in self.ranks.iter().enumerate() {
            for run in &rank.runs {
                let (Some(meeting), Some(event)) = (meetings.get(&run.key()), run.event) else { continue };
                let (host, last) = (rank.host.clone(), meeting.last == number);
                // The event begins when the exchange does; what passed before is not part of its picture.
                let waited = (meeting.waited_by(run) - run.setup).at_least_zero();
                let (rank, step) = (rank.name.clone(), run.step);
                runs.push(RankRun { rank, host, step, event, waited, last });
            }
        }
        runs
    }
}

/// Ranks of the job, as PyTorch writes it beside the events.
fn world_size(trace: &Trace) -> Option<u64> {
    let place = &trace.environment().distributed;
    let size = place.iter().find(|property| trace.str(property.key) == "world_size")?;
    match size.value {
        Datum::Int(ranks) => u64::try_from(ranks).ok(),
        Datum::Str(text) => trace.str(text).parse().ok(),
        _ => None,
    }
}

/// Sorts the collectives of a rank and counts equal ones.
fn number(runs: &mut [Run]) {
    runs.sort_unstable_by_key(|run| (run.key().0, run.what, run.span.start));
    let mut before: Option<Run> = None;
    for run in runs {
        run.nth = match before {
            Some(before) if before.key().0 == run.key().0 && before.what == run.what => before.nth + 1,
            _ => 0,
        };
        before = Some(*run);
    }
}

/// Walks over the common collectives of two ranks.
fn common<'r>(a: &'r Rank, b: &'r Rank) -> impl Iterator<Item = (&'r Run, &'r Run)> {
    let mut others = b.runs.iter().peekable();
    a.runs.iter().filter_map(move |run| {
        while others.next_if(|other| other.key() < run.key()).is_some() {}
        others.next_if(|other| other.key() == run.key()).map(|other| (run, other))
    })
}

fn belongs(first: &Rank, rank: &Rank) -> bool {
    let most = first.runs.len().max(rank.runs.len());
    common(first, rank).count() as f64 >= COMMON * most as f64
}

/// The largest set of ranks with common collectives, of equal ones the one with the first name, and all other ranks.
/// Stages of a pipeline and groups of experts each exchange data among themselves.
fn largest_group(ranks: Vec<Rank>) -> (Vec<Rank>, Vec<Rank>) {
    let mut groups: Vec<Vec<Rank>> = Vec::new();
    for rank in ranks {
        match groups.iter_mut().find(|group| group.first().is_some_and(|first| belongs(first, &rank))) {
            Some(group) => group.push(rank),
            None => groups.push(vec![rank]),
        }
    }
    // The last of equals wins.
    let largest = (0..groups.len()).rev().max_by_key(|&at| groups[at].len());
    let group = largest.map_or_else(Vec::new, |at| groups.remove(at));
    (group, groups.into_iter().flatten().collect())
}

#[cfg(test)]
mod tests;
