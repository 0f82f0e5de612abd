//! A compiled program carries large arrays inside itself.
//!
//! # What it means
//! An array that a jitted function takes from its surroundings, instead of getting it as an argument, becomes part of the
//! program: it is compiled, loaded and kept in memory with every variant of the program, and a changed value means a new
//! compilation.
//!
//! # How it is detected
//! Constants of a program that ran take at least {OF_PEAK} of its peak memory, and at least {LARGE} million bytes. The finding
//! promises no time.
//!
//! # How to fix it
//! JAX: pass the array as an argument of the jitted function, or make it inside (`jnp.arange`, `jnp.zeros`).
//!
//! TensorFlow: use a variable or an argument instead of a numpy array in the function's closure.
//!
//! # How to check
//! `stepscope hlo memory PATH --by kind` shows fewer constants.

use stepscope_analyze::vocabulary::Framework;
use stepscope_analyze::work::programs::PeakLine;
use stepscope_text::{bytes, quoted, share};

use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};

/// The rule.
pub static RULE: Rule = Rule {
    id: "large-constants",
    about: About::Cause,
    view: "hlo_memory",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("large_constants.rs"),
};

thresholds! {
    /// Less does not decide whether a model fits.
    OF_PEAK: Share = 0.10;
    /// Smaller arrays are compiled and loaded in no time.
    LARGE: Number = 16.0;
}

/// Constants that are named.
const NAMED: usize = 3;

fn check(facts: &Facts) -> Option<Finding> {
    let ran = facts.programs.programs.iter().filter(|row| row.facts.runs > 0);
    let peaks = ran.filter_map(|row| Some((row, row.facts.peak.as_ref()?)));
    let (row, peak) = peaks.max_by_key(|(_, peak)| peak.constant_bytes)?;
    let constants = peak.constant_bytes as f64;
    (constants >= LARGE * 1e6 && constants >= OF_PEAK * peak.bytes as f64).then(|| {
        let largest = peak.lines.iter().filter(|line| line.kind == "constant").take(NAMED).cloned().collect();
        let cause = Constants {
            program: row.key.name.clone(),
            constants: peak.constant_bytes,
            peak: peak.bytes,
            largest,
        };
        Finding::new(&RULE, Severity::Info, cause, facts.framework()).about(row.key.name.clone()).sure(0.9)
    })
}

/// Arrays inside a program.
#[derive(Clone, Debug)]
pub struct Constants {
    /// The program.
    pub program: String,
    /// Bytes of constants.
    pub constants: u64,
    /// Bytes at its peak.
    pub peak: u64,
    /// The largest, by line of source.
    pub largest: Vec<PeakLine>,
}

impl Cause for Constants {
    fn words(&self, finding: &Finding) -> Words {
        let all = bytes(self.constants as f64);
        let mut evidence = vec![format!(
            "That is {} of what the program keeps at its peak.",
            share(self.constants as f64 / self.peak.max(1) as f64)
        )];
        evidence.extend(self.largest.iter().map(|line| {
            let place =
                if line.source.is_empty() { String::new() } else { format!(" at {}", quoted(&line.source)) };
            format!("{} of {}{place}.", bytes(line.bytes as f64), quoted(&line.shape))
        }));
        let pass = match finding.framework {
            Framework::Jax => {
                "Pass these arrays as arguments of the jitted function instead of using them from outside, or make them \
                 inside it with `jnp`."
            }
            Framework::TensorFlow | Framework::Keras => {
                "Pass these arrays as arguments of the `tf.function`, or keep them in a `tf.Variable`."
            }
            _ => "Pass these arrays as arguments of the compiled function.",
        };
        Words {
            summary: format!(
                "Large constants: {} carries {all} of arrays inside itself.",
                quoted(&self.program)
            ),
            evidence,
            advice: vec![pass.to_owned()],
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

    fn found(constant_bytes: u64, bytes: u64, runs: u64) -> bool {
        let peak = ProgramPeak { bytes, constant_bytes, ..ProgramPeak::default() };
        let facts = ProgramFacts { runs, peak: Some(peak), ..ProgramFacts::default() };
        let programs = vec![ProgramRow { key: ProgramKey::default(), facts }];
        check(&testing::facts(Programs { programs, ..Programs::default() })).is_some()
    }

    #[test]
    fn constants_must_be_large_and_a_notable_part_of_the_peak() {
        assert!(found(16_000_000, 160_000_000, 1));
        assert!(!found(15_999_999, 160_000_000, 1));
        assert!(!found(16_000_000, 160_000_001, 1));
        assert!(!found(16_000_000, 16_000_000, 0), "it never ran");
    }

    #[test]
    fn it_speaks() {
        let line = PeakLine { shape: "f32[4096,4096]".to_owned(), bytes: 67_108_864, ..PeakLine::default() };
        let largest = vec![PeakLine { source: "model.py:7".to_owned(), ..line.clone() }, line];
        speaks(
            &RULE,
            Constants { program: "jit_f".to_owned(), constants: 134_217_728, peak: 400_000_000, largest },
        );
    }
}
