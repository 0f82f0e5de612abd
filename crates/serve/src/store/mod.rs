//! The sessions that the server shows: found, watched, opened on demand, and closed if there are too many.
//!
//! A log directory contains dozens of sessions, and each may use a gigabyte once it is open. Therefore a
//! session is read when it is first requested, on threads of its own and within limits ([`loads`]); requests in the
//! meantime get the progress. The least recently used sessions are closed first, and read again if needed ([`shelf`]).

mod found;
mod limits;
mod loading;
mod loads;
mod open;
mod seen;
mod shelf;
#[cfg(test)]
mod tests;
mod timeline;

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::body::Bytes;
use serde_json::json;
use stepscope_diagnose::compare::ComparedRun;
use stepscope_read::files;
use stepscope_session::Problem;

use crate::curves::{Curves, ProfileAt};
use crate::error::Refusal;
use crate::fleet::{Fleet, FleetOptions};
use found::Finder;
pub(crate) use found::{Find, Fingerprint};
pub use limits::Limits;
pub(crate) use loading::{Loading, Progressed};
use loads::{Ended, Loads};
pub(crate) use open::Opened;
use open::Traces;
pub(crate) use seen::Seen;
use shelf::{Entry, Shelf, State};
pub(crate) use timeline::{Ledgers, Timeline};

/// How long a request waits for a session that is being opened.
const PATIENCE: Duration = Duration::from_millis(250);
/// Minimum interval between searches for new sessions.
const WATCH: Duration = Duration::from_secs(3);
/// Searching may take up to one part in this many of the time.
const WATCH_SHARE: u32 = 250;
/// An unreadable session is retried after this time.
const RETRY: Duration = Duration::from_secs(2);

/// Where sessions come from.
#[derive(Clone, Debug)]
pub enum SessionSource {
    /// Files and folders.
    Paths(Vec<PathBuf>),
    /// The sample in the binary.
    Sample,
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Store {
    source: SessionSource,
    limits: Limits,
    shelf: Mutex<Shelf>,
    finder: Mutex<Finder>,
    loads: Loads,
    /// What runs logged.
    curves: Arc<Curves>,
    /// All jobs and hosts.
    fleet: Arc<Fleet>,
}

impl Store {
    /// Searches for sessions once. A missing path is an error; a folder without profiles is not.
    pub(crate) fn find(source: SessionSource, limits: Limits) -> Result<Arc<Self>, Problem> {
        Store::with_fleet(source, limits, FleetOptions::default())
    }

    /// The same with options for the fleet.
    pub(crate) fn with_fleet(
        source: SessionSource,
        limits: Limits,
        options: FleetOptions,
    ) -> Result<Arc<Self>, Problem> {
        let (source, fleet) = Fleet::of(source, options)?;
        let mut finder = Finder::new(&source);
        let found = finder.look()?.unwrap_or_default();
        let order = (0..found.len()).collect();
        let entries = found.into_iter().map(|find| Entry::new(find, false)).collect();
        let shelf = Mutex::new(Shelf { entries, order, ..Shelf::default() });
        let roots = match &source {
            SessionSource::Paths(paths) => paths.clone(),
            SessionSource::Sample => Vec::new(),
        };
        let curves = Arc::new(Curves::of(roots));
        let counted = curves.clone();
        std::thread::spawn(move || counted.count());
        let (finder, loads) = (Mutex::new(finder), Loads::default());
        Ok(Arc::new(Store { source, limits, shelf, finder, loads, curves, fleet: Arc::new(fleet) }))
    }

    /// A panic elsewhere leaves the data intact: nothing panics while the lock is held.
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What runs logged.
    pub(crate) fn curves(&self) -> Arc<Curves> {
        self.curves.clone()
    }

    /// All jobs and hosts.
    pub(crate) fn fleet(&self) -> &Arc<Fleet> {
        &self.fleet
    }

    /// The first file of each session.
    pub(crate) fn profile_files(&self) -> Vec<ProfileAt> {
        let shelf = self.shelf();
        let one = |&session: &usize| {
            let (path, bytes, _) = shelf.entries.get(session)?.find.fingerprint.first()?;
            Some(ProfileAt { session, file: path.clone(), bytes: *bytes })
        };
        shelf.order.iter().filter_map(one).collect()
    }

    /// Number of sessions.
    pub(crate) fn len(&self) -> usize {
        self.shelf().order.len()
    }

    fn is_watching(&self) -> bool {
        matches!(self.source, SessionSource::Paths(_))
    }

