//! Jobs: what each loses by which cause, how its step time went, and which have no usable profile.

use std::collections::BTreeMap;

use stepscope_results::fleet::{
    CauseRow, ChangeRow, FleetReport, JobCauseRow, JobRow, SeriesRow, UnusableRow,
};
use stepscope_text::utc;

use crate::devices::DeviceHours;
use crate::record::{Loss, Record};
use crate::series::change;

/// The recordings of each job in order of time.
pub(super) type Jobs<'r> = BTreeMap<&'r str, Vec<&'r Record>>;

pub(super) fn by_job<'r>(records: &[&'r Record]) -> Jobs<'r> {
    let mut jobs = Jobs::new();
    for record in records {
        jobs.entry(&record.recording.job).or_default().push(record);
    }
    jobs.values_mut().for_each(|all| all.sort_by_key(|record| (record.at, &record.recording.id)));
    jobs
}

/// The recordings with steps.
fn usable<'r>(records: &[&'r Record]) -> Vec<&'r Record> {
    records.iter().copied().filter(|record| record.step_ms.is_some()).collect()
}

/// One cause over the recordings of a job.
struct Cause<'r> {
    loss: &'r Loss,
    /// The session of the recording where it takes most.
    session: &'r str,
    /// Mean share over all usable recordings, also those without it.
    share: f64,
    recordings: u64,
}

fn causes_of<'r>(records: &[&'r Record]) -> Vec<Cause<'r>> {
    let mut by_finding: BTreeMap<&str, Vec<(&'r Loss, &'r str)>> = BTreeMap::new();
    for record in records {
        for loss in &record.losses {
            by_finding.entry(&loss.finding).or_default().push((loss, &record.recording.session));
        }
    }
    let mut causes: Vec<Cause> = by_finding
        .into_values()
        .filter_map(|losses| {
            let share = losses.iter().map(|(loss, _)| loss.share).sum::<f64>() / records.len().max(1) as f64;
            // The newest of the worst speaks for all.
            let (loss, session) = losses.iter().max_by(|a, b| a.0.share.total_cmp(&b.0.share))?;
            Some(Cause { loss, session, share, recordings: losses.len() as u64 })
        })
        .collect();
    causes.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.loss.finding.cmp(&b.loss.finding)));
    causes
}

/// The cause that a job is named by: the one that most reports on its recordings put first, of equal ones the largest. A
/// report may put a smaller loss first, because it explains the larger one.
fn leading<'c, 'r>(causes: &'c [Cause<'r>], records: &[&Record]) -> Option<&'c Cause<'r>> {
    let verdicts = |cause: &Cause| {
        records.iter().filter(|record| record.verdict.as_deref() == Some(&cause.loss.finding)).count()
    };
    // The first of equals, which is the largest.
    causes.iter().rev().max_by_key(|cause| verdicts(cause))
}

/// The jobs, those that lose most first.
pub(super) fn rows(jobs: &Jobs, hours: Option<&DeviceHours>) -> Vec<JobRow> {
    let mut rows: Vec<JobRow> = jobs.iter().map(|(job, records)| row(job, records, hours)).collect();
    rows.sort_by(|a, b| {
        let hours = |row: &JobRow| row.lost_device_hours.unwrap_or(-1.0);
        let by_hours = hours(b).total_cmp(&hours(a));
        by_hours.then_with(|| b.lost_devices().total_cmp(&a.lost_devices())).then_with(|| a.job.cmp(&b.job))
    });
    rows
}

fn row(job: &str, records: &[&Record], hours: Option<&DeviceHours>) -> JobRow {
    let usable = usable(records);
    let losses: Vec<f64> = usable.iter().filter_map(|record| record.lost()).collect();
    let lost = (!losses.is_empty()).then(|| losses.iter().sum::<f64>() / losses.len() as f64);
    let causes = causes_of(&usable);
    let first = leading(&causes, &usable);
    let newest = usable.last().or(records.last());
    let device_hours = hours.and_then(|hours| hours.of(job));
    JobRow {
        job: job.to_owned(),
        hosts: records.iter().map(|record| u64::from(record.recording.hosts)).max().unwrap_or(0),
        devices: records.iter().map(|record| record.devices).max().unwrap_or(0),
        recordings: records.len() as u64,
        step_ms: usable.last().and_then(|record| record.step_ms),
        lost_fraction: lost,
        finding: first
            .map(|cause| cause.loss.finding.clone())
            .or_else(|| newest.and_then(|record| record.verdict.clone().or_else(|| record.doubt.clone()))),
        finding_fraction: first.map(|cause| cause.share),
        summary: first.map(|cause| cause.loss.summary.clone()),
        session: first.map(|cause| cause.session.to_owned()),
        fix: first.and_then(|cause| cause.loss.fix.clone()),
        device_hours,
        lost_device_hours: device_hours.zip(lost).map(|(hours, lost)| hours * lost),
        framework: newest.map(|record| record.framework.clone()).unwrap_or_default(),
        newest: newest.map(|record| time(record)).unwrap_or_default(),
        labels: newest.map(|record| record.recording.labels.clone()).unwrap_or_default(),
    }
}

fn time(record: &Record) -> String {
    utc(record.at.saturating_mul(1_000_000_000))
}

