//! From a partial to the report: every recording becomes a record, then records are ranked and summed up in the order
//! of their ids, so that equal partials give equal reports.

mod hosts;
mod jobs;
mod work;

use std::collections::BTreeMap;

use stepscope_diagnose::statistics::median;
use stepscope_results::fleet::{FileRow, FleetReport, MemoryRow, ScaleRow, StepMap};

use crate::devices::DeviceHours;
use crate::error::FleetError;
use crate::frame::Kind;
use crate::record::{Record, Trouble, exposed, gathered};
use crate::set::{Set, Slot};

/// A share of its limit from which an allocator is listed.
const NEAR_LIMIT: f64 = 0.8;
/// Rows of ops, kernels and allocators.
const ROWS: usize = 100;

/// What a report needs beside the partial.
#[derive(Clone, Debug, Default)]
pub struct FinishOptions {
    /// Device hours by job.
    pub device_hours: Option<DeviceHours>,
    /// Leaves out recordings that are older, in seconds since 1970.
    pub since: Option<i64>,
}

/// The report on a partial.
pub fn finish(bytes: &[u8]) -> Result<FleetReport, FleetError> {
    finish_with(&Set::read(bytes)?, &FinishOptions::default())
}

/// The report on a set, with device hours.
pub fn finish_with(set: &Set, options: &FinishOptions) -> Result<FleetReport, FleetError> {
    let mut known = Known::default();
    for slot in set.slots.values() {
        known.add(slot)?;
    }
    let mut report = known.report(options);
    report.missing_shards = set.shards.missing();
    Ok(report)
}

/// How slow the hosts of a recording were at each step; `None` if it is not there, or has no two hosts with steps.
pub fn step_map(set: &Set, recording: &str) -> Result<Option<StepMap>, FleetError> {
    let Some(slot) = set.slots.get(recording) else { return Ok(None) };
    let (record, _) = recorded(slot)?;
    let it = record.recording;
    let named = |map| StepMap { recording: it.id, job: it.job, session: it.session, ..map };
    Ok(record.heat.map(|heat| named(heat.map())))
}

/// What is known of a recording.
fn recorded(slot: &Slot) -> Result<(Record, Vec<Trouble>), FleetError> {
    match &slot.finished {
        Some(frame) => match frame.content::<Record>() {
            Ok(record) => Ok((record, Vec::new())),
            Err(error) => unreadable(frame, &error),
        },
        None => gathered(slot.hosts.values()),
    }
}

/// One recording, and the files of it that could not be read.
struct Recorded {
    record: Record,
    troubles: Vec<Trouble>,
}

#[derive(Default)]
struct Known {
    /// By job, session and folder: a folder that was planned again with more hosts replaces what it was before.
    recordings: BTreeMap<(String, String, String), Recorded>,
}

impl Known {
    fn add(&mut self, slot: &Slot) -> Result<(), FleetError> {
        let (record, troubles) = recorded(slot)?;
        let it = &record.recording;
        let key = (it.job.clone(), it.session.clone(), it.folder.clone());
        let rank =
            |it: &Recorded| (it.record.read, it.record.recording.hosts, it.record.recording.id.clone());
        let new = Recorded { record, troubles };
        let replaces = self.recordings.get(&key).is_none_or(|old| rank(old) < rank(&new));
        if replaces {
            self.recordings.insert(key, new);
        }
        Ok(())
    }

    fn report(&self, options: &FinishOptions) -> FleetReport {
        let wanted = |it: &&Recorded| options.since.is_none_or(|since| it.record.at >= since);
        let recorded: Vec<&Recorded> = self.recordings.values().filter(wanted).collect();
        let records: Vec<&Record> = recorded.iter().map(|it| &it.record).collect();
        let jobs = jobs::by_job(&records);
        let hours = options.device_hours.as_ref();
        let rows = jobs::rows(&jobs, hours);
        let devices: u64 = rows.iter().map(|job| job.devices).fold(0, u64::saturating_add);
        let lost: f64 = rows.iter().map(|job| job.lost_devices()).sum();
        let all_hours = hours.map(|_| rows.iter().filter_map(|job| job.device_hours).sum());
        let lost_hours = hours.map(|_| rows.iter().filter_map(|job| job.lost_device_hours).sum());
        let mut report = FleetReport {
            covered: records.iter().map(|record| record.read).fold(0, u64::saturating_add),
            planned: records
                .iter()
                .map(|record| u64::from(record.recording.hosts))
                .fold(0, u64::saturating_add),
            recordings: records.iter().filter(|record| record.read > 0).count() as u64,
            devices,
            lost_fraction: (devices > 0).then(|| lost / devices as f64),
            device_hours: all_hours,
            lost_device_hours: lost_hours,
            hosts: hosts::rows(&records),
            job_causes: jobs::causes_by_job(&jobs, &rows),
            changes: jobs::changes(&jobs),
            series: jobs::series(&jobs),
            ops: work::rows(&records, |record| &record.ops, ROWS),
            kernels: work::rows(&records, |record| &record.kernels, ROWS),
            communication: communication(&records),
            memory: memory(&records),
            unusable: jobs::unusable(&jobs),
            failed: files(&recorded, |it| &it.troubles),
            damaged: files(&recorded, |it| &it.record.damaged),
            jobs: rows,
            ..FleetReport::default()
        };
        report.causes = jobs::causes(&report);
        report.failed.extend(absent(&recorded));
        report.failed.sort();
        report
    }
}