    /// All sessions as the page lists them, in JSON.
    pub(crate) fn list(&self) -> Bytes {
        let curves = self.curves.len();
        let mut shelf = self.shelf();
        // Every open page asks every few seconds, and mostly nothing changed.
        if let Some((_, text)) = shelf.written.as_ref().filter(|(known, _)| *known == curves) {
            return text.clone();
        }
        let head = json!({
            "version": env!("CARGO_PKG_VERSION"), "current": shelf.order.first(), "watching": self.is_watching(),
            "curves": curves, "fleet": self.fleet.has_partials(),
        });
        // Thousands of sessions are written as they are, without a copy of each.
        let mut text = head.to_string().into_bytes();
        text.pop();
        text.extend_from_slice(b",\"sessions\":");
        // Writing numbers and text to memory does not fail.
        let _ = serde_json::to_writer(&mut text, &shelf.listed());
        text.push(b'}');
        let text = Bytes::from(text);
        shelf.written = Some((curves, text.clone()));
        text
    }

    /// The session with this id, opened. With `fresh`, for a new visit, it reflects the current files.
    pub(crate) async fn open(self: &Arc<Self>, id: usize, fresh: bool) -> Result<Arc<Opened>, Refusal> {
        let loading = match self.look(id, fresh)? {
            Looked::Ready(opened) => return Ok(opened),
            Looked::Loading(loading) => loading,
        };
        loading.wait(PATIENCE).await;
        match self.look(id, false)? {
            Looked::Ready(opened) => Ok(opened),
            Looked::Loading(loading) => Err(Refusal::Loading(loading.progressed())),
        }
    }

    /// The traces of the session with this id, all of them in memory.
    pub(crate) async fn timeline(self: &Arc<Self>, id: usize, fresh: bool) -> Result<Arc<Timeline>, Refusal> {
        let opened = self.open(id, fresh).await?;
        let loading = match self.look_at_traces(id, &opened)? {
            Looked::Ready(timeline) => return Ok(timeline),
            Looked::Loading(loading) => loading,
        };
        loading.wait(PATIENCE).await;
        match self.look_at_traces(id, &opened)? {
            Looked::Ready(timeline) => Ok(timeline),
            Looked::Loading(loading) => Err(Refusal::Loading(loading.progressed())),
        }
    }

    /// Starts to open a session, if it is not open.
    pub(crate) fn preload(self: &Arc<Self>, id: usize) {
        let _ = self.look(id, false);
    }

    fn look(self: &Arc<Self>, id: usize, fresh: bool) -> Result<Looked<Opened>, Refusal> {
        let mut shelf = self.shelf();
        shelf.requests += 1;
        let now = shelf.requests;
        let entry =
            shelf.entries.get_mut(id).filter(|entry| !entry.gone).ok_or(Refusal::Missing("session"))?;
        entry.used = now;
        let changed = fresh && entry.has_changed();
        match &entry.state {
            // Until its files are complete again, the message is the answer; then the session is read again.
            State::Ready(opened) if !changed => {
                return match opened.changed() {
                    Some(problem) => Err(Refusal::Unreadable(Box::new(problem))),
                    None => Ok(Looked::Ready(opened.clone())),
                };
            }
            State::Loading(loading) => return Ok(Looked::Loading(loading.asked())),
            State::Failed(problem, when) if !(changed || fresh && when.elapsed() > RETRY) => {
                return Err(Refusal::Unreadable(Box::new(problem.clone())));
            }
            State::Ready(_) | State::Failed(..) | State::Unopened => {}
        }
        let loading = Arc::new(Loading::new(entry.find.hosts.len(), entry.find.bytes));
        entry.state = State::Loading(loading.clone());
        entry.read = Some(entry.find.fingerprint.clone());
        entry.run = None;
        let find = entry.find.clone();
        shelf.written = None;
        drop(shelf);
        let own = loading.clone();
        self.begin(
            &loading,
            move |loading| Opened::read(find, loading),
            move |store, ended| store.opened(id, &own, ended),
        );
        Ok(Looked::Loading(loading))
    }

