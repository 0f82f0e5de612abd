//! Collectives of all ranks put side by side: when the last one arrived, who waited for it, and what that cost.

use rustc_hash::FxHashMap;
use stepscope_trace::statistics::median_duration;
use stepscope_trace::{Dur, EventId, Time};

use super::clock::Precision;
use super::{COMMON, Rank, Run};

/// The parts of one rank's collective time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RankWaiting {
    /// Its host and device.
    pub name: String,
    /// Its host.
    pub host: String,
    /// Its place in the host if that has several without devices; empty elsewhere.
    pub inside: String,
    /// Milliseconds per step until the last rank arrived.
    pub waiting_ms: f64,
    /// The same in the median step.
    pub usual_waiting_ms: f64,
    /// Milliseconds per step after that.
    pub transfer_ms: f64,
    /// Milliseconds per step from its arrival until the exchange itself began; part of the two before.
    pub setup_ms: f64,
    /// The share of collectives at which it arrived last.
    pub last: f64,
    /// Milliseconds per step that all others together wait for it.
    pub caused_ms: f64,
    /// The share of steps in which the others wait longer for it than for anybody else.
    pub leads: f64,
    /// Milliseconds per step that it arrives after the last but one: what the steps save if it were as fast as that one.
    pub late_ms: f64,
}

/// One collective on one rank, as a picture of the trace shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RankRun {
    /// The rank.
    pub rank: String,
    /// Its host.
    pub host: String,
    /// The step number.
    pub step: i64,
    /// Its event in the host's trace.
    pub event: EventId,
    /// How long it waited for the last rank; the transfer follows.
    pub waited: Dur,
    /// Was it the last to arrive?
    pub last: bool,
}

/// A step, and the rank that the others wait for most in it.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct HeldStep {
    /// The step number of the first rank.
    pub number: i64,
    /// The index of the rank.
    pub rank: usize,
    /// The share of all waiting that it causes.
    pub share: f64,
    /// Milliseconds that it arrives after the last but one.
    pub late_ms: f64,
}

/// What each rank suffered and caused in one step, in milliseconds, in the order of the ranks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StepWaits {
    /// The step number of the first rank.
    pub number: i64,
    /// How long each rank waited.
    pub waiting_ms: Vec<f64>,
    /// How long each rank arrived after the last but one.
    pub late_ms: Vec<f64>,
}

/// The collectives of all ranks, compared.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waiting {
    /// The ranks, by name; at least two.
    pub ranks: Vec<RankWaiting>,
    /// Number of common collectives per step.
    pub collectives_per_step: f64,
    /// How well the hosts' clocks are known; `None` if all ranks share one.
    pub clocks: Option<Precision>,
    /// Are the ranks processors, rather than devices?
    pub on_host: bool,
    /// Does the recorder number collectives, so that none is matched by order?
    pub exact: bool,
    /// Steps with common collectives, in order.
    pub steps: Vec<HeldStep>,
    /// All ranks in all steps with common collectives; the first ones, if there are too many.
    pub map: Vec<StepWaits>,
    /// The median number of elements that a collective exchanges; `None` if no recorder says.
    pub elements: Option<u64>,
    /// The median time of a collective without waiting, in milliseconds.
    pub each_ms: f64,
}

impl Waiting {
    /// The rank that the others wait for most often.
    pub fn latest(&self) -> Option<&RankWaiting> {
        self.ranks.iter().max_by(|a, b| a.last.total_cmp(&b.last).then_with(|| b.name.cmp(&a.name)))
    }

    /// The rank that the others wait for longest.
    pub fn holder(&self) -> Option<&RankWaiting> {
        self.ranks.iter().max_by(|a, b| a.caused_ms.total_cmp(&b.caused_ms).then_with(|| b.name.cmp(&a.name)))
    }

    /// The share of all waiting that a rank causes.
    pub fn caused_by(&self, rank: &RankWaiting) -> f64 {
        let all: f64 = self.ranks.iter().map(|rank| rank.caused_ms).sum();
        if all > 0.0 { rank.caused_ms / all } else { 0.0 }
    }

