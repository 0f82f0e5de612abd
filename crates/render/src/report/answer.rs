//! The answer, and what makes it less certain. Everything that people read begins with the answer.

use stepscope_diagnose::Finding;
use stepscope_diagnose::rules::{no_steps, too_few_steps};

use stepscope_results::report::Report;

use super::words::{nothing_found, seen};
use crate::format::plural;

/// The answer in one sentence; where there is none, what is wrong with the recording.
pub fn answer(report: &Report) -> String {
    match report.findings.first() {
        Some(finding) if finding.cause.is_noise() => seen(report).unwrap_or_else(|| nothing_found(report)),
        Some(finding) if !finding.explains() => seen(report).unwrap_or_else(|| finding.summary()),
        Some(finding) => finding.summary(),
        None => nothing_found(report),
    }
}

/// What makes the answer less certain, in a few words each. Empty if there is no answer.
pub fn doubts(report: &Report) -> Vec<String> {
    doubtful(report).map(|finding| doubt(report, finding)).collect()
}

/// What makes the answer less certain, in whole sentences. `None` if nothing does, or if there is no answer.
pub(crate) fn caution(report: &Report) -> Option<String> {
    let sentences: Vec<String> = doubtful(report).map(Finding::summary).collect();
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

/// Findings about the recording itself, if something else is the answer.
fn doubtful(report: &Report) -> impl Iterator<Item = &Finding> {
    let answered = report.findings.first().is_some_and(Finding::explains) || seen(report).is_some();
    report.findings.iter().filter(move |finding| answered && !finding.explains())
}

fn doubt(report: &Report, finding: &Finding) -> String {
    if finding.is(&too_few_steps::RULE) {
        let steps = plural(report.summary.count as u64, "step", "steps");
        format!("from {steps}: not proven")
    } else if finding.is(&no_steps::RULE) {
        "no steps found: whole capture".to_owned()
    } else {
        finding.rule.title()
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::steps::How;
    use stepscope_analyze::vocabulary::Framework;
    use stepscope_diagnose::Severity;
    use stepscope_diagnose::rules::startup_profiled;

    use super::super::sample::{input_bound, no_steps as unmarked};
    use super::*;

    #[test]
    fn the_answer_comes_before_the_doubts_about_it() {
        let mut report = input_bound();
        let cause = too_few_steps::FewSteps { count: 11, how: How::Marker("train".to_owned()) };
        let few = Finding::new(&too_few_steps::RULE, Severity::Warning, cause, Framework::TensorFlow);
        report.findings.insert(1, few);
        assert!(answer(&report).starts_with("Input-bound"), "{}", answer(&report));
        assert_eq!(doubts(&report), ["from 11 steps: not proven"]);
        assert_eq!(caution(&report).as_deref(), Some(report.findings[1].summary().as_str()));
    }

    #[test]
    fn set_up_that_takes_most_of_the_time_is_the_answer() {
        let mut report = input_bound();
        let cause =
            startup_profiled::SettingUp { ms: 900.0, share: 0.9, calls: Vec::new(), sampled: Vec::new() };
        let set_up = Finding::new(&startup_profiled::RULE, Severity::Warning, cause, Framework::PyTorch);
        report.findings.insert(0, set_up);
        assert_eq!((answer(&report), caution(&report)), (report.findings[0].summary(), None));
    }

    #[test]
    fn without_an_answer_the_doubt_is_what_there_is_to_say() {
        let report = unmarked();
        assert_eq!((answer(&report), caution(&report)), (report.findings[0].summary(), None));
        let nothing = Report { findings: Vec::new(), ..input_bound() };
        assert_eq!(answer(&nothing), nothing_found(&nothing));
    }
}
