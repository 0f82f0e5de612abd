//! The report on a fleet: which jobs lose most and why, which hosts are slow again and again, what changed, what is
//! covered.

mod tables;

use std::collections::BTreeMap;

use serde::Serialize;
use stepscope_text::{plural, shell_word, thousands};

pub use tables::{TABLES, table};

/// Everything that `fleet report` shows. All lists are ranked, the most important row first.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FleetReport {
    /// Hosts whose profiles were read.
    pub covered: u64,
    /// Hosts that were planned.
    pub planned: u64,
    /// Recordings that were read.
    pub recordings: u64,
    /// Accelerators of all jobs; a host without any counts as one.
    pub devices: u64,
    /// The share of all devices that is lost.
    pub lost_fraction: Option<f64>,
    /// Device hours that the side table names; `None` without one.
    pub device_hours: Option<f64>,
    /// Device hours that are lost, if the profiles are typical.
    pub lost_device_hours: Option<f64>,
    /// Jobs, those that lose most first.
    pub jobs: Vec<JobRow>,
    /// Hosts that were slower than their peers, the surest first.
    pub hosts: Vec<HostRow>,
    /// Causes over all jobs.
    pub causes: Vec<CauseRow>,
    /// Causes in each job.
    pub job_causes: Vec<JobCauseRow>,
    /// Jobs whose step time changed.
    pub changes: Vec<ChangeRow>,
    /// Every recording, by job and time.
    pub series: Vec<SeriesRow>,
    /// Ops over all jobs.
    pub ops: Vec<WorkRow>,
    /// Kernels over all jobs.
    pub kernels: Vec<WorkRow>,
    /// Communication that nothing hides, by number of devices.
    pub communication: Vec<ScaleRow>,
    /// Allocators near their limit.
    pub memory: Vec<MemoryRow>,
    /// Jobs without a usable profile.
    pub unusable: Vec<UnusableRow>,
    /// Files that could not be read.
    pub failed: Vec<FileRow>,
    /// Files that were read in part.
    pub damaged: Vec<FileRow>,
    /// Shards of a plan that are missing: `3 of 10`.
    pub missing_shards: Vec<String>,
}

impl FleetReport {
    /// The first fix of a job as a command that can be run: with the folder of the recording that it is about.
    pub fn fix_of(&self, job: &JobRow) -> Option<String> {
        let fix = job.fix.as_deref()?;
        let of_session = |row: &&SeriesRow| row.job == job.job && Some(&row.session) == job.session.as_ref();
        let folder = self.series.iter().find(of_session).map(|row| shell_word(&row.folder));
        Some(match folder.filter(|folder| !folder.contains('`')) {
            Some(folder) => {
                let words = fix.split(' ').map(|word| match word.strip_prefix("PATH") {
                    Some(rest) if !rest.starts_with(char::is_alphanumeric) => format!("{folder}{rest}"),
                    _ => word.to_owned(),
                });
                words.collect::<Vec<_>>().join(" ")
            }
            None => fix.to_owned(),
        })
    }

    /// What is covered, and what is missing.
    pub fn coverage(&self) -> String {
        let mut parts = vec![format!(
            "{} of {} in {} of {}",
            thousands(i128::from(self.covered)),
            plural(self.planned, "profile", "profiles"),
            plural(self.recordings, "recording", "recordings"),
            plural(self.jobs.len() as u64, "job", "jobs"),
        )];
        let mut add = |count: usize, one: &str, many: &str| {
            if count > 0 {
                parts.push(plural(count as u64, one, many));
            }
        };
        add(self.failed.len(), "file could not be read", "files could not be read");
        add(self.damaged.len(), "file was read in part", "files were read in part");
        add(self.unusable.len(), "job has no usable profile", "jobs have no usable profile");
        add(self.missing_shards.len(), "shard is missing", "shards are missing");
        parts.join("; ")
    }

