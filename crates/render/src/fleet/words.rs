//! The sentences of a fleet report: the answer, what is covered, what device hours mean, and fixes that can be run.

use crate::format::{decimal, plural, quoted, share, shell_word, thousands};

use super::{FleetReport, JobRow, SeriesRow};

impl FleetReport {
    /// The answer in one sentence.
    pub fn answer(&self) -> String {
        let jobs = plural(self.jobs.len() as u64, "job", "jobs");
        let Some(first) = self.jobs.first().filter(|job| job.lost_devices() > 0.0) else {
            return format!("Nothing to win was found in {jobs}.");
        };
        let cause = first.finding.as_deref().unwrap_or("several causes");
        let its_share = share(first.finding_fraction.or(first.lost_fraction).unwrap_or(0.0));
        let devices = match first.device_hours {
            Some(hours) => format!("{} device hours", thousands(hours.round() as i128)),
            None => plural(first.devices, "device", "devices"),
        };
        let jobs = match self.jobs.iter().filter(|job| job.device_hours.is_some()).count() {
            0 => jobs,
            with_hours => plural(with_hours as u64, "job", "jobs"),
        };
        let (of, most) = match &self.jobs[..] {
            [_] => (quoted(&first.job), format!("{cause} takes {its_share} of the step on {devices}")),
            _ => (jobs, format!("{} loses most ({cause}, {its_share} of {devices})", quoted(&first.job))),
        };
        match (self.lost_device_hours, self.device_hours) {
            (Some(lost), Some(all)) if all > 0.0 => format!(
                "Up to {} of {} device hours ({}) of {of} can be saved: {most}.",
                thousands(lost.round() as i128),
                thousands(all.round() as i128),
                share(lost / all)
            ),
            _ => format!(
                "Up to {} of the device time of {of} can be saved: {most}.",
                share(self.lost_fraction.unwrap_or(0.0))
            ),
        }
    }

    /// What the table of jobs is called: by what it is ranked.
    pub(crate) fn jobs_title(&self) -> &'static str {
        if self.device_hours.is_some() { "Jobs, by device hours lost" } else { "Jobs, by devices lost" }
    }

    /// What device hours mean, and which jobs have none; `None` without a table of them.
    pub(crate) fn hours_note(&self) -> Option<String> {
        const NAMED: usize = 5;
        self.lost_device_hours?;
        let mut note =
            "Hours are extrapolated: device hours from the table, times the share lost in the profiles."
                .to_owned();
        let without: Vec<&JobRow> = self.jobs.iter().filter(|job| job.device_hours.is_none()).collect();
        if !without.is_empty() {
            let names: Vec<String> = without.iter().take(NAMED).map(|job| quoted(&job.job)).collect();
            let more = if without.len() > NAMED { ", …" } else { "" };
            let jobs = plural(without.len() as u64, "job is", "jobs are");
            note += &format!(" {jobs} not in the table: {}{more}.", names.join(", "));
        }
        Some(note)
    }

    /// The first fix of a job as a command that can be run: with the folder of the recording that it is about.
    pub(crate) fn fix_of(&self, job: &JobRow) -> Option<String> {
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

/// What a lost share means in devices: `12.3 of 64 devices`.
pub(crate) fn of_devices(job: &JobRow) -> String {
    format!("{} of {}", decimal(job.lost_devices(), 1), plural(job.devices, "device", "devices"))
}

#[cfg(test)]
mod tests {
    use super::super::*;
    use super::of_devices;

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
        assert_eq!(one.answer(), said);
        let two = FleetReport { jobs: vec![job("a", 8, 0.5), job("b", 1, 0.0)], ..one };
        let said = "Up to 50 % of the device time of 2 jobs can be saved: `a` loses most (input-bound, 50 % of 8 devices).";
        assert_eq!(two.answer(), said);
        let mut hours = FleetReport { device_hours: Some(2_000.0), lost_device_hours: Some(500.0), ..two };
        hours.jobs[0].device_hours = Some(2_000.0);
        let said = "Up to 500 of 2,000 device hours (25 %) of 1 job can be saved: `a` loses most (input-bound, 50 % of \
                    2,000 device hours).";
        assert_eq!(hours.answer(), said);
        assert!(hours.hours_note().unwrap_or_default().ends_with("1 job is not in the table: `b`."));
        let none = FleetReport { jobs: vec![job("b", 1, 0.0)], ..FleetReport::default() };
        assert_eq!(none.answer(), "Nothing to win was found in 1 job.");
    }

    #[test]
    fn a_fix_names_the_recording_that_it_is_about() {
        let mut row = job("a", 8, 0.5);
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

    #[test]
    fn numbers_agree_with_their_nouns() {
        assert_eq!(of_devices(&job("a", 1, 0.29)), "0.3 of 1 device");
        let report = FleetReport { covered: 1, planned: 1, recordings: 1, ..FleetReport::default() };
        assert_eq!(report.coverage(), "1 of 1 profile in 1 recording of 0 jobs");
    }
}
