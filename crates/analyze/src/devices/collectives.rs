//! Collectives of several ranks compared: how long each rank waits for the last one to arrive, and how long the
//! transfer itself takes.
//!
//! A collective's kernel runs from the moment its own rank is ready until all have exchanged their data. On one
//! rank alone, waiting for others looks like communication. Only the same collective on all ranks shows the
//! difference: the others wait for the last to start, and what follows is the transfer.
//!
//! Equal collectives can only be distinguished by their order, which fails if ranks also exchange data with
//! unrecorded ranks: ranks whose calls do not overlap in time did not take part in the same collective.
//!
//! Ranks are devices, of one host or of many. Hosts' clocks differ; [`clock`] puts them on one. Ranks of hosts whose
//! clocks cannot be compared are left out.
//!
//! One partial result per host ([`CollectivesPartial::of`]) → [`CollectivesPartial::merge`] →
//! [`CollectivesPartial::align`].

pub mod clock;

use rustc_hash::FxHashMap;
use stepscope_trace::{Datum, Dur, EventId, Span, StrId, Time, Trace, Track, TrackKind};

use crate::analysis::Analysis;
use crate::context::Context;
use crate::vocabulary::Role;
use crate::vocabulary::names::kernel_short_name;

use clock::{Clocks, Precision, clocks_of};

/// Number of collectives kept per rank; later ones are ignored. Enough for thousands of steps, in a megabyte or
/// two.
const KEPT: usize = 50_000;
/// The share of a rank's collectives that another rank must have for the two to belong together.
const COMMON: f64 = 0.5;

/// One collective on one rank.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Run {
    /// The step number.
    step: i64,
    /// What it exchanges and with whom: name, group and size.
    what: u64,
    /// How many equal ones came before it in the step.
    nth: u32,
    span: Span,
    /// For pictures of the trace; not part of a partial that is stored.
    #[serde(skip)]
    event: Option<EventId>,
}

impl Run {
    fn key(&self) -> (i64, u64, u32) {
        (self.step, self.what, self.nth)
    }
}

#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
struct Rank {
    name: String,
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
    /// Ranks of the job, recorded or not; `None` if no recorder says.
    pub world_size: Option<u64>,
    /// How the hosts' clocks stand to one another; `None` if there is one clock.
    pub clocks: Option<Clocks>,
}

impl Analysis for CollectivesPartial {
    type Output = Collectives;

