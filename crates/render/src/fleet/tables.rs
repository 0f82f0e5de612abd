//! The tables of a fleet report, one per question: for text, CSV and Parquet.

use crate::table::{Cell, Column, Format, Table};

use super::FleetReport;

/// The names of all tables, in reading order.
pub const TABLES: &[&str] = &[
    "jobs",
    "hosts",
    "causes",
    "job_causes",
    "changes",
    "series",
    "ops",
    "kernels",
    "communication",
    "memory",
    "unusable",
    "failed",
    "damaged",
];

/// The table with a name; `None` if there is none.
pub fn table(report: &FleetReport, name: &str) -> Option<Table> {
    Some(match name {
        "jobs" => jobs(report),
        "hosts" => hosts(report),
        "causes" => causes(report),
        "job_causes" => job_causes(report),
        "changes" => changes(report),
        "series" => series(report),
        "ops" => work("fleet", &report.ops),
        "kernels" => work("fleet", &report.kernels),
        "communication" => communication(report),
        "memory" => memory(report),
        "unusable" => unusable(report),
        "failed" => files(&report.failed),
        "damaged" => files(&report.damaged),
        _ => return None,
    })
}

fn jobs(report: &FleetReport) -> Table {
    let mut table = Table::new(
        "fleet",
        vec![
            Column::new("job", "job", Format::Name),
            Column::new("hosts", "hosts", Format::Count),
            Column::new("devices", "devices", Format::Count),
            Column::new("recordings", "recordings", Format::Count).optional(),
            Column::new("step_ms", "step", Format::Ms),
            Column::new("lost_fraction", "lost", Format::Percent),
            Column::new("lost_devices", "lost devices", Format::Short),
            Column::new("lost_device_hours", "lost hours", Format::Short).optional(),
            Column::new("finding", "finding", Format::Text),
            Column::new("finding_fraction", "of step", Format::Percent),
            Column::new("device_hours", "device hours", Format::Short).hidden(),
            Column::new("framework", "framework", Format::Text).hidden(),
            Column::new("newest", "newest", Format::Text).hidden(),
            Column::new("summary", "summary", Format::Text).hidden(),
            Column::new("fix", "fix", Format::Text).hidden(),
        ],
    );
    for job in &report.jobs {
        table.push([
            Cell::from(job.job.as_str()),
            job.hosts.into(),
            job.devices.into(),
            job.recordings.into(),
            job.step_ms.into(),
            job.lost_fraction.into(),
            job.lost_fraction.map(|_| job.lost_devices()).into(),
            job.lost_device_hours.into(),
            job.finding.clone().into(),
            job.finding_fraction.into(),
            job.device_hours.into(),
            job.framework.as_str().into(),
            job.newest.as_str().into(),
            job.summary.clone().into(),
            report.fix_of(job).into(),
        ]);
    }
    table
}

fn hosts(report: &FleetReport) -> Table {
    let mut table = Table::new(
        "fleet",
        vec![
            Column::new("host", "host", Format::Name),
            Column::new("job", "slowest in", Format::Name),
            Column::new("slow_fraction", "slower by", Format::Percent),
            Column::new("slow_in", "slow in", Format::Count),
            Column::new("recordings", "of recordings", Format::Count),
            Column::new("jobs", "jobs", Format::Count).optional(),
            Column::new("last_fraction", "last at", Format::Percent).optional(),
            Column::new("sure", "at least slow in", Format::Percent).optional(),
            Column::new("evidence", "evidence", Format::Text).hidden(),
        ],
    );
    for host in &report.hosts {
        table.push([
            Cell::from(host.host.as_str()),
            host.job.as_str().into(),
            host.slow_fraction.into(),
            host.slow_in.into(),
            host.recordings.into(),
            host.jobs.into(),
            host.last_fraction.into(),
            host.sure.into(),
            host.evidence.as_str().into(),
        ]);
    }
    table
}

fn causes(report: &FleetReport) -> Table {
    let mut table = Table::new(
        "fleet",
        vec![
            Column::new("finding", "finding", Format::Text),
            Column::new("jobs", "jobs", Format::Count),
            Column::new("lost_devices", "lost devices", Format::Short),
            Column::new("lost_device_hours", "lost hours", Format::Short).optional(),
            Column::new("job", "most in", Format::Name),
            Column::new("fix", "fix", Format::Text).hidden(),
        ],
    );
    for cause in &report.causes {
        table.push([
            Cell::from(cause.finding.as_str()),
            cause.jobs.into(),
            cause.lost_devices.into(),
            cause.lost_device_hours.into(),
            cause.job.as_str().into(),
            cause.fix.clone().into(),
        ]);
    }
    table
}

fn job_causes(report: &FleetReport) -> Table {
    let mut table = Table::new(
        "fleet",
        vec![
            Column::new("job", "job", Format::Name),
            Column::new("finding", "finding", Format::Text),
            Column::new("subject", "subject", Format::Name).optional(),
            Column::new("lost_fraction", "lost", Format::Percent),
            Column::new("lost_device_hours", "lost hours", Format::Short).optional(),
            Column::new("recordings", "recordings", Format::Count),
            Column::new("summary", "summary", Format::Text).hidden(),
            Column::new("fix", "fix", Format::Text).hidden(),
        ],
    );
    for cause in &report.job_causes {
        table.push([
            Cell::from(cause.job.as_str()),
            cause.finding.as_str().into(),
            cause.subject.clone().into(),
            cause.lost_fraction.into(),
            cause.lost_device_hours.into(),
            cause.recordings.into(),
            cause.summary.as_str().into(),
            cause.fix.clone().into(),
        ]);
    }
    table
}

