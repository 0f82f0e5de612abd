//! One run in a few words and figures: what a list of runs shows of each.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use serde::{Deserialize, Serialize};
use stepscope_analyze::vocabulary::Framework;
use stepscope_read::Progress;
use stepscope_render::report;
use stepscope_results::report::Report;
use stepscope_results::words::terms;
use stepscope_session::report::{judge, look};
use stepscope_session::{PerHost, Problem};

use crate::store::Find;

/// One run in short. Its figures are those of its report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Summary {
    /// The answer in one sentence; empty if it cannot be read.
    headline: String,
    severity: String,
    /// The id of the finding that the answer is about.
    finding: Option<String>,
    doubts: Vec<String>,
    /// Median step time in milliseconds.
    step_ms: Option<f64>,
    /// Mean step time in milliseconds: the step of the report, which findings and the breakdown are about.
    #[serde(default)]
    mean_ms: Option<f64>,
    steps: u64,
    /// Category and its share of the mean step, largest first.
    breakdown: Vec<(String, f64)>,
    /// Name of each kind of device and how many there are.
    devices: Vec<(String, u64)>,
    framework: Option<String>,
    /// The types of its ops that take most time, by name: runs of one program share them.
    #[serde(default)]
    ops: Vec<String>,
    /// When it was recorded, in milliseconds since 1970, if the recording says so.
    began_ms: Option<f64>,
    events: u64,
    /// Part of it could not be read.
    damaged: bool,
    /// Why it cannot be read at all.
    problem: Option<String>,
}

impl Summary {
    /// Reads a run, host by host, and keeps only this.
    pub(crate) fn of(find: Find) -> Summary {
        let read = catch_unwind(AssertUnwindSafe(|| Summary::read(find)));
        match read {
            Ok(Ok(summary)) => summary,
            Ok(Err(problem)) => Summary::failed(problem.parts().first().map_or("", String::as_str)),
            Err(_) => Summary::failed("an internal error"),
        }
    }

    /// A run whose files disappeared meanwhile.
    pub(crate) fn gone() -> Summary {
        Summary::failed("its files are gone")
    }

    fn failed(why: &str) -> Summary {
        Summary { problem: Some(why.to_owned()), severity: "warning".to_owned(), ..Summary::default() }
    }

    fn read(find: Find) -> Result<Summary, Problem> {
        let (path, progress) = (find.path.clone(), Progress::default());
        let Some(chosen) = find.chosen else {
            let profile = stepscope_session::Profile::read(
                find.name.clone(),
                vec![find.name],
                vec![(stepscope_session::SAMPLE_HOST.to_owned(), Ok(stepscope_session::sample()))],
                &progress,
            )?;
            let report = stepscope_session::report::report(&profile, vec![path])?;
            return Ok(Summary::from_report(&report, None, false));
        };
        let looked = PerHost::at(chosen, &progress, |loaded| look(&loaded))?;
        let wall = looked.hosts.iter().filter_map(|(_, host)| host.wall()).map(|wall| wall.seconds().0);
        let began = wall.reduce(f64::min).map(|seconds| seconds * 1e3);
        let (report, problems) = judge(looked, vec![path])?;
        Ok(Summary::from_report(&report, began, !problems.is_empty()))
    }

    fn from_report(report: &Report, began_ms: Option<f64>, damaged: bool) -> Summary {
        let finding = report.findings.first();
        let summary = &report.summary;
        let mut breakdown: Vec<(String, f64)> = summary
            .breakdown_ms
            .iter()
            .map(|(category, _)| (category.key().to_owned(), summary.fraction(*category)))
            .collect();
        breakdown.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut devices: BTreeMap<String, u64> = BTreeMap::new();
        for device in summary.hosts.iter().flat_map(|host| &host.devices) {
            let kind = || terms::device_kind(device.kind).to_uppercase();
            let name = if device.name.is_empty() { kind() } else { device.name.clone() };
            *devices.entry(name).or_default() += 1;
        }
        let framework = summary.bound().map(|host| host.framework);
        let framework = framework.filter(|framework| *framework != Framework::Unknown);
        Summary {
            headline: report::answer(report),
            severity: finding.map_or("info", |finding| finding.severity.key()).to_owned(),
            finding: finding.map(|finding| finding.id().to_owned()),
            doubts: report::doubts(report),
            step_ms: summary.step_ms.map(|moments| moments.median),
            mean_ms: summary.step_ms.map(|moments| moments.mean),
            steps: summary.count as u64,
            breakdown,
            devices: devices.into_iter().collect(),
            framework: framework.map(|framework| terms::framework(framework).to_owned()),
            ops: op_types(report),
            began_ms,
            events: report.sources.iter().map(|source| source.events).sum(),
            damaged,
            problem: None,
        }
    }
}

/// How many types of ops describe a program.
const TYPES: usize = 16;

/// The types of ops that take most time, sorted by name.
fn op_types(report: &Report) -> Vec<String> {
    let mut types: Vec<String> = Vec::new();
    for op in &report.ops {
        if types.len() < TYPES && !types.contains(&op.op_type) {
            types.push(op.op_type.clone());
        }
    }
    types.sort();
    types
}
