//! Who holds up the ranks of a job, where their processors meet in collectives: one rank in nearly all steps, ranks in turn,
//! or nobody.

use stepscope_analyze::Category;
use stepscope_analyze::devices::collectives::{HeldStep, RankWaiting, Waiting};
use stepscope_analyze::session::Session;
use stepscope_analyze::time::summary::{HostSummary, StepRow};
use stepscope_trace::statistics::quantile;

use super::Evidence;
use crate::statistics::at_least;

/// One rank holds up the others if it causes this share of all waiting …
pub(crate) const CAUSES: f64 = 0.75;
/// … and most of it in this share of the steps: over recordings with and without a planted straggler, the share of steps
/// tells them apart, the share of time alone does not …
pub(crate) const LEADS: f64 = 0.80;
/// … which happens by chance this rarely …
pub(crate) const CHANCE: f64 = 0.05;
/// … and if the others wait for this share of the step.
pub(crate) const WAITS: f64 = 0.10;
/// A rank that is late by this share of the step holds up that step …
const HELD: f64 = 0.20;
/// … if it does this many times as much in it as in its other steps: noise makes steps longer by a part, not by a multiple …
const MULTIPLE: f64 = 1.5;
/// … and ranks take turns if that happens in this share of the steps.
const TURNS: f64 = 1.0 / 3.0;

/// Who is waited for.
#[derive(Clone, Debug, PartialEq)]
pub enum Held {
    /// Nothing is known: fewer than two ranks of processors could be compared.
    Unknown,
    /// Nobody in particular.
    Nobody,
    /// One rank.
    ByOne(HeldByOne),
    /// One rank now, another one then.
    InTurn(InTurn),
}

/// One rank that the others wait for.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldByOne {
    /// The rank.
    pub rank: RankWaiting,
    /// How many ranks were compared.
    pub of: usize,
    /// The share of all waiting that it causes.
    pub causes: f64,
    /// Milliseconds that the median of the others waits in the median step.
    pub waiting_ms: f64,
}

/// Ranks that are late in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct InTurn {
    /// How many of the ranks are late in some steps.
    pub ranks: usize,
    /// How many were compared.
    pub of: usize,
    /// In how many steps one of them is.
    pub steps: usize,
    /// Of how many.
    pub of_steps: usize,
    /// Milliseconds per step that they cost, over all steps.
    pub late_ms: f64,
    /// What a late rank does more than in its other steps, in milliseconds of such a step.
    pub most: Option<(Category, f64)>,
}

impl Evidence for Held {
    fn of(session: &Session) -> Self {
        let Some(waiting) = session.collectives.waiting.as_ref().filter(|waiting| waiting.on_host) else {
            return Held::Unknown;
        };
        let step_ms = session.summary.length_ms();
        if let Some(one) = by_one(waiting, step_ms).filter(|one| works_more(session, one)) {
            return Held::ByOne(one);
        }
        in_turn(session, waiting, step_ms).map_or(Held::Nobody, Held::InTurn)
    }
}

fn middle(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    quantile(&all, 0.5).unwrap_or(0.0)
}

fn by_one(waiting: &Waiting, step_ms: f64) -> Option<HeldByOne> {
    let rank = waiting.holder()?;
    let causes = waiting.caused_by(rank);
    let others = waiting.ranks.iter().filter(|other| other.name != rank.name);
    let waiting_ms = middle(others.map(|other| other.usual_waiting_ms).collect());
    let leads = (rank.leads * waiting.steps.len() as f64).round() as usize;
    let chance = at_least(leads, waiting.steps.len(), 1.0 / waiting.ranks.len().max(1) as f64);
    // What is uncertain about the ends of collectives proves nothing about their beginnings.
    let unsure =
        waiting.clocks.map_or(0.0, |clocks| clocks.spread_ms) * waiting.collectives_per_step.min(3.0);
    let held = causes >= CAUSES
        && rank.leads >= LEADS
        && chance <= CHANCE
        && waiting_ms >= WAITS * step_ms
        && waiting_ms > unsure;
    held.then(|| HeldByOne { rank: rank.clone(), of: waiting.ranks.len(), causes, waiting_ms })
}

/// Ranks inside one process share its threads: whose ops are started last arrives last, without doing more than the others.
/// Such a rank is only late if its own ops take longer, by this share of how late it is.
const EXPLAINED: f64 = 0.5;

fn works_more(session: &Session, one: &HeldByOne) -> bool {
    let rank = &one.rank;
    let more = || session.ranks.more_op_ms(&rank.host, &rank.inside).unwrap_or(0.0);
    rank.inside.is_empty() || more() >= EXPLAINED * rank.late_ms
}

/// Whether a rank is far behind all others in a step.
fn holds_up(step: &HeldStep, step_ms: f64) -> bool {
    step.share >= CAUSES && step.late_ms >= HELD * step_ms
}