fn changes(report: &FleetReport) -> Table {
    let mut table = Table::new(
        "fleet",
        vec![
            Column::new("job", "job", Format::Name),
            Column::new("day", "since", Format::Text),
            Column::new("before_ms", "before", Format::Ms),
            Column::new("after_ms", "after", Format::Ms),
            Column::new("change", "change", Format::Percent),
            Column::new("category", "moved", Format::Text),
            Column::new("category_ms", "by", Format::Ms),
            Column::new("before", "recordings before", Format::Count).optional(),
            Column::new("after", "after", Format::Count).optional(),
            Column::new("p", "p", Format::Short).hidden(),
            Column::new("session", "session", Format::Text).hidden(),
        ],
    );
    for change in &report.changes {
        table.push([
            Cell::from(change.job.as_str()),
            change.day.as_str().into(),
            change.before_ms.into(),
            change.after_ms.into(),
            change.change.into(),
            change.category.clone().into(),
            change.category_ms.into(),
            change.before.into(),
            change.after.into(),
            change.p.into(),
            change.session.as_str().into(),
        ]);
    }
    table
}

fn series(report: &FleetReport) -> Table {
    let mut table = Table::new(
        "fleet",
        vec![
            Column::new("job", "job", Format::Name),
            Column::new("at", "recorded", Format::Text),
            Column::new("session", "session", Format::Text),
            Column::new("hosts", "hosts", Format::Count),
            Column::new("devices", "devices", Format::Count),
            Column::new("step_ms", "step", Format::Ms),
            Column::new("lost_fraction", "lost", Format::Percent),
            Column::new("finding", "finding", Format::Text),
            Column::new("breakdown", "breakdown", Format::Text).hidden(),
        ],
    );
    for row in &report.series {
        let breakdown = row.breakdown.iter().map(|(name, ms)| (name.clone(), *ms)).collect();
        table.push([
            Cell::from(row.job.as_str()),
            row.at.as_str().into(),
            row.session.as_str().into(),
            row.hosts.into(),
            row.devices.into(),
            row.step_ms.into(),
            row.lost_fraction.into(),
            row.finding.clone().into(),
            Cell::Map(breakdown),
        ]);
    }
    table
}

fn work(view: &'static str, rows: &[super::WorkRow]) -> Table {
    let mut table = Table::new(
        view,
        vec![
            Column::new("name", "name", Format::Name),
            Column::new("where", "where", Format::Text),
            Column::new("jobs", "jobs", Format::Count),
            Column::new("count", "count", Format::Count),
            Column::new("total_ms", "total", Format::Ms),
            Column::new("fraction", "share", Format::Percent),
        ],
    );
    for row in rows {
        table.push([
            Cell::from(row.name.as_str()),
            row.place.into(),
            row.jobs.into(),
            row.count.into(),
            row.total_ms.into(),
            row.fraction.into(),
        ]);
    }
    table
}

fn communication(report: &FleetReport) -> Table {
    let mut table = Table::new(
        "fleet",
        vec![
            Column::new("devices", "devices from", Format::Count),
            Column::new("recordings", "recordings", Format::Count),
            Column::new("jobs", "jobs", Format::Count),
            Column::new("exposed_fraction", "exposed", Format::Percent),
            Column::new("most_fraction", "most", Format::Percent),
            Column::new("job", "most in", Format::Name),
            Column::new("hidden_ms", "hidden", Format::Ms).optional(),
        ],
    );
    for row in &report.communication {
        table.push([
            row.devices.into(),
            row.recordings.into(),
            row.jobs.into(),
            row.exposed_fraction.into(),
            row.most_fraction.into(),
            Cell::from(row.job.as_str()),
            row.hidden_ms.into(),
        ]);
    }
    table
}

fn memory(report: &FleetReport) -> Table {
    let mut table = Table::new(
        "fleet",
        vec![
            Column::new("job", "job", Format::Name),
            Column::new("host", "host", Format::Name),
            Column::new("allocator", "allocator", Format::Name),
            Column::new("peak_bytes", "peak", Format::Bytes),
            Column::new("limit_bytes", "limit", Format::Bytes),
            Column::new("fraction", "used", Format::Percent),
            Column::new("growth_bytes_per_step", "growth per step", Format::Bytes).optional(),
        ],
    );
    for row in &report.memory {
        table.push([
            Cell::from(row.job.as_str()),
            row.host.as_str().into(),
            row.allocator.as_str().into(),
            row.peak_bytes.into(),
            row.limit_bytes.into(),
            row.fraction.into(),
            row.growth_bytes_per_step.into(),
        ]);
    }
    table
}

fn unusable(report: &FleetReport) -> Table {
    let mut table = Table::new(
        "fleet",
        vec![
            Column::new("job", "job", Format::Name),
            Column::new("recordings", "recordings", Format::Count),
            Column::new("reason", "reason", Format::Text),
        ],
    );
    for row in &report.unusable {
        table.push([Cell::from(row.job.as_str()), row.recordings.into(), row.reason.as_str().into()]);
    }
    table
}

fn files(rows: &[super::FileRow]) -> Table {
    let mut table = Table::new(
        "fleet",
        vec![
            Column::new("job", "job", Format::Name),
            Column::new("host", "host", Format::Name),
            Column::new("reason", "reason", Format::Text),
            Column::new("path", "path", Format::Text).hidden(),
        ],
    );
    for row in rows {
        table.push([
            Cell::from(row.job.as_str()),
            row.host.as_str().into(),
            row.reason.as_str().into(),
            row.path.as_str().into(),
        ]);
    }
    table
}
