//! Shards: the parts of a plan that the tasks of a Slurm or Kubernetes array take, and which of them are there.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::FleetError;
use crate::plan::Work;

/// One of several equal parts of a plan, counted from 0.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which one.
    pub index: u32,
    /// How many there are.
    pub of: u32,
}

impl Shard {
    /// From `i/n`, counted from 0.
    pub fn parse(text: &str) -> Result<Self, FleetError> {
        let parts =
            text.split_once('/').and_then(|(index, of)| Some((index.parse().ok()?, of.parse().ok()?)));
        Self::valid(parts).ok_or_else(|| {
            FleetError::Usage(format!(
                "--shard {text} is not a shard; found no I/N with I below N; give --shard 0/8"
            ))
        })
    }

    /// From the variables of a Slurm array or an indexed Kubernetes job. Slurm arrays need not start at 0; Kubernetes
    /// does not say how many completions there are, so `of` must.
    pub fn from_environment(of: Option<u32>, variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        let number = |name: &str| variable(name).and_then(|value| value.trim().parse::<u32>().ok());
        let slurm = || {
            let least = number("SLURM_ARRAY_TASK_MIN").unwrap_or(0);
            let index = number("SLURM_ARRAY_TASK_ID")?.checked_sub(least)?;
            Self::valid(Some((index, of.or_else(|| number("SLURM_ARRAY_TASK_COUNT"))?)))
        };
        slurm().or_else(|| Self::valid(number("JOB_COMPLETION_INDEX").zip(of)))
    }

    fn valid(parts: Option<(u32, u32)>) -> Option<Self> {
        parts.filter(|(index, of)| index < of).map(|(index, of)| Shard { index, of })
    }

    /// Its work. Every `of`-th piece, so that the large ones, which stand together, are spread.
    pub fn of_plan(self, works: &[Work]) -> Vec<Work> {
        works.iter().skip(self.index as usize).step_by(self.of.max(1) as usize).cloned().collect()
    }

    /// The name of its file.
    pub fn file_name(self) -> String {
        format!("shard-{:05}-of-{:05}.part", self.index, self.of)
    }
}

/// The shards that a partial holds, by the id of their plan.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Shards(BTreeMap<String, BTreeMap<u32, BTreeSet<u32>>>);

impl Shards {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn add(&mut self, plan: &str, shard: Shard) {
        self.0.entry(plan.to_owned()).or_default().entry(shard.of).or_default().insert(shard.index);
    }

    pub(crate) fn has(&self, plan: &str, shard: Shard) -> bool {
        self.0
            .get(plan)
            .and_then(|parts| parts.get(&shard.of))
            .is_some_and(|have| have.contains(&shard.index))
    }

    pub(crate) fn merge(&mut self, other: &Shards) {
        for (plan, parts) in &other.0 {
            for (of, have) in parts {
                self.0.entry(plan.clone()).or_default().entry(*of).or_default().extend(have);
            }
        }
    }

    /// The shards that are not there, in words: `3 of 10`. A plan that is complete in one division misses none.
    pub(crate) fn missing(&self) -> Vec<String> {
        let of_plan = |parts: &BTreeMap<u32, BTreeSet<u32>>| {
            let best = parts.iter().min_by_key(|(of, have)| (**of as usize).saturating_sub(have.len()));
            let missing = best.into_iter().flat_map(|(of, have)| {
                // A hostile count must not make a list of four thousand million names.
                (0..*of)
                    .filter(|index| !have.contains(index))
                    .take(1_000)
                    .map(move |index| format!("{index} of {of}"))
            });
            missing.collect::<Vec<String>>()
        };
        self.0.values().flat_map(of_plan).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_come_from_the_option_or_from_the_scheduler() {
        assert_eq!(Shard::parse("3/8").unwrap(), Shard { index: 3, of: 8 });
        assert!(Shard::parse("8/8").is_err() && Shard::parse("x").is_err());
        let slurm = |name: &str| {
            let values = [
                ("SLURM_ARRAY_TASK_ID", "12"),
                ("SLURM_ARRAY_TASK_MIN", "10"),
                ("SLURM_ARRAY_TASK_COUNT", "4"),
            ];
            values.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned())
        };
        assert_eq!(Shard::from_environment(None, slurm), Some(Shard { index: 2, of: 4 }));
        let kubernetes = |name: &str| (name == "JOB_COMPLETION_INDEX").then(|| "5".to_owned());
        assert_eq!(Shard::from_environment(Some(8), kubernetes), Some(Shard { index: 5, of: 8 }));
        assert_eq!(Shard::from_environment(None, kubernetes), None);
        assert_eq!(Shard::from_environment(Some(8), |_| None), None);
    }

    #[test]
    fn missing_shards_are_named_and_order_does_not_matter() {
        let mut first = Shards::default();
        first.add("p", Shard { index: 0, of: 4 });
        let mut second = Shards::default();
        second.add("p", Shard { index: 3, of: 4 });
        second.add("p", Shard { index: 3, of: 4 });
        let mut other = second.clone();
        first.merge(&second);
        assert_eq!(first.missing(), ["1 of 4", "2 of 4"]);
        let mut again = Shards::default();
        again.add("p", Shard { index: 0, of: 4 });
        other.merge(&again);
        assert_eq!(first, other);
        first.add("p", Shard { index: 0, of: 1 });
        assert!(first.missing().is_empty(), "all of it, in another division");
    }
}
