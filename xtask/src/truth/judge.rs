//! Compares a report with the truth about its recording: what is wrong, in words, and for each finding whether
//! it is right, wrong, or not covered.

use super::entry::{Entry, Label};
use super::report::{Finding, Report};

/// The judgement of one finding.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The truth names it.
    Right,
    /// It leads where it must not, was ruled out, or promises too much.
    Wrong,
    /// The truth does not mention it.
    Unjudged,
}

/// The judgement of a report.
#[derive(Debug, Default)]
pub(crate) struct Judgement {
    /// What is wrong; empty if everything holds.
    pub(crate) faults: Vec<String>,
    /// For each finding in its order.
    pub(crate) verdicts: Vec<Verdict>,
}

/// Tolerance of the median step against the stopwatch: a share, and milliseconds for very short steps.
const STEP_OFF: (f64, f64) = (0.05, 0.02);
/// Tolerance of a part's share against the stopwatch.
const SHARE_OFF: f64 = 0.06;
/// Tolerance of a gain for rounding.
const ROUNDING: f64 = 1.001;

/// Judges by a hand-written entry.
pub(crate) fn by_entry(entry: &Entry, report: &Report) -> Judgement {
    let mut faults = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            faults.push(what);
        }
    };
    if let Some(bounds) = &entry.step_ms {
        let how = &report.steps.how;
        match report.steps.median_ms {
            None => check(entry.no_steps, format!("no steps, not {bounds} ms")),
            Some(ms) => check(bounds.contain(ms), format!("step of {ms:.3} ms ({how}), not {bounds}")),
        }
    }
    if let (Some((low, high)), Some(ms)) = (entry.mean_ms, report.steps.mean_ms) {
        check((low..=high).contains(&ms), format!("mean step of {ms:.3} ms, not {low} to {high}"));
    }
    check(heads_well(entry, report), format!("first is {}, not {}", heads(report), wanted(entry)));
    for finding in report.findings.iter().filter(|finding| ruled_out(entry, finding)) {
        check(false, format!("never {}: {}", finding.id, finding.summary));
    }
    for id in &entry.has {
        check(report.findings.iter().any(|finding| finding.id == *id), format!("no {id}"));
    }
    for pattern in &entry.says {
        check(pattern.is_match(&report.text), format!("does not say {pattern}"));
    }
    for pattern in &entry.not_says {
        let says = |finding: &Finding| {
            pattern.is_match(&finding.text())
                || finding.subject.as_deref().is_some_and(|name| pattern.is_match(name))
        };
        check(!report.findings.iter().any(says), format!("says {pattern}"));
    }
    for (categories, &(low, high)) in &entry.shares {
        let share = report.share(categories);
        let within = (low - 1e-9..=high + 1e-9).contains(&share);
        check(within, format!("{categories} is {share:.3} of the step, not {low} to {high}"));
    }
    if let Some((low, high)) = entry.cap_pct {
        let cap = report.first().and_then(|first| first.gain_fraction).map(|share| share * 100.0);
        let within = cap.is_some_and(|cap| (low..=high).contains(&cap));
        check(within, format!("gain of {cap:?} %, not {low} to {high}"));
    }
    let limit = entry.max_gain_ms.or_else(|| step_or_capture(report));
    faults.extend(too_much(report, limit));
    let first = report.first().map(|first| first.id.clone());
    let accepts = |list: &Option<Vec<String>>, id: &str| {
        list.as_ref().is_some_and(|ids| ids.iter().any(|one| one == id))
    };
    let verdicts = report.findings.iter().map(|finding| {
        let leads = first.as_deref() == Some(finding.id.as_str());
        let named = leads && accepts(&entry.first, &finding.id)
            || finding.is_about_trust() && accepts(&entry.trust, &finding.id)
            || entry.has.contains(&finding.id);
        // If a finding about trust is enough, nothing is known about what follows it.
        let misleads = leads && entry.first.is_some() && !heads_well(entry, report);
        verdict(named, misleads || ruled_out(entry, finding) || exceeds(finding, limit))
    });
    let verdicts = verdicts.collect();
    Judgement { faults, verdicts }
}