    /// Is all there that was planned?
    pub fn is_complete(&self) -> bool {
        self.covered == self.planned && self.missing_shards.is_empty()
    }
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobRow {
    /// Its name.
    pub job: String,
    /// Hosts of its largest recording.
    pub hosts: u64,
    /// Accelerators of its largest recording.
    pub devices: u64,
    /// Recordings.
    pub recordings: u64,
    /// Median step of the newest recording with steps, in milliseconds.
    pub step_ms: Option<f64>,
    /// The most that fixing everything saves, as a share of the step, over all recordings.
    pub lost_fraction: Option<f64>,
    /// The finding that takes most.
    pub finding: Option<String>,
    /// The share of the step that it takes.
    pub finding_fraction: Option<f64>,
    /// The finding in one sentence, in the recording where it takes most.
    pub summary: Option<String>,
    /// That recording's session.
    pub session: Option<String>,
    /// What to do first.
    pub fix: Option<String>,
    /// Device hours from the side table.
    pub device_hours: Option<f64>,
    /// Device hours that are lost, if the profiles are typical.
    pub lost_device_hours: Option<f64>,
    /// The framework.
    pub framework: String,
    /// The newest recording, as a date.
    pub newest: String,
    /// Other named groups of the job pattern.
    pub labels: BTreeMap<String, String>,
}

impl JobRow {
    /// Devices that are lost.
    pub fn lost_devices(&self) -> f64 {
        self.lost_fraction.unwrap_or(0.0) * self.devices as f64
    }
}

/// A host that was slow.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HostRow {
    /// Its name.
    pub host: String,
    /// The job in which it was slowest.
    pub job: String,
    /// By how much its step, or its own work in it, was longer than the median host's, over all its recordings.
    pub slow_fraction: f64,
    /// Recordings with other hosts beside it.
    pub recordings: u64,
    /// Recordings in which it was slow.
    pub slow_in: u64,
    /// Jobs in which it was slow.
    pub jobs: u64,
    /// The least share of recordings in which it is slow, with 95 % confidence.
    pub sure: f64,
    /// The share of collectives at which it was last, in its worst recording; `None` if unknown.
    pub last_fraction: Option<f64>,
    /// What was measured in its worst recording.
    pub evidence: String,
}

/// A cause over all jobs.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct CauseRow {
    /// The finding's id.
    pub finding: String,
    /// Jobs that have it.
    pub jobs: u64,
    /// Devices that it takes: devices times share, over all jobs.
    pub lost_devices: f64,
    /// Device hours that it takes.
    pub lost_device_hours: Option<f64>,
    /// The job that it costs most.
    pub job: String,
    /// What to do there.
    pub fix: Option<String>,
}

/// A cause in one job.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct JobCauseRow {
    /// The job.
    pub job: String,
    /// The finding's id.
    pub finding: String,
    /// What it is about.
    pub subject: Option<String>,
    /// The share of the step that a fix saves at most, over all recordings.
    pub lost_fraction: f64,
    /// Device hours that it takes.
    pub lost_device_hours: Option<f64>,
    /// Recordings that have it.
    pub recordings: u64,
    /// The finding in one sentence, in the recording where it takes most.
    pub summary: String,
    /// That recording's session.
    pub session: String,
    /// What to do first.
    pub fix: Option<String>,
}

/// A change of a job's step time.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ChangeRow {
    /// The job.
    pub job: String,
    /// The day of the first recording after it.
    pub day: String,
    /// That recording.
    pub session: String,
    /// The median of the median steps before, in milliseconds.
    pub before_ms: f64,
    /// The same after.
    pub after_ms: f64,
    /// The relative change; above 0 is slower.
    pub change: f64,
    /// The category that moved most.
    pub category: Option<String>,
    /// By how many milliseconds per step it moved.
    pub category_ms: Option<f64>,
    /// Recordings before and after.
    pub before: u64,
    /// Recordings after.
    pub after: u64,
    /// How likely ranks this uneven are by chance alone; `None` if only the newest recording shows it.
    pub p: Option<f64>,
}

