//! `stepscope journal`: the log of experiments.

use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Args, Subcommand};
use stepscope_analyze::Selection;
use stepscope_diagnose::journal::{Entry, Journal};
use stepscope_read::files;
use stepscope_render::{journal, table};
use stepscope_results::Select;

use stepscope_session::side::run_of;
use stepscope_session::{Cause, HostProfile, Hosts, Problem, Query};

use crate::exit::Exit;

use crate::failure::Failure;
use crate::load;
use crate::output::Terminal;
use crate::write_file::{append, unwritable};

/// Default location of the journal: the current folder, never beside the profiles.
const DEFAULT_FILE: &str = "stepscope.journal";
/// Number of runs that people see. Each is compared with the one before it, which takes milliseconds.
const LAST: usize = 25;

/// Largest journal that is read, in bytes: some 50,000 runs.
const LARGEST: u64 = 256 << 20;

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
        /// Show only the last N runs [default: 25, or all with --json and --csv].
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        last: Option<u64>,
    },
}

impl JournalArgs {
    pub(crate) fn run(&self, terminal: &Terminal) -> Result<Exit, Failure> {
        match &self.command {
            JournalCommand::Add { path, note, file } => add(path, note, file, terminal),
            JournalCommand::Show { file, json, csv, last } => {
                let all = if *json || *csv { usize::MAX } else { LAST };
                let last = last.map_or(all, |last| usize::try_from(last).unwrap_or(usize::MAX));
                show(file, *json, *csv, last, terminal)
            }
        }
    }
}

fn add(path: &Path, note: &str, file: &Path, terminal: &Terminal) -> Result<Exit, Failure> {
    let label = relative(path, file).unwrap_or_else(|| path.to_owned()).display().to_string();
    let wanted = Query { paths: vec![path.to_owned()], ..Query::default() };
    let of = |hosts: &Hosts<'_>| {
        let began = hosts.visit(recorded);
        Ok((run_of(hosts, &label)?, began.into_iter().flatten().min()))
    };
    let ((run, began_ms), problems) = load::hosts(&wanted, Selection::default(), terminal, of)?;
    let entry = Entry::new(&run, began_ms.unwrap_or_else(now), note);
    let known = Journal::parse(&read(file).or_else(|error| missing_is_empty(file, error))?);
    if known.has(&entry) {
        terminal.remark("the journal has this run already; nothing was added");
        write_table(&known, false, false, LAST, terminal)?;
        return Ok(load::named(&problems, terminal));
    }
    let line = entry.line().map_err(io::Error::other)?;
    let added = add_line(file, &line);
    added.map_err(|error| {
        unwritable(file, Cause::Usage, &error, "set --file to a file in an existing folder")
    })?;
    write_table(&Journal::parse(&read(file)?), false, false, LAST, terminal)?;
    Ok(load::named(&problems, terminal))
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

/// The text of a journal.
fn read(file: &Path) -> io::Result<Vec<u8>> {
    files::read_at_most(file, LARGEST)
}

/// A journal that is not there yet is empty; one that cannot be read must not be added to.
fn missing_is_empty(file: &Path, error: io::Error) -> Result<Vec<u8>, Problem> {
    if error.kind() == io::ErrorKind::NotFound {
        return Ok(Vec::new());
    }
    let todo = "set --file to a journal, or to a new file in an existing folder";
    Err(Problem::new(Cause::Usage, format!("cannot read {}", file.display()))
        .then(error.to_string())
        .then(todo))
}

/// Adds a line; one that was torn before it is ended first.
fn add_line(file: &Path, line: &str) -> io::Result<()> {
    let torn = read(file).is_ok_and(|text| !text.is_empty() && !text.ends_with(b"\n"));
    let start = if torn { "\n" } else { "" };
    append(file, format!("{start}{line}\n").as_bytes())
}

/// When the recording of a host began, in milliseconds since 1970.
fn recorded(loaded: &HostProfile) -> Option<i64> {
    let trace = &loaded.trace;
    let began = trace.environment().captured_ns.map(|(began, _)| began).or(trace.clock().wall_ns_at_origin);
    began.filter(|ns| *ns > 0).map(|ns| ns / 1_000_000)
}

fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

fn show(file: &Path, json: bool, csv: bool, last: usize, terminal: &Terminal) -> Result<Exit, Failure> {
    let text = read(file).map_err(|error| {
        Problem::new(Cause::Nothing, format!("cannot read {}", file.display()))
            .then(error.to_string())
            .then("add a run first: stepscope journal add PATH --note TEXT")
    })?;
    write_table(&Journal::parse(&text), json, csv, last, terminal)?;
    Ok(Exit::Done)
}

fn write_table(
    entries: &Journal,
    json: bool,
    csv: bool,
    last: usize,
    terminal: &Terminal,
) -> Result<(), Failure> {
    let rows = journal::table(entries, last);
    let picked = rows.pick(&Select::default(), None)?;
    let mut out = terminal.stdout_as(json);
    if json {
        table::write_json(&rows, &picked, &mut out)?;
    } else if csv {
        table::write_csv(&rows, &picked, &mut out)?;
    } else {
        table::write_text(&rows, &picked, terminal.out, &mut out)?;
    }
    Ok(out.flush()?)
}
