//! A rank that arrives late where processors meet: what it does more than the others, and how that reads.

use stepscope_analyze::Category;
use stepscope_analyze::devices::collectives::clock::Precision;
use stepscope_analyze::input::HostInput;
use stepscope_analyze::ranks::{Difference, Sort};
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{decimal, duration_ms, plural, quoted, share, shell_word};

use super::{GAIN, RULE, more_than_usual};
use crate::facts::{Facts, Held, HeldByOne, OneSide};
use crate::finding::{Cause, Finding, Words};
use crate::rules::shared::{of_step, on_one_clock, severity};
use crate::thresholds::OWNED;
use crate::words;

/// A piece of work explains why a rank is late if it is at least this share of how late it is.
const EXPLAINS: f64 = 0.3;
/// A batch that is this many times as large is uneven.
const UNEVEN: f64 = 1.2;
/// Work that the others do for less than this share of its time is something that only this rank does.
const ONLY_HERE: f64 = 0.3;

/// Why a rank is late.
#[derive(Clone, Debug, PartialEq)]
pub enum Why {
    /// Its batch has more rows than those of the others.
    Rows(u64, u64),
    /// A stage of its input pipeline is slower than that of the others.
    Stage(HostInput, Option<f64>),
    /// One piece of work.
    Work(Difference),
    /// It runs the same ops, and all take longer by this factor.
    Factor(f64),
    /// What it spends more time in is all that shows.
    Category,
    /// Nothing that was recorded.
    Unknown,
}

/// The finding, if one rank holds up the others.
pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let held = facts.get::<Held>();
    let Held::ByOne(one) = &*held else { return None };
    let rank = &one.rank;
    let hosts: Vec<_> = facts.summary.hosts.iter().filter(|host| host.trains()).collect();
    let host = hosts.iter().find(|host| host.host == rank.host && rank.inside.is_empty());
    let more = host.map_or_else(Vec::new, |host| more_than_usual(host, &hosts));
    let bound = facts.summary.bound().is_some_and(|bound| bound.host == rank.host);
    let claims = match (rank.inside.is_empty(), bound) {
        (true, true) => limited(more.clone(), rank.late_ms),
        (true, false) => vec![(Category::Communication, rank.late_ms)],
        (false, _) => limited(facts.claims(&[Category::Compute, Category::Communication]), rank.late_ms),
    };
    let waiting = facts.collectives.waiting.as_ref()?;
    let share = of_step(facts, rank.late_ms);
    let cause = Late {
        why: why(facts, one, more.first().copied()),
        most: more.first().copied(),
        held: one.clone(),
        exact: waiting.exact,
        clocks: waiting.clocks,
        missing: OneSide::missing(facts),
        first: share >= OWNED || waiting.waiting_ms() > waiting.transfer_ms(),
    };
    // Behind a larger cause it is a remark: what the rank does more is part of that cause's time.
    let claims = if cause.first { claims } else { Vec::new() };
    let sure = if waiting.exact { 0.9 } else { 0.8 };
    let finding = Finding::new(&RULE, severity(share), cause, facts.framework());
    let winnable = (!claims.is_empty()).then_some(GAIN);
    Some(finding.about(rank.name.clone()).owning(claims, winnable).sure(sure))
}

/// Claims that add up to this much at most.
fn limited(mut claims: Vec<(Category, f64)>, most: f64) -> Vec<(Category, f64)> {
    let mut left = most;
    for (_, ms) in &mut claims {
        *ms = ms.min(left).max(0.0);
        left -= *ms;
    }
    claims.retain(|(_, ms)| *ms > 0.0);
    claims
}

