//! From paths to traces: finds the profile that is meant, says which one it took, and reads all its hosts at
//! the same time.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use stepscope_analyze::info::Source;
use stepscope_read::discover::{Discovery, Lookalike, ProfileFile, Session, discover};
use stepscope_read::{Input, Opened, Progress, ReadError, open_input};
use stepscope_render::format::{plural, thousands};
use stepscope_render::report::SourceRow;
use stepscope_trace::{NoteKind, Trace};

use crate::output::Terminal;
use crate::problem::{Exit, Problem};
use crate::progress::with_bar;

/// Which profile is meant.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wanted {
    /// Files or folders.
    pub(crate) paths: Vec<PathBuf>,
    /// A session's name, where not the newest is meant.
    pub(crate) session: Option<String>,
    /// A regular expression that the hosts' names match, where not all are meant.
    pub(crate) host: Option<String>,
}

/// One host's file, read.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// Where it lies.
    pub(crate) path: String,
    /// The host that it was recorded on.
    pub(crate) host: String,
    /// Its format.
    pub(crate) format: &'static str,
    /// Its size in bytes.
    pub(crate) bytes: u64,
    /// What was in it.
    pub(crate) trace: Trace,
}

/// One profile: all hosts of one session.
#[derive(Debug)]
pub(crate) struct Profile {
    /// The session's name.
    pub(crate) session: String,
    /// All sessions that were found, newest first, this one among them.
    pub(crate) sessions: Vec<String>,
    /// Its hosts; at least one.
    pub(crate) hosts: Vec<Loaded>,
    /// Hosts whose files could not be read at all.
    unreadable: Vec<Problem>,
}

/// The session that is meant, before any of its files is read.
struct Chosen {
    session: String,
    sessions: Vec<String>,
    files: Vec<ProfileFile>,
}

impl Chosen {
    fn of(wanted: &Wanted, terminal: &Terminal) -> Result<Self, Problem> {
        let found = discover(&wanted.paths).map_err(|error| unreadable_file(&error))?;
        let sessions = labels(&found.sessions);
        let chosen = choose(wanted, &found, &sessions, terminal)?;
        let files = hosts(wanted, &found.sessions[chosen])?.into_iter().cloned().collect();
        Ok(Chosen { session: sessions[chosen].clone(), sessions, files })
    }
}

impl Profile {
    /// Finds and reads the profile.
    pub(crate) fn load(wanted: &Wanted, terminal: &Terminal) -> Result<Profile, Problem> {
        let Chosen { session, sessions, files } = Chosen::of(wanted, terminal)?;
        let inputs = files.iter().map(|file| (file.host.clone(), Input::open(&file.path))).collect();
        Profile::read(session, sessions, inputs)
    }

    /// Reads the files of one session, each with its host, all at the same time.
    pub(crate) fn read(
        session: String,
        sessions: Vec<String>,
        inputs: Vec<(String, Result<Input, ReadError>)>,
    ) -> Result<Profile, Problem> {
        let progress = Progress::new();
        let read: Vec<Result<Loaded, ReadError>> = with_bar(&progress, || {
            inputs.into_par_iter().map(|(host, input)| Loaded::read(host, &input?, &progress)).collect()
        });
        let (mut hosts, mut unreadable) = (Vec::new(), Vec::new());
        for read in read {
            match read {
                Ok(loaded) => hosts.push(loaded),
                Err(error) => unreadable.push(unreadable_file(&error)),
            }
        }
        if hosts.is_empty()
            && let Some(problem) = unreadable.pop()
        {
            return Err(problem);
        }
        Ok(Profile { session, sessions, hosts, unreadable })
    }