/// Judges by what was made slow on purpose, and by the stopwatch.
pub(crate) fn by_label(label: &Label, report: &Report) -> Judgement {
    let mut faults = Vec::new();
    let mut check = |holds: bool, what: String| {
        if !holds {
            faults.push(what);
        }
    };
    if let Some(truth) = median(&label.steps_ms()) {
        let step = report.steps.median_ms;
        let near = step.is_some_and(|ms| (ms - truth).abs() <= STEP_OFF.0 * truth + STEP_OFF.1);
        check(near, format!("step of {step:?} ms, not {truth:.3} as by the stopwatch"));
    }
    for part in ["input", "python", "output"] {
        if let Some(truth) = label.share(part) {
            let share = report.share(part);
            check(
                (share - truth).abs() <= SHARE_OFF,
                format!("{part} is {share:.3} of the step, not {truth:.3}"),
            );
        }
    }
    let first = report.first();
    let led = leads_well(label, report);
    check(led, format!("first is {}, not {}", heads(report), label.bottleneck));
    let healthy = matches!(label.bottleneck.as_str(), "healthy" | "compute");
    for finding in report.findings.iter().filter(|finding| healthy && finding.severity == "critical") {
        check(false, format!("critical in a healthy run: {}", finding.id));
    }
    for finding in report.findings.iter().filter(|finding| ruled_out_by_label(label, finding)) {
        check(false, format!("never {}: {}", finding.id, finding.summary));
    }
    for id in &label.somewhere {
        check(report.findings.iter().any(|finding| finding.id == *id), format!("no {id}"));
    }
    let text = first.map(Finding::text).unwrap_or_default();
    if let Some(pattern) = &label.says {
        check(pattern.is_match(&text), format!("the verdict does not say {pattern}"));
    }
    if let Some(pattern) = &label.says_not {
        check(!pattern.is_match(&text), format!("the verdict says {pattern}"));
    }
    let limit = step_or_capture(report);
    faults.extend(too_much(report, limit));
    let open = label.accepts_any() || label.bottleneck == "memory";
    let verdicts = report.findings.iter().map(|finding| {
        let leads = first.is_some_and(|first| std::ptr::eq(first, finding));
        let named = label.ids().contains(&finding.id.as_str()) || leads && led && !open;
        let critical = healthy && finding.severity == "critical";
        let ruled_out = critical || ruled_out_by_label(label, finding);
        verdict(named, leads && !led && !open || ruled_out || exceeds(finding, limit))
    });
    let verdicts = verdicts.collect();
    Judgement { faults, verdicts }
}

fn ruled_out_by_label(label: &Label, finding: &Finding) -> bool {
    label.never.contains(&finding.id) && finding.warns()
        || label.no_critical && finding.severity == "critical"
}

/// The actual gain of a fixed run against the gain promised for the run before it; `None` if the promise holds.
pub(crate) fn exceeded(before: &Label, promise: &Report, after: &Label) -> Option<String> {
    let difference = |of: fn(&[f64]) -> Option<f64>| Some(of(&before.steps_ms())? - of(&after.steps_ms())?);
    let (median, mean) = (difference(median)?, difference(mean)?);
    let promised = promise.first().and_then(|finding| finding.gain_ms_per_step);
    // Less than a tenth more may be won: two runs are never alike.
    let won = median.min(mean);
    let kept = won <= 0.0 || promised.is_some_and(|gain| won <= gain * 1.1);
    let promised = promised.map_or("nothing".to_owned(), |gain| format!("{gain:.2} ms"));
    (!kept).then(|| format!("won {median:.2} ms (median; mean {mean:.2}) where {promised} was promised"))
}

/// Whether the fix won anything, by the stopwatch: per step, in the mean.
pub(crate) fn faster(before: &Label, after: &Label) -> Option<bool> {
    Some(mean(&after.steps_ms())? < mean(&before.steps_ms())?)
}

fn verdict(named: bool, wrong: bool) -> Verdict {
    match (named, wrong) {
        (_, true) => Verdict::Wrong,
        (true, false) => Verdict::Right,
        (false, false) => Verdict::Unjudged,
    }
}

fn leads_well(label: &Label, report: &Report) -> bool {
    let first = report.first();
    let id = first.map_or("", |first| first.id.as_str());
    match label.bottleneck.strip_prefix("op:") {
        Some(op) => {
            id == "op-dominates"
                && first.and_then(|first| first.subject.as_deref()).is_some_and(|name| name.contains(op))
        }
        None if label.accepts_any() => true,
        None if label.bottleneck == "memory" => {
            report.findings.iter().any(|finding| finding.id == "memory-growth")
        }
        None => label.ids().contains(&id),
    }
}

fn heads_well(entry: &Entry, report: &Report) -> bool {
    let first = report.first().map_or("nothing", |first| first.id.as_str());
    let by_first = entry.first.as_ref().map(|ids| ids.iter().any(|id| id == first));
    let by_trust = entry.trust.as_ref().map(|ids| report.doubts().any(|doubt| ids.contains(&doubt.id)));
    match (by_first, by_trust) {
        (None, None) => true,
        (by_first, by_trust) => by_first.unwrap_or(false) || by_trust.unwrap_or(false),
    }
}

fn ruled_out(entry: &Entry, finding: &Finding) -> bool {
    entry.never.iter().any(|never| match never.strip_suffix('!') {
        Some(id) => finding.id == id,
        None => finding.id == *never && finding.warns(),
    })
}

fn exceeds(finding: &Finding, limit: Option<f64>) -> bool {
    matches!((finding.gain_ms_per_step, limit), (Some(gain), Some(limit)) if limit > 0.0 && gain > limit * ROUNDING)
}

