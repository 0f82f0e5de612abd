//! The parts of the binary's report on a recording that the truth covers.

use std::path::Path;
use std::process::Command;

use serde::Deserialize;

/// `stepscope report --json`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Report {
    /// The steps.
    pub(crate) steps: Steps,
    /// The breakdown of the step.
    pub(crate) breakdown: Vec<Share>,
    /// The verdict first.
    pub(crate) findings: Vec<Finding>,
    /// The whole output.
    #[serde(skip)]
    pub(crate) text: String,
}

/// The steps of a report.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Steps {
    pub(crate) median_ms: Option<f64>,
    pub(crate) mean_ms: Option<f64>,
    pub(crate) how: String,
}

/// A category's part of the step.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Share {
    pub(crate) category: String,
    pub(crate) ms_per_step: f64,
    pub(crate) fraction: f64,
}

/// A finding.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Finding {
    pub(crate) id: String,
    #[serde(default)]
    pub(crate) about: String,
    pub(crate) severity: String,
    pub(crate) subject: Option<String>,
    pub(crate) gain_ms_per_step: Option<f64>,
    pub(crate) gain_fraction: Option<f64>,
    pub(crate) summary: String,
    pub(crate) evidence: Vec<String>,
    pub(crate) advice: Vec<String>,
}

/// The verdict of `stepscope compare --json`.
pub(crate) fn compare(binary: &Path, base: &Path, new: &Path) -> Result<String, String> {
    let output = Command::new(binary)
        .args(["compare", "--json"])
        .args([base, new])
        .output()
        .map_err(|error| format!("cannot run {}: {error}", binary.display()))?;
    let verdict = serde_json::from_slice::<serde_json::Value>(&output.stdout).ok();
    let verdict = verdict.and_then(|json| Some(json.get("verdict")?.as_str()?.to_owned()));
    verdict.ok_or_else(|| format!("no comparison: {}", String::from_utf8_lossy(&output.stderr).trim()))
}

impl Report {
    /// Runs the binary over a recording.
    pub(crate) fn of(binary: &Path, recording: &Path) -> Result<Report, String> {
        let output = Command::new(binary)
            .args(["report", "--json"])
            .arg(recording)
            .output()
            .map_err(|error| format!("cannot run {}: {error}", binary.display()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        match serde_json::from_str::<Report>(&text) {
            Ok(report) => Ok(Report { text, ..report }),
            Err(error) => {
                Err(format!("no report: {error}; {}", String::from_utf8_lossy(&output.stderr).trim()))
            }
        }
    }

    /// The first finding that is not about trust.
    pub(crate) fn first(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| !finding.is_about_trust())
    }

    /// The findings about trust.
    pub(crate) fn doubts(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|finding| finding.is_about_trust())
    }

    /// The share of a category, or of several as `a+b`.
    pub(crate) fn share(&self, categories: &str) -> f64 {
        let one = |name: &str| {
            self.breakdown
                .iter()
                .filter(|share| share.category == name)
                .map(|share| share.fraction)
                .sum::<f64>()
        };
        categories.split('+').map(one).sum()
    }
}

impl Finding {
    /// Whether it is about the recording instead of the program.
    pub(crate) fn is_about_trust(&self) -> bool {
        self.about == "trust"
    }

    /// A warning or worse.
    pub(crate) fn warns(&self) -> bool {
        self.severity != "info"
    }

    /// Its whole text.
    pub(crate) fn text(&self) -> String {
        let lines = self.evidence.iter().chain(&self.advice).map(String::as_str);
        std::iter::once(self.summary.as_str()).chain(lines).collect::<Vec<_>>().join("\n")
    }
}
