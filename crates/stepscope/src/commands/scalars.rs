//! `stepscope scalars`: what programs logged for TensorBoard, one row per run and tag.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use rayon::prelude::*;
use regex::Regex;
use stepscope_analyze::curves::RunCurves;
use stepscope_analyze::curves::versus::{Versus, pairs};
use stepscope_diagnose::{RunVerdict, diagnose_run};
use stepscope_export::write_points_parquet;
use stepscope_read::tfevents::{RunReader, find_runs};
use stepscope_read::{Progress, ReadError, files};
use stepscope_render::scalars::Compared;
use stepscope_render::{scalars, table};
use stepscope_results::{Select, Table};
use stepscope_session::{Cause, Problem, unreadable_file};
use stepscope_trace::series::{LogDamage, LogFault, RunLog};

use crate::exit::Exit;

use crate::failure::Failure;
use crate::output::Terminal;
use crate::progress::with_bar;
use crate::write_file::save;

/// Show values logged for TensorBoard (loss, accuracy, throughput): one row per run and tag.
///
/// Reads the event files of TensorFlow, Keras, PyTorch and JAX below each PATH; a run is a folder. Every point counts.
/// If a restarted program repeated steps, its newer points replace the older ones. Below the table: how long steps took by
/// the times of points, pauses, and findings such as `throughput-drop`.
///
/// With several paths, runs of the same name are compared with that below the first path: at equal step, at equal time
/// since the start, and by how long each took to reach a value.
///
/// Runs with hyperparameters are listed as trials, with the last value of each metric. Images, graphs, histograms and texts are
/// named below the table; `stepscope serve` shows them.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope scalars logs/                               all runs and tags\n  \
    stepscope scalars logs/ --tag loss --points --csv     all points of the tags that match\n  \
    stepscope scalars old/ new/ --tag loss                compare runs at equal step and equal time\n  \
    stepscope scalars old/ new/ --until loss=0.5          which run got there first\n  \
    stepscope scalars logs/ --parquet points.parquet      all points for data tools")]
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
    /// Show at most this many rows; 0 for all.
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
    /// Write all points to this file as Parquet.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "csv", "points", "until"])]
    parquet: Option<PathBuf>,
}

/// Trials in text, unless more are asked for.
const MOST_TRIALS: usize = 50;

