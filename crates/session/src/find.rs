//! Resolves paths to one session, before any of its files is read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use stepscope_read::discover::{
    Discovery, Known, Lookalike, ProfileFile, SessionFiles, discover_again, discover_within,
};
use stepscope_text::{plural, thousands};

use crate::foreign;
use crate::load::unreadable_file;
use crate::problem::{Cause, Problem};

/// A query for a profile.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// Files or folders.
    pub paths: Vec<PathBuf>,
    /// Name of the session; the newest if `None`.
    pub session: Option<String>,
    /// Regular expression for host names; all hosts if `None`.
    pub host: Option<String>,
    /// Canonical folders that the search must not leave, by links for example; empty if it may go anywhere.
    pub roots: Vec<PathBuf>,
}

/// A resolved session, before any of its files is read.
#[derive(Clone, Debug)]
pub struct ResolvedSession {
    /// Its name, or its full path if several sessions share the name.
    pub session: String,
    /// All sessions found, newest first, including this one.
    pub sessions: Arc<[String]>,
    /// Its files, one per host.
    pub files: Vec<ProfileFile>,
}

impl ResolvedSession {
    /// Resolves a query. `remark` receives a note if there were several sessions.
    pub fn of(wanted: &Query, remark: &dyn Fn(&str)) -> Result<Self, Problem> {
        let found = discover_within(&wanted.paths, &wanted.roots).map_err(|error| unreadable_file(&error))?;
        let sessions = labels(&found.sessions);
        let chosen = choose(wanted, &found, &sessions, remark)?;
        let files = hosts(wanted, &found.sessions[chosen])?.into_iter().cloned().collect();
        Ok(ResolvedSession { session: sessions[chosen].clone(), sessions: sessions.into(), files })
    }
}

/// Every session below the paths, newest first, without leaving the canonical `roots`, if there are any. Finding none is
/// not an error here.
pub fn all_sessions_within(paths: &[PathBuf], roots: &[PathBuf]) -> Result<Vec<ResolvedSession>, Problem> {
    let found = discover_within(paths, roots).map_err(|error| unreadable_file(&error))?;
    Ok(resolved(found))
}

/// The same with what earlier searches learned; `None` if nothing changed and the answer is not wanted anyway.
pub fn all_sessions_again(
    paths: &[PathBuf],
    known: &mut Known,
    anyway: bool,
) -> Result<Option<Vec<ResolvedSession>>, Problem> {
    let found = discover_again(paths, known, anyway).map_err(|error| unreadable_file(&error))?;
    Ok(found.map(resolved))
}

fn resolved(found: Discovery) -> Vec<ResolvedSession> {
    // All sessions share one list: a copy for each would grow with the square of their number.
    let labels: Arc<[String]> = labels(&found.sessions).into();
    let one = |(session, label): (SessionFiles, &String)| ResolvedSession {
        session: label.clone(),
        sessions: labels.clone(),
        files: session.files,
    };
    found.sessions.into_iter().zip(labels.iter()).map(one).collect()
}

/// Label of each session: its name, or its full path if several sessions share the name.
fn labels(sessions: &[SessionFiles]) -> Vec<String> {
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    sessions.iter().for_each(|session| *times.entry(&session.name).or_default() += 1);
    let label = |session: &SessionFiles| match (times.get(session.name.as_str()), session.files.first()) {
        (Some(2..), Some(file)) => file.path.display().to_string(),
        _ => session.name.clone(),
    };
    sessions.iter().map(label).collect()
}

/// Position of the requested session: by name, or the newest.
fn choose(
    wanted: &Query,
    found: &Discovery,
    labels: &[String],
    remark: &dyn Fn(&str),
) -> Result<usize, Problem> {
    let Some(newest) = labels.first() else { return Err(nothing(wanted, found)) };
    let Some(name) = &wanted.session else {
        if labels.len() > 1 {
            let sessions = thousands(labels.len() as u64);
            remark(&if wanted.paths.len() > 1 {
                format!(
                    "these are {sessions} separate runs, not hosts of one recording: they were not recorded at the same \
                     time, or not by one job; using the newest, {newest}; use --session NAME to choose another, or \
                     `stepscope compare BASE NEW` to compare two"
                )
            } else {
                format!(
                    "found {sessions} sessions, using the newest, {newest}; use --session NAME to choose another"
                )
            });
        }
        return Ok(0);
    };
    let exact = labels.iter().position(|label| label == name);
    let mut like = labels.iter().enumerate().filter(|(_, label)| label.contains(name.as_str()));
    let only = match (like.next(), like.next()) {
        (Some((only, _)), None) => Some(only),
        _ => None,
    };
    exact.or(only).ok_or_else(|| {
        Problem::new(Cause::Usage, format!("no unique session is named `{name}`"))
            .then(format!("found {}", listed(labels.iter().map(String::as_str))))
            .then("choose one of them with --session")
    })
}

