//! `stepscope scalars`: what programs logged for TensorBoard, one row per run and tag.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use rayon::prelude::*;
use regex::Regex;
use stepscope_analyze::curves::RunCurves;
use stepscope_read::tfevents::{FoundRun, RunReader, find_runs};
use stepscope_render::{Select, Table, scalars, table};
use stepscope_session::{Cause, Problem};

use crate::exit::Exit;
use stepscope_trace::series::{LogDamage, LogFault, RunLog};

use crate::failure::Failure;
use crate::output::Terminal;

/// Show values logged for TensorBoard (loss, accuracy, throughput): one row per run and tag.
///
/// Reads the event files of TensorFlow, Keras, PyTorch and JAX below each PATH; a run is a folder. Every point counts.
/// If a restarted program repeated steps, its newer points replace the older ones.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope scalars logs/                               all runs and tags\n  \
    stepscope scalars logs/ --tag loss --points --csv     all points of the tags that match\n  \
    stepscope scalars old/ new/ --until loss=0.5          which run got there first")]
pub(crate) struct ScalarsArgs {
    /// Log directories or event files.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Take only runs whose name matches.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    run: Option<Regex>,
    /// Take only tags that match.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    tag: Option<Regex>,
    /// One row per point.
    #[arg(long, conflicts_with = "until")]
    points: bool,
    /// When did each run reach this value?
    #[arg(long, value_name = "TAG=VALUE", value_parser = goal, conflicts_with = "tag")]
    until: Option<Goal>,
    /// Show at most so many rows; 0 for all.
    #[arg(long, value_name = "N")]
    top: Option<usize>,
    /// Sort by this column; COLUMN:asc and COLUMN:desc set the direction.
    #[arg(long, value_name = "COLUMN")]
    sort: Option<String>,
    /// Write JSON (schema stepscope.scalars.v1).
    #[arg(long, conflicts_with = "csv")]
    json: bool,
    /// Write CSV.
    #[arg(long)]
    csv: bool,
}

/// A value of a tag to be reached.
#[derive(Clone, Debug)]
struct Goal {
    tag: Regex,
    value: f64,
}

fn pattern(text: &str) -> Result<Regex, String> {
    Regex::new(text).map_err(|error| error.to_string())
}

fn goal(text: &str) -> Result<Goal, String> {
    let wrong = || "give a tag and a value, e.g. loss=0.5".to_owned();
    let (tag, value) = text.rsplit_once('=').ok_or_else(wrong)?;
    let value = value.trim().parse::<f64>().ok().filter(|value| value.is_finite()).ok_or_else(wrong)?;
    Ok(Goal { tag: pattern(tag)?, value })
}

impl ScalarsArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        let found = self.find()?;
        let damage = if self.points || self.until.is_some() {
            let runs: Vec<RunLog> = all(found, |run| self.read(run))?;
            let damage: Vec<LogDamage> = runs.iter().flat_map(|run| run.damage.clone()).collect();
            self.unless_nothing(runs.iter().map(|run| run.records).sum(), &damage)?;
            self.write_points(&runs, terminal)?;
            damage
        } else {
            // Each run's points are dropped as soon as its rows are known.
            let runs: Vec<RunCurves> = all(found, |run| self.read(run).map(RunCurves::of))?;
            let damage: Vec<LogDamage> = runs.iter().flat_map(|run| run.damage.clone()).collect();
            self.unless_nothing(runs.iter().map(|run| run.records).sum(), &damage)?;
            self.write_table(&scalars::table(&runs), terminal)?;
            damage
        };
        let sound = damage.iter().all(|damage| damage.what == LogFault::Cut);
        Ok(if sound { Exit::Done } else { Exit::Damaged })
    }

    fn unless_nothing(&self, records: u64, damage: &[LogDamage]) -> Result<(), Problem> {
        if records > 0 {
            return Ok(());
        }
        let found = damage.first().map_or_else(
            || "its event files are empty".to_owned(),
            |damage| scalars::damage(damage).trim_end_matches('.').to_owned(),
        );
        Err(self.nothing(found))
    }

    /// The runs below all paths. With several paths, names begin with them: `old/train` and `new/train` are two.
    fn find(&self) -> Result<Vec<FoundRun>, Problem> {
        let mut all = Vec::new();
        for path in &self.paths {
            if !path.exists() {
                return Err(Problem::new(Cause::Nothing, format!("{} does not exist", path.display()))
                    .then("nothing was read")
                    .then("give a log directory or an event file"));
            }
            let below = find_runs(path).into_iter();
            all.extend(below.map(|(name, files)| (self.named(path, name), files)));
        }
        all.retain(|(name, _)| self.run.as_ref().is_none_or(|run| run.is_match(name)));
        if all.is_empty() {
            let found = match self.run {
                Some(_) => "no run has a name that matches --run",
                None => "no file below it has `tfevents` in its name",
            };
            return Err(self.nothing(found.to_owned()));
        }
        Ok(all)
    }

    fn named(&self, path: &Path, name: String) -> String {
        match (&self.paths[..], name.as_str()) {
            ([_], _) => name,
            (_, ".") => path.display().to_string(),
            _ => path.join(name).display().to_string(),
        }
    }

    fn read(&self, (name, files): FoundRun) -> Result<RunLog, Problem> {
        let mut reader = RunReader::new(name, files);
        reader.read().map_err(|error| {
            Problem::new(Cause::Nothing, "cannot read an event file").then(error.to_string())
        })?;
        let mut log = reader.into_log();
        let wanted = self.until.as_ref().map(|goal| &goal.tag).or(self.tag.as_ref());
        log.series.retain(|series| wanted.is_none_or(|tag| tag.is_match(&series.tag)));
        Ok(log)
    }

    fn nothing(&self, found: String) -> Problem {
        let paths: Vec<String> = self.paths.iter().map(|path| path.display().to_string()).collect();
        Problem::new(Cause::Nothing, format!("no logged values in {}", paths.join(", ")))
            .then(found)
            .then("give the directory that the program logs to, e.g. that of SummaryWriter or the TensorBoard callback")
    }

    fn write_points(&self, runs: &[RunLog], terminal: &Terminal) -> Result<(), Failure> {
        if let Some(goal) = &self.until {
            return self.write_table(&scalars::until(runs, goal.value), terminal);
        }
        let mut out = terminal.stdout();
        if self.json {
            scalars::write_points_json(runs, &mut out)?;
        } else {
            scalars::write_points_csv(runs, &mut out)?;
        }
        Ok(out.flush()?)
    }

    fn write_table(&self, rows: &Table, terminal: &Terminal) -> Result<(), Failure> {
        let mut out = terminal.stdout();
        let select = Select { top: self.top, sort: self.sort.clone(), filter: None };
        let picked = rows.pick(&select, None)?;
        let written: io::Result<()> = if self.json {
            table::write_json(rows, &picked, &mut out)
        } else if self.csv {
            table::write_csv(rows, &picked, &mut out)
        } else {
            table::write_text(rows, &picked, terminal.out, &mut out)
        };
        written?;
        Ok(out.flush()?)
    }
}

/// Each run by itself, on all cores.
fn all<T: Send>(
    found: Vec<FoundRun>,
    of: impl Fn(FoundRun) -> Result<T, Problem> + Send + Sync,
) -> Result<Vec<T>, Problem> {
    found.into_par_iter().map(of).collect()
}
