//! The answer and what makes it less certain, for readers that show both at once, such as the page.

use stepscope_diagnose::Finding;
use stepscope_diagnose::rules::{no_steps, too_few_steps};

use super::Report;
use crate::format::plural;

impl Report {
    /// Position of the finding that says why the step is slow: the first that is not about the recording itself. If
    /// there is none, the first.
    pub fn answering(&self) -> Option<usize> {
        let answer = self.findings.iter().position(|finding| !finding.is_about_trust());
        answer.or_else(|| (!self.findings.is_empty()).then_some(0))
    }

    /// The answer in one sentence; where there is none, what is wrong with the recording.
    pub fn answer(&self) -> String {
        match self.answering().and_then(|at| self.findings.get(at)) {
            Some(finding) if finding.is_about_trust() => self.seen().unwrap_or_else(|| finding.summary()),
            Some(finding) => finding.summary(),
            None => self.verdict(),
        }
    }

    /// What makes the answer less certain, in a few words each. Empty if there is no answer.
    pub fn doubts(&self) -> Vec<String> {
        let answered = self.findings.iter().any(|finding| !finding.is_about_trust()) || self.seen().is_some();
        let doubts = self.findings.iter().filter(|finding| answered && finding.is_about_trust());
        doubts.map(|finding| self.doubt(finding)).collect()
    }

    fn doubt(&self, finding: &Finding) -> String {
        if finding.is(&too_few_steps::RULE) {
            let steps = plural(self.summary.count as u64, "step", "steps");
            format!("from {steps}: not proven")
        } else if finding.is(&no_steps::RULE) {
            "no steps found: whole capture".to_owned()
        } else {
            finding.rule.title()
        }
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::steps::How;
    use stepscope_analyze::vocabulary::Framework;
    use stepscope_diagnose::Severity;

    use super::super::sample::{input_bound, no_steps as unmarked};
    use super::*;

    #[test]
    fn the_answer_comes_before_the_doubts_about_it() {
        let mut report = input_bound();
        let cause = too_few_steps::FewSteps { count: 11, how: How::Marker("train".to_owned()) };
        let few = Finding::new(&too_few_steps::RULE, Severity::Warning, cause, Framework::TensorFlow);
        report.findings.insert(0, few);
        assert!(report.verdict().starts_with("Too few steps"));
        assert!(report.answer().starts_with("Input-bound"), "{}", report.answer());
        assert_eq!(
            (report.answering(), report.doubts()),
            (Some(1), vec!["from 11 steps: not proven".to_owned()])
        );
    }

    #[test]
    fn without_an_answer_the_doubt_is_what_there_is_to_say() {
        let report = unmarked();
        assert_eq!((report.answer(), report.doubts()), (report.verdict(), Vec::new()));
        let nothing = Report { findings: Vec::new(), ..input_bound() };
        assert_eq!((nothing.answering(), nothing.answer()), (None, nothing.verdict()));
    }
}
