//! Counts: how many reports of each source are right, and how often each finding fires, leads, and is right.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::judge::{Judgement, Verdict};
use super::report::Report;

/// The source with the synthetic scenes.
pub(crate) const SCENES: &str = "scenes";

/// Results of a source of truth.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub(crate) struct Source {
    /// Which.
    pub(crate) name: String,
    /// How many were judged.
    pub(crate) cases: usize,
    /// In how many the whole truth holds.
    pub(crate) right: usize,
    /// By finding.
    pub(crate) findings: BTreeMap<String, Tally>,
}

/// How often a finding fires, and how often rightly.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct Tally {
    /// Reports that contain it.
    pub(crate) fires: usize,
    /// Those in which it is a warning or worse.
    pub(crate) warns: usize,
    /// Those of which it is the verdict.
    pub(crate) leads: usize,
    /// The truth names it.
    pub(crate) right: usize,
    /// The truth rules it out.
    pub(crate) wrong: usize,
}

impl Source {
    pub(crate) fn new(name: &str) -> Source {
        Source { name: name.to_owned(), ..Source::default() }
    }

    /// Counts a case without a report.
    pub(crate) fn unreadable(&mut self) {
        self.cases += 1;
    }

    /// Counts a report.
    pub(crate) fn add(&mut self, report: &Report, judgement: &Judgement) {
        self.cases += 1;
        self.right += usize::from(judgement.faults.is_empty());
        let first = report.first();
        for (finding, &verdict) in report.findings.iter().zip(&judgement.verdicts) {
            let leads = first.is_some_and(|first| std::ptr::eq(first, finding));
            self.findings.entry(finding.id.clone()).or_default().count(finding.warns(), leads, verdict);
        }
    }
}

impl Tally {
    /// Counts one of its kind.
    pub(crate) fn count(&mut self, warns: bool, leads: bool, verdict: Verdict) {
        self.fires += 1;
        self.warns += usize::from(warns);
        self.leads += usize::from(leads);
        self.right += usize::from(verdict == Verdict::Right);
        self.wrong += usize::from(verdict == Verdict::Wrong);
    }

    fn add(&mut self, other: &Tally) {
        self.fires += other.fires;
        self.warns += other.warns;
        self.leads += other.leads;
        self.right += other.right;
        self.wrong += other.wrong;
    }

    /// The share of judged ones that are right; `None` if none was judged.
    pub(crate) fn precision(&self) -> Option<f64> {
        let judged = self.right + self.wrong;
        (judged > 0).then(|| self.right as f64 / judged as f64)
    }
}

/// The findings of all sources together.
pub(crate) fn together<'a>(sources: impl IntoIterator<Item = &'a Source>) -> BTreeMap<String, Tally> {
    let mut all: BTreeMap<String, Tally> = BTreeMap::new();
    for (id, tally) in sources.into_iter().flat_map(|source| &source.findings) {
        all.entry(id.clone()).or_default().add(tally);
    }
    all
}

fn percent(tally: &Tally) -> String {
    tally.precision().map_or("–".to_owned(), |share| format!("{:.0} %", share * 100.0))
}

/// The tables, in Markdown: by source and by finding.
pub(crate) fn tables(sources: &[Source]) -> String {
    let (recorded, staged): (Vec<&Source>, Vec<&Source>) =
        sources.iter().partition(|source| source.name != SCENES);
    let mut parts = Vec::new();
    if !recorded.is_empty() {
        parts.push(by_source("recordings", &recorded));
        parts.push(by_finding("finding in recordings", &recorded));
    }
    // Scenes of the project's own say less than recordings of others: they never add to the same figure.
    if !staged.is_empty() {
        parts.push(by_source("synthetic scenes", &staged));
        parts.push(by_finding("finding in synthetic scenes", &staged));
    }
    parts.join("\n\n")
}

/// How many reports are right, by source and in all.
fn by_source(title: &str, sources: &[&Source]) -> String {
    let row = |name: &str, right: usize, cases: usize| {
        format!("| {name} | {right} | {cases} | {:.0} % |", 100.0 * right as f64 / cases.max(1) as f64)
    };
    let mut lines = vec![format!("| {title} | right | of | share |"), "|---|---:|---:|---:|".to_owned()];
    if sources.len() > 1 {
        let sum = |of: fn(&Source) -> usize| sources.iter().map(|source| of(source)).sum::<usize>();
        lines.push(row("**all**", sum(|source| source.right), sum(|source| source.cases)));
    }
    lines.extend(sources.iter().map(|source| row(&source.name, source.right, source.cases)));
    lines.join("\n")
}

/// How often each finding is right.
fn by_finding(title: &str, sources: &[&Source]) -> String {
    let mut lines = vec![
        format!("| {title} | fires | warns | leads | right | wrong | unjudged | precision |"),
        "|---|---:|---:|---:|---:|---:|---:|---:|".to_owned(),
    ];
    for (id, tally) in together(sources.iter().copied()) {
        let Tally { fires, warns, leads, right, wrong } = tally;
        let (unjudged, precision) = (fires - right - wrong, percent(&tally));
        lines.push(format!(
            "| `{id}` | {fires} | {warns} | {leads} | {right} | {wrong} | {unjudged} | {precision} |"
        ));
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_is_of_what_was_judged() {
        let mut source = Source::new("runs");
        let tally = source.findings.entry("input-bound".to_owned()).or_default();
        assert_eq!(tally.precision(), None);
        tally.count(true, true, Verdict::Right);
        tally.count(false, false, Verdict::Unjudged);
        tally.count(true, false, Verdict::Wrong);
        assert_eq!(tally.precision(), Some(0.5));
        source.cases = 2;
        source.right = 1;
        let text = tables(&[source]);
        assert!(text.contains("| runs | 1 | 2 | 50 % |"), "{text}");
        assert!(text.contains("| `input-bound` | 3 | 2 | 1 | 1 | 1 | 1 | 50 % |"), "{text}");
    }

    #[test]
    fn recordings_come_first_and_scenes_do_not_raise_their_figure() {
        let of = |name: &str, cases, right| Source { cases, right, ..Source::new(name) };
        let text = tables(&[of(SCENES, 900, 900), of("strangers", 10, 8), of("labelled", 10, 9)]);
        assert!(text.starts_with("| recordings |"), "{text}");
        assert!(text.contains("| **all** | 17 | 20 | 85 % |"), "{text}");
        let (first, scenes) = text.split_once("synthetic scenes").unwrap_or_default();
        assert!(!first.contains("900") && scenes.contains("| scenes | 900 | 900 | 100 % |"), "{text}");
    }
}
