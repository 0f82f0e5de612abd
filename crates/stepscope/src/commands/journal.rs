//! `stepscope journal`: the log of experiments.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use stepscope_diagnose::journal::{Entry, Journal};
use stepscope_render::{Select, journal, table};

use stepscope_session::side::run_of;
use stepscope_session::{Cause, Problem, Profile, Query};

use crate::exit::Exit;

use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;

/// Default location of the journal: the current folder, never beside the profiles.
const DEFAULT_FILE: &str = "stepscope.journal";

/// Keep a log of experiments, one line per run, with a verdict on each change.
///
/// The journal is a text file with one line per run. Keep it in version control. Lines are only ever added, so
/// branches merge by keeping all lines (`stepscope.journal merge=union` in .gitattributes).
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    stepscope journal add logs/ --note \"prefetch added\"\n  \
    stepscope journal show")]
pub(crate) struct JournalArgs {
    #[command(subcommand)]
    command: JournalCommand,
}

#[derive(Debug, Subcommand)]
enum JournalCommand {
    /// Add a run.
    Add {
        /// The profile: a file, a session folder or a log directory.
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// What was changed.
        #[arg(long, value_name = "TEXT")]
        note: String,
        /// The journal file.
        #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
        file: PathBuf,
    },
    /// Show all runs, each compared with the one before it.
    Show {
        /// The journal file.
        #[arg(long, value_name = "FILE", default_value = DEFAULT_FILE)]
        file: PathBuf,
        /// Write JSON (schema stepscope.journal.v1).
        #[arg(long, conflicts_with = "csv")]
        json: bool,
        /// Write CSV.
        #[arg(long)]
        csv: bool,
    },
}

impl JournalArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        match &self.command {
            JournalCommand::Add { path, note, file } => add(path, note, file, terminal),
            JournalCommand::Show { file, json, csv } => show(file, *json, *csv, terminal),
        }
    }
}

fn add(path: &Path, note: &str, file: &Path, terminal: &Terminal) -> Result<Exit, Failure> {
    let profile = load::profile(&Query { paths: vec![path.to_owned()], ..Query::default() }, terminal)?;
    let run =
        run_of(&profile, &relative(path, file).unwrap_or_else(|| path.to_owned()).display().to_string());
    let entry = Entry::new(&run, recorded(&profile).unwrap_or_else(now), note);
    let line = entry.line().map_err(io::Error::other)?;
    append(file, &line).map_err(|error| {
        Problem::new(Cause::Usage, format!("cannot write {}", file.display()))
            .then(error.to_string())
            .then("set --file to a file in an existing folder")
    })?;
    let written = fs::read_to_string(file)?;
    write_table(&Journal::parse(&written), false, false, terminal)?;
    Ok(load::end(profile, terminal))
}

/// The path as seen from the folder that the journal lies in, so that it holds in every clone; `None` where there is no
/// way from one to the other.
fn relative(path: &Path, journal: &Path) -> Option<PathBuf> {
    let folder = match journal.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => folder.canonicalize().ok()?,
        None => std::env::current_dir().ok()?,
    };
    let path = path.canonicalize().ok()?;
    let common = folder.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    // Another drive, or nothing in common but the root: the whole path says more.
    if common < 2 {
        return None;
    }
    let up = folder.components().skip(common).map(|_| Component::ParentDir);
    let relative: PathBuf = up.chain(path.components().skip(common)).collect();
    Some(if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative })
}

/// One write for the whole line, so that two programs that add at the same time do not tear each other's.
fn append(file: &Path, line: &str) -> io::Result<()> {
    let torn = fs::read(file).is_ok_and(|text| !text.is_empty() && !text.ends_with(b"\n"));
    let start = if torn { "\n" } else { "" };
    OpenOptions::new().create(true).append(true).open(file)?.write_all(format!("{start}{line}\n").as_bytes())
}

/// When the recording began, in milliseconds since 1970.
fn recorded(profile: &Profile) -> Option<i64> {
    let began = profile.hosts.iter().filter_map(|loaded| {
        let trace = &loaded.trace;
        trace.environment().captured_ns.map(|(began, _)| began).or(trace.clock().wall_ns_at_origin)
    });
    began.filter(|ns| *ns > 0).min().map(|ns| ns / 1_000_000)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn show(file: &Path, json: bool, csv: bool, terminal: &Terminal) -> Result<Exit, Failure> {
    let text = fs::read_to_string(file).map_err(|error| {
        Problem::new(Cause::Nothing, format!("cannot read {}", file.display()))
            .then(error.to_string())
            .then("add a run first: stepscope journal add PATH --note TEXT")
    })?;
    write_table(&Journal::parse(&text), json, csv, terminal)?;
    Ok(Exit::Done)
}

fn write_table(entries: &Journal, json: bool, csv: bool, terminal: &Terminal) -> Result<(), Failure> {
    let rows = journal::table(entries);
    let picked = rows.pick(&Select::default(), None)?;
    let mut out = terminal.stdout();
    if json {
        table::write_json(&rows, &picked, &mut out)?;
    } else if csv {
        table::write_csv(&rows, &picked, &mut out)?;
    } else {
        table::write_text(&rows, &picked, terminal.out, &mut out)?;
    }
    Ok(out.flush()?)
}
