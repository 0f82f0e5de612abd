//! From a resolved session to its traces: all hosts at once, or one after the other, each dropped after its
//! analysis.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rayon::prelude::*;
use stepscope_analyze::recording::info::SourceFile;
use stepscope_analyze::{Context, Coverage, Selection};
use stepscope_read::files::StoreError;
use stepscope_read::{Input, Opened, Progress, ReadError, open_input};
use stepscope_results::report::SourceRow;
use stepscope_text::{plural, thousands};
use stepscope_trace::{Format, NoteKind, Trace};

use crate::find::ResolvedSession;
use crate::hosts::Results;
use crate::problem::{Cause, Problem};

/// The profile of one host, read from its file.
#[derive(Debug)]
pub struct HostProfile {
    /// Path of the file.
    pub path: String,
    /// Host on which it was recorded.
    pub host: String,
    /// Its format.
    pub format: &'static Format,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its content.
    pub trace: Trace,
    /// The part of it to analyse.
    pub selection: Selection,
    /// What its figures cover; known after the first analysis.
    pub(crate) covered: OnceLock<Coverage>,
}

/// One profile: all hosts of one session.
#[derive(Debug)]
pub struct Profile {
    /// The session's name.
    pub session: String,
    /// All sessions found, newest first, including this one.
    pub sessions: Arc<[String]>,
    /// Its hosts; at least one, unless it was made without.
    pub hosts: Vec<HostProfile>,
    /// Hosts whose files could not be read at all.
    unreadable: Vec<Problem>,
}

impl Profile {
    /// Reads the resolved session.
    pub fn load(chosen: ResolvedSession, progress: &Progress) -> Result<Profile, Problem> {
        let ResolvedSession { session, sessions, files } = chosen;
        let inputs = files.iter().map(|file| (file.host.clone(), file.open())).collect();
        Profile::read(session, sessions, inputs, progress)
    }

    /// Reads the files of one session in parallel, each with its host.
    pub fn read(
        session: String,
        sessions: impl Into<Arc<[String]>>,
        inputs: Vec<(String, Result<Input, ReadError>)>,
        progress: &Progress,
    ) -> Result<Profile, Problem> {
        Profile::read_all(session, sessions.into(), inputs, progress)
    }

    fn read_all(
        session: String,
        sessions: Arc<[String]>,
        inputs: Vec<(String, Result<Input, ReadError>)>,
        progress: &Progress,
    ) -> Result<Profile, Problem> {
        let one = |(host, input): (String, Result<Input, ReadError>)| {
            let name = host.clone();
            let read = input.and_then(|input| HostProfile::read(host, &input, progress));
            read.map_err(|error| unreadable_file(&error).without(&name))
        };
        let read: Vec<Result<HostProfile, Problem>> = inputs.into_par_iter().map(one).collect();
        let (mut hosts, mut unreadable) = (Vec::new(), Vec::new());
        for read in read {
            match read {
                Ok(loaded) => hosts.push(loaded),
                Err(problem) => unreadable.push(problem),
            }
        }
        if hosts.is_empty()
            && let Some(problem) = unreadable.pop()
        {
            return Err(problem);
        }
        Ok(Profile { session, sessions, hosts, unreadable })
    }

    /// A profile of nothing, for a folder in which only other files say something.
    pub fn without_hosts(session: String) -> Profile {
        Profile { sessions: Arc::new([session.clone()]), session, hosts: Vec::new(), unreadable: Vec::new() }
    }

    /// The same profile with another part selected for analysis.
    pub fn selecting(mut self, selection: Selection) -> Profile {
        self.hosts.iter_mut().for_each(|loaded| loaded.selection = selection);
        self
    }

    /// The sources in the form that analyses take.
    pub fn sources(&self) -> Vec<SourceFile<'_>> {
        self.hosts.iter().map(HostProfile::source).collect()
    }

    /// Problems of its files: damage in those that were read, then those that could not be read.
    pub fn problems(&self) -> Vec<Problem> {
        self.hosts.iter().filter_map(damage).chain(self.unreadable.iter().cloned()).collect()
    }
}

/// A profile whose hosts were analysed one by one, each dropped to make room for the next.
#[derive(Debug)]
pub struct PerHost<T> {
    /// The session's name.
    pub session: String,
    /// All sessions found, newest first, including this one.
    pub sessions: Arc<[String]>,
    /// The result for each host that could be read.
    pub hosts: Vec<T>,
    problems: Vec<Problem>,
}

impl<T: Send> PerHost<T> {
    /// Analyses each host of the session, on all cores. The number of traces in memory never exceeds the number
    /// of cores, however many hosts there are.
    pub fn at(
        chosen: ResolvedSession,
        progress: &Progress,
        look: impl Fn(HostProfile) -> T + Sync,
    ) -> Result<Self, Problem> {
        let ResolvedSession { session, sessions, files } = chosen;
        let inputs = files.iter().map(|file| (file.host.clone(), || file.open())).collect();
        Self::at_inputs(session, sessions, inputs, progress, look)
    }