/// A run, and where it was found.
struct Located {
    /// Below which of the paths.
    place: usize,
    /// Its name there.
    within: String,
    /// Its name among all.
    name: String,
    files: Vec<PathBuf>,
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
        let found = with_bar(&Progress::new(), || self.find())?;
        let damage = if self.points || self.until.is_some() || self.parquet.is_some() {
            let runs: Vec<RunLog> = all(found, |run| Ok(self.wanted(read(&run)?)))?;
            let damage: Vec<LogDamage> = runs.iter().flat_map(|run| run.damage.clone()).collect();
            self.unless_nothing(runs.iter().map(|run| run.records).sum(), &damage)?;
            self.write_points(&runs, terminal)?;
            damage
        } else {
            self.overview(found, terminal)?
        };
        let sound = damage.iter().all(|damage| damage.what == LogFault::Cut);
        Ok(if sound { Exit::Done } else { Exit::Damaged })
    }

    /// A row per run and tag, how fast runs were, and how those of several paths compare.
    fn overview(&self, found: Vec<Located>, terminal: &Terminal) -> Result<Vec<LogDamage>, Failure> {
        let several = self.paths.len() > 1;
        let places: Vec<(usize, String)> = found.iter().map(|run| (run.place, run.within.clone())).collect();
        let looked: Vec<(RunCurves, Option<RunLog>)> = all(found, |run| {
            let log = read(&run)?;
            // The pace is that of the whole run, whichever tags are shown.
            let mut curves = RunCurves::of(&log);
            curves.curves.retain(|curve| self.is_wanted(&curve.tag));
            // Each run's points are dropped as soon as its rows are known, unless others are compared with them.
            Ok((curves, several.then(|| self.wanted(log))))
        })?;
        let (mut runs, logs): (Vec<RunCurves>, Vec<Option<RunLog>>) = looked.into_iter().unzip();
        let damage: Vec<LogDamage> = runs.iter().flat_map(|run| run.damage.clone()).collect();
        self.unless_nothing(runs.iter().map(|run| run.records).sum(), &damage)?;
        RunCurves::explain(&mut runs);
        let verdicts: Vec<RunVerdict> = runs.par_iter().map(diagnose_run).collect();
        let compared = compared(&places, &logs);
        let mut rows = scalars::table(&runs);
        rows.member("pace", scalars::pace_json(&runs, &verdicts));
        rows.member("findings", scalars::findings_json(&runs, &verdicts));
        rows.member("others", scalars::others_json(&runs));
        let study = scalars::study(&runs);
        if !study.trials.is_empty() {
            rows.member("hyperparameters", scalars::study_json(&study));
        }
        if several {
            rows.member("comparison", scalars::comparison_json(&compared));
        }
        self.write_table(&rows, terminal)?;
        if !self.json && !self.csv {
            let mut out = terminal.stdout();
            scalars::write_pace(&runs, &verdicts, terminal.out, &mut out)?;
            if let Some(trials) = scalars::study_table(&study) {
                let picked =
                    trials.pick(&Select { top: self.top, ..Select::default() }, Some(MOST_TRIALS))?;
                writeln!(out)?;
                table::write_text(&trials, &picked, terminal.out, &mut out)?;
            }
            if !compared.is_empty() {
                let versus = scalars::comparison(&compared);
                let picked = versus.pick(&Select { top: self.top, ..Select::default() }, versus.top)?;
                writeln!(out)?;
                table::write_text(&versus, &picked, terminal.out, &mut out)?;
            }
            out.flush()?;
        }
        Ok(damage)
    }

    fn unless_nothing(&self, records: u64, damage: &[LogDamage]) -> Result<(), Problem> {
        if records > 0 {
            return Ok(());
        }
        let found = damage.first().map_or_else(
            || "its event files are empty".to_owned(),
            |damage| stepscope_results::words::log::damage(damage).trim_end_matches('.').to_owned(),
        );
        Err(self.nothing(found))
    }

    /// The runs below all paths. With several paths, names begin with them: `old/train` and `new/train` are two.
    fn find(&self) -> Result<Vec<Located>, Problem> {
        let mut all = Vec::new();
        for (place, path) in self.paths.iter().enumerate() {
            match files::data(path) {
                Err(error) if files::is_url(path) => {
                    return Err(unreadable_file(&ReadError::Io { path: path.clone(), error }));
                }
                Err(_) => {
                    return Err(Problem::new(Cause::Nothing, format!("{} does not exist", path.display()))
                        .then("nothing was read")
                        .then("give a log directory or an event file"));
                }
                Ok(_) => {}
            }
            let below = find_runs(path).into_iter();
            all.extend(below.map(|(within, files)| {
                let name = self.named(path, &within);
                Located { place, within, name, files }
            }));
        }
        all.retain(|found| self.run.as_ref().is_none_or(|run| run.is_match(&found.name)));
        if all.is_empty() {
            let found = match self.run {
                Some(_) => "no run has a name that matches --run",
                None => "no file below it has `tfevents` in its name",
            };
            return Err(self.nothing(found.to_owned()));
        }
        Ok(all)
    }

    fn named(&self, path: &Path, within: &str) -> String {
        match (&self.paths[..], within) {
            ([_], _) => within.to_owned(),
            (_, ".") => path.display().to_string(),
            _ => path.join(within).display().to_string(),
        }
    }

    fn is_wanted(&self, tag: &str) -> bool {
        let wanted = self.until.as_ref().map(|goal| &goal.tag).or(self.tag.as_ref());
        wanted.is_none_or(|wanted| wanted.is_match(tag))
    }

    fn wanted(&self, mut log: RunLog) -> RunLog {
        log.series.retain(|series| self.is_wanted(&series.tag));
        log
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
        let mut out = terminal.stdout_as(self.json);
        if let Some(path) = &self.parquet {
            write_parquet(runs, path)?;
            writeln!(out, "{}", path.display())?;
        } else if self.json {
            scalars::write_points_json(runs, &mut out)?;
        } else {
            scalars::write_points_csv(runs, &mut out)?;
        }
        Ok(out.flush()?)
    }

    fn write_table(&self, rows: &Table, terminal: &Terminal) -> Result<(), Failure> {
        let mut out = terminal.stdout_as(self.json);
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

fn read(run: &Located) -> Result<RunLog, Problem> {
    let mut reader = RunReader::new(run.name.as_str(), run.files.clone());
    reader
        .read()
        .map_err(|error| Problem::new(Cause::Nothing, "cannot read an event file").then(error.to_string()))?;
    Ok(reader.into_log())
}

/// Each tag of each run, compared with that of the same run below the first path.
fn compared(places: &[(usize, String)], logs: &[Option<RunLog>]) -> Vec<Compared> {
    let places: Vec<(usize, &str)> = places.iter().map(|(place, within)| (*place, within.as_str())).collect();
    let both = pairs(&places).into_iter().filter_map(|(base, new)| {
        let log = |at: usize| logs.get(at)?.as_ref();
        Some((log(base)?, log(new)?))
    });
    let tags = both.flat_map(|(base, new)| {
        let same = |series: &&stepscope_trace::series::Series| {
            let tag = series.tag.clone();
            base.series.iter().find(move |other| other.tag == tag)
        };
        new.series.iter().filter_map(move |series| {
            let versus = Versus::of(same(&series)?, series);
            Some(Compared { tag: series.tag.clone(), base: base.name.clone(), run: new.name.clone(), versus })
        })
    });
    tags.collect()
}

fn write_parquet(runs: &[RunLog], path: &Path) -> Result<(), Failure> {
    let todo = "set --parquet to a file in a writable folder";
    Ok(save(path, Cause::Nothing, todo, |out| write_points_parquet(runs, out))?)
}

/// Each run by itself, on all cores.
fn all<T: Send>(
    found: Vec<Located>,
    of: impl Fn(Located) -> Result<T, Problem> + Send + Sync,
) -> Result<Vec<T>, Problem> {
    found.into_par_iter().map(of).collect()
}