    /// Milliseconds per step that a rank waits, averaged over the ranks.
    pub fn waiting_ms(&self) -> f64 {
        self.mean(|rank| rank.waiting_ms)
    }

    /// Milliseconds per step of transfer, averaged over the ranks.
    pub fn transfer_ms(&self) -> f64 {
        self.mean(|rank| rank.transfer_ms)
    }

    /// Milliseconds per step in which collectives are set up, averaged over the ranks.
    pub fn setup_ms(&self) -> f64 {
        self.mean(|rank| rank.setup_ms)
    }

    /// Milliseconds per step that the ranks of a host wait; `None` if it has none.
    pub fn of_host(&self, host: &str) -> Option<f64> {
        let own: Vec<f64> =
            self.ranks.iter().filter(|rank| rank.host == host).map(|rank| rank.waiting_ms).collect();
        (!own.is_empty()).then(|| own.iter().sum::<f64>() / own.len() as f64)
    }

    fn mean(&self, of: impl Fn(&RankWaiting) -> f64) -> f64 {
        self.ranks.iter().map(of).sum::<f64>() / self.ranks.len().max(1) as f64
    }
}

/// One collective on all ranks.
pub(super) struct Meeting {
    /// When the last rank arrived.
    arrived: Time,
    /// When the last but one did.
    before: Time,
    /// Its index.
    pub(super) last: usize,
    /// When the first rank left.
    left: Time,
    ranks: usize,
    /// The step of the first rank.
    step: i64,
}

impl Meeting {
    pub(super) fn waited_by(&self, run: &Run) -> Dur {
        (self.arrived - run.span.start).at_least_zero().min(run.span.dur())
    }
}

type Meetings = FxHashMap<(i64, u64, u32), Meeting>;

fn meetings(ranks: &[Rank]) -> Meetings {
    let mut found: Meetings = FxHashMap::default();
    for (number, rank) in ranks.iter().enumerate() {
        for run in &rank.runs {
            let (arrived, left) = (run.span.start, run.span.end);
            let meeting = found.entry(run.key()).or_insert(Meeting {
                arrived,
                before: Time::MIN,
                last: number,
                left,
                ranks: 0,
                step: run.step,
            });
            meeting.ranks += 1;
            meeting.left = meeting.left.min(left);
            if arrived > meeting.arrived {
                meeting.before = meeting.arrived;
                (meeting.arrived, meeting.last) = (arrived, number);
            } else if meeting.ranks > 1 {
                meeting.before = meeting.before.max(arrived);
            }
        }
    }
    found.retain(|_, meeting| meeting.ranks == ranks.len());
    found
}

/// The collectives in which all ranks took part; `None` if most apparent matches cannot be the same collective.
pub(super) fn shared(ranks: &[Rank]) -> Option<Meetings> {
    let mut meetings = meetings(ranks);
    let alike = meetings.len();
    meetings.retain(|_, meeting| meeting.arrived < meeting.left);
    let enough = !meetings.is_empty() && meetings.len() as f64 >= COMMON * alike as f64;
    enough.then_some(meetings)
}

/// What each rank caused and suffered in one step.
struct StepSums {
    caused: Vec<Dur>,
    waited: Vec<Dur>,
    late: Vec<Dur>,
}

/// What the ranks caused and suffered, by step.
fn by_step(ranks: &[Rank], meetings: &Meetings) -> Vec<(i64, StepSums)> {
    let nothing = || vec![Dur::ZERO; ranks.len()];
    let new = || StepSums { caused: nothing(), waited: nothing(), late: nothing() };
    let mut steps: FxHashMap<i64, StepSums> = FxHashMap::default();
    for (number, rank) in ranks.iter().enumerate() {
        for run in &rank.runs {
            let Some(meeting) = meetings.get(&run.key()) else { continue };
            let sums = steps.entry(meeting.step).or_insert_with(new);
            let waited = meeting.waited_by(run);
            sums.waited[number] += waited;
            if meeting.last == number {
                sums.late[number] += (meeting.arrived - meeting.before).at_least_zero();
            } else {
                sums.caused[meeting.last] += waited;
            }
        }
    }
    let mut steps: Vec<(i64, StepSums)> = steps.into_iter().collect();
    steps.sort_unstable_by_key(|(number, _)| *number);
    steps
}