/// Causes in each job, in the order of the jobs.
pub(super) fn causes_by_job(jobs: &Jobs, rows: &[JobRow]) -> Vec<JobCauseRow> {
    let of_job = |row: &JobRow| {
        let records = jobs.get(row.job.as_str()).map(|records| usable(records)).unwrap_or_default();
        let causes = causes_of(&records).into_iter().map(|cause| JobCauseRow {
            job: row.job.clone(),
            finding: cause.loss.finding.clone(),
            subject: cause.loss.subject.clone(),
            lost_fraction: cause.share,
            lost_device_hours: row.device_hours.map(|hours| hours * cause.share),
            recordings: cause.recordings,
            summary: cause.loss.summary.clone(),
            session: cause.session.to_owned(),
            fix: cause.loss.fix.clone(),
        });
        causes.collect::<Vec<_>>()
    };
    rows.iter().flat_map(of_job).collect()
}

/// Causes over all jobs, those that take most device hours first; without hours, most devices.
pub(super) fn causes(report: &FleetReport) -> Vec<CauseRow> {
    let devices: BTreeMap<&str, u64> =
        report.jobs.iter().map(|job| (job.job.as_str(), job.devices)).collect();
    let mut by_finding: BTreeMap<&str, Vec<(f64, &JobCauseRow)>> = BTreeMap::new();
    for cause in &report.job_causes {
        let lost =
            cause.lost_fraction * devices.get(cause.job.as_str()).map_or(0.0, |devices| *devices as f64);
        by_finding.entry(&cause.finding).or_default().push((lost, cause));
    }
    let row = |(finding, causes): (&str, Vec<(f64, &JobCauseRow)>)| {
        let (_, most) = causes.iter().rev().max_by(|a, b| a.0.total_cmp(&b.0))?;
        let hours =
            report.device_hours.map(|_| causes.iter().filter_map(|(_, it)| it.lost_device_hours).sum());
        Some(CauseRow {
            finding: finding.to_owned(),
            jobs: causes.len() as u64,
            lost_devices: causes.iter().map(|(lost, _)| lost).sum(),
            lost_device_hours: hours,
            job: most.job.clone(),
            fix: most.fix.clone(),
        })
    };
    let mut rows: Vec<CauseRow> = by_finding.into_iter().filter_map(row).collect();
    rows.sort_by(|a, b| {
        let hours = |row: &CauseRow| row.lost_device_hours.unwrap_or(-1.0);
        let by_devices = b.lost_devices.total_cmp(&a.lost_devices);
        hours(b).total_cmp(&hours(a)).then(by_devices).then_with(|| a.finding.cmp(&b.finding))
    });
    rows
}

/// Jobs whose step time changed, the worst first.
pub(super) fn changes(jobs: &Jobs) -> Vec<ChangeRow> {
    let of_job = |(job, records): (&&str, &Vec<&Record>)| {
        let usable = usable(records);
        let found = change(&usable)?;
        let first = usable.get(found.at)?;
        let (category, category_ms) = found.category.unzip();
        Some(ChangeRow {
            job: (*job).to_owned(),
            day: time(first).chars().take(10).collect(),
            session: first.recording.session.clone(),
            before_ms: found.before_ms,
            after_ms: found.after_ms,
            change: found.after_ms / found.before_ms - 1.0,
            category,
            category_ms,
            before: found.at as u64,
            after: (usable.len() - found.at) as u64,
            p: found.p,
        })
    };
    let mut rows: Vec<ChangeRow> = jobs.iter().filter_map(of_job).collect();
    rows.sort_by(|a, b| b.change.total_cmp(&a.change).then_with(|| a.job.cmp(&b.job)));
    rows
}

/// The finding that a recording is named by: its verdict, unless that loses nothing and something else does.
fn leading_of(record: &Record) -> Option<String> {
    let verdict = record.losses.iter().find(|loss| record.verdict.as_ref() == Some(&loss.finding));
    let loss = verdict.or_else(|| record.losses.first()).map(|loss| loss.finding.clone());
    loss.or_else(|| record.verdict.clone())
}

/// Every recording, by job and time.
pub(super) fn series(jobs: &Jobs) -> Vec<SeriesRow> {
    let row = |record: &&Record| SeriesRow {
        job: record.recording.job.clone(),
        at: time(record),
        session: record.recording.session.clone(),
        hosts: record.read,
        devices: record.devices,
        step_ms: record.step_ms,
        lost_fraction: record.lost(),
        finding: leading_of(record),
        breakdown: record.breakdown_ms.iter().cloned().collect(),
        recording: record.recording.id.clone(),
        folder: record.recording.folder.clone(),
        step_map: record.heat.is_some(),
    };
    jobs.values().flatten().map(row).collect()
}

/// Jobs of which no recording has steps.
pub(super) fn unusable(jobs: &Jobs) -> Vec<UnusableRow> {
    let of_job = |(job, records): (&&str, &Vec<&Record>)| {
        if !usable(records).is_empty() {
            return None;
        }
        let newest = records.last()?;
        let reason = match (newest.read, &newest.doubt) {
            (0, _) => "no file could be read".to_owned(),
            (_, Some(doubt)) => format!("no steps were found ({doubt})"),
            (_, None) => "no steps were found".to_owned(),
        };
        Some(UnusableRow { job: (*job).to_owned(), recordings: records.len() as u64, reason })
    };
    jobs.iter().filter_map(of_job).collect()
}
