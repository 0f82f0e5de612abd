//! `gate --retries`: records both sides again where the result is unclear, until it is decided or the budget is spent.
//!
//! The sides take turns, so that background load affects both equally, and the order alternates from round to round.
//! Each round is one more look at growing data. Every look requires more certainty than a single one would, so that all
//! looks together are wrong in at most 5 % of cases.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use clap::Args;
use stepscope_diagnose::statistics::Confidence;
use stepscope_session::{Cause, Problem};

use super::super::compare::{HostProfile, Sides};
use crate::output::Terminal;
use crate::quantity::some_time;

/// How often and how long to record again.
#[derive(Debug, Args)]
pub(super) struct AgainArgs {
    /// If the result is unclear, record more runs with this shell command.
    ///
    /// It runs once per side and round, with STEPSCOPE_SIDE set to `base` or `new` and STEPSCOPE_OUT to an empty folder
    /// that it must leave a recording in.
    #[arg(long, value_name = "CMD")]
    retries: Option<String>,
    /// With --retries: the most runs per side, including those given.
    #[arg(long, value_name = "N", default_value_t = 6, requires = "retries",
        value_parser = clap::value_parser!(u8).range(2..=Confidence::MOST_LOOKS as i64))]
    max_runs: u8,
    /// With --retries: start no further recording after this time, e.g. 10m. With --paired: decide by then [default: 5m].
    #[arg(long, value_name = "TIME", value_parser = some_time)]
    time_budget: Option<Duration>,
    /// With --retries: keep the recordings in this folder.
    #[arg(long, value_name = "DIR", requires = "retries")]
    keep: Option<PathBuf>,
}

/// A recorder that is ready for its next round.
pub(super) struct Again<'a> {
    args: &'a AgainArgs,
    command: &'a str,
    folder: PathBuf,
    /// Removes the recordings at the end, unless they are kept.
    _temporary: Option<tempfile::TempDir>,
    begun: Instant,
    round: usize,
    rounds: usize,
}

impl AgainArgs {
    /// How long the gate may take.
    #[cfg(unix)]
    pub(super) fn budget(&self) -> Option<Duration> {
        self.time_budget
    }

    /// An error where runs are to be recorded again and nobody says how.
    pub(super) fn can_retry(&self, wanted: bool) -> Result<(), Problem> {
        if !wanted || self.retries.is_some() {
            return Ok(());
        }
        Err(Problem::new(Cause::Usage, "no command for --on-unclear retry")
            .then("more runs have to be recorded by a command of yours")
            .then("give it with --retries CMD"))
    }

    /// What may be recorded again, given the number of runs per side; `None` without --retries.
    pub(super) fn ready(&self, runs: usize) -> Result<Option<Again<'_>>, Problem> {
        let Some(command) = &self.retries else { return Ok(None) };
        let cannot = |error: std::io::Error| {
            Problem::new(Cause::Usage, "cannot make a folder for recordings")
                .then(error.to_string())
                .then("name one that can be written after --keep")
        };
        let (folder, temporary) = match &self.keep {
            Some(folder) => (folder.clone(), None),
            None => {
                let temporary =
                    tempfile::Builder::new().prefix("stepscope-gate-").tempdir().map_err(cannot)?;
                (temporary.path().to_owned(), Some(temporary))
            }
        };
        let rounds = usize::from(self.max_runs).saturating_sub(runs);
        Ok(Some(Again {
            args: self,
            command,
            folder,
            _temporary: temporary,
            begun: Instant::now(),
            round: 0,
            rounds,
        }))
    }
}

impl Again<'_> {
    /// The certainty that one look needs if all looks of the gate are to be wrong at most once in twenty times.
    pub(super) fn confidence(&self) -> Confidence {
        Confidence::of_looks(self.rounds + 1)
    }

    /// Records one more run per side and adds it; `false` where the budget is spent.
    pub(super) fn round(&mut self, sides: &mut Sides, terminal: &Terminal) -> Result<bool, Problem> {
        let late = self.args.time_budget.is_some_and(|budget| self.begun.elapsed() >= budget);
        if self.round == self.rounds || late {
            return Ok(false);
        }
        self.round += 1;
        let order = if self.round.is_multiple_of(2) { ["new", "base"] } else { ["base", "new"] };
        for side in order {
            terminal.remark(&format!(
                "unclear so far: recording {side}, round {} of at most {}",
                self.round, self.rounds
            ));
            let into = self.folder.join(format!("{side}-{}", self.round));
            self.record(side, &into)?;
            let run = HostProfile::of(into, terminal)?;
            sides.add(side == "new", run);
        }
        Ok(true)
    }

    fn record(&self, side: &str, into: &Path) -> Result<(), Problem> {
        std::fs::create_dir_all(into).map_err(|error| {
            Problem::new(Cause::Usage, format!("cannot make {}", into.display())).then(error.to_string())
        })?;
        let status = shell(self.command)
            .env("STEPSCOPE_SIDE", side)
            .env("STEPSCOPE_OUT", into)
            .stdin(Stdio::null())
            // The gate's own answer has standard output for itself.
            .stdout(std::io::stderr())
            .status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(failed(side, &how(status))),
            Err(error) => Err(failed(side, &error.to_string())),
        }
    }
}

#[cfg(unix)]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command);
    shell
}

#[cfg(not(unix))]
fn shell(command: &str) -> Command {
    let mut shell = Command::new("cmd");
    shell.arg("/C").arg(command);
    shell
}

fn how(status: ExitStatus) -> String {
    status.code().map_or_else(|| "it was killed".to_owned(), |code| format!("it exited with {code}"))
}

fn failed(side: &str, why: &str) -> Problem {
    Problem::new(Cause::Usage, format!("the command of --retries failed for {side}"))
        .then(why.to_owned())
        .then("try it by hand with STEPSCOPE_SIDE and STEPSCOPE_OUT set")
}
