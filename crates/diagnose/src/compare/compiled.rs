//! Compiled programs of both sides: the same work done slower is another story than more work. Parts of the model are matched by
//! scope, operation and phase; names of instructions and numbers of lines change with every edit.

use std::collections::BTreeMap;

use super::side::ComparedRun;

/// What one part of the model costs per step: an operation in a scope, with its phase.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PartCost {
    /// Scopes and operation, or the file of source: `mlp/dot_general`.
    pub name: String,
    /// Forward, backward, recomputation or optimizer.
    pub phase: &'static str,
    /// The line of source that costs most; empty if unknown.
    pub source: String,
    /// Milliseconds per step.
    pub ms: f64,
    /// Operations per step; `None` if part of them is unknown.
    pub flops: Option<f64>,
    /// Bytes per step; `None` if part of them is unknown.
    pub bytes: Option<f64>,
}

/// A part of the model on both sides.
#[derive(Clone, Debug, PartialEq)]
pub struct PartDelta {
    /// BASE; `None` if it is new.
    pub base: Option<PartCost>,
    /// NEW; `None` if it is gone.
    pub new: Option<PartCost>,
}

/// What changed about a part.
#[derive(Copy, Clone, Debug, PartialEq)]
pub enum PartChange {
    /// NEW only.
    Added,
    /// BASE only.
    Removed,
    /// Another amount of work: NEW over BASE, in operations or, without any, in bytes.
    Work(f64),
    /// The same work at another speed: NEW over BASE in time.
    Speed(f64),
    /// What the work is, is unknown: NEW over BASE in time.
    Unknown(f64),
}

/// Amounts of work that differ by less are the same: programs are compiled anew, and constants folded otherwise.
const SAME_WORK: f64 = 0.01;

impl PartDelta {
    fn either(&self) -> Option<&PartCost> {
        self.new.as_ref().or(self.base.as_ref())
    }

    /// Scopes and operation.
    pub fn name(&self) -> &str {
        self.either().map_or("", |cost| &cost.name)
    }

    /// The phase.
    pub fn phase(&self) -> &'static str {
        self.either().map_or("", |cost| cost.phase)
    }

    /// The line of source, on NEW if it is there.
    pub fn source(&self) -> &str {
        self.either().map_or("", |cost| &cost.source)
    }

    /// Milliseconds per step of both sides.
    pub fn ms(&self) -> (f64, f64) {
        let ms = |side: &Option<PartCost>| side.as_ref().map_or(0.0, |cost| cost.ms);
        (ms(&self.base), ms(&self.new))
    }

    /// NEW less BASE, in milliseconds per step.
    pub fn delta_ms(&self) -> f64 {
        self.ms().1 - self.ms().0
    }

    /// Why the time differs.
    pub fn change(&self) -> PartChange {
        let (Some(base), Some(new)) = (&self.base, &self.new) else {
            return if self.base.is_none() { PartChange::Added } else { PartChange::Removed };
        };
        let ratio = |base: Option<f64>, new: Option<f64>| match (base, new) {
            (Some(base), Some(new)) if base > 0.0 && new > 0.0 => Some(new / base),
            _ => None,
        };
        let time = if base.ms > 0.0 { new.ms / base.ms } else { 1.0 };
        match ratio(base.flops, new.flops).or_else(|| ratio(base.bytes, new.bytes)) {
            Some(work) if (work - 1.0).abs() > SAME_WORK => PartChange::Work(work),
            Some(_) => PartChange::Speed(time),
            None => PartChange::Unknown(time),
        }
    }
}

/// The parts of both sides, the largest change first. Runs of a side are averaged.
pub(super) fn match_parts(base: &[ComparedRun], new: &[ComparedRun]) -> Vec<PartDelta> {
    let (mut base, mut new) = (averaged(base), averaged(new));
    if base.is_empty() || new.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<PartDelta> = Vec::new();
    while let Some((key, cost)) = base.pop_first() {
        found.push(PartDelta { base: Some(cost), new: new.remove(&key) });
    }
    found.extend(new.into_values().map(|cost| PartDelta { base: None, new: Some(cost) }));
    found.sort_by(|a, b| {
        let size = |delta: &PartDelta| delta.delta_ms().abs();
        size(b).total_cmp(&size(a)).then_with(|| (a.name(), a.phase()).cmp(&(b.name(), b.phase())))
    });
    found
}

fn averaged(runs: &[ComparedRun]) -> BTreeMap<(String, &'static str), PartCost> {
    let mut all: BTreeMap<(String, &'static str), PartCost> = BTreeMap::new();
    let share = 1.0 / runs.len().max(1) as f64;
    for part in runs.iter().flat_map(|run| &run.parts) {
        let sum = |own: Option<f64>, other: Option<f64>| Some(own? + other? * share);
        let own = all.entry((part.name.clone(), part.phase)).or_insert_with(|| PartCost {
            ms: 0.0,
            flops: Some(0.0),
            bytes: Some(0.0),
            ..part.clone()
        });
        own.ms += part.ms * share;
        own.flops = sum(own.flops, part.flops);
        own.bytes = sum(own.bytes, part.bytes);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(parts: &[(&str, f64, Option<f64>)]) -> ComparedRun {
        let part = |&(name, ms, flops): &(&str, f64, Option<f64>)| PartCost {
            name: name.to_owned(),
            ms,
            flops,
            ..PartCost::default()
        };
        ComparedRun { parts: parts.iter().map(part).collect(), ..ComparedRun::default() }
    }

    #[test]
    fn more_work_is_told_from_slower_work() {
        let base = [run(&[
            ("mlp", 10.0, Some(100.0)),
            ("head", 5.0, Some(50.0)),
            ("gone", 1.0, None),
            ("call", 2.0, None),
        ])];
        let new = [run(&[
            ("mlp", 12.0, Some(100.5)),
            ("head", 5.4, Some(54.0)),
            ("added", 3.0, None),
            ("call", 2.2, None),
        ])];
        let found = match_parts(&base, &new);
        let change = |name: &str| found.iter().find(|part| part.name() == name).map(PartDelta::change);
        assert_eq!(change("mlp"), Some(PartChange::Speed(1.2)));
        assert_eq!(change("head"), Some(PartChange::Work(1.08)));
        assert_eq!(change("gone"), Some(PartChange::Removed));
        assert_eq!(change("added"), Some(PartChange::Added));
        assert!(matches!(change("call"), Some(PartChange::Unknown(_))));
        assert_eq!(found[0].name(), "added", "the largest change first");
    }

    #[test]
    fn runs_of_a_side_are_averaged_and_one_side_alone_says_nothing() {
        let runs = [run(&[("mlp", 10.0, Some(100.0))]), run(&[("mlp", 20.0, Some(100.0))])];
        let found = match_parts(&runs, &runs);
        assert_eq!(found[0].ms(), (15.0, 15.0));
        assert_eq!(found[0].base.as_ref().and_then(|cost| cost.flops), Some(100.0));
        assert!(match_parts(&runs, &[]).is_empty());
    }
}
