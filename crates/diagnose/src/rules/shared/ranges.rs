//! Named ranges where nothing else shows what the program does: the words that several rules say about them.

use stepscope_text::{duration_ms, quoted, share};

use super::of_step;
use crate::facts::Facts;
use crate::thresholds::NOTABLE;

/// Ranges in evidence.
const NAMED: usize = 5;

/// The program's own ranges around unrecorded time, longest first.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ranges {
    /// Name, milliseconds per step, share of the step.
    pub named: Vec<(String, f64, f64)>,
}

impl Ranges {
    /// Those that take a notable share of the step.
    pub(in crate::rules) fn of(facts: &Facts) -> Self {
        let all = facts.ranges.ms_per_step();
        let named = all.iter().map(|(name, ms)| (name.clone(), *ms, of_step(facts, *ms)));
        let named = named.filter(|(.., share)| *share >= NOTABLE).take(NAMED);
        Ranges { named: named.collect() }
    }

    /// `; the range `find_centers` takes 67.7 ms (52 %)`, or nothing.
    pub(in crate::rules) fn largest(&self) -> String {
        self.named.first().map_or(String::new(), |(name, ms, part)| {
            format!("; the range {} takes {} ({})", quoted(name), duration_ms(*ms), share(*part))
        })
    }

    /// One line per range.
    pub(in crate::rules) fn evidence(&self) -> impl Iterator<Item = String> + '_ {
        self.named.iter().map(|(name, ms, part)| {
            format!("Range {}: {} ({}).", quoted(name), duration_ms(*ms), share(*part))
        })
    }

    #[cfg(test)]
    pub(in crate::rules) fn sample() -> Self {
        Ranges { named: vec![("find_centers".into(), 67.7, 0.52), ("backbone".into(), 30.0, 0.23)] }
    }
}