    /// Takes a session that was read, unless it is no longer wanted.
    fn opened(&self, id: usize, loading: &Arc<Loading>, ended: Ended<Opened>) {
        let let_go = {
            let mut shelf = self.shelf();
            match shelf.entries.get_mut(id) {
                Some(entry) if matches!(&entry.state, State::Loading(one) if Arc::ptr_eq(one, loading)) => {
                    entry.state = match ended {
                        Ended::Done(opened) => State::Ready(Arc::new(opened)),
                        Ended::Failed(problem) => State::Failed(problem, Instant::now()),
                        Ended::GaveWay => State::Unopened,
                    };
                }
                _ => {}
            }
            shelf.make_room(id, self.limits)
        };
        drop(let_go);
    }

    fn look_at_traces(
        self: &Arc<Self>,
        id: usize,
        opened: &Arc<Opened>,
    ) -> Result<Looked<Timeline>, Refusal> {
        let mut traces = opened.traces();
        match &*traces {
            Traces::Open(timeline) => return Ok(Looked::Ready(timeline.clone())),
            Traces::Loading(loading) => return Ok(Looked::Loading(loading.asked())),
            Traces::Failed(problem, when) if when.elapsed() < RETRY => {
                return Err(Refusal::Unreadable(Box::new(problem.clone())));
            }
            Traces::Failed(..) | Traces::Closed => {}
        }
        let loading = Arc::new(Loading::new(opened.find.hosts.len(), opened.find.bytes));
        *traces = Traces::Loading(loading.clone());
        drop(traces);
        let (find, opened) = (opened.find.clone(), opened.clone());
        self.begin(
            &loading,
            move |loading| Timeline::read(&find, loading),
            move |store, ended| {
                *opened.traces() = match ended {
                    Ended::Done(timeline) => Traces::Open(Arc::new(timeline)),
                    Ended::Failed(problem) => Traces::Failed(problem, Instant::now()),
                    Ended::GaveWay => Traces::Closed,
                };
                let let_go = store.shelf().make_room(id, store.limits);
                drop(let_go);
            },
        );
        Ok(Looked::Loading(loading))
    }

    /// Starts a load on a thread of its own. However it ends, `done` hears of it and waiting requests are notified.
    fn begin<T: Send + 'static>(
        self: &Arc<Self>,
        loading: &Arc<Loading>,
        work: impl FnOnce(&Loading) -> Result<T, Problem> + Send + 'static,
        done: impl FnOnce(&Store, Ended<T>) + Send + 'static,
    ) {
        let (store, told) = (self.clone(), loading.clone());
        std::thread::spawn(move || {
            let ended = store.loads.run(&told, store.limits, work);
            done(&store, ended);
            told.finish();
        });
    }

    /// Data of a session for a comparison; computed once, also for sessions that were closed since.
    pub(crate) async fn run(self: &Arc<Self>, id: usize) -> Result<Arc<ComparedRun>, Refusal> {
        if let Some(run) = self.shelf().entries.get(id).and_then(|entry| entry.run.clone()) {
            return Ok(run);
        }
        let opened = self.open(id, false).await?;
        let run = crate::answers::heavy(move || opened.run().map(Arc::new)).await?;
        if let Some(entry) = self.shelf().entries.get_mut(id) {
            entry.run = Some(run.clone());
        }
        Ok(run)
    }

    /// Searches for sessions once more.
    fn search(&self) {
        let found = self.finder.lock().unwrap_or_else(PoisonError::into_inner).look();
        // A path that is gone for a moment keeps what was found below it.
        if let Ok(Some(found)) = found {
            self.shelf().take(found);
        }
    }

    /// The session whose files lie in a folder that was just written.
    pub(crate) fn session_in(&self, folder: &Path) -> Option<usize> {
        self.search();
        let folder = files::canonical(folder).ok()?;
        let shelf = self.shelf();
        let lies_there = |id: &&usize| {
            let entry = shelf.entries.get(**id);
            let file = entry.and_then(|entry| entry.find.fingerprint.first()).map(|(path, ..)| path);
            let parent = file.and_then(|file| files::canonical(file.parent()?).ok());
            parent.as_ref() == Some(&folder)
        };
        shelf.order.iter().find(lies_there).copied()
    }

    /// Searches for sessions repeatedly, as long as the server runs.
    pub(crate) async fn watch(self: Arc<Self>) {
        let mut pause = WATCH;
        while self.is_watching() {
            tokio::time::sleep(pause).await;
            let store = self.clone();
            let began = Instant::now();
            // A panic in a search costs that search.
            let _ = tokio::task::spawn_blocking(move || store.search()).await;
            pause = WATCH.max(began.elapsed() * WATCH_SHARE);
        }
    }
}

enum Looked<T> {
    Ready(Arc<T>),
    Loading(Arc<Loading>),
}
