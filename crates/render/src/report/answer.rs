//! The answer, and what makes it less certain. Everything that people read begins with the answer.

use stepscope_diagnose::Finding;
use stepscope_diagnose::rules::{no_steps, too_few_steps};

use super::Report;
use crate::format::plural;

impl Report {
    /// Position of the finding that says why the step is slow: the first that explains the recorded time. If there is
    /// none, the first.
    pub fn answering(&self) -> Option<usize> {
        let answer = self.findings.iter().position(Finding::explains);
        answer.or_else(|| (!self.findings.is_empty()).then_some(0))
    }

    /// That finding.
    pub fn leading(&self) -> Option<&Finding> {
        self.findings.get(self.answering()?)
    }

    /// All findings as people read them: first the answer, then the others in their order.
    pub fn answer_first(&self) -> impl Iterator<Item = &Finding> {
        let at = self.answering();
        let others = self.findings.iter().enumerate().filter(move |(place, _)| Some(*place) != at);
        self.leading().into_iter().chain(others.map(|(_, finding)| finding))
    }

    /// The answer in one sentence; where there is none, what is wrong with the recording.
    pub fn answer(&self) -> String {
        match self.leading() {
            Some(finding) if !finding.explains() => self.seen().unwrap_or_else(|| finding.summary()),
            Some(finding) => finding.summary(),
            None => self.nothing_found(),
        }
    }

    /// What makes the answer less certain, in a few words each. Empty if there is no answer.
    pub fn doubts(&self) -> Vec<String> {
        self.doubtful().map(|finding| self.doubt(finding)).collect()
    }

    /// What makes the answer less certain, in whole sentences. `None` if nothing does, or if there is no answer.
    pub fn caution(&self) -> Option<String> {
        let sentences: Vec<String> = self.doubtful().map(Finding::summary).collect();
        (!sentences.is_empty()).then(|| sentences.join(" "))
    }

    /// Findings about the recording itself, if something else is the answer.
    fn doubtful(&self) -> impl Iterator<Item = &Finding> {
        let answered = self.findings.iter().any(Finding::explains) || self.seen().is_some();
        self.findings.iter().filter(move |finding| answered && !finding.explains())
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
    use stepscope_diagnose::rules::startup_profiled;

    use super::super::sample::{input_bound, no_steps as unmarked};
    use super::*;

    #[test]
    fn the_answer_comes_before_the_doubts_about_it() {
        let mut report = input_bound();
        let cause = too_few_steps::FewSteps { count: 11, how: How::Marker("train".to_owned()) };
        let few = Finding::new(&too_few_steps::RULE, Severity::Warning, cause, Framework::TensorFlow);
        report.findings.insert(0, few);
        assert!(report.answer().starts_with("Input-bound"), "{}", report.answer());
        assert_eq!(
            (report.answering(), report.doubts()),
            (Some(1), vec!["from 11 steps: not proven".to_owned()])
        );
        assert_eq!(report.caution().as_deref(), Some(report.findings[0].summary().as_str()));
    }

    #[test]
    fn set_up_that_takes_most_of_the_time_is_the_answer() {
        let mut report = input_bound();
        let cause = startup_profiled::SettingUp { ms: 900.0, share: 0.9, calls: Vec::new() };
        let set_up = Finding::new(&startup_profiled::RULE, Severity::Warning, cause, Framework::PyTorch);
        report.findings.insert(0, set_up);
        assert_eq!((report.answering(), report.caution()), (Some(0), None));
    }

    #[test]
    fn without_an_answer_the_doubt_is_what_there_is_to_say() {
        let report = unmarked();
        assert_eq!((report.answer(), report.caution()), (report.findings[0].summary(), None));
        let nothing = Report { findings: Vec::new(), ..input_bound() };
        assert_eq!((nothing.answering(), nothing.answer()), (None, nothing.nothing_found()));
    }
}