    /// The sources as the analyses take them.
    pub(crate) fn sources(&self) -> Vec<Source<'_>> {
        self.hosts.iter().map(Loaded::source).collect()
    }

    /// Ends a command: names any damage on standard error, and gives the exit code for it.
    ///
    /// The traces are not taken down piece by piece; the system takes their memory back faster.
    pub(crate) fn end(self, terminal: &Terminal) -> Exit {
        let damaged: Vec<Problem> = self.hosts.iter().filter_map(damage).collect();
        let mut exit = Exit::Done;
        for problem in damaged.iter().chain(&self.unreadable) {
            terminal.report(problem);
            exit = Exit::Damaged;
        }
        std::mem::forget(self);
        exit
    }
}

/// A profile whose hosts were looked at one by one, each let go before the next one's place is needed.
#[derive(Debug)]
pub(crate) struct Looked<T> {
    /// The session's name.
    pub(crate) session: String,
    /// All sessions that were found, newest first, this one among them.
    pub(crate) sessions: Vec<String>,
    /// What was made of each host that could be read.
    pub(crate) hosts: Vec<T>,
    problems: Vec<Problem>,
}

impl<T: Send> Looked<T> {
    /// Finds the profile and looks at each of its hosts, on all cores. No more traces are held at a time than
    /// there are cores, however many hosts the session has.
    pub(crate) fn at(
        wanted: &Wanted,
        terminal: &Terminal,
        look: impl Fn(&Loaded) -> T + Sync,
    ) -> Result<Self, Problem> {
        let Chosen { session, sessions, files } = Chosen::of(wanted, terminal)?;
        let inputs = files.iter().map(|file| (file.host.clone(), || Input::open(&file.path))).collect();
        Self::at_inputs(session, sessions, inputs, look)
    }

    /// The same for inputs that are already known.
    pub(crate) fn at_inputs(
        session: String,
        sessions: Vec<String>,
        inputs: Vec<(String, impl Fn() -> Result<Input, ReadError> + Send + Sync)>,
        look: impl Fn(&Loaded) -> T + Sync,
    ) -> Result<Self, Problem> {
        let progress = Progress::new();
        let only = inputs.len() == 1;
        let one = |(host, open): (String, _)| -> (Option<T>, Option<Problem>) {
            let open: &(dyn Fn() -> Result<Input, ReadError> + Sync) = &open;
            match open().and_then(|input| Loaded::read(host, &input, &progress)) {
                Ok(loaded) => {
                    let looked = look(&loaded);
                    let problem = damage(&loaded);
                    if only {
                        // The process is about to end: the system takes the memory back faster.
                        std::mem::forget(loaded);
                    }
                    (Some(looked), problem)
                }
                Err(error) => (None, Some(unreadable_file(&error))),
            }
        };
        let looked: Vec<(Option<T>, Option<Problem>)> =
            with_bar(&progress, || inputs.into_par_iter().map(one).collect());
        let (hosts, problems): (Vec<_>, Vec<_>) = looked.into_iter().unzip();
        let hosts: Vec<T> = hosts.into_iter().flatten().collect();
        let mut problems: Vec<Problem> = problems.into_iter().flatten().collect();
        if hosts.is_empty()
            && let Some(problem) = problems.pop()
        {
            return Err(problem);
        }
        Ok(Looked { session, sessions, hosts, problems })
    }

    /// Ends a command: names any damage on standard error, and gives the exit code for it.
    pub(crate) fn end(problems: &[Problem], terminal: &Terminal) -> Exit {
        for problem in problems {
            terminal.report(problem);
        }
        if problems.is_empty() { Exit::Done } else { Exit::Damaged }
    }

    /// What was made of the hosts, and what is wrong with their files.
    pub(crate) fn into_parts(self) -> (Vec<T>, Vec<Problem>) {
        (self.hosts, self.problems)
    }
}

impl Loaded {
    fn read(host: String, input: &Input, progress: &Progress) -> Result<Self, ReadError> {
        let Opened { format, bytes, trace } = open_input(input, progress)?;
        Ok(Loaded { path: input.path().display().to_string(), host, format, bytes, trace })
    }

