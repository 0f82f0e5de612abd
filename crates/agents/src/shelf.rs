//! Profiles that stay open, so that the second question about one is quick. A profile whose files changed is read again.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::SystemTime;

use stepscope_query::Database;
use stepscope_read::discover::{ProfileFile, RUN_FILE, is_within};
use stepscope_read::files;
use stepscope_read::{NsysReportReader, Reader as _};
use stepscope_results::report::Report;
use stepscope_session::report::report_within;
use stepscope_session::{Cause, Problem, Profile, Query, ResolvedSession};

use crate::failed::{Failed, Stop};
use crate::roots::Roots;

/// Profiles that stay open; each takes about twice its file size.
const OPEN: usize = 4;

/// Files by size and time of the last change.
type Key = Vec<(PathBuf, u64, Option<SystemTime>)>;

/// An open profile.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) profile: Arc<Profile>,
    /// The same for queries; what they compute is kept with it.
    pub(crate) database: OnceLock<Database>,
    report: OnceLock<Result<Report, Problem>>,
}

/// A profile as asked for by one call.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) opened: Arc<Opened>,
    /// What to know before reading its figures: which session it is, what is damaged.
    pub(crate) notes: Vec<String>,
    /// Its path, as a client can give it back.
    pub(crate) target: String,
}

/// The open profiles, the last used first.
#[derive(Debug, Default)]
pub(crate) struct Shelf(Mutex<VecDeque<(Key, Arc<Opened>)>>);

impl Shelf {
    /// Opens the profile at a path, or finds it open.
    pub(crate) fn open(
        &self,
        path: &str,
        session: Option<&str>,
        roots: &Roots,
        stop: &Stop,
    ) -> Result<Asked, Failed> {
        let real = roots.resolve(path)?;
        let target = roots.shown(&real);
        let wanted = Query {
            paths: vec![real],
            session: session.map(str::to_owned),
            host: None,
            roots: roots.all().to_vec(),
        };
        let remark = Mutex::new(None);
        let chosen = ResolvedSession::of(&wanted, &|text| {
            *remark.lock().unwrap_or_else(PoisonError::into_inner) = Some(format!("note: {text}"));
        })?;
        chosen.files.iter().try_for_each(|file| readable(file, roots))?;
        stop.check()?;
        let key: Key = chosen.files.iter().flat_map(key_of).collect();
        let opened = match self.take(&key) {
            Some(opened) => opened,
            None => Arc::new(Opened {
                profile: Arc::new(Profile::load(chosen, stop.progress())?),
                database: OnceLock::new(),
                report: OnceLock::new(),
            }),
        };
        self.put(key, Arc::clone(&opened));
        stop.check()?;
        let remark = remark.into_inner().unwrap_or_else(PoisonError::into_inner);
        let damage = opened.profile.problems().into_iter().map(|problem| format!("warning: {problem}"));
        let notes = remark.into_iter().chain(damage).take(5).collect();
        Ok(Asked { notes, target, opened })
    }

    /// Takes an open profile off the shelf; if it is not there, makes room for it.
    fn take(&self, key: &Key) -> Option<Arc<Opened>> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = open.iter().position(|(other, _)| other == key).and_then(|place| open.remove(place));
        if found.is_none() {
            open.truncate(OPEN - 1);
        }
        found.map(|(_, opened)| opened)
    }

    fn put(&self, key: Key, opened: Arc<Opened>) {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        open.push_front((key, opened));
        open.truncate(OPEN);
    }
}

impl Asked {
    /// Its report; computed once.
    pub(crate) fn report(&self, roots: &Roots) -> Result<&Report, Failed> {
        let Opened { profile, report, .. } = &*self.opened;
        let made = || report_within(profile, vec![self.target.clone()], roots.all());
        report.get_or_init(made).as_ref().map_err(|problem| problem.clone().into())
    }
}

/// Refuses what could only be read by starting another program, or from elsewhere.
fn readable(file: &ProfileFile, roots: &Roots) -> Result<(), Problem> {
    if std::ptr::eq(file.format, NsysReportReader.format()) {
        return Err(Problem::new(
            Cause::Nothing,
            format!("{} has to be exported first", file.path.display()),
        )
        .then("found a report of Nsight Systems, which only its own program reads; this server starts none")
        .then("run `nsys export --type sqlite` on it, and ask again"));
    }
    let run = file.path.with_file_name(RUN_FILE);
    let parts = file.parts.iter().chain([&file.path]).chain(files::is_file(&run).then_some(&run));
    match parts.into_iter().find(|path| !is_within(path, roots.all())) {
        None => Ok(()),
        Some(outside) => Err(Problem::new(Cause::Nothing, format!("{} is not read", outside.display()))
            .then("it is a link out of the folders that this server reads")
            .then("start the server with the folder that the link leads to")),
    }
}

fn key_of(file: &ProfileFile) -> Vec<(PathBuf, u64, Option<SystemTime>)> {
    let one = |path: &PathBuf| {
        let data = files::data(path).ok();
        (path.clone(), file.bytes, data.and_then(|data| data.modified))
    };
    file.parts.iter().chain([&file.path]).map(one).collect()
}