    /// The collectives of one host in the counted steps.
    fn of(context: &Context) -> Self {
        let trace = context.trace;
        let breakdown = context.breakdown();
        let keys = Keys::of(trace);
        let mut ranks = Vec::new();
        for device in &breakdown.devices {
            let Some(process) = device.process else { continue };
            let steps = breakdown.steps.all.iter().zip(&device.steps);
            let windows: Vec<(i64, Span)> = steps
                .filter(|(step, _)| step.excluded.is_none())
                .map(|(step, shares)| (step.number, shares.work))
                .collect();
            let own = |track: &&Track| track.process == process && track.kind == TrackKind::Stream;
            let mut runs: Vec<Run> = trace
                .tracks()
                .iter()
                .filter(own)
                .flat_map(|track| collectives_on(context, track, &windows, &keys))
                .take(KEPT)
                .collect();
            if runs.is_empty() {
                continue;
            }
            runs.sort_unstable_by_key(|run| (run.step, run.what, run.span.start));
            number(&mut runs);
            let name = format!("{} {}", context.host, trace.str(trace.process(process).name));
            let (host, wall_ns) = (context.host.clone(), trace.clock().wall_ns_at_origin);
            ranks.push(Rank { name, host, wall_ns, runs, steps: windows.len().max(1) });
        }
        CollectivesPartial { ranks, world_size: world_size(trace) }
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
            let steps = |runs: &[Run]| runs.chunk_by(|a, b| a.step == b.step).count();
            let all = steps(&rank.runs);
            // The step in which the limit falls goes too, unless it is the only one.
            let cut = rank.runs[RUNS].step;
            let whole = rank.runs.partition_point(|run| run.step < cut);
            rank.runs.truncate(if whole == 0 { RUNS } else { whole });
            rank.steps = (rank.steps * steps(&rank.runs)).div_ceil(all.max(1)).max(1);
        }
    }

    fn finish(self) -> Collectives {
        let world_size = self.world_size;
        let ranks = self.align();
        Collectives { waiting: ranks.waiting(), world_size, clocks: ranks.clocks }
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
        Aligned { ranks, clocks }
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
                runs.push(RankRun { host, event, waited: meeting.waited_by(run), last });
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

/// The keys under which Kineto describes a collective.
struct Keys {
    wanted: Vec<StrId>,
}

impl Keys {
    fn of(trace: &Trace) -> Self {
        let names = ["Process Group Name", "Collective name", "In msg nelems", "dtype"];
        Keys { wanted: names.iter().filter_map(|name| trace.strings().find(name)).collect() }
    }
}

const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// FNV-1a. Ranks that were analysed on different machines, by different builds, must agree on what they exchanged; a
/// hasher for tables in memory promises that for one build only.
fn mixed(start: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(start, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn collectives_on(context: &Context, track: &Track, windows: &[(i64, Span)], keys: &Keys) -> Vec<Run> {
    let trace = context.trace;
    let mut names: FxHashMap<u32, u64> = FxHashMap::default();
    let mut runs = Vec::new();
    for (index, &kind) in track.kinds().iter().enumerate() {
        if context.vocabulary().role(kind) != Role::Collective {
            continue;
        }
        let span = track.span_of(index);
        let after = windows.partition_point(|(_, window)| window.start <= span.start);
        let Some((step, _)) =
            after.checked_sub(1).map(|at| &windows[at]).filter(|(_, w)| w.contains(span.start))
        else {
            continue;
        };
        let name = *names
            .entry(kind.0)
            .or_insert_with(|| mixed(FNV_START, kernel_short_name(trace.kind_name(kind)).as_bytes()));
        let mut what = name;
        if !keys.wanted.is_empty() {
            trace.args_at(track, index).visit(|key, value| {
                if let Some(place) = keys.wanted.iter().position(|wanted| *wanted == key) {
                    what = mixed(what, &(place as u64).to_le_bytes());
                    what = mixed(what, &value.as_i64().unwrap_or_default().to_le_bytes());
                    what = mixed(what, value.as_str().unwrap_or_default().as_bytes());
                }
            });
        }
        runs.push(Run { step: *step, what, nth: 0, span, event: Some(track.event_id(index)) });
    }
    runs
}

fn number(runs: &mut [Run]) {
    let mut before: Option<Run> = None;
    for run in runs {
        run.nth = match before {
            Some(before) if (before.step, before.what) == (run.step, run.what) => before.nth + 1,
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

/// The parts of one rank's collective time.
#[derive(Clone, Debug, PartialEq)]
pub struct RankWaiting {
    /// Its host and device.
    pub name: String,
    /// Milliseconds per step until the last rank arrived.
    pub waiting_ms: f64,
    /// Milliseconds per step after that.
    pub transfer_ms: f64,
    /// The share of collectives at which it arrived last.
    pub last: f64,
}

/// One collective on one rank, as a picture of the trace shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankRun {
    /// The rank's host.
    pub host: String,
    /// Its event in the host's trace.
    pub event: EventId,
    /// How long it waited for the last rank; the transfer follows.
    pub waited: Dur,
    /// Was it the last to arrive?
    pub last: bool,
}

/// The collectives of all ranks, compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Waiting {
    /// The ranks, by name; at least two.
    pub ranks: Vec<RankWaiting>,
    /// Number of common collectives per step.
    pub collectives_per_step: f64,
    /// How well the hosts' clocks are known; `None` if all ranks share one.
    pub clocks: Option<Precision>,
}

impl Waiting {
    /// The rank that the others wait for most often.
    pub fn latest(&self) -> Option<&RankWaiting> {
        self.ranks.iter().max_by(|a, b| a.last.total_cmp(&b.last).then_with(|| b.name.cmp(&a.name)))
    }

    /// Milliseconds per step that a rank waits, averaged over the ranks.
    pub fn waiting_ms(&self) -> f64 {
        self.ranks.iter().map(|rank| rank.waiting_ms).sum::<f64>() / self.ranks.len().max(1) as f64
    }

    /// Milliseconds per step of transfer, averaged over the ranks.
    pub fn transfer_ms(&self) -> f64 {
        self.ranks.iter().map(|rank| rank.transfer_ms).sum::<f64>() / self.ranks.len().max(1) as f64
    }
}

/// One collective on all ranks.
struct Meeting {
    /// When the last rank arrived.
    arrived: Time,
    /// Its index.
    last: usize,
    /// When the first rank left.
    left: Time,
    ranks: usize,
}

impl Meeting {
    fn waited_by(&self, run: &Run) -> Dur {
        (self.arrived - run.span.start).at_least_zero().min(run.span.dur())
    }
}

fn meetings(ranks: &[Rank]) -> FxHashMap<(i64, u64, u32), Meeting> {
    let mut found: FxHashMap<(i64, u64, u32), Meeting> = FxHashMap::default();
    for (number, rank) in ranks.iter().enumerate() {
        for run in &rank.runs {
            let (arrived, left) = (run.span.start, run.span.end);
            let meeting = found.entry(run.key()).or_insert(Meeting { arrived, last: number, left, ranks: 0 });
            meeting.ranks += 1;
            meeting.left = meeting.left.min(left);
            if arrived > meeting.arrived {
                (meeting.arrived, meeting.last) = (arrived, number);
            }
        }
    }
    found.retain(|_, meeting| meeting.ranks == ranks.len());
    found
}

/// The collectives in which all ranks took part; `None` if most apparent matches cannot be the same collective.
fn shared(ranks: &[Rank]) -> Option<FxHashMap<(i64, u64, u32), Meeting>> {
    let mut meetings = meetings(ranks);
    let alike = meetings.len();
    meetings.retain(|_, meeting| meeting.arrived < meeting.left);
    let enough = !meetings.is_empty() && meetings.len() as f64 >= COMMON * alike as f64;
    enough.then_some(meetings)
}

fn split(ranks: &[Rank], clocks: Option<Precision>) -> Option<Waiting> {
    let meetings = shared(ranks)?;
    let shared = meetings.len();
    let rows = ranks.iter().enumerate().map(|(number, rank)| {
        let (mut waiting, mut transfer, mut last) = (Dur::ZERO, Dur::ZERO, 0_u64);
        for run in &rank.runs {
            let Some(meeting) = meetings.get(&run.key()) else { continue };
            let waited = meeting.waited_by(run);
            waiting += waited;
            transfer += run.span.dur() - waited;
            last += u64::from(meeting.last == number);
        }
        let steps = rank.steps as f64;
        RankWaiting {
            name: rank.name.clone(),
            waiting_ms: waiting.ms() / steps,
            transfer_ms: transfer.ms() / steps,
            last: last as f64 / shared.max(1) as f64,
        }
    });
    let steps = ranks.first().map_or(1, |rank| rank.steps) as f64;
    Some(Waiting { ranks: rows.collect(), collectives_per_step: shared as f64 / steps, clocks })
}

#[cfg(test)]
mod tests;
