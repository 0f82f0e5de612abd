//! A compiled program nearly fills the device's memory.
//!
//! # What it means
//! The compiler's own plan says what exists at the program's peak. Where that is close to what the device has, a larger batch
//! does not fit, and the compiler may already compute values again to save memory.
//!
//! # How it is detected
//! A program that ran needs at least {FULL} of the memory that the device states. The finding names what exists at the peak by
//! line of source. It promises no time.
//!
//! # How to fix it
//! Temporary values: recompute them (`jax.checkpoint` around the layers that the finding names), or shard their largest
//! dimension over devices. Results: let them take the place of arguments (`donate_argnums`). Arguments: shard parameters and
//! the optimizer's state, or keep them in 16 bits.
//!
//! # How to check
//! `stepscope hlo memory PATH` shows a lower peak.

use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::programs::PeakLine;
use stepscope_text::{bytes, quoted, share};

use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};

/// The rule.
pub static RULE: Rule = Rule {
    id: "hbm-peak",
    about: About::Cause,
    view: "hlo_memory",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("hbm_peak.rs"),
};

thresholds! {
    /// The runtime itself needs a few per cent, and memory is never filled without gaps.
    FULL: Share = 0.85;
}

/// Lines that are named.
const NAMED: usize = 4;

fn check(facts: &Facts) -> Option<Finding> {
    let capacity = facts.programs.capacity?;
    let ran = facts.programs.programs.iter().filter(|row| row.facts.runs > 0);
    let peaks = ran.filter_map(|row| Some((row, row.facts.peak.as_ref()?)));
    let (row, peak) = peaks.max_by_key(|(_, peak)| peak.bytes)?;
    (peak.bytes as f64 >= FULL * capacity as f64).then(|| {
        let cause = Full {
            program: row.key.name.clone(),
            peak: peak.bytes,
            capacity,
            not_given_away: peak.output_bytes.saturating_sub(peak.alias_bytes),
            temporary: peak.temporary_bytes,
            lines: peak.lines.iter().take(NAMED).cloned().collect(),
        };
        Finding::new(&RULE, Severity::Info, cause, facts.framework()).about(row.key.name.clone()).sure(0.9)
    })
}

/// A program that fills the device's memory.
#[derive(Clone, Debug)]
pub struct Full {
    /// The program.
    pub program: String,
    /// Bytes at its peak.
    pub peak: u64,
    /// Bytes of the device.
    pub capacity: u64,
    /// Bytes of results that take no argument's place.
    pub not_given_away: u64,
    /// Bytes of temporary values at the peak.
    pub temporary: u64,
    /// What exists then by line of source, the largest first.
    pub lines: Vec<PeakLine>,
}

impl Cause for Full {
    fn words(&self, finding: &Finding) -> Words {
        let mut evidence: Vec<String> = self
            .lines
            .iter()
            .map(|line| {
                let place = match (line.label.as_str(), line.source.as_str()) {
                    ("", "") => String::new(),
                    (label, "") => format!(" of {}", quoted(label)),
                    ("", source) => format!(" at {}", quoted(source)),
                    (label, source) => format!(" of {} at {}", quoted(label), quoted(source)),
                };
                format!("{}: {}{place}.", line.kind, bytes(line.bytes as f64))
            })
            .collect();
        evidence.push(format!("Temporary values take {} at the peak.", bytes(self.temporary as f64)));
        let jax = finding.framework == Framework::Jax;
        let mut advice = vec![if jax {
            "Compute temporary values of these lines again instead of keeping them: `jax.checkpoint` around their layer; or \
             shard them over devices."
                .to_owned()
        } else {
            "Compute temporary values of these lines again instead of keeping them, or shard them over devices.".to_owned()
        }];
        if self.not_given_away as f64 >= 0.1 * self.peak as f64 {
            let given = bytes(self.not_given_away as f64);
            advice.push(if jax {
                format!("Let {given} of results take the place of arguments: `jax.jit(step, donate_argnums=(0, 1))`.")
            } else {
                format!("Let {given} of results take the place of arguments.")
            });
        }
        Words {
            summary: format!(
                "HBM peak: {} needs {} of {} ({}).",
                quoted(&self.program),
                bytes(self.peak as f64),
                bytes(self.capacity as f64),
                share(self.peak as f64 / self.capacity.max(1) as f64)
            ),
            evidence,
            advice,
        }
    }

    fn refines(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::work::programs::{ProgramFacts, ProgramKey, ProgramPeak, ProgramRow, Programs};

    use super::*;
    use crate::rules::shared::programs::testing;
    use crate::rules::testing::speaks;

    fn found(bytes: u64, capacity: Option<u64>) -> bool {
        let peak = ProgramPeak { bytes, ..ProgramPeak::default() };
        let facts = ProgramFacts { runs: 1, peak: Some(peak), ..ProgramFacts::default() };
        let programs = vec![ProgramRow { key: ProgramKey::default(), facts }];
        check(&testing::facts(Programs { programs, capacity, ..Programs::default() })).is_some()
    }

    #[test]
    fn a_peak_is_held_against_what_the_device_has() {
        assert!(found(85, Some(100)));
        assert!(!found(84, Some(100)));
        assert!(!found(85, None), "unknown, never full");
    }

    #[test]
    fn it_speaks() {
        let line = PeakLine {
            kind: "temporary".into(),
            label: "mlp/dot".into(),
            bytes: 1 << 30,
            ..PeakLine::default()
        };
        let lines = vec![PeakLine { source: "model.py:7".into(), ..line.clone() }, line];
        let cause = Full {
            program: "jit_step".into(),
            peak: 15 << 30,
            capacity: 16 << 30,
            not_given_away: 4 << 30,
            temporary: 6 << 30,
            lines,
        };
        speaks(&RULE, cause);
    }
}