    /// The source as the report lists it.
    pub(crate) fn source_row(&self) -> SourceRow {
        SourceRow {
            path: self.path.clone(),
            format: self.format.to_owned(),
            bytes: self.bytes,
            host: self.host.clone(),
            events: self.trace.events(),
        }
    }

    fn source(&self) -> Source<'_> {
        Source {
            path: &self.path,
            format: self.format,
            bytes: self.bytes,
            host: &self.host,
            trace: &self.trace,
        }
    }
}

/// What is broken in a file of which a part could be read.
fn damage(loaded: &Loaded) -> Option<Problem> {
    let damaged = loaded.trace.notes().iter().filter(|note| note.kind == NoteKind::Damaged);
    // A break inside a message breaks all that hold it; the innermost lies furthest.
    let note = damaged.max_by_key(|note| note.offset)?;
    let place = note.offset.map_or(String::new(), |offset| format!(" at byte {offset}"));
    let problem = Problem::new(Exit::Damaged, format!("{} is damaged{place}: {}", loaded.path, note.detail));
    let kept = plural(loaded.trace.events(), "event was", "events were");
    Some(
        problem
            .then(format!("{kept} read"))
            .then("copy the file again, or record again; what is shown is partial"),
    )
}

fn unreadable_file(error: &ReadError) -> Problem {
    match error {
        ReadError::Io { path, error } => {
            let todo = "check the path and the permissions";
            Problem::new(Exit::Nothing, format!("cannot read {}", path.display()))
                .then(error.to_string())
                .then(todo)
        }
        ReadError::Empty { path } => Problem::new(Exit::Nothing, format!("{} is empty", path.display()))
            .then("found 0 bytes")
            .then("record the profile again; the recorder may have been stopped before it wrote anything"),
        ReadError::Damaged { path, what, offset } => {
            let what = format!("{} is damaged at byte {offset}: {what}", path.display());
            Problem::new(Exit::Damaged, what)
                .then("no event could be read")
                .then("copy the file again, or record again")
        }
        ReadError::NeedsExport { path, command } => {
            let what = format!("{} can only be read by Nsight Systems itself", path.display());
            Problem::new(Exit::Nothing, what)
                .then("found no nsys on this machine to export it (NSYS_PATH, PATH, /opt/nvidia)")
                .then(format!("run `{command}` where nsys is installed, and give the .sqlite file"))
        }
        ReadError::ExportFailed { path, tool, said } => {
            Problem::new(Exit::Nothing, format!("{} could not be exported", path.display()))
                .then(format!("{} said: {said}", tool.display()))
                .then("export it with the version of nsys that recorded it, and give the .sqlite file")
        }
        ReadError::Foreign { path, found } => {
            Problem::new(Exit::Nothing, format!("{} is not a profile", path.display()))
                .then(format!("found {found}"))
                .then("give a database that `nsys export --type sqlite` wrote")
        }
        other => Problem::new(Exit::Nothing, other.to_string())
            .then("its content is of no known format")
            .then(
                "give an XPlane file (.xplane.pb), a Chrome or PyTorch trace (.json, .json.gz), an Nsight export \
                 (.sqlite) or report (.ncu-rep), or a log of nvidia-smi",
            ),
    }
}

/// What to call each session: its name, or its whole path where several have that name.
fn labels(sessions: &[Session]) -> Vec<String> {
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    sessions.iter().for_each(|session| *times.entry(&session.name).or_default() += 1);
    let label = |session: &Session| match (times.get(session.name.as_str()), session.files.first()) {
        (Some(2..), Some(file)) => file.path.display().to_string(),
        _ => session.name.clone(),
    };
    sessions.iter().map(label).collect()
}

