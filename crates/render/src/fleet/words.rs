//! The sentences of a fleet report: the answer, what is covered, what device hours mean, and fixes that can be run.

use crate::format::{decimal, plural, quoted, share, thousands};

use stepscope_results::fleet::{FleetReport, JobRow};

/// The answer in one sentence.
pub fn answer(report: &FleetReport) -> String {
    let jobs = plural(report.jobs.len() as u64, "job", "jobs");
    let Some(first) = report.jobs.first().filter(|job| job.lost_devices() > 0.0) else {
        return format!("Nothing to win was found in {jobs}.");
    };
    let cause = first.finding.as_deref().unwrap_or("several causes");
    let its_share = share(first.finding_fraction.or(first.lost_fraction).unwrap_or(0.0));
    let devices = match first.device_hours {
        Some(hours) => format!("{} device hours", thousands(hours.round() as i128)),
        None => plural(first.devices, "device", "devices"),
    };
    let jobs = match report.jobs.iter().filter(|job| job.device_hours.is_some()).count() {
        0 => jobs,
        with_hours => plural(with_hours as u64, "job", "jobs"),
    };
    let (of, most) = match &report.jobs[..] {
        [_] => (quoted(&first.job), format!("{cause} takes {its_share} of the step on {devices}")),
        _ => (jobs, format!("{} loses most ({cause}, {its_share} of {devices})", quoted(&first.job))),
    };
    match (report.lost_device_hours, report.device_hours) {
        (Some(lost), Some(all)) if all > 0.0 => format!(
            "Up to {} of {} device hours ({}) of {of} can be saved: {most}.",
            thousands(lost.round() as i128),
            thousands(all.round() as i128),
            share(lost / all)
        ),
        _ => format!(
            "Up to {} of the device time of {of} can be saved: {most}.",
            share(report.lost_fraction.unwrap_or(0.0))
        ),
    }
}

/// What the table of jobs is called: by what it is ranked.
pub(crate) fn jobs_title(report: &FleetReport) -> &'static str {
    if report.device_hours.is_some() { "Jobs, by device hours lost" } else { "Jobs, by devices lost" }
}

/// What device hours mean, and which jobs have none; `None` without a table of them.
pub(crate) fn hours_note(report: &FleetReport) -> Option<String> {
    const NAMED: usize = 5;
    report.lost_device_hours?;
    let mut note =
        "Hours are extrapolated: device hours from the table, times the share lost in the profiles."
            .to_owned();
    let without: Vec<&JobRow> = report.jobs.iter().filter(|job| job.device_hours.is_none()).collect();
    if !without.is_empty() {
        let names: Vec<String> = without.iter().take(NAMED).map(|job| quoted(&job.job)).collect();
        let more = if without.len() > NAMED { ", …" } else { "" };
        let jobs = plural(without.len() as u64, "job is", "jobs are");
        note += &format!(" {jobs} not in the table: {}{more}.", names.join(", "));
    }
    Some(note)
}

/// What a lost share means in devices: `12.3 of 64 devices`.
pub(crate) fn of_devices(job: &JobRow) -> String {
    format!("{} of {}", decimal(job.lost_devices(), 1), plural(job.devices, "device", "devices"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(name: &str, devices: u64, lost: f64) -> JobRow {
        JobRow {
            job: name.to_owned(),
            devices,
            lost_fraction: Some(lost),
            finding: Some("input-bound".to_owned()),
            finding_fraction: Some(lost),
            ..JobRow::default()
        }
    }

    #[test]
    fn the_answer_fits_one_job_several_and_none() {
        let one =
            FleetReport { jobs: vec![job("a", 8, 0.5)], lost_fraction: Some(0.5), ..FleetReport::default() };
        let said = "Up to 50 % of the device time of `a` can be saved: input-bound takes 50 % of the step on 8 devices.";
        assert_eq!(answer(&one), said);
        let two = FleetReport { jobs: vec![job("a", 8, 0.5), job("b", 1, 0.0)], ..one };
        let said = "Up to 50 % of the device time of 2 jobs can be saved: `a` loses most (input-bound, 50 % of 8 devices).";
        assert_eq!(answer(&two), said);
        let mut hours = FleetReport { device_hours: Some(2_000.0), lost_device_hours: Some(500.0), ..two };
        hours.jobs[0].device_hours = Some(2_000.0);
        let said = "Up to 500 of 2,000 device hours (25 %) of 1 job can be saved: `a` loses most (input-bound, 50 % of \
                    2,000 device hours).";
        assert_eq!(answer(&hours), said);
        assert!(hours_note(&hours).unwrap_or_default().ends_with("1 job is not in the table: `b`."));
        let none = FleetReport { jobs: vec![job("b", 1, 0.0)], ..FleetReport::default() };
        assert_eq!(answer(&none), "Nothing to win was found in 1 job.");
    }

    #[test]
    fn numbers_agree_with_their_nouns() {
        assert_eq!(of_devices(&job("a", 1, 0.29)), "0.3 of 1 device");
        let report = FleetReport { covered: 1, planned: 1, recordings: 1, ..FleetReport::default() };
        assert_eq!(report.coverage(), "1 of 1 profile in 1 recording of 0 jobs");
    }
}
