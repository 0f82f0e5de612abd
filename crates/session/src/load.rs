//! From the session that is meant to its traces: all its hosts at the same time, or each looked at and let go.

use std::sync::OnceLock;

use rayon::prelude::*;
use stepscope_analyze::info::Source;
use stepscope_analyze::{Context, Coverage, Selection};
use stepscope_read::{Input, Opened, Progress, ReadError, open_input};
use stepscope_render::format::plural;
use stepscope_render::report::SourceRow;
use stepscope_trace::{NoteKind, Span, Trace};

use crate::find::Chosen;
use crate::problem::{Exit, Problem};

/// One host's file, read.
#[derive(Debug)]
pub struct Loaded {
    /// Where it lies.
    pub path: String,
    /// The host that it was recorded on.
    pub host: String,
    /// Its format.
    pub format: &'static str,
    /// Its size in bytes.
    pub bytes: u64,
    /// What was in it.
    pub trace: Trace,
    /// Which part of it is looked at.
    pub selection: Selection,
    /// What figures about it cover: known from the first analysis.
    pub(crate) covered: OnceLock<Coverage>,
}

/// One profile: all hosts of one session.
#[derive(Debug)]
pub struct Profile {
    /// The session's name.
    pub session: String,
    /// All sessions that were found, newest first, this one among them.
    pub sessions: Vec<String>,
    /// Its hosts; at least one.
    pub hosts: Vec<Loaded>,
    /// Hosts whose files could not be read at all.
    unreadable: Vec<Problem>,
}

impl Profile {
    /// Reads the session that was chosen.
    pub fn load(chosen: Chosen, progress: &Progress) -> Result<Profile, Problem> {
        let Chosen { session, sessions, files } = chosen;
        let inputs = files.iter().map(|file| (file.host.clone(), file.open())).collect();
        Profile::read(session, sessions, inputs, progress)
    }

    /// Reads the files of one session, each with its host, all at the same time.
    pub fn read(
        session: String,
        sessions: Vec<String>,
        inputs: Vec<(String, Result<Input, ReadError>)>,
        progress: &Progress,
    ) -> Result<Profile, Problem> {
        let read: Vec<Result<Loaded, ReadError>> =
            inputs.into_par_iter().map(|(host, input)| Loaded::read(host, &input?, progress)).collect();
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

    /// The same, of which another part than the steps that count is looked at.
    pub fn selecting(mut self, selection: Selection) -> Profile {
        self.hosts.iter_mut().for_each(|loaded| loaded.selection = selection);
        self
    }

    /// What the figures of a view that was just computed cover.
    pub(crate) fn covers(&self) -> Coverage {
        let known = self.hosts.iter().filter_map(|loaded| loaded.covered.get().cloned());
        known.reduce(Coverage::merge).unwrap_or_default()
    }

    /// The whole recording, as far as figures cover it.
    pub(crate) fn recording(&self) -> Coverage {
        let spans = self.hosts.iter().filter_map(|loaded| loaded.trace.span());
        Coverage::of_recording(spans.reduce(Span::hull))
    }

    /// The sources as the analyses take them.
    pub fn sources(&self) -> Vec<Source<'_>> {
        self.hosts.iter().map(Loaded::source).collect()
    }

    /// What is wrong with its files: damage in those that were read, then those that could not be.
    pub fn problems(&self) -> Vec<Problem> {
        self.hosts.iter().filter_map(damage).chain(self.unreadable.iter().cloned()).collect()
    }
}

/// A profile whose hosts were looked at one by one, each let go before the next one's place is needed.
#[derive(Debug)]
pub struct Looked<T> {
    /// The session's name.
    pub session: String,
    /// All sessions that were found, newest first, this one among them.
    pub sessions: Vec<String>,
    /// What was made of each host that could be read.
    pub hosts: Vec<T>,
    problems: Vec<Problem>,
}

impl<T: Send> Looked<T> {
    /// Looks at each host of the session, on all cores. No more traces are held at a time than
    /// there are cores, however many hosts the session has.
    pub fn at(
        chosen: Chosen,
        progress: &Progress,
        look: impl Fn(&Loaded) -> T + Sync,
    ) -> Result<Self, Problem> {
        let Chosen { session, sessions, files } = chosen;
        let inputs = files.iter().map(|file| (file.host.clone(), || file.open())).collect();
        Self::at_inputs(session, sessions, inputs, progress, look)
    }

    /// The same for inputs that are already known.
    pub fn at_inputs(
        session: String,
        sessions: Vec<String>,
        inputs: Vec<(String, impl Fn() -> Result<Input, ReadError> + Send + Sync)>,
        progress: &Progress,
        look: impl Fn(&Loaded) -> T + Sync,
    ) -> Result<Self, Problem> {
        let only = inputs.len() == 1;
        let one = |(host, open): (String, _)| -> (Option<T>, Option<Problem>) {
            let open: &(dyn Fn() -> Result<Input, ReadError> + Sync) = &open;
            match open().and_then(|input| Loaded::read(host, &input, progress)) {
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
        let looked: Vec<(Option<T>, Option<Problem>)> = inputs.into_par_iter().map(one).collect();
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

    /// What was made of the hosts, and what is wrong with their files.
    pub fn into_parts(self) -> (Vec<T>, Vec<Problem>) {
        (self.hosts, self.problems)
    }
}

impl Loaded {
    fn read(host: String, input: &Input, progress: &Progress) -> Result<Self, ReadError> {
        let Opened { format, bytes, trace } = open_input(input, progress)?;
        let path = input.path().display().to_string();
        let (selection, covered) = (Selection::default(), OnceLock::new());
        Ok(Loaded { path, host, format, bytes, trace, selection, covered })
    }

    /// The trace as the analyses take it.
    pub fn context(&self) -> Context<'_> {
        Context::new(&self.trace, self.host.as_str()).selecting(self.selection)
    }

    /// The source as the report lists it.
    pub fn source_row(&self) -> SourceRow {
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

pub(crate) fn unreadable_file(error: &ReadError) -> Problem {
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
            .then(crate::find::GIVE),
    }
}