    /// The same for inputs that are already known.
    pub fn at_inputs(
        session: String,
        sessions: impl Into<Arc<[String]>>,
        inputs: Vec<(String, impl Fn() -> Result<Input, ReadError> + Send + Sync)>,
        progress: &Progress,
        look: impl Fn(HostProfile) -> T + Sync,
    ) -> Result<Self, Problem> {
        let opened: Vec<(&str, &Open<'_>)> =
            inputs.iter().map(|(host, open)| (host.as_str(), open as &Open<'_>)).collect();
        let results = Results::new(inputs.len());
        let mut problems = look_at_each(&opened, progress, &|number, host| results.put(number, look(host)));
        let hosts = results.in_order();
        if hosts.is_empty()
            && let Some(problem) = problems.pop()
        {
            return Err(problem);
        }
        Ok(PerHost { session, sessions: sessions.into(), hosts, problems })
    }

    /// The results of the hosts, and the problems of their files.
    pub fn into_parts(self) -> (Vec<T>, Vec<Problem>) {
        (self.hosts, self.problems)
    }
}

/// Opens a file.
type Open<'a> = dyn Fn() -> Result<Input, ReadError> + Sync + 'a;

/// Reads each host and passes it on with its number; for all types of results, so that it exists once. Returns the problems
/// of the files.
fn look_at_each(
    inputs: &[(&str, &Open<'_>)],
    progress: &Progress,
    look: &(dyn Fn(usize, HostProfile) + Sync),
) -> Vec<Problem> {
    let one = |number: usize, (host, open): (&str, &Open<'_>)| -> Option<Problem> {
        let read =
            open().and_then(|input| Ok((HostProfile::read(host.to_owned(), &input, progress)?, input)));
        match read {
            Ok((loaded, input)) => {
                let (problem, changed) = (damage(&loaded), changed(&loaded));
                look(number, loaded);
                // Arguments are decoded from the file during the analysis.
                if input.has_changed() { Some(changed) } else { problem }
            }
            Err(error) => Some(unreadable_file(&error).without(host)),
        }
    };
    // A thread that waits for a part of one host may take up another host in the meantime, so only as many as there are
    // cores are given out at once.
    let most = rayon::current_num_threads().max(1);
    let mut problems: Vec<Option<Problem>> = Vec::with_capacity(inputs.len());
    for (part, some) in inputs.chunks(most).enumerate() {
        problems
            .par_extend(some.par_iter().enumerate().map(|(number, input)| one(part * most + number, *input)));
    }
    problems.into_iter().flatten().collect()
}

impl<A, B> PerHost<(A, B)> {
    /// The first halves of the results, and the second.
    pub(crate) fn split(self) -> (PerHost<A>, Vec<B>) {
        let (hosts, others) = self.hosts.into_iter().unzip();
        (PerHost { session: self.session, sessions: self.sessions, hosts, problems: self.problems }, others)
    }
}

impl HostProfile {
    pub(crate) fn read(host: String, input: &Input, progress: &Progress) -> Result<Self, ReadError> {
        let Opened { format, bytes, trace } = open_input(input, progress)?;
        let path = input.path().display().to_string();
        let (selection, covered) = (Selection::default(), OnceLock::new());
        Ok(HostProfile { path, host, format, bytes, trace, selection, covered })
    }

    /// The trace in the form that analyses take.
    pub fn context(&self) -> Context<'_> {
        Context::new(&self.trace, self.host.as_str()).selecting(self.selection)
    }

    /// The source in the form that the report lists.
    pub fn source_row(&self) -> SourceRow {
        SourceRow {
            path: self.path.clone(),
            format: self.format,
            bytes: self.bytes,
            host: self.host.clone(),
            events: self.trace.events(),
        }
    }

    /// The source in the form that a description takes.
    pub fn source(&self) -> SourceFile<'_> {
        SourceFile {
            path: &self.path,
            format: self.format,
            bytes: self.bytes,
            host: &self.host,
            trace: &self.trace,
        }
    }
}

/// Describes the damage of a file that could be read in part.
pub(crate) fn damage(loaded: &HostProfile) -> Option<Problem> {
    let notes = |kind: NoteKind| loaded.trace.notes().iter().filter(move |note| note.kind == kind);
    if notes(NoteKind::Changed).next().is_some() || !loaded.trace.is_intact() {
        return Some(changed(loaded));
    }
    if let Some(note) = notes(NoteKind::OverBudget).next() {
        let (limit, counts) = (thousands(note.count), &note.detail);
        let what = format!("reading {} stopped after {limit} {counts}", loaded.path);
        return Some(partial(loaded, what, OVER_BUDGET));
    }
    // Damage inside a message also damages every message around it; the innermost has the largest offset.
    let note = notes(NoteKind::Damaged).max_by_key(|note| note.offset)?;
    let place = note.offset.map_or(String::new(), |offset| format!(" at byte {offset}"));
    let what = format!("{} is damaged{place}: {}", loaded.path, note.detail);
    Some(partial(loaded, what, "copy the file again, or record again; the results are partial"))
}

fn changed(loaded: &HostProfile) -> Problem {
    partial(loaded, format!("{} changed while it was read", loaded.path), CHANGED)
}

fn partial(loaded: &HostProfile, what: String, todo: &str) -> Problem {
    let kept = plural(loaded.trace.events(), "event was", "events were");
    Problem::new(Cause::Damaged, what).then(format!("{kept} read")).then(todo)
}

/// What to do about a file that changes.
const CHANGED: &str = "wait until the file is complete, then run the command again; the results are partial";
/// What to do about a file that holds more than its size suggests.
const OVER_BUDGET: &str = "this is the limit for a file of its size; if you trust the file, raise it with --budget, \
                           such as --budget 16GB; the results are partial";

/// A file that the system, or a store, did not open.
fn unopened(path: &Path, error: &std::io::Error) -> Problem {
    let path = path.display();
    match StoreError::of(error) {
        Some(said) if said.changed => {
            Problem::new(Cause::Damaged, format!("{path} changed while it was read"))
                .then(said.found.clone())
                .then(said.todo.clone())
        }
        Some(said) => Problem::new(Cause::Nothing, format!("cannot read {path}"))
            .then(said.found.clone())
            .then(said.todo.clone()),
        None => Problem::new(Cause::Nothing, format!("cannot read {path}"))
            .then(error.to_string())
            .then("check the path and the permissions"),
    }
}

/// The error for a file that could not be read at all.
pub fn unreadable_file(error: &ReadError) -> Problem {
    match error {
        ReadError::Io { path, error } => unopened(path, error),
        ReadError::Empty { path } => Problem::new(Cause::Nothing, format!("{} is empty", path.display()))
            .then("found 0 bytes")
            .then("record the profile again; the profiler may have been stopped before it wrote anything"),
        ReadError::Damaged { path, what, offset } => {
            let what = format!("{} is damaged at byte {offset}: {what}", path.display());
            Problem::new(Cause::Damaged, what)
                .then("no event could be read")
                .then("copy the file again, or record again")
        }
        ReadError::Changed { path } => {
            Problem::new(Cause::Damaged, format!("{} changed while it was read", path.display()))
                .then("nothing could be read")
                .then("wait until the file is complete, then run the command again")
        }
        ReadError::OverBudget { path, over } => {
            let (limit, counts) = (thousands(over.at), over.limit.counts());
            let what = format!("reading {} stopped after {limit} {counts}", path.display());
            Problem::new(Cause::Damaged, what).then("nothing could be read until then").then(
                "this is the limit for a file of its size; if you trust the file, raise it with --budget, such as \
                 --budget 16GB",
            )
        }
        ReadError::NeedsExport { path, by, command } => {
            let written = by.as_ref().map_or_else(String::new, |by| format!(", written by {by},"));
            let what = format!("{}{written} can only be read by Nsight Systems itself", path.display());
            Problem::new(Cause::Nothing, what)
                .then("nsys is not installed on this machine (searched NSYS_PATH, PATH, /opt/nvidia)")
                .then(format!("run `{command}` on a machine with nsys, and give the .sqlite file"))
        }
        ReadError::ExportFailed { path, tool, said } => {
            Problem::new(Cause::Nothing, format!("{} could not be exported", path.display()))
                .then(format!("{} said: {said}", tool.display()))
                .then("export it with the version of nsys that recorded it, and give the .sqlite file")
        }
        ReadError::ExportTimedOut { path, tool, seconds } => {
            Problem::new(Cause::Nothing, format!("{} could not be exported", path.display()))
                .then(format!(
                    "{} did not end within {}",
                    tool.display(),
                    plural(*seconds, "second", "seconds")
                ))
                .then("export it with `nsys export --type sqlite`, and give the .sqlite file")
        }
        ReadError::NotAFile { path } => {
            Problem::new(Cause::Usage, format!("{} is not a file or folder", path.display()))
                .then("found a pipe, a socket or a device, which may never end")
                .then("write its content to a file, and give that file")
        }
        ReadError::RunsCode { path, opcode, offset } => {
            Problem::new(Cause::Nothing, format!("{} asks to run code", path.display()))
                .then(format!("found the pickle opcode {opcode} at byte {offset}; stepscope does not run it"))
                .then("give the file that `torch.cuda.memory._dump_snapshot` writes")
        }
        ReadError::Foreign { path, found } if found.contains("pprof") => {
            Problem::new(Cause::Nothing, format!("{} is not a profile of memory", path.display()))
                .then(format!("found {found}"))
                .then("give the file that `jax.profiler.save_device_memory_profile` writes")
        }
        ReadError::Foreign { path, found } => {
            Problem::new(Cause::Nothing, format!("{} is not a profile", path.display()))
                .then(format!("found {found}"))
                .then("give a database written by `nsys export --type sqlite`")
        }
        other => Problem::new(Cause::Nothing, other.to_string())
            .then("its format is not recognised")
            .then(crate::find::GIVE),
    }
}