/// The largest difference to the other ranks.
fn why(facts: &Facts, held: &HeldByOne, most: Option<(Category, f64)>) -> Why {
    let rank = &held.rank;
    let differences = facts.ranks.differences(&rank.host, &rank.inside);
    let explains = |difference: &&Difference| difference.more_ms() >= EXPLAINS * rank.late_ms;
    let first = |sorts: &[Sort]| {
        let of_sort = differences.iter().filter(|difference| sorts.contains(&difference.sort));
        of_sort.filter(explains).max_by(|a, b| a.more_ms().total_cmp(&b.more_ms())).cloned()
    };
    let computes = !rank.inside.is_empty() || most.is_some_and(|(category, _)| category == Category::Compute);
    if computes {
        if let Some((own, usual)) =
            rows(facts, rank).filter(|(own, usual)| *own as f64 >= UNEVEN * *usual as f64)
        {
            return Why::Rows(own, usual);
        }
        let op = first(&[Sort::Op]);
        let only_here = op.as_ref().filter(|op| is_only_here(op));
        let factor = facts.ranks.slower_by(&rank.host, &rank.inside).map(Why::Factor);
        return match (only_here.cloned(), factor, op) {
            (Some(op), _, _) => Why::Work(op),
            (None, Some(factor), _) => factor,
            (None, None, Some(op)) => Why::Work(op),
            (None, None, None) => Why::Category,
        };
    }
    match most.map(|(category, _)| category) {
        Some(Category::Input) => {
            stage(facts, rank.host.as_str()).or_else(|| first(&[Sort::Range, Sort::Python]).map(Why::Work))
        }
        Some(Category::Python) => first(&[Sort::Python, Sort::Range]).map(Why::Work),
        Some(_) => first(&[Sort::Op, Sort::Python, Sort::Range]).map(Why::Work),
        None => Some(Why::Unknown),
    }
    .unwrap_or(Why::Category)
}

/// The rows of a rank's batches and of the others': as ops see them, else as the pipelines say.
fn rows(facts: &Facts, rank: &stepscope_analyze::devices::collectives::RankWaiting) -> Option<(u64, u64)> {
    let of_ops = facts.ranks.rows(&rank.host, &rank.inside);
    of_ops.or_else(|| {
        let mut others = facts.input.of_hosts.iter().filter(|host| host.host != rank.host);
        let own = facts.input.of_hosts.iter().find(|host| host.host == rank.host)?.batch_size?;
        let first = others.next()?.batch_size?;
        others.all(|other| other.batch_size == Some(first)).then_some((own, first))
    })
}

/// The stage that limits the rank's pipeline, with the milliseconds of the slowest stage of the median of the others.
fn stage(facts: &Facts, host: &str) -> Option<Why> {
    let own = facts.input.of_hosts.iter().find(|known| known.host == host)?.clone();
    own.stage.as_ref()?;
    let others = facts.input.of_hosts.iter().filter(|known| known.host != host);
    let mut others: Vec<f64> = others.filter_map(|known| known.stage_ms).collect();
    others.sort_by(f64::total_cmp);
    let usual = stepscope_trace::statistics::quantile(&others, 0.5);
    let slower = own.stage_ms.zip(usual).is_none_or(|(own, usual)| own > usual);
    slower.then_some(Why::Stage(own, usual))
}

/// A rank that arrives late.
#[derive(Clone, Debug)]
pub struct Late {
    /// Who, and how much that costs.
    pub held: HeldByOne,
    /// What it does more than the others.
    pub why: Why,
    /// The category in which it spends most of what it needs more, in milliseconds per step.
    pub most: Option<(Category, f64)>,
    /// Are collectives matched by numbers, rather than by order?
    pub exact: bool,
    /// How well the clocks of the hosts are known; `None` if they share one.
    pub clocks: Option<Precision>,
    /// Ranks that were not recorded.
    pub missing: Option<OneSide>,
    /// Does everything else come after it?
    pub first: bool,
}

impl Cause for Late {
    fn words(&self, finding: &Finding) -> Words {
        let rank = &self.held.rank;
        let name = quoted(&rank.name);
        let others = plural(self.held.of.saturating_sub(1) as u64, "other rank waits", "other ranks wait");
        let cause = self.because().map_or(String::new(), |because| format!(", because {because}"));
        Words {
            summary: format!(
                "Straggler: {name} arrives late at the collectives{cause}; {others} {} per step for it.",
                duration_ms(self.held.waiting_ms)
            ),
            evidence: self.evidence(&name),
            advice: self.advice(finding.framework),
        }
    }

