//! The fleet report for the terminal: the answer, then one table per question, shortest first.

use std::io::{self, Write};

use stepscope_results::Select;
use stepscope_results::fleet::{self, FleetReport};

use crate::Style;
use crate::format::printable;
use crate::table;

use super::words::{self, of_devices};

/// Tables in text, with their titles and how many rows of each.
const SHOWN: &[(&str, &str, usize)] = &[
    ("jobs", "Jobs, by devices lost", 20),
    ("hosts", "Hosts that are slower than their peers", 10),
    ("changes", "Jobs whose step time changed", 10),
    ("causes", "Causes over all jobs", 10),
    ("communication", "Exposed communication, by number of devices", 10),
    ("memory", "Memory near its limit", 10),
    ("kernels", "Kernels over all jobs", 10),
    ("ops", "Ops over all jobs", 10),
    ("unusable", "Jobs without a usable profile", 10),
    ("failed", "Files that could not be read", 10),
    ("damaged", "Files that were read in part", 10),
];

/// Writes the text, with at most `top` rows per table.
pub fn write_text(
    report: &FleetReport,
    top: Option<usize>,
    style: Style,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}", style.bold(&words::answer(report)))?;
    writeln!(out, "Covers {}.", report.coverage())?;
    if !report.missing_shards.is_empty() {
        let named: Vec<&str> = report.missing_shards.iter().take(20).map(String::as_str).collect();
        writeln!(out, "Missing shards: {}.", named.join(", "))?;
    }
    for (name, title, usual) in SHOWN {
        let Some(table) = fleet::table(report, name).filter(|table| !table.rows().is_empty()) else {
            continue;
        };
        let title = if *name == "jobs" { words::jobs_title(report) } else { *title };
        writeln!(out, "\n{}", style.bold(title))?;
        let select = Select { top, ..Select::default() };
        let picked =
            table.pick(&select, Some(*usual)).map_err(|error| io::Error::other(error.to_string()))?;
        table::write_text(&table, &picked, style, out)?;
        if *name == "jobs" {
            fixes(report, out)?;
        }
    }
    if let Some(note) = words::hours_note(report) {
        writeln!(out, "\n{}", printable(&note))?;
    }
    Ok(())
}

/// What to do about the jobs that lose most.
fn fixes(report: &FleetReport, out: &mut dyn Write) -> io::Result<()> {
    const FIXES: usize = 5;
    let mut said_before: Vec<(&str, &str)> = Vec::new();
    for job in report.jobs.iter().filter(|job| job.lost_devices() > 0.0).take(FIXES) {
        let (Some(summary), Some(fix)) = (&job.summary, report.fix_of(job)) else { continue };
        writeln!(out, "  {} ({} lost)", printable(&job.job), of_devices(job))?;
        // The table shows the newest step; this may be about another recording.
        let said = match job.session.as_deref().filter(|_| job.recordings > 1) {
            Some(session) => format!("{} in session {session}.", summary.trim_end_matches('.')),
            None => summary.clone(),
        };
        writeln!(out, "    {}", printable(&said))?;
        // The same host in three jobs needs one look.
        let same = job.fix.as_deref().and_then(|fix| said_before.iter().find(|(said, _)| *said == fix));
        match same {
            Some((_, first)) => writeln!(out, "    Fix: as for {}.", printable(first))?,
            None => writeln!(out, "    Fix: {}", printable(&fix))?,
        }
        said_before.extend(job.fix.as_deref().map(|fix| (fix, job.job.as_str())));
    }
    Ok(())
}
