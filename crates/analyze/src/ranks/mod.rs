//! What each rank of a job does itself: ops, lines of Python and ranges, so that a late rank can be held against the others.
//! Waiting shows as the same on all ranks that wait; only what a rank does more than the others makes it late.
//!
//! Knows nothing about who is late ([`crate::devices::collectives`]) and judges nothing.

mod walk;

use stepscope_trace::Dur;
use stepscope_trace::statistics::quantile;

use crate::analysis::Analysis;
use crate::context::Context;

/// What sort of work it is.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
pub enum Sort {
    /// An op of the model.
    Op,
    /// A function of Python.
    Python,
    /// A range that the user named.
    Range,
}

/// One piece of work of one rank.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Item {
    pub(crate) sort: Sort,
    /// Equal on all ranks that do the same.
    pub(crate) name: String,
    pub(crate) count: u64,
    /// Time in it and in nothing inside it.
    pub(crate) own: Dur,
}

/// The work of one rank.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub(crate) struct RankWork {
    pub(crate) host: String,
    /// Its place in the host, as that of its collectives.
    pub(crate) inside: String,
    pub(crate) steps: usize,
    /// The longest first.
    pub(crate) items: Vec<Item>,
    /// The number of rows that the model's ops work on, if shapes were recorded.
    pub(crate) rows: Option<u64>,
}

/// The work of the ranks of one host, or of several merged hosts; empty without collectives.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct RanksPartial {
    ranks: Vec<RankWork>,
}

impl Analysis for RanksPartial {
    type Output = Ranks;

    fn of(context: &Context) -> Self {
        RanksPartial { ranks: walk::ranks(context) }
    }

    fn merge(&mut self, other: Self) {
        self.ranks.extend(other.ranks);
    }

    fn bound(&mut self) {
        const ITEMS: usize = 64;
        self.ranks.iter_mut().for_each(|rank| rank.items.truncate(ITEMS));
    }

    fn finish(self) -> Ranks {
        Ranks { ranks: self.ranks }
    }
}

/// What a rank does more than the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What sort of work.
    pub sort: Sort,
    /// Which.
    pub name: String,
    /// Milliseconds per step of the rank.
    pub ms: f64,
    /// Milliseconds per step of the median of the others.
    pub usual_ms: f64,
    /// How often per step.
    pub count: f64,
    /// How often per step on the median of the others.
    pub usual_count: f64,
}

impl Difference {
    /// Milliseconds per step more than the others.
    pub fn more_ms(&self) -> f64 {
        self.ms - self.usual_ms
    }
}

/// The work of all ranks.
#[derive(Clone, Debug, Default)]
pub struct Ranks {
    ranks: Vec<RankWork>,
}

/// From here on, an op that all ranks run takes longer on one of them.
const SLOWER: f64 = 1.25;
/// All ops are slower if this share of their time is in those that are, by at least a part of the whole factor.
const MOST: f64 = 0.75;
const ALIKE: f64 = 3.0;
/// Ops below this share of a rank's op time say nothing about a factor.
const SHORT: f64 = 0.02;

impl Ranks {
    /// What a rank does more than the median of the others, the most first; empty if it is not known.
    pub fn differences(&self, host: &str, inside: &str) -> Vec<Difference> {
        let Some(own) = self.rank(host, inside) else { return Vec::new() };
        let others: Vec<&RankWork> = self.ranks.iter().filter(|rank| !std::ptr::eq(*rank, own)).collect();
        let mut all: Vec<Difference> = own.items.iter().map(|item| difference(own, item, &others)).collect();
        all.retain(|difference| difference.more_ms() > 0.0);
        all.sort_by(|a, b| b.more_ms().total_cmp(&a.more_ms()).then_with(|| a.name.cmp(&b.name)));
        all
    }

    /// How many times as long a rank's ops take as those of the others, all together, if it runs the same ops as often, and
    /// nearly all are slower.
    pub fn slower_by(&self, host: &str, inside: &str) -> Option<f64> {
        let own = self.rank(host, inside)?;
        let others: Vec<&RankWork> = self.ranks.iter().filter(|rank| !std::ptr::eq(*rank, own)).collect();
        let ops = own.items.iter().filter(|item| item.sort == Sort::Op);
        let ops: Vec<Difference> = ops.map(|item| difference(own, item, &others)).collect();
        let all: f64 = ops.iter().map(|op| op.ms).sum();
        let (mut own_ms, mut usual_ms, mut count) = (0.0, 0.0, 0);
        for op in ops.iter().filter(|op| op.ms >= SHORT * all) {
            // An op that the others do not run, or not as often, is another cause.
            if op.usual_ms <= 0.0 || (op.count - op.usual_count).abs() > 0.1 * op.count {
                return None;
            }
            (own_ms, usual_ms, count) = (own_ms + op.ms, usual_ms + op.usual_ms, count + 1);
        }
        let factor = own_ms / f64::max(usual_ms, f64::MIN_POSITIVE);
        let slower = |op: &&Difference| op.ms >= op.usual_ms * SLOWER.max(factor / ALIKE);
        let slower: f64 = ops.iter().filter(|op| op.ms >= SHORT * all).filter(slower).map(|op| op.ms).sum();
        (count >= 3 && factor >= SLOWER && slower >= MOST * own_ms).then_some(factor)
    }

    /// Milliseconds per step that a rank's ops take longer than those of the median of the others, all together; `None` if it
    /// is not known.
    pub fn more_op_ms(&self, host: &str, inside: &str) -> Option<f64> {
        let own = self.rank(host, inside)?;
        let of = |rank: &RankWork| {
            let ops = rank.items.iter().filter(|item| item.sort == Sort::Op);
            ops.map(|item| item.own).sum::<Dur>().ms() / rank.steps.max(1) as f64
        };
        let others = self.ranks.iter().filter(|rank| !std::ptr::eq(*rank, own));
        let mut others: Vec<f64> = others.map(of).collect();
        others.sort_by(f64::total_cmp);
        Some(of(own) - quantile(&others, 0.5)?)
    }

    /// The number of rows that a rank works on, and that of the others if they all have the same; `None` if unknown.
    pub fn rows(&self, host: &str, inside: &str) -> Option<(u64, u64)> {
        let own = self.rank(host, inside)?;
        let mut others = self.ranks.iter().filter(|rank| !std::ptr::eq(*rank, own)).map(|rank| rank.rows);
        let first = others.next()??;
        others.all(|rows| rows == Some(first)).then_some((own.rows?, first))
    }

    fn rank(&self, host: &str, inside: &str) -> Option<&RankWork> {
        self.ranks.iter().find(|rank| rank.host == host && rank.inside == inside)
    }
}

fn difference(own: &RankWork, item: &Item, others: &[&RankWork]) -> Difference {
    let same = |rank: &RankWork| {
        let found = rank.items.iter().find(|other| other.sort == item.sort && other.name == item.name);
        let steps = rank.steps.max(1) as f64;
        found.map_or((0.0, 0.0), |other| (other.own.ms() / steps, other.count as f64 / steps))
    };
    let middle = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        quantile(&all, 0.5).unwrap_or(0.0)
    };
    let steps = own.steps.max(1) as f64;
    Difference {
        sort: item.sort,
        name: item.name.clone(),
        ms: item.own.ms() / steps,
        usual_ms: middle(others.iter().map(|rank| same(rank).0).collect()),
        count: item.count as f64 / steps,
        usual_count: middle(others.iter().map(|rank| same(rank).1).collect()),
    }
}

#[cfg(test)]
mod tests;