/// The rank that the others wait for most in a step; `None` if nobody waits.
fn held(number: i64, sums: &StepSums) -> Option<HeldStep> {
    let all: Dur = sums.caused.iter().copied().sum();
    let rank = (0..sums.caused.len()).rev().max_by_key(|&rank| sums.caused[rank])?;
    let (share, late_ms) = (sums.caused[rank].fraction_of(all), sums.late[rank].ms());
    (!all.is_zero()).then_some(HeldStep { number, rank, share, late_ms })
}

/// Ranks times steps of a map.
const MOST_CELLS: usize = 50_000;

/// All ranks in all steps, as many as fit.
fn map_of(by_step: &[(i64, StepSums)], ranks: usize) -> Vec<StepWaits> {
    let ms = |all: &[Dur]| all.iter().map(|one| one.ms()).collect();
    let step = |(number, sums): &(i64, StepSums)| StepWaits {
        number: *number,
        waiting_ms: ms(&sums.waited),
        late_ms: ms(&sums.late),
    };
    by_step.iter().take(MOST_CELLS / ranks.max(1)).map(step).collect()
}

/// Waiting and transfer of ranks that have collectives in common.
pub(super) fn split(ranks: &[Rank], clocks: Option<Precision>) -> Option<Waiting> {
    let meetings = shared(ranks)?;
    let shared = meetings.len();
    let by_step = by_step(ranks, &meetings);
    let held: Vec<HeldStep> = by_step.iter().filter_map(|(number, sums)| held(*number, sums)).collect();
    let (mut each, mut elements): (Vec<Dur>, Vec<u64>) = (Vec::new(), Vec::new());
    let mut row = |(number, rank): (usize, &Rank)| {
        let (mut transfer, mut setup, mut last) = (Dur::ZERO, Dur::ZERO, 0_u64);
        for run in &rank.runs {
            let Some(meeting) = meetings.get(&run.key()) else { continue };
            let rest = run.span.dur() - meeting.waited_by(run);
            transfer += rest;
            each.push(rest);
            elements.extend(run.elements);
            setup += run.setup;
            last += u64::from(meeting.last == number);
        }
        let steps = rank.steps as f64;
        let sum = |of: fn(&StepSums) -> &Vec<Dur>| {
            by_step.iter().map(|(_, sums)| of(sums)[number]).sum::<Dur>().ms() / steps
        };
        let leads = held.iter().filter(|step| step.rank == number).count() as f64;
        RankWaiting {
            name: rank.name.clone(),
            host: rank.host.clone(),
            inside: rank.inside.clone(),
            waiting_ms: sum(|sums| &sums.waited),
            usual_waiting_ms: median_duration(by_step.iter().map(|(_, sums)| sums.waited[number])).ms(),
            transfer_ms: transfer.ms() / steps,
            setup_ms: setup.ms() / steps,
            last: last as f64 / shared.max(1) as f64,
            caused_ms: sum(|sums| &sums.caused),
            leads: leads / held.len().max(1) as f64,
            late_ms: sum(|sums| &sums.late),
        }
    };
    let rows: Vec<RankWaiting> = ranks.iter().enumerate().map(&mut row).collect();
    let steps = ranks.first().map_or(1, |rank| rank.steps) as f64;
    elements.sort_unstable();
    Some(Waiting {
        ranks: rows,
        collectives_per_step: shared as f64 / steps,
        clocks,
        on_host: ranks.iter().all(|rank| rank.on_host),
        exact: ranks.iter().all(|rank| rank.runs.iter().all(|run| run.at.is_some())),
        steps: held,
        map: map_of(&by_step, ranks.len()),
        elements: elements.get(elements.len() / 2).copied(),
        each_ms: median_duration(each.into_iter()).ms(),
    })
}
