//! The tables of a fleet report, one per question: for text, CSV and Parquet.

use super::{
    CauseRow, ChangeRow, FileRow, FleetReport, HostRow, JobCauseRow, JobRow, MemoryRow, ScaleRow, SeriesRow,
    UnusableRow, WorkRow,
};
use crate::table::{Cell, Field, Table, columns};

/// Lists the tables in reading order: name, columns, rows.
macro_rules! tables {
    ($($name:literal: $columns:ident, |$report:ident| $rows:expr;)+) => {
        /// The names of all tables, in reading order.
        pub const TABLES: &[&str] = &[$($name),+];

        /// The table with a name; `None` if there is none.
        pub fn table(report: &FleetReport, name: &str) -> Option<Table> {
            match name {
                $($name => { let $report = report; Some(Table::of("fleet", &$columns(), $rows)) })+
                _ => None,
            }
        }
    };
}

tables! {
    "jobs": jobs, |report| &lines(report);
    "hosts": hosts, |report| &report.hosts;
    "causes": causes, |report| &report.causes;
    "job_causes": job_causes, |report| &report.job_causes;
    "changes": changes, |report| &report.changes;
    "series": series, |report| &report.series;
    "ops": work, |report| &report.ops;
    "kernels": work, |report| &report.kernels;
    "communication": communication, |report| &report.communication;
    "memory": memory, |report| &report.memory;
    "unusable": unusable, |report| &report.unusable;
    "failed": files, |report| &report.failed;
    "damaged": files, |report| &report.damaged;
}

/// A job, with its first fix as a command that can be run.
struct JobLine<'a> {
    row: &'a JobRow,
    fix: Option<String>,
}

fn lines(report: &FleetReport) -> Vec<JobLine<'_>> {
    report.jobs.iter().map(|row| JobLine { row, fix: report.fix_of(row) }).collect()
}

fn jobs<'a>() -> Vec<Field<JobLine<'a>>> {
    columns! { job: JobLine<'a>;
        job: Name "job", "the job" => job.row.job.as_str();
        hosts: Count "hosts", "hosts of its largest recording" => job.row.hosts;
        devices: Count "devices", "accelerators of its largest recording" => job.row.devices;
        recordings.optional: Count "recordings", "recordings" => job.row.recordings;
        step_ms: Ms "step", "median step of the newest recording with steps" => job.row.step_ms;
        lost_fraction: Percent "lost", "the most that fixing everything saves, as a share of the step" => job.row.lost_fraction;
        lost_devices: Short "lost devices", "the same in devices" => job.row.lost_fraction.map(|_| job.row.lost_devices());
        lost_device_hours.optional: Short "lost hours", "the same in device hours" => job.row.lost_device_hours;
        finding: Text "finding", "the finding that takes most" => job.row.finding.clone();
        finding_fraction: Percent "of step", "the share of the step that it takes" => job.row.finding_fraction;
        device_hours.hidden: Short "device hours", "device hours from the side table" => job.row.device_hours;
        framework.hidden: Text "framework", "the framework" => job.row.framework.as_str();
        newest.hidden: Text "newest", "the newest recording, as a date" => job.row.newest.as_str();
        summary.hidden: Text "summary", "the finding in one sentence" => job.row.summary.clone();
        fix.hidden: Text "fix", "what to do first" => job.fix.clone();
    }
}

fn hosts() -> Vec<Field<HostRow>> {
    columns! { host: HostRow;
        host: Name "host", "the host" => host.host.as_str();
        job: Name "slowest in", "the job in which it was slowest" => host.job.as_str();
        slow_fraction: Percent "slower by", "by how much its step was longer than the median host's" => host.slow_fraction;
        slow_in: Count "slow in", "recordings in which it was slow" => host.slow_in;
        recordings: Count "of recordings", "recordings with other hosts beside it" => host.recordings;
        jobs.optional: Count "jobs", "jobs in which it was slow" => host.jobs;
        last_fraction.optional: Percent "last at", "share of collectives at which it was last" => host.last_fraction;
        sure.optional: Percent "at least slow in", "the least share of recordings in which it is slow, with 95 % confidence" => host.sure;
        evidence.hidden: Text "evidence", "what was measured in its worst recording" => host.evidence.as_str();
    }
}

fn causes() -> Vec<Field<CauseRow>> {
    columns! { cause: CauseRow;
        finding: Text "finding", "the finding" => cause.finding.as_str();
        jobs: Count "jobs", "jobs that have it" => cause.jobs;
        lost_devices: Short "lost devices", "devices that it takes" => cause.lost_devices;
        lost_device_hours.optional: Short "lost hours", "device hours that it takes" => cause.lost_device_hours;
        job: Name "most in", "the job in which it takes most" => cause.job.as_str();
        fix.hidden: Text "fix", "what to do first" => cause.fix.clone();
    }
}

