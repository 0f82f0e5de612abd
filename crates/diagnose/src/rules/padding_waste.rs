//! Compiled programs read, write and keep tiles that are mostly padding.
//!
//! # What it means
//! TPUs store arrays in tiles, such as 8 by 128 elements. A dimension that does not fill its tiles is padded: an array of
//! `[1024, 3]` takes as much memory as one of `[1024, 128]`, and as long to read.
//!
//! # How it is detected
//! Either the padding's share of the bytes that instructions touch, applied to their time, is at least {NOTABLE} of the step;
//! that is also the promise. Or padding is at least {OF_PEAK} of what a program keeps in memory at its peak.
//!
//! # How to fix it
//! Put a large dimension last, and make the last two multiples of the tile: 128 and 8. Join small arrays into one, and pad
//! vocabularies and heads to a multiple of 128.
//!
//! # How to check
//! `stepscope hlo memory PATH` shows less `padding`.

use stepscope_analyze::Category;
use stepscope_analyze::work::programs::ProgramOp;
use stepscope_text::{bytes, share};

use super::shared::programs::lines_of;
use super::shared::{of_step, severity};
use crate::facts::{Facts, ProgramPart};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;

/// The rule.
pub static RULE: Rule = Rule {
    id: "padding-waste",
    about: About::Cause,
    view: "hlo_memory",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("padding_waste.rs"),
};

thresholds! {
    /// With this much, another layout makes room for a noticeably larger batch.
    OF_PEAK: Share = 0.20;
}

/// Programs that keep less have room for their padding.
const SMALL: u64 = 64 << 20;

fn check(facts: &Facts) -> Option<Finding> {
    let saved = |op: &ProgramOp| {
        let (padding, all) = (op.facts.padding_bytes, op.facts.cost.bytes);
        (padding > 0 && all > 0).then(|| op.totals.own.ms() * (padding as f64 / all as f64).min(1.0))
    };
    let part = facts.program_part(saved);
    let owned = part.as_ref().map_or(0.0, |part| of_step(facts, part.ms * part.winnable));
    let memory = in_memory(facts);
    let part = part.filter(|_| owned >= NOTABLE);
    if part.is_none() && memory.is_none() {
        return None;
    }
    let severity = if part.is_some() { severity(owned) } else { Severity::Info };
    let claim = part.as_ref().map(|part| (part.ms, part.winnable));
    let finding = Finding::new(&RULE, severity, Padding { part, memory }, facts.framework()).sure(0.7);
    Some(match claim {
        Some((ms, winnable)) => finding.owning(vec![(Category::Compute, ms)], Some(winnable)),
        None => finding,
    })
}

/// The program that keeps most padding at its peak.
fn in_memory(facts: &Facts) -> Option<PaddedPeak> {
    let ran = facts.programs.programs.iter().filter(|row| row.facts.runs > 0);
    let peaks = ran.filter_map(|row| Some((row, row.facts.peak.as_ref()?)));
    let (row, peak) = peaks.max_by_key(|(_, peak)| peak.padding_bytes)?;
    let part = peak.padding_bytes as f64 / peak.bytes.max(1) as f64;
    (part >= OF_PEAK && peak.padding_bytes >= SMALL).then(|| PaddedPeak {
        program: row.key.name.clone(),
        padding: peak.padding_bytes,
        all: peak.bytes,
    })
}

/// What a program keeps at its peak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaddedPeak {
    /// The program.
    pub program: String,
    /// Bytes of padding.
    pub padding: u64,
    /// All bytes.
    pub all: u64,
}

/// Padding in time, in memory or in both.
#[derive(Clone, Debug)]
pub struct Padding {
    /// Instructions that touch padding, if they take long.
    pub part: Option<ProgramPart>,
    /// Padding at the peak, if it is much.
    pub memory: Option<PaddedPeak>,
}

impl Cause for Padding {
    fn words(&self, finding: &Finding) -> Words {
        let mut evidence = Vec::new();
        if let Some(part) = &self.part {
            evidence.push(format!(
                "{} of the bytes that these instructions touch is padding.",
                share(part.winnable)
            ));
            evidence.extend(lines_of(&part.largest));
        }
        let kept = self.memory.as_ref().map(|memory| {
            format!(
                "`{}` keeps {} of padding at its peak of {}.",
                memory.program,
                bytes(memory.padding as f64),
                bytes(memory.all as f64)
            )
        });
        let summary = match (&self.part, &self.memory) {
            (Some(part), _) => {
                format!(
                    "Padding waste: instructions that touch padded tiles take {}.",
                    finding.owned(part.ms)
                )
            }
            (None, Some(memory)) => format!(
                "Padding waste: {} of the memory at the peak is padding.",
                share(memory.padding as f64 / memory.all.max(1) as f64)
            ),
            (None, None) => "Padding waste: tiles are not filled.".to_owned(),
        };
        evidence.extend(kept);
        Words {
            summary,
            evidence,
            advice: vec![
                "Put a large dimension last, and make the last two multiples of 128 and 8.".to_owned(),
                "See which arrays are padded: `stepscope hlo memory PATH --sort padding_bytes`.".to_owned(),
            ],
        }
    }

    fn refines(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::work::programs::{
        Cost, OpFacts, ProgramFacts, ProgramKey, ProgramPeak, ProgramRow, Programs,
    };

    use super::*;
    use crate::rules::shared::programs::{sample, testing};
    use crate::rules::testing::speaks;

    fn found(share: f64, padding_bytes: u64, kept: u64) -> Option<Finding> {
        let cost = Cost { bytes: 100, ..Cost::default() };
        let ops = vec![testing::op("fusion.1", share, OpFacts { cost, padding_bytes, ..OpFacts::default() })];
        let peak = ProgramPeak { bytes: 1_000 << 20, padding_bytes: kept << 20, ..ProgramPeak::default() };
        let facts = ProgramFacts { runs: 1, peak: Some(peak), ..ProgramFacts::default() };
        let programs = vec![ProgramRow { key: ProgramKey::default(), facts }];
        check(&testing::facts(Programs { ops, programs, ..Programs::default() }))
    }

    #[test]
    fn padding_counts_in_time_and_in_memory() {
        assert!(found(0.21, 50, 0).is_some(), "half of a fifth of the time");
        assert!(found(0.19, 50, 0).is_none());
        let kept = found(0.19, 50, 201);
        assert!(kept.is_some_and(|finding| finding.claims.is_empty()), "memory is no time");
        assert!(found(0.19, 50, 199).is_none());
    }

    #[test]
    fn it_speaks() {
        let memory = PaddedPeak { program: "jit_step".to_owned(), padding: 3 << 30, all: 12 << 30 };
        speaks(&RULE, Padding { part: Some(sample()), memory: Some(memory.clone()) });
        speaks(&RULE, Padding { part: None, memory: Some(memory) });
    }
}