fn too_much(report: &Report, limit: Option<f64>) -> impl Iterator<Item = String> {
    let exceeding = report.findings.iter().filter(move |finding| exceeds(finding, limit));
    exceeding.map(move |finding| {
        let (gain, limit) = (finding.gain_ms_per_step.unwrap_or(0.0), limit.unwrap_or(0.0));
        format!("{} promises {gain:.3} ms of {limit:.3}", finding.id)
    })
}

fn step_or_capture(report: &Report) -> Option<f64> {
    let whole = || report.breakdown.iter().map(|share| share.ms_per_step).sum();
    // Findings are about the mean step.
    Some(report.steps.mean_ms.filter(|ms| *ms > 0.0).unwrap_or_else(whole))
}

fn heads(report: &Report) -> String {
    let doubts = report.doubts().map(|doubt| doubt.id.as_str());
    let first = report.first().map_or("nothing", |first| first.id.as_str());
    [first].into_iter().chain(doubts).collect::<Vec<_>>().join(", ")
}

fn wanted(entry: &Entry) -> String {
    let lists = [&entry.first, &entry.trust].into_iter().flatten().flatten();
    lists.map(String::as_str).collect::<Vec<_>>().join(" or ")
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (low, high) = (sorted.len().checked_sub(1)? / 2, sorted.len() / 2);
    Some((sorted.get(low)? + sorted.get(high)?) / 2.0)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(findings: &[(&str, &str, Option<f64>)]) -> Report {
        let finding = |&(id, severity, gain): &(&str, &str, Option<f64>)| {
            let about = if id == "too-few-steps" { "trust" } else { "cause" };
            json!({"id": id, "about": about, "severity": severity, "gain_ms_per_step": gain, "summary": "it takes 40 ms",
                   "evidence": ["`forward`"], "advice": []})
        };
        let text = json!({"steps": {"median_ms": 100.0, "mean_ms": 120.0, "how": "marked"},
            "breakdown": [{"category": "input", "ms_per_step": 30.0, "fraction": 0.3}],
            "findings": findings.iter().map(finding).collect::<Vec<_>>()})
        .to_string();
        Report { text: text.clone(), ..serde_json::from_str(&text).unwrap() }
    }

    fn faults(entry: serde_json::Value, report: &Report) -> usize {
        let mut entry = entry;
        entry["path"] = json!("a");
        by_entry(&serde_json::from_value(entry).unwrap(), report).faults.len()
    }

    #[test]
    fn an_entry_holds_where_all_of_its_keys_hold() {
        let told = report(&[("too-few-steps", "warning", None), ("input-bound", "warning", Some(30.0))]);
        assert_eq!(faults(json!({"step_ms": [90, 110], "first": ["input-bound"]}), &told), 0);
        assert_eq!(faults(json!({"step_ms": [9, 11], "first": ["host-python"]}), &told), 2);
        assert_eq!(faults(json!({"first": ["host-python"], "trust": ["too-few-steps"]}), &told), 0);
        assert_eq!(faults(json!({"never": ["input-bound"], "max_gain_ms": 20}), &told), 2);
        assert_eq!(faults(json!({"shares": {"input+python": [0.2, 0.4]}, "says": ["40 ms"]}), &told), 0);
        assert_eq!(faults(json!({"not_says": ["^`forward`$"], "has": ["sync-stall"]}), &told), 2);
        assert_eq!(faults(json!({"cap_pct": [0, 90]}), &told), 1, "no cap was given");
    }

    #[test]
    fn a_finding_is_judged_where_the_truth_speaks_of_it() {
        let told = report(&[
            ("input-bound", "critical", Some(300.0)),
            ("host-python", "info", None),
            ("step-variance", "warning", None),
        ]);
        let entry = json!({"path": "a", "first": ["input-bound"], "never": ["step-variance", "host-python"]});
        let judged = by_entry(&serde_json::from_value(entry).unwrap(), &told);
        assert_eq!(judged.verdicts, [Verdict::Wrong, Verdict::Unjudged, Verdict::Wrong]);
        let label: Label = serde_json::from_value(json!({"bottleneck": "host-python"})).unwrap();
        let judged =
            by_label(&label, &report(&[("input-bound", "warning", None), ("host-python", "info", None)]));
        assert_eq!(judged.verdicts, [Verdict::Wrong, Verdict::Right]);
        assert_eq!(judged.faults.len(), 1);
    }

    #[test]
    fn a_fix_may_not_win_more_than_was_promised() {
        let label = |ms: &[f64]| -> Label {
            let steps: Vec<_> = ms.iter().map(|ms| json!({"step": ms / 1e3})).collect();
            serde_json::from_value(json!({"bottleneck": "any", "stopwatch_seconds": steps})).unwrap()
        };
        let (before, after) = (label(&[100.0, 100.0]), label(&[20.0, 30.0]));
        let promise = |gain| report(&[("input-bound", "critical", gain)]);
        assert_eq!(exceeded(&before, &promise(Some(80.0)), &after), None);
        assert!(exceeded(&before, &promise(Some(60.0)), &after).is_some());
        assert!(exceeded(&before, &promise(None), &after).is_some());
    }
}