fn job_causes() -> Vec<Field<JobCauseRow>> {
    columns! { cause: JobCauseRow;
        job: Name "job", "the job" => cause.job.as_str();
        finding: Text "finding", "the finding" => cause.finding.as_str();
        subject.optional: Name "subject", "what it is about" => cause.subject.clone();
        lost_fraction: Percent "lost", "the share of the step that it takes" => cause.lost_fraction;
        lost_device_hours.optional: Short "lost hours", "device hours that it takes" => cause.lost_device_hours;
        recordings: Count "recordings", "recordings that have it" => cause.recordings;
        summary.hidden: Text "summary", "the finding in one sentence" => cause.summary.as_str();
        fix.hidden: Text "fix", "what to do first" => cause.fix.clone();
    }
}

fn changes() -> Vec<Field<ChangeRow>> {
    columns! { change: ChangeRow;
        job: Name "job", "the job" => change.job.as_str();
        day: Text "since", "the day since which it differs" => change.day.as_str();
        before_ms: Ms "before", "median step before" => change.before_ms;
        after_ms: Ms "after", "median step after" => change.after_ms;
        change: Percent "change", "change of the step time" => change.change;
        category: Text "moved", "the category that changed most" => change.category.clone();
        category_ms: Ms "by", "by how much" => change.category_ms;
        before.optional: Count "recordings before", "recordings before" => change.before;
        after.optional: Count "after", "recordings after" => change.after;
        p.hidden: Short "p", "how likely such a change is by chance" => change.p;
        session.hidden: Text "session", "the first recording after" => change.session.as_str();
    }
}

fn series() -> Vec<Field<SeriesRow>> {
    columns! { row: SeriesRow;
        job: Name "job", "the job" => row.job.as_str();
        at: Text "recorded", "when it was recorded" => row.at.as_str();
        session: Text "session", "the recording" => row.session.as_str();
        hosts: Count "hosts", "hosts" => row.hosts;
        devices: Count "devices", "accelerators" => row.devices;
        step_ms: Ms "step", "median step" => row.step_ms;
        lost_fraction: Percent "lost", "the most that fixing everything saves, as a share of the step" => row.lost_fraction;
        finding: Text "finding", "the verdict" => row.finding.clone();
        breakdown.hidden: Map "breakdown", "where the step goes: milliseconds per category" => Cell::named(row.breakdown.iter().map(|(name, ms)| (name.as_str(), *ms)));
    }
}

fn work() -> Vec<Field<WorkRow>> {
    columns! { row: WorkRow;
        name: Name "name", "the op or kernel" => row.name.as_str();
        where: Text "where", "where it runs" => row.place;
        jobs: Count "jobs", "jobs that run it" => row.jobs;
        count: Count "count", "how often it ran" => row.count;
        total_ms: Ms "total", "its time in the recordings" => row.total_ms;
        fraction: Percent "share", "its share of the time of all rows of the same place" => row.fraction;
    }
}

fn communication() -> Vec<Field<ScaleRow>> {
    columns! { row: ScaleRow;
        devices: Count "devices from", "at least this many devices, and fewer than twice as many" => row.devices;
        recordings: Count "recordings", "recordings of this size" => row.recordings;
        jobs: Count "jobs", "jobs of this size" => row.jobs;
        exposed_fraction: Percent "exposed", "median share of the step in communication that nothing hides" => row.exposed_fraction;
        most_fraction: Percent "most", "the largest" => row.most_fraction;
        job: Name "most in", "the job with the largest" => row.job.as_str();
        hidden_ms.optional: Ms "hidden", "median of communication under compute per step" => row.hidden_ms;
    }
}

fn memory() -> Vec<Field<MemoryRow>> {
    columns! { row: MemoryRow;
        job: Name "job", "the job" => row.job.as_str();
        host: Name "host", "the host" => row.host.as_str();
        allocator: Name "allocator", "the allocator" => row.allocator.as_str();
        peak_bytes: Bytes "peak", "its peak" => row.peak_bytes;
        limit_bytes: Bytes "limit", "its limit" => row.limit_bytes;
        fraction: Percent "used", "peak over limit" => row.fraction;
        growth_bytes_per_step.optional.real: Bytes "growth per step", "growth from step to step" => row.growth_bytes_per_step;
    }
}

fn unusable() -> Vec<Field<UnusableRow>> {
    columns! { row: UnusableRow;
        job: Name "job", "the job" => row.job.as_str();
        recordings: Count "recordings", "its recordings" => row.recordings;
        reason: Text "reason", "why none is usable" => row.reason.as_str();
    }
}

fn files() -> Vec<Field<FileRow>> {
    columns! { row: FileRow;
        job: Name "job", "its job" => row.job.as_str();
        host: Name "host", "its host" => row.host.as_str();
        reason: Text "reason", "what is wrong with it" => row.reason.as_str();
        path.hidden: Text "path", "its path" => row.path.as_str();
    }
}
