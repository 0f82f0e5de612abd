//! Everything that a report on a recording shows: the verdict's findings and their evidence.

use stepscope_analyze::Category;
use stepscope_analyze::curves::place::Placed;
use stepscope_analyze::devices::collectives::clock::Clocks;
use stepscope_analyze::devices::gpu_samples::GpuSamples;
use stepscope_analyze::recording::health::Issue;
use stepscope_analyze::time::summary::{HostSummary, Summary};
use stepscope_analyze::time::typical_step::StepPicture;
use stepscope_diagnose::Finding;
use stepscope_trace::series::Series;
use stepscope_trace::{Delivers, Format};

use crate::views::health;

/// Everything that `report` shows.
#[derive(Clone, Debug)]
pub struct Report {
    /// The paths as the user wrote them, for the commands to run next.
    pub targets: Vec<String>,
    /// The session that was used.
    pub session: String,
    /// All sessions found, newest first.
    pub sessions: Vec<String>,
    /// The files.
    pub sources: Vec<SourceRow>,
    /// Problems of the recording, worst first.
    pub health: Vec<HealthRow>,
    /// Steps and their breakdown.
    pub summary: Summary,
    /// The program's own ranges around time of which nothing else is known, longest first; empty if something else shows
    /// where the time goes.
    pub ranges: Vec<RangeRow>,
    /// Ops, most expensive first.
    pub ops: Vec<OpRow>,
    /// How much of the peak the steps reach; `None` if peaks or programs are unknown.
    pub usage: Option<UsageRow>,
    /// Findings, the verdict first.
    pub findings: Vec<Finding>,
    /// GPU samples recorded beside the run.
    pub gpu_samples: Vec<GpuSamples>,
    /// The profiled kernel with the longest time.
    pub profiled: Option<Profiled>,
    /// How the hosts' clocks stand to one another; `None` if there is one clock, or nothing to compare.
    pub clocks: Option<Clocks>,
    /// The run whose curves lie beside the profile.
    pub run: Option<LoggedRun>,
    /// Who holds memory, in one line; `None` if no source is about memory.
    pub memory: Option<String>,
    /// A typical step of the host that limits the run, for pages; `None` if nobody asked for it.
    pub picture: Option<StepPicture>,
}

/// A range of the program's own, without the ranges nested in it.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct RangeRow {
    /// Its name.
    pub name: String,
    /// Milliseconds of the mean step.
    pub ms_per_step: f64,
    /// Share of the mean step.
    pub fraction: f64,
}

/// Ranges with less of the step are not worth a line.
const LEAST_RANGE: f64 = 0.005;

impl RangeRow {
    /// Rows of names with milliseconds per step, of a step of this length.
    pub fn of(ranges: Vec<(String, f64)>, step_ms: f64) -> Vec<RangeRow> {
        let row = |(name, ms_per_step): (String, f64)| {
            let fraction = if step_ms > 0.0 { ms_per_step / step_ms } else { 0.0 };
            RangeRow { name, ms_per_step, fraction }
        };
        ranges.into_iter().map(row).filter(|row| row.fraction >= LEAST_RANGE).collect()
    }
}

impl Report {
    /// Whether a source shows what ran when.
    pub fn has_timeline(&self) -> bool {
        let most = self.sources.iter().map(|source| source.format.delivers).min();
        most.is_none_or(|most| most <= Delivers::Runs)
    }

    /// True if no source shows more than this.
    pub fn only(&self, delivers: Delivers) -> bool {
        self.sources.iter().map(|source| source.format.delivers).min() == Some(delivers)
    }

    /// The breakdown of the step, largest share first: category, milliseconds, share.
    pub fn by_share(&self) -> Vec<(Category, f64, f64)> {
        let mut rows: Vec<(Category, f64, f64)> = self
            .summary
            .breakdown_ms
            .iter()
            .map(|&(category, ms)| (category, ms, self.summary.fraction(category)))
            .collect();
        rows.sort_by(|a, b| b.1.total_cmp(&a.1));
        rows
    }

    /// The host that limits the run.
    pub fn bound(&self) -> Option<&HostSummary> {
        self.summary.bound()
    }

    /// What the breakdown splits: the step or the capture.
    pub fn breakdown_of(&self) -> &'static str {
        if self.summary.step_ms.is_some() { "step" } else { "capture" }
    }
}

/// The run that a profile is part of, by event files beside it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoggedRun {
    /// Its name.
    pub name: String,
    /// Is it known how fast its steps were?
    pub has_pace: bool,
    /// Is it known when the profile was recorded?
    pub has_clock: bool,
    /// The profile's place on its curves; `None` if that is not known, or if nothing was logged at the time.
    pub placed: Option<Placed>,
    /// The values that say most about it, thinned to what a small chart shows.
    pub curves: Vec<Series>,
}

/// How close a profiled kernel comes to the device's peak.
#[derive(Clone, Debug, PartialEq)]
pub struct Profiled {
    /// The kernel.
    pub kernel: String,
    /// Its share of all profiled time.
    pub fraction: f64,
    /// Utilisation of the busiest compute unit, as a share of its peak.
    pub compute: Option<f64>,
    /// The same for the busiest memory unit.
    pub memory: Option<f64>,
    /// The same for device memory.
    pub dram: Option<f64>,
    /// Kernels whose time was not collected: short names.
    pub untimed: Vec<String>,
}

/// A file that was read.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SourceRow {
    /// Its path.
    pub path: String,
    /// Its format.
    pub format: &'static Format,
    /// Its size.
    pub bytes: u64,
    /// Host on which it was recorded.
    pub host: String,
    /// Number of events.
    pub events: u64,
}

/// A problem of the recording, in words.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct HealthRow {
    /// Public id.
    pub id: &'static str,
    /// `error`, `warning` or `info`.
    pub severity: &'static str,
    /// What is wrong, and how to fix it.
    pub message: String,
}

impl HealthRow {
    /// The words for one problem.
    pub fn of(issue: &Issue) -> Self {
        let worded = health::words(issue);
        let message = match worded.fix {
            Some(fix) => format!("{}; fix: {fix}", worded.message),
            None => worded.message,
        };
        HealthRow { id: issue.trouble.id(), severity: health::severity(issue.trouble.severity()), message }
    }
}

/// One op, over the counted steps.
#[derive(Clone, Debug, PartialEq)]
pub struct OpRow {
    /// Its full name, including the scope.
    pub name: String,
    /// Its type.
    pub op_type: String,
    /// True if it ran on a device, false if on the host.
    pub on_device: bool,
    /// Number of executions.
    pub count: u64,
    /// Time from start to end, in milliseconds.
    pub total_ms: f64,
    /// Time without nested ops.
    pub self_ms: f64,
    /// Its share of the self time of all ops.
    pub fraction: f64,
    /// Scopes of the model and operation of the framework, of an instruction of a compiled program.
    pub label: Option<String>,
    /// Its line of source.
    pub source: Option<String>,
}

/// The share of the devices' peak that steps reach, by the programs that ran.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct UsageRow {
    /// Model FLOPs utilisation: matrix operations without recomputation, 0 to 1.
    pub mfu: f64,
    /// Hardware FLOPs utilisation: all matrix operations, 0 to 1.
    pub hfu: f64,
    /// The device.
    pub device: String,
    /// Where its peaks come from.
    pub source: &'static str,
}

impl OpRow {
    /// Where it ran: `device` or `host`.
    pub fn place(&self) -> &'static str {
        if self.on_device { "device" } else { "host" }
    }
}