    fn leads(&self) -> bool {
        self.first
    }
}

impl Late {
    /// The end of "it is late, because …".
    fn because(&self) -> Option<String> {
        Some(match &self.why {
            Why::Rows(own, usual) => format!("its batch has {own} rows, those of the others {usual}"),
            Why::Stage(input, _) => {
                let stage = quoted(input.stage.as_deref().unwrap_or("input"));
                if input.at_once == Some(1) {
                    format!("{stage} of its input pipeline runs alone")
                } else {
                    format!("{stage} of its input pipeline is slow")
                }
            }
            Why::Work(work) => {
                let what = name_of(work);
                if is_only_here(work) {
                    format!("it spends {} per step in {what}", duration_ms(work.more_ms()))
                } else {
                    format!("{what} takes {} longer per step", duration_ms(work.more_ms()))
                }
            }
            Why::Factor(factor) => {
                format!("its ops take {} times as long as those of the others", decimal(*factor, 1))
            }
            Why::Category => {
                let (category, ms) = self.most?;
                format!("it spends {} more per step in `{}`", duration_ms(ms), category.key())
            }
            Why::Unknown => return None,
        })
    }

    fn evidence(&self, name: &str) -> Vec<String> {
        let (held, rank) = (&self.held, &self.held.rank);
        let matched = if self.exact { "matched by their numbers" } else { "matched by order and size" };
        let mut said = vec![format!(
            "{name} causes {} of all waiting, and most of it in {} of the steps ({matched}).",
            share(held.causes),
            share(rank.leads)
        )];
        said.push(format!(
            "It arrives {} per step after the last but one; it itself waits {}.",
            duration_ms(rank.late_ms),
            duration_ms(rank.waiting_ms)
        ));
        if let Some((category, ms)) = self.most {
            said.push(format!(
                "It spends {} more per step in `{}` ({}) than the median of the others.",
                duration_ms(ms),
                category.key(),
                words::category(category)
            ));
        }
        said.extend(self.explained());
        said.extend(self.missing.map(missing));
        said.extend(self.clocks.map(on_one_clock));
        said
    }

    fn explained(&self) -> Option<String> {
        Some(match &self.why {
            Why::Work(work) => format!(
                "{} takes {} per step on it, and {} on the median of the others.",
                upper_first(&name_of(work)),
                duration_ms(work.ms),
                duration_ms(work.usual_ms)
            ),
            Why::Stage(input, usual) => {
                let own = input.stage_ms.map_or_else(|| "an unknown time".to_owned(), duration_ms);
                let beside = usual.map_or(String::new(), |ms| {
                    format!("; the slowest stage of the others takes {}", duration_ms(ms))
                });
                format!(
                    "{} takes {own} per batch{beside}.",
                    quoted(input.stage.as_deref().unwrap_or("input"))
                )
            }
            Why::Factor(_) => "It runs the same ops as often as the others.".to_owned(),
            Why::Rows(..) | Why::Category => return None,
            Why::Unknown => "Nothing that was recorded takes longer on it than on the others.".to_owned(),
        })
    }

    fn advice(&self, framework: Framework) -> Vec<String> {
        let mut advice = vec![match &self.why {
            Why::Rows(..) => "Give each rank the same number of rows, or weight the ranks by their speed.".to_owned(),
            Why::Stage(input, _) if input.at_once == Some(1) && tensorflow(framework) => {
                "Let the stage run in parallel: `num_parallel_calls=tf.data.AUTOTUNE`, then `.prefetch(tf.data.AUTOTUNE)`."
                    .to_owned()
            }
            Why::Stage(..) => "Look at what it reads: larger files, a slower disk, fewer cores.".to_owned(),
            Why::Work(work) if is_only_here(work) => {
                "Remove it from this rank, share it among all, or do it outside of the step: the others do not do it."
                    .to_owned()
            }
            Why::Work(_) => "Find out why the same work takes longer there: more data, or a slower machine.".to_owned(),
            Why::Factor(_) => "Look for a larger batch on this rank, other jobs on its machine, a lower clock or fewer \
                               cores: it does the same work more slowly."
                .to_owned(),
            Why::Category | Why::Unknown => {
                "Usual causes: other jobs on the same machine, a throttled device, uneven data, slower storage.".to_owned()
            }
        }];
        if self.held.rank.inside.is_empty() {
            advice.push(format!(
                "Compare `stepscope report PATH --host {}` with the report of another host.",
                // A backtick would end the command.
                shell_word(&self.held.rank.host.replace('`', "."))
            ));
        }
        advice.push("See all ranks side by side: `stepscope ranks PATH`.".to_owned());
        advice
    }
}