/// The position of the session that is meant: by name, or the newest.
fn choose(
    wanted: &Wanted,
    found: &Discovery,
    labels: &[String],
    terminal: &Terminal,
) -> Result<usize, Problem> {
    let Some(newest) = labels.first() else { return Err(nothing(wanted, found)) };
    let Some(name) = &wanted.session else {
        if labels.len() > 1 {
            let sessions = thousands(labels.len() as u64);
            terminal.remark(&format!(
                "{sessions} sessions found, took the newest, {newest}; --session NAME takes another"
            ));
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
        Problem::new(Exit::Usage, format!("no single session is called `{name}`"))
            .then(format!("found {}", listed(labels.iter().map(String::as_str))))
            .then("name one of them after --session")
    })
}

fn hosts<'a>(wanted: &Wanted, session: &'a Session) -> Result<Vec<&'a ProfileFile>, Problem> {
    let Some(pattern) = &wanted.host else { return Ok(session.files.iter().collect()) };
    let pattern = regex::Regex::new(pattern).map_err(|_| {
        Problem::new(Exit::Usage, format!("--host is not a regular expression: {pattern}"))
            .then("found a pattern that cannot be read")
            .then("escape special characters with a backslash")
    })?;
    let files: Vec<&ProfileFile> = session.files.iter().filter(|file| pattern.is_match(&file.host)).collect();
    if files.is_empty() {
        let names = session.files.iter().map(|file| file.host.as_str());
        return Err(Problem::new(Exit::Usage, format!("no host matches `{pattern}`"))
            .then(format!("found {}", listed(names)))
            .then("mend the pattern after --host"));
    }
    Ok(files)
}

/// The first ten of many names.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let shown = names.iter().take(10).copied().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(10) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

/// Nothing to read: what was looked for, what was found instead, what to do.
fn nothing(wanted: &Wanted, found: &Discovery) -> Problem {
    let paths: Vec<String> = wanted.paths.iter().map(|path| path.display().to_string()).collect();
    let problem = Problem::new(Exit::Nothing, format!("no profile in {}", paths.join(", ")));
    let instead: Vec<String> =
        found.others.iter().map(|(kind, (count, example))| lookalike(*kind, *count, example)).collect();
    let instead = match (&instead[..], found.folders) {
        ([], 0) => "found nothing there".to_owned(),
        ([], folders) => format!("found no file in {}", plural(folders, "folder", "folders")),
        (found, _) => format!("found {}", found.join(", ")),
    };
    let problem = problem.then(instead).then(
        "give an XPlane file (.xplane.pb), a Chrome or PyTorch trace (.json, .json.gz), or a folder that holds one",
    );
    let problem = if found.gave_up {
        problem.hint("there was too much to look at; name a folder closer to the profile")
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
        Lookalike::NsightComputeReport => named("Nsight Compute report", "Nsight Compute reports"),
        Lookalike::ToolResult => named("result of another tool", "results of other tools"),
        Lookalike::Empty => named("empty file", "empty files"),
        Lookalike::Unreadable => named("file that cannot be opened", "files that cannot be opened"),
        Lookalike::Other => named("file of another kind", "files of other kinds"),
    }
}

fn hint(kind: Lookalike) -> Option<&'static str> {
    match kind {
        Lookalike::EventFile => Some(
            "event files hold scalars, not profiles; a profile lies in plugins/profile beside them once the \
             TensorBoard callback ran with profile_batch, or tf.profiler.experimental.start was called",
        ),
        Lookalike::NsightSystemsReport => Some(
            "an Nsight Systems report has to be whole to be exported; export it with `nsys export --type sqlite` \
             and give the .sqlite file",
        ),
        Lookalike::NsightComputeReport => Some(
            "compressed Nsight Compute reports have to be unpacked first: `zstd -d report.ncu-repz -o \
             report.ncu-rep`",
        ),
        Lookalike::Unreadable => Some("some files could not be opened; check their permissions"),
        Lookalike::Database => {
            Some("databases are read where `nsys export --type sqlite` wrote them; this one is another's")
        }
        Lookalike::ToolResult | Lookalike::Empty | Lookalike::Other => None,
    }
}