/// One recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SeriesRow {
    /// The job.
    pub job: String,
    /// When it was recorded, in UTC.
    pub at: String,
    /// The session.
    pub session: String,
    /// Hosts that were read.
    pub hosts: u64,
    /// Accelerators.
    pub devices: u64,
    /// The median step, in milliseconds.
    pub step_ms: Option<f64>,
    /// The share that fixing everything saves at most.
    pub lost_fraction: Option<f64>,
    /// The verdict.
    pub finding: Option<String>,
    /// The mean step by category, in milliseconds.
    pub breakdown: BTreeMap<String, f64>,
    /// Its id.
    pub recording: String,
    /// The folder that its files were read from.
    pub folder: String,
    /// Is it known how slow each host was at each step?
    pub step_map: bool,
}

/// How slow each host of a recording was at each step.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct StepMap {
    /// The recording's id.
    pub recording: String,
    /// Its job.
    pub job: String,
    /// Its session.
    pub session: String,
    /// The rows.
    pub hosts: Vec<String>,
    /// Hosts without a row: those that differ least from the others.
    pub left_out: u64,
    /// Do columns have the loop's own step numbers? Else steps are counted from 0 on each host.
    pub numbered: bool,
    /// The first step of each column.
    pub first: Vec<i64>,
    /// The last step of each column.
    pub last: Vec<i64>,
    /// The median host's step in each column, in milliseconds.
    pub usual_ms: Vec<f64>,
    /// By host and column: by how much the step, or the host's own work in it, is longer than the median host's, as a share
    /// of the median step; of several steps the slowest. `None` where a host has no such step.
    pub slow: Vec<Vec<Option<f64>>>,
}

/// An op type or kernel.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WorkRow {
    /// Its name; `(other)` sums up what was not kept one by one.
    pub name: String,
    /// `device` or `host`.
    #[serde(rename = "where")]
    pub place: &'static str,
    /// Jobs that run it.
    pub jobs: u64,
    /// How often it ran in the recordings.
    pub count: u64,
    /// Its time in the recordings, in milliseconds.
    pub total_ms: f64,
    /// Its share of the time of all rows of the same place.
    pub fraction: f64,
}

/// Communication at one scale.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScaleRow {
    /// At least this many devices, and fewer than twice as many.
    pub devices: u64,
    /// Recordings of this size.
    pub recordings: u64,
    /// Jobs of this size.
    pub jobs: u64,
    /// The median share of the step in communication that nothing hides.
    pub exposed_fraction: f64,
    /// The largest.
    pub most_fraction: f64,
    /// The job with the largest.
    pub job: String,
    /// The median of communication under compute, in milliseconds per step.
    pub hidden_ms: f64,
}

/// An allocator.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct MemoryRow {
    /// The job.
    pub job: String,
    /// The host.
    pub host: String,
    /// The allocator.
    pub allocator: String,
    /// Its peak.
    pub peak_bytes: u64,
    /// Its limit.
    pub limit_bytes: u64,
    /// Peak over limit.
    pub fraction: f64,
    /// Growth from step to step; `None` if it does not grow.
    pub growth_bytes_per_step: Option<f64>,
}

/// A job without a usable profile.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct UnusableRow {
    /// The job.
    pub job: String,
    /// Its recordings.
    pub recordings: u64,
    /// Why none is usable.
    pub reason: String,
}

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FileRow {
    /// Its job.
    pub job: String,
    /// Its host.
    pub host: String,
    /// Its path.
    pub path: String,
    /// What is wrong with it.
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fix_names_the_recording_that_it_is_about() {
        let mut row = JobRow { job: "a".to_owned(), ..JobRow::default() };
        row.fix = Some("See `stepscope devices PATH`, not the PATHS.".to_owned());
        row.session = Some("s1".to_owned());
        let series = SeriesRow {
            job: "a".into(),
            session: "s1".into(),
            folder: "/logs/my run/s1".into(),
            ..SeriesRow::default()
        };
        let report = FleetReport { series: vec![series], ..FleetReport::default() };
        let said = "See `stepscope devices '/logs/my run/s1'`, not the PATHS.";
        assert_eq!(report.fix_of(&row).as_deref(), Some(said));
    }
}
