//! `stepscope fleet report`: from folders of profiles, or from partials, to the ranked tables.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use stepscope_render::fleet::{write_html, write_json, write_text};
use stepscope_render::table as tables;
use stepscope_results::Select;
use stepscope_results::fleet::{TABLES, table};
use stepscope_session::{Cause, Problem};

use super::options::{FleetSource, missing, worse};
use super::tables::write_parquet;
use crate::commands::report::write_page;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::Terminal;

/// Rank the jobs by what they lose and show why, with slow hosts, changes over time and coverage.
///
/// Reads all profiles below the paths on all cores. Results of each host are kept, so that a run that was stopped
/// resumes, and the next one only reads what is new.
#[derive(Debug, Args)]
#[command(
    after_help = "Tables for --table: jobs, hosts, causes, job_causes, changes, series, ops, kernels, communication, \
    memory, unusable, failed, damaged\n\n\
    Examples:\n  \
    stepscope fleet report logs/                          all jobs below logs/\n  \
    stepscope fleet report logs/ --since 7d --json        the last week, for scripts\n  \
    stepscope fleet report logs/ --job-pattern '/(?P<team>[^/]+)/(?P<job>[^/]+)/plugins/'\n  \
    stepscope fleet report logs/ --devices hours.csv      what it costs in device hours\n  \
    stepscope fleet report day1.part day2.part --csv --table hosts"
)]
pub(super) struct ReportArgs {
    #[command(flatten)]
    source: FleetSource,
    /// Write JSON (schema stepscope.fleet.v1).
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write one table as CSV: that of the jobs, or the one given with --table.
    #[arg(long)]
    csv: bool,
    /// The table for --csv.
    #[arg(long, value_name = "NAME", requires = "csv", default_value = "jobs", hide_default_value = true, hide_possible_values = true,
        value_parser = clap::builder::PossibleValuesParser::new(TABLES.iter().copied()))]
    table: String,
    /// Show at most N rows per table in text; 0 shows all.
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Write every table as a Parquet file into DIR.
    #[arg(long, value_name = "DIR")]
    parquet: Option<PathBuf>,
    /// Write one self-contained HTML page to FILE.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl ReportArgs {
    pub(super) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let (report, exit) = self.source.report(terminal)?;
        if let Some(path) = &self.html {
            write_page(path, |out| write_html(&report, out))?;
        }
        if let Some(folder) = &self.parquet {
            write_parquet(&report, folder)?;
        }
        let mut out = terminal.stdout_as(self.json);
        if self.json {
            write_json(&report, &mut out)?;
        } else if self.csv {
            let name = &self.table;
            let unknown = || Problem::new(Cause::Usage, format!("there is no table `{name}`"));
            let table = table(&report, name).ok_or_else(unknown)?;
            let picked = table.pick(&Select::default(), None)?;
            tables::write_csv(&table, &picked, &mut out)?;
        } else {
            write_text(&report, self.top, terminal.out, &mut out)?;
        }
        out.flush()?;
        Ok(worse(exit, missing(&report, terminal)))
    }
}