fn in_turn(session: &Session, waiting: &Waiting, step_ms: f64) -> Option<InTurn> {
    let held: Vec<&HeldStep> = waiting.steps.iter().filter(|step| holds_up(step, step_ms)).collect();
    let (mut ranks, mut late_ms, mut excess) = (0, 0.0, [0.0; Category::COUNT]);
    let (mut explained, mut category) = (0, None);
    for (number, rank) in waiting.ranks.iter().enumerate() {
        let own: Vec<i64> = held.iter().filter(|step| step.rank == number).map(|step| step.number).collect();
        if own.len() < 2 {
            continue;
        }
        let late: f64 = held.iter().filter(|step| step.rank == number).map(|step| step.late_ms).sum();
        let host =
            session.summary.hosts.iter().find(|host| host.host == rank.host && rank.inside.is_empty())?;
        let more = more_in(host, &own);
        // A rank that is late did something in those steps that it does not do in others.
        if more.iter().sum::<f64>() < late / 2.0 || times_as_much(host, &own) < MULTIPLE {
            continue;
        }
        // What rotates is one thing; ranks that are late for different reasons show noise.
        let most = (0..Category::COUNT).max_by(|&a, &b| more[a].total_cmp(&more[b]));
        if category.is_some_and(|known| most != Some(known)) {
            return None;
        }
        category = most;
        (ranks, late_ms, explained) = (ranks + 1, late_ms + late, explained + own.len());
        excess.iter_mut().zip(more).for_each(|(all, one)| *all += one);
    }
    let steps = waiting.steps.len().max(1);
    let most = category.map(|at| (Category::ALL[at], excess[at] / explained.max(1) as f64));
    (ranks >= 2 && explained as f64 >= TURNS * steps as f64).then(|| InTurn {
        ranks,
        of: waiting.ranks.len(),
        steps: explained,
        of_steps: steps,
        late_ms: late_ms / steps as f64,
        most: most.filter(|(_, ms)| *ms > 0.0),
    })
}

/// How many times as much own work a host has in these steps as in its others.
fn times_as_much(host: &HostSummary, steps: &[i64]) -> f64 {
    let of = |wanted: bool| {
        let some = host.counted().filter(|step| steps.contains(&step.number) == wanted);
        middle(some.map(StepRow::own_work_ms).collect())
    };
    of(true) / of(false).max(f64::MIN_POSITIVE)
}

/// Milliseconds by category that a host spends more in these steps than in its others, all together.
fn more_in(host: &HostSummary, steps: &[i64]) -> [f64; Category::COUNT] {
    const WAITING: [Category; 4] =
        [Category::Communication, Category::Sync, Category::Idle, Category::Unknown];
    let among = |step: &&StepRow| steps.contains(&step.number);
    let mut more = [0.0; Category::COUNT];
    for category in Category::ALL.into_iter().filter(|category| !WAITING.contains(category)) {
        let others = host.counted().filter(|step| !among(step));
        let usual = middle(others.map(|step| step.shares.get(category).ms()).collect());
        let own = host.counted().filter(among).map(|step| step.shares.get(category).ms() - usual);
        more[category as usize] = own.sum::<f64>().max(0.0);
    }
    more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(leads: &[usize], late_ms: f64) -> Waiting {
        let of = |rank: usize| leads.iter().filter(|&&led| led == rank).count() as f64;
        let rank = |number: usize| RankWaiting {
            name: format!("worker{number}"),
            host: format!("worker{number}"),
            caused_ms: late_ms * of(number) / leads.len() as f64,
            leads: of(number) / leads.len() as f64,
            late_ms: late_ms * of(number) / leads.len() as f64,
            usual_waiting_ms: if of(number) > 0.0 { 0.0 } else { late_ms },
            ..RankWaiting::default()
        };
        let step =
            |(number, &rank): (usize, &usize)| HeldStep { number: number as i64, rank, share: 1.0, late_ms };
        Waiting {
            ranks: (0..2).map(rank).collect(),
            collectives_per_step: 1.0,
            on_host: true,
            exact: true,
            steps: leads.iter().enumerate().map(step).collect(),
            ..Waiting::default()
        }
    }

    #[test]
    fn one_rank_is_named_only_if_it_is_late_in_nearly_all_steps_and_by_enough() {
        let always = [1; 10];
        assert_eq!(by_one(&waiting(&always, 30.0), 100.0).map(|one| one.rank.name), Some("worker1".into()));
        assert_eq!(by_one(&waiting(&always, 5.0), 100.0), None, "5 % of the step");
        let mostly = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0];
        assert_eq!(by_one(&waiting(&mostly, 30.0), 100.0), None, "a coin does that, too");
        assert_eq!(
            by_one(&waiting(&[1, 1, 1], 30.0), 100.0),
            None,
            "so few steps prove nothing of two ranks"
        );
    }
}
