//! Options that several fleet commands share: what to plan, where to keep results, what to finish with.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use stepscope_fleet::devices::DeviceHours;
use stepscope_fleet::store::{Cache, partials_at, read_whole};
use stepscope_fleet::{FinishOptions, FleetReport, Local, Options, Set, Workers, finish_with, plan, run};
use stepscope_read::{Progress, files};
use stepscope_render::format::{plural, thousands};
use stepscope_session::{Cause, Problem};

use super::{in_file, problem};
use crate::exit::Exit;
use crate::output::Terminal;
use crate::progress::with_bar;
use crate::quantity;

/// What to plan.
#[derive(Debug, Args)]
pub(super) struct PlanOptions {
    /// Regular expression for paths with named groups: `(?P<job>…)`, and if wanted `(?P<date>…)`, `(?P<session>…)`, `(?P<host>…)`;
    /// other groups become labels [default: the folder above plugins/profile, else the folder of the files].
    #[arg(long, value_name = "REGEX")]
    pub(super) job_pattern: Option<String>,
    /// Only recordings since this date or within this time, such as 2026-11-01, 7d or 12h.
    #[arg(long, value_name = "WHEN", value_parser = since)]
    pub(super) since: Option<i64>,
}

impl PlanOptions {
    pub(super) fn options(&self) -> Options {
        Options { job_pattern: self.job_pattern.clone(), since: self.since, ..Options::default() }
    }
}

/// A date, or a time before now, as seconds since 1970.
fn since(text: &str) -> Result<i64, String> {
    let wrong = || "give a date such as 2026-11-01, or a time such as 7d or 12h".to_owned();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() as i64);
    let before = |unit: char, seconds: i64| -> Option<i64> {
        let count: i64 =
            text.strip_suffix(unit)?.parse().ok().filter(|count| (0..1_000_000).contains(count))?;
        Some(now - count * seconds)
    };
    let date = || {
        let numbers: Vec<i64> = text.split('-').map_while(|part| part.parse().ok()).collect();
        match numbers[..] {
            [year, month, day] => stepscope_render::format::utc_seconds((year, month, day), (0, 0, 0)),
            _ => None,
        }
    };
    before('d', 86_400).or_else(|| before('h', 3_600)).or_else(date).ok_or_else(wrong)
}

/// How many hosts to read at once, and for how long.
#[derive(Debug, Args)]
pub(super) struct WorkerOptions {
    /// Hosts to read at once; memory holds one profile per thread [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
    /// Give up a host if nothing of its profile can be read for this long, as from a mount that hangs. The report lists it
    /// as failed.
    #[arg(long, value_name = "TIME", value_parser = quantity::some_time, default_value = "5m")]
    host_time: Duration,
}

impl WorkerOptions {
    pub(super) fn workers(&self) -> Workers {
        Workers { threads: self.threads.map(|threads| threads as usize), patience: self.host_time }
    }
}

/// How to read.
#[derive(Debug, Args)]
pub(super) struct ReadOptions {
    #[command(flatten)]
    workers: WorkerOptions,
    /// Folder for results of hosts, so that a run can be resumed [default: $XDG_CACHE_HOME/stepscope/fleet].
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
    /// Neither use nor keep results of earlier runs.
    #[arg(long, conflicts_with = "cache")]
    no_cache: bool,
}

impl ReadOptions {
    pub(super) fn local(&self, logs: &[PathBuf]) -> Result<Local, Problem> {
        let cache = match &self.cache {
            _ if self.no_cache => None,
            Some(folder) => {
                outside(folder, logs, "--cache")?;
                Some(Cache::at(folder.clone()))
            }
            None => Cache::of_user(),
        };
        Ok(Local { workers: self.workers.workers(), cache, ..Local::default() })
    }
}

/// Nothing is written into a log directory.
pub(super) fn outside(folder: &Path, logs: &[PathBuf], option: &str) -> Result<(), Problem> {
    let real = |path: &Path| {
        let known = path.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)));
        match known {
            Some((above, real)) => path.strip_prefix(above).map_or(real.clone(), |rest| real.join(rest)),
            None => std::env::current_dir().unwrap_or_default().join(path),
        }
    };
    let place = real(folder);
    match logs.iter().find(|log| !files::is_url(log) && log.is_dir() && place.starts_with(real(log))) {
        None => Ok(()),
        Some(log) => {
            Err(Problem::new(Cause::Usage, format!("{} lies in the log directory", folder.display()))
                .then(format!("found it below {}", log.display()))
                .then(format!("set {option} to a folder elsewhere")))
        }
    }
}

/// What a report or a check is about.
#[derive(Debug, Args)]
pub(super) struct FleetSource {
    /// Log directories, profiles, or partials.
    #[arg(required = true, value_name = "PATH")]
    pub(super) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) plan: PlanOptions,
    #[command(flatten)]
    pub(super) read: ReadOptions,
    #[command(flatten)]
    pub(super) finish: FinishArgs,
}

impl FleetSource {
    /// Reads all of it. Partials that cannot be read are named, and the exit code says so.
    pub(super) fn report(&self, terminal: &Terminal) -> Result<(FleetReport, Exit), Problem> {
        let (set, exit) = self.gathered(terminal)?;
        let options = self.finish.options(self.plan.since)?;
        let report = finish_with(&set, &options).map_err(|error| problem(&error))?;
        if let Some(hours) = &options.device_hours {
            unprofiled(hours, &report, terminal);
        }
        Ok((report, exit))
    }

