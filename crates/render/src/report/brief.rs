//! The report in a few members, for readers that pay per word: assistants. The same values and sentences as in the JSON
//! form, without the tables that have views of their own.

use serde_json::{Value, json};
use stepscope_diagnose::Finding;
use stepscope_results::report::Report;
use stepscope_results::words::terms;

use super::answer;
use super::json::{Found, breakdown};

/// Verdict, step time, breakdown, and one row per finding.
pub fn brief_json(report: &Report) -> Value {
    let (host, moments) = (report.bound().filter(|host| !host.whole_capture), report.summary.step_ms);
    let finding = |finding: &Finding| {
        json!({
            "id": finding.id(), "about": finding.rule.about.key(), "severity": finding.severity.key(), "subject": finding.subject,
            "fraction": finding.fraction, "gain_ms_per_step": finding.gain_ms, "summary": finding.summary(),
        })
    };
    json!({
        "verdict": answer(report),
        "doubts": answer::doubts(report),
        "steps": {
            "count": report.summary.count,
            "origin": host.map_or("none", |host| terms::origin(host.origin)),
            "mean_ms": moments.map(|moments| moments.mean),
            "median_ms": moments.map(|moments| moments.median),
            "p90_ms": moments.map(|moments| moments.p90),
        },
        "breakdown": breakdown(report).collect::<Vec<_>>(),
        "findings": report.findings.iter().map(finding).collect::<Vec<_>>(),
        "health": report.health.iter().map(|row| row.id).collect::<Vec<_>>(),
    })
}

/// One finding as in the JSON form of the report.
pub fn finding_json(finding: &Finding) -> Value {
    json!(Found::of(finding))
}