/// Whether the others hardly do a piece of work at all, or far less often.
fn is_only_here(work: &Difference) -> bool {
    work.usual_ms < ONLY_HERE * work.ms && work.usual_count < work.count / 2.0
}

fn tensorflow(framework: Framework) -> bool {
    matches!(framework, Framework::TensorFlow | Framework::Keras)
}

/// Work as people call it.
fn name_of(work: &Difference) -> String {
    match work.sort {
        Sort::Op => format!("the op {}", quoted(&work.name)),
        Sort::Python => quoted(&work.name),
        Sort::Range => format!("the range {}", quoted(&work.name)),
    }
}

fn upper_first(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or(String::new(), |first| first.to_uppercase().chain(chars).collect())
}

/// What ranks that were not recorded mean.
pub(in crate::rules) fn missing(side: OneSide) -> String {
    let of = side.of.unwrap_or(side.recorded as u64);
    format!(
        "{} of {of} ranks {} recorded: waiting for another one looks like transfer.",
        side.recorded,
        if side.recorded == 1 { "was" } else { "were" }
    )
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::devices::collectives::RankWaiting;

    use super::*;
    use crate::rules::testing::{speaks, words};

    fn late(why: Why) -> Late {
        let rank = RankWaiting {
            name: "worker/1".into(),
            host: "worker/1".into(),
            late_ms: 30.0,
            leads: 0.9,
            ..RankWaiting::default()
        };
        Late {
            held: HeldByOne { rank, of: 3, causes: 0.97, waiting_ms: 28.0 },
            why,
            most: Some((Category::Compute, 29.0)),
            exact: true,
            clocks: None,
            missing: Some(OneSide { recorded: 2, of: Some(3) }),
            first: true,
        }
    }

    fn work(sort: Sort, usual_ms: f64) -> Why {
        let name = "extra:MatMul".to_owned();
        Why::Work(Difference { sort, name, ms: 30.0, usual_ms, count: 1.0, usual_count: 0.0 })
    }

    #[test]
    fn every_reason_speaks() {
        let stage = |at_once| HostInput {
            host: "worker/1".into(),
            stage: Some("Map".into()),
            stage_ms: Some(80.0),
            at_once,
            batch_size: None,
        };
        for why in [
            Why::Rows(384, 32),
            Why::Stage(stage(Some(1)), Some(2.0)),
            Why::Stage(stage(None), None),
            work(Sort::Op, 0.0),
            work(Sort::Python, 20.0),
            work(Sort::Range, 0.0),
            Why::Factor(2.5),
            Why::Category,
            Why::Unknown,
        ] {
            // Advice about a pipeline is in the language of the framework that has one.
            speaks(&RULE, late(why));
        }
        let said = words(&RULE, late(Why::Stage(stage(Some(1)), None)), Framework::TensorFlow);
        assert!(said.summary.contains("`Map` of its input pipeline runs alone"), "{}", said.summary);
        assert!(said.evidence.iter().any(|line| line.starts_with("2 of 3 ranks were recorded")), "{said:?}");
    }

    #[test]
    fn claims_never_exceed_what_the_rank_is_late() {
        let claims = vec![(Category::Compute, 20.0), (Category::Python, 20.0), (Category::Input, 5.0)];
        assert_eq!(limited(claims, 30.0), [(Category::Compute, 20.0), (Category::Python, 10.0)]);
    }
}