/// A record that this version cannot read: its hosts are not covered.
fn unreadable(frame: &crate::frame::Frame, error: &FleetError) -> Result<(Record, Vec<Trouble>), FleetError> {
    let reason = format!("{error} (written by stepscope {})", frame.header.tool);
    let mut header = frame.header.clone();
    header.kind = Kind::Failed;
    header.reason = reason;
    let failed = crate::frame::Frame::new(header, &[])?;
    gathered(std::iter::once(&failed))
}

fn files(recorded: &[&Recorded], of: impl Fn(&Recorded) -> &Vec<Trouble>) -> Vec<FileRow> {
    let rows = recorded.iter().flat_map(|it| {
        of(it).iter().map(|trouble| FileRow {
            job: it.record.recording.job.clone(),
            host: trouble.host.clone(),
            path: trouble.path.clone(),
            reason: trouble.reason.clone(),
        })
    });
    let mut rows: Vec<FileRow> = rows.collect();
    rows.sort();
    rows
}

/// Hosts that were planned, but whose results never arrived.
fn absent(recorded: &[&Recorded]) -> Vec<FileRow> {
    let missing = recorded.iter().filter_map(|it| {
        let expected = u64::from(it.record.recording.hosts);
        let missing = expected.saturating_sub(it.record.read + it.troubles.len() as u64);
        (missing > 0).then(|| FileRow {
            job: it.record.recording.job.clone(),
            host: String::new(),
            path: it.record.recording.folder.clone(),
            reason: format!(
                "{} of session {} did not arrive; run the missing shards",
                stepscope_text::plural(missing, "host", "hosts"),
                it.record.recording.session
            ),
        })
    });
    missing.collect()
}

/// Exposed communication by number of devices, in powers of two. One device does not communicate.
fn communication(records: &[&Record]) -> Vec<ScaleRow> {
    let mut by_scale: BTreeMap<u64, Vec<&Record>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.devices > 1 && record.step_ms.is_some()) {
        by_scale.entry(1 << record.devices.ilog2()).or_default().push(record);
    }
    let row = |(devices, records): (u64, Vec<&Record>)| {
        let shares: Vec<f64> = records.iter().map(|record| exposed(record)).collect();
        let hidden: Vec<f64> = records.iter().map(|record| record.hidden_communication_ms).collect();
        let most = records.iter().rev().max_by(|a, b| exposed(a).total_cmp(&exposed(b)))?;
        let mut jobs: Vec<&str> = records.iter().map(|record| record.recording.job.as_str()).collect();
        jobs.sort_unstable();
        jobs.dedup();
        Some(ScaleRow {
            devices,
            recordings: records.len() as u64,
            jobs: jobs.len() as u64,
            exposed_fraction: median(&shares)?,
            most_fraction: exposed(most),
            job: most.recording.job.clone(),
            hidden_ms: median(&hidden).unwrap_or(0.0),
        })
    };
    let rows: Vec<ScaleRow> = by_scale.into_iter().filter_map(row).collect();
    // Without any communication there is no question of scale.
    if rows.iter().all(|row| row.most_fraction <= 0.0 && row.hidden_ms <= 0.0) { Vec::new() } else { rows }
}

fn memory(records: &[&Record]) -> Vec<MemoryRow> {
    let rows = records.iter().flat_map(|record| {
        record.memory.iter().map(|memory| MemoryRow {
            job: record.recording.job.clone(),
            host: memory.host.clone(),
            allocator: memory.allocator.clone(),
            peak_bytes: memory.peak_bytes,
            limit_bytes: memory.limit_bytes,
            fraction: memory.peak_bytes as f64 / memory.limit_bytes.max(1) as f64,
            growth_bytes_per_step: memory.growth_bytes_per_step,
        })
    });
    let mut near: Vec<MemoryRow> = rows.filter(|row| row.fraction >= NEAR_LIMIT).collect();
    near.sort_by(|a, b| {
        let names = (&a.job, &a.host, &a.allocator).cmp(&(&b.job, &b.host, &b.allocator));
        b.fraction.total_cmp(&a.fraction).then(names)
    });
    // Every recording of a job shows the same allocator; its fullest state is enough.
    let mut seen = std::collections::BTreeSet::new();
    near.retain(|row| seen.insert((row.job.clone(), row.host.clone(), row.allocator.clone())));
    near.truncate(ROWS);
    near
}