fn hosts<'a>(wanted: &Query, session: &'a SessionFiles) -> Result<Vec<&'a ProfileFile>, Problem> {
    let Some(pattern) = &wanted.host else { return Ok(session.files.iter().collect()) };
    let pattern = regex::Regex::new(pattern).map_err(|_| {
        Problem::new(Cause::Usage, format!("--host is not a valid regular expression: {pattern}"))
            .then("the pattern cannot be parsed")
            .then("escape special characters with a backslash")
    })?;
    let files: Vec<&ProfileFile> = session.files.iter().filter(|file| pattern.is_match(&file.host)).collect();
    if files.is_empty() {
        let names = session.files.iter().map(|file| file.host.as_str());
        return Err(Problem::new(Cause::Usage, format!("no host matches `{pattern}`"))
            .then(format!("found {}", listed(names)))
            .then("correct the pattern after --host"));
    }
    Ok(files)
}

/// Lists at most ten names.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names.iter().take(10).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(10) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// What can be read.
pub(crate) const GIVE: &str = "give an XPlane file (.xplane.pb), a Chrome or PyTorch trace (.json, .json.gz), a Perfetto \
                               trace (.pftrace), an Nsight export (.sqlite) or report (.ncu-rep), a rocprofv3 result \
                               (.json, .db), an nvidia-smi log, or a folder that contains one";

/// Error if there is nothing to read: what was searched, what was found instead, what to do.
fn nothing(wanted: &Query, found: &Discovery) -> Problem {
    let paths: Vec<String> = wanted.paths.iter().map(|path| path.display().to_string()).collect();
    let problem = Problem::new(Cause::Nothing, format!("no profile in {}", paths.join(", ")));
    let instead: Vec<String> =
        found.others.iter().map(|(kind, (count, example))| lookalike(*kind, *count, example)).collect();
    let instead = match (&instead[..], found.folders) {
        ([], 0) => "found nothing there".to_owned(),
        ([], folders) => format!("found no file in {}", plural(folders, "folder", "folders")),
        (found, _) => format!("found {}", found.join(", ")),
    };
    let problem = problem.then(instead).then(GIVE);
    let problem = if found.gave_up {
        problem.hint("there were too many files to search; give a folder closer to the profile")
    } else {
        problem
    };
    found.others.keys().filter_map(|kind| hint(*kind)).fold(problem, Problem::hint)
}

fn lookalike(kind: Lookalike, count: u64, example: &Path) -> String {
    let named = |one: &str, many: &str| format!("{} ({})", plural(count, one, many), example.display());
    match kind {
        Lookalike::EventFile => named("TensorBoard event file", "TensorBoard event files"),
        Lookalike::NsightSystemsReport => named("Nsight Systems report", "Nsight Systems reports"),
        Lookalike::Database => named("SQLite database", "SQLite databases"),
        Lookalike::NsightSystemsExport => named("Nsight Systems export", "Nsight Systems exports"),
        Lookalike::NsightComputeProgress => {
            named("Nsight Compute log without counters", "Nsight Compute logs without counters")
        }
        Lookalike::Table => named("data table", "data tables"),
        Lookalike::RunsCode => named("pickle that asks to run code", "pickles that ask to run code"),
        Lookalike::Pickle => named("pickle of another kind", "pickles of other kinds"),
        Lookalike::ToolResult => named("result of another tool", "results of other tools"),
        Lookalike::Foreign(kind) => {
            let (one, many) = foreign::names(kind);
            named(one, many)
        }
        Lookalike::Empty => named("empty file", "empty files"),
        Lookalike::Unreadable => named("file that cannot be opened", "files that cannot be opened"),
        Lookalike::Other => named("file of another kind", "files of other kinds"),
    }
}

fn hint(kind: Lookalike) -> Option<&'static str> {
    match kind {
        Lookalike::EventFile => Some(
            "event files contain scalars, not profiles: `stepscope scalars PATH` shows them; to get a profile in plugins/profile beside them, run the \
             TensorBoard callback with profile_batch, or call tf.profiler.experimental.start",
        ),
        Lookalike::NsightSystemsReport => Some(
            "only a complete Nsight Systems report can be exported; export it with `nsys export --type sqlite` \
             and give the .sqlite file",
        ),
        Lookalike::NsightComputeProgress => Some(
            "ncu writes its counters to a report and prints its name at the end (`==PROF== Report: …`): give that file, \
             or record one with `ncu --set full -o kernels …`; if the log shows ERR_NVGPUCTRPERM, ncu was not allowed \
             to read counters: run it as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0",
        ),
        Lookalike::NsightSystemsExport => Some(
            "stepscope reads SQLite, Parquet and Arrow exports of Nsight Systems: `nsys export --type sqlite --output \
             NAME.sqlite NAME.nsys-rep`, or `--type parquetdir --output NAME_pqtdir`",
        ),
        Lookalike::Table => Some(
            "stepscope reads the tables that `nsys export --type parquetdir` writes: a folder with one file per table, \
             including StringIds.parquet",
        ),
        Lookalike::RunsCode => Some(
            "stepscope never runs code from a pickle; a memory snapshot from `torch.cuda.memory._dump_snapshot` contains none",
        ),
        Lookalike::Pickle => Some(
            "stepscope reads the pickles that `torch.cuda.memory._dump_snapshot` writes; this one holds something else",
        ),
        Lookalike::Unreadable => Some("some files could not be opened; check their permissions"),
        Lookalike::Database => Some(
            "stepscope reads databases that `nsys export --type sqlite` writes; this one is from another program",
        ),
        Lookalike::Foreign(kind) => Some(foreign::way_out(kind)),
        Lookalike::ToolResult | Lookalike::Empty | Lookalike::Other => None,
    }
}