    /// Partials and profiles below the paths, united.
    fn gathered(&self, terminal: &Terminal) -> Result<(Set, Exit), Problem> {
        let (mut set, mut exit) = (Set::new(), Exit::Done);
        let mut logs = Vec::new();
        for path in &self.paths {
            match partials_at(path).map_err(|error| problem(&error))? {
                Some(files) => exit = worse(exit, add_all(&mut set, &files, terminal)),
                None => logs.push(path.clone()),
            }
        }
        if !logs.is_empty() {
            let local = self.read.local(&logs)?;
            let options = self.plan.options();
            let patience = options.patience.min(local.workers.patience);
            let works = with_bar(&Progress::new(), || plan(&logs, &Options { patience, ..options }))
                .map_err(|error| problem(&error))?;
            let new = with_bar(&local.progress, || run(&works, &local)).map_err(|error| problem(&error))?;
            said(&local, terminal);
            set.join(new);
        }
        set.settle();
        if set.is_empty() && exit == Exit::Done {
            let paths: Vec<String> = self.paths.iter().map(|path| path.display().to_string()).collect();
            return Err(Problem::new(Cause::Nothing, format!("no profile in {}", paths.join(", ")))
                .then("found no file of a known format, or none since the given date")
                .then("give folders with profiles, or partials written by `stepscope fleet partial`"));
        }
        Ok((set, exit))
    }
}

/// What to finish with.
/// Largest table of device hours, in bytes.
const LARGEST_TABLE: u64 = 64 << 20;

#[derive(Debug, Args)]
pub(super) struct FinishArgs {
    /// Table of device hours by job (CSV with job and device_hours, or job, devices and hours).
    #[arg(long, value_name = "FILE")]
    devices: Option<PathBuf>,
}

impl FinishArgs {
    pub(super) fn options(&self, since: Option<i64>) -> Result<FinishOptions, Problem> {
        let Some(path) = &self.devices else { return Ok(FinishOptions { device_hours: None, since }) };
        let text = files::read_text(path, LARGEST_TABLE).map_err(|error| {
            Problem::new(Cause::Usage, format!("cannot read {}", path.display()))
                .then(error.to_string())
                .then("set --devices to a CSV file")
        })?;
        let device_hours = Some(DeviceHours::parse(&text).map_err(|error| in_file(path, &error))?);
        Ok(FinishOptions { device_hours, since })
    }

    pub(super) fn finished(&self, set: &Set, since: Option<i64>) -> Result<FleetReport, Problem> {
        finish_with(set, &self.options(since)?).map_err(|error| problem(&error))
    }
}

/// Names jobs of the table of device hours that no profile is of: their hours count nowhere.
fn unprofiled(hours: &DeviceHours, report: &FleetReport, terminal: &Terminal) {
    const NAMED: usize = 5;
    let known: std::collections::BTreeSet<&str> = report.jobs.iter().map(|job| job.job.as_str()).collect();
    let names: Vec<&str> = hours.jobs().filter(|job| !known.contains(job)).collect();
    if !names.is_empty() {
        let (jobs, more) =
            (plural(names.len() as u64, "job", "jobs"), if names.len() > NAMED { ", …" } else { "" });
        let named = names.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
        terminal.remark(&format!("no profile belongs to {jobs} of the table of device hours: {named}{more}"));
    }
}

/// Says what the cache did.
pub(super) fn said(local: &Local, terminal: &Terminal) {
    use std::sync::atomic::Ordering::Relaxed;
    let (done, reused) = (local.done.load(Relaxed), local.reused.load(Relaxed));
    if reused > 0 {
        let all = plural(done, "host", "hosts");
        terminal.remark(&format!(
            "reused the results of {} of {all} from an earlier run",
            thousands(i128::from(reused))
        ));
    }
    let failed = local.cache_failed.lock().ok().and_then(|mut failed| failed.take());
    if let Some(error) = failed {
        terminal.remark(&format!(
            "results cannot be kept for a later run: {error}; use --cache DIR or --no-cache"
        ));
    }
}

/// Adds partials; names those that cannot be read.
pub(super) fn add_all(set: &mut Set, files: &[PathBuf], terminal: &Terminal) -> Exit {
    let mut exit = Exit::Done;
    for file in files {
        if let Err(error) = read_whole(file).and_then(|bytes| set.add(&bytes)) {
            terminal.report(&in_file(file, &error));
            exit = Exit::Damaged;
        }
        // Finished recordings are small, so that memory holds few hosts at a time.
        set.settle();
    }
    exit
}

pub(super) fn worse(a: Exit, b: Exit) -> Exit {
    if a == Exit::Done { b } else { a }
}

/// Names what is missing, and returns the exit code.
pub(super) fn missing(report: &FleetReport, terminal: &Terminal) -> Exit {
    let first = report.failed.first().or(report.damaged.first());
    if report.is_complete() && first.is_none() {
        return Exit::Done;
    }
    let mut problem = Problem::new(Cause::Damaged, format!("the report covers {}", report.coverage()));
    if let Some(file) = first {
        // Reasons of readers name the file already.
        let named = if file.reason.starts_with(&file.path) { "" } else { &file.path };
        let between = if named.is_empty() { "" } else { ": " };
        problem = problem.then(format!("for example {named}{between}{}", file.reason));
    }
    if !report.missing_shards.is_empty() {
        let names: Vec<&str> = report.missing_shards.iter().take(10).map(String::as_str).collect();
        problem = problem.then(format!("missing shards: {}", names.join(", ")));
    }
    terminal
        .report(&problem.then("copy or record the files again, run missing shards, then repeat the command"));
    Exit::Damaged
}
