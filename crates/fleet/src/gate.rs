//! A nightly check: did a job become slower, is more lost than allowed, is enough covered?

use serde::Serialize;
use stepscope_results::fleet::FleetReport;
use stepscope_text::{duration_ms, percent, plural, share};

/// What is allowed.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// How much slower a job may become.
    pub max_regression: f64,
    /// How much of all device time may be lost; anything if `None`.
    pub max_lost: Option<f64>,
    /// How much of the planned hosts must be covered.
    pub min_covered: f64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { max_regression: 0.05, max_lost: None, min_covered: 0.95 }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Check {
    /// What is checked: `regression`, `lost` or `covered`.
    pub check: &'static str,
    /// The job; `None` of all.
    pub job: Option<String>,
    /// Did it pass?
    pub passed: bool,
    /// The figure.
    pub value: Option<f64>,
    /// The limit.
    pub limit: f64,
    /// Both in words.
    pub message: String,
}

/// Checks a report. There is at least one check of each kind that is asked for.
pub fn gate(report: &FleetReport, limits: &Limits) -> Vec<Check> {
    let mut checks = regressions(report, limits);
    checks.extend(limits.max_lost.map(|limit| {
        let lost = report.lost_fraction.unwrap_or(0.0);
        Check {
            check: "lost",
            job: None,
            passed: lost <= limit,
            value: Some(lost),
            limit,
            message: format!(
                "{} of the device time is lost; {} is allowed",
                finely(lost, limit),
                finely(limit, lost)
            ),
        }
    }));
    let covered = report.covered as f64 / report.planned.max(1) as f64;
    let complete = report.missing_shards.is_empty();
    checks.push(Check {
        check: "covered",
        job: None,
        passed: complete && covered >= limits.min_covered && report.planned > 0,
        value: Some(covered),
        limit: limits.min_covered,
        message: format!("covers {}; at least {} is required", report.coverage(), share(limits.min_covered)),
    });
    checks
}

/// A share, with a decimal if it would read like the one that it is compared with.
fn finely(value: f64, other: f64) -> String {
    if share(value) == share(other) { percent(value) } else { share(value) }
}

fn regressions(report: &FleetReport, limits: &Limits) -> Vec<Check> {
    let slower: Vec<Check> = report
        .changes
        .iter()
        .filter(|change| change.change > limits.max_regression)
        .map(|change| {
            let moved = change.category.as_ref().zip(change.category_ms);
            let moved =
                moved.map_or(String::new(), |(name, ms)| format!("; `{name}` moved by {}", duration_ms(ms)));
            Check {
                check: "regression",
                job: Some(change.job.clone()),
                passed: false,
                value: Some(change.change),
                limit: limits.max_regression,
                message: format!(
                    "{} is {} slower since {}: {} to {}{moved}",
                    change.job,
                    share(change.change),
                    change.day,
                    duration_ms(change.before_ms),
                    duration_ms(change.after_ms),
                ),
            }
        })
        .collect();
    if !slower.is_empty() {
        return slower;
    }
    let jobs = plural(report.jobs.len() as u64, "job", "jobs");
    vec![Check {
        check: "regression",
        job: None,
        passed: true,
        value: report.changes.first().map(|change| change.change),
        limit: limits.max_regression,
        message: format!("none of {jobs} is more than {} slower than before", share(limits.max_regression)),
    }]
}
