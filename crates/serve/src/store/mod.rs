//! The sessions that the server shows: found, watched, opened on demand, and closed if there are too many.
//!
//! A log directory contains dozens of sessions, and each may use a gigabyte once it is open. Therefore a
//! session is read when it is first requested, on a separate thread, one after the other; requests in the
//! meantime get the progress. The least recently used sessions are closed first, and read again if needed.

mod found;
mod loading;
mod open;
mod seen;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stepscope_diagnose::compare::Run;
use stepscope_render::words::serve as words;
use stepscope_session::{Cause, Problem};

use crate::curves::{Curves, ProfileAt};
use crate::error::{Refusal, problem};
pub(crate) use found::{Find, Fingerprint};
pub(crate) use loading::{Loading, Progressed};
pub(crate) use open::Opened;
pub(crate) use seen::Seen;

/// How long a request waits for a session that is being opened.
const PATIENCE: Duration = Duration::from_millis(250);
/// Minimum interval between searches for new sessions.
const WATCH: Duration = Duration::from_secs(3);
/// Searching may take up to one part in this many of the time.
const WATCH_SHARE: u32 = 10;
/// An unreadable session is retried after this time.
const RETRY: Duration = Duration::from_secs(2);

/// Where sessions come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Files and folders.
    Paths(Vec<PathBuf>),
    /// The sample in the binary.
    Sample,
}

/// How much may be open at a time.
#[derive(Copy, Clone, Debug)]
pub struct Limits {
    /// Sessions.
    pub sessions: usize,
    /// Bytes of memory, including mapped files.
    pub bytes: u64,
}

impl Default for Limits {
    /// Four sessions, and half of the machine's memory.
    fn default() -> Self {
        Limits { sessions: 4, bytes: memory_of_machine().map_or(8 << 30, |all| all / 2) }
    }
}

fn memory_of_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[derive(Debug)]
enum State {
    Unopened,
    Loading(Arc<Loading>),
    Ready(Arc<Opened>),
    Failed(Problem, Instant),
}

#[derive(Debug)]
struct Entry {
    find: Find,
    state: State,
    /// State of the files when they were read.
    read: Option<Fingerprint>,
    /// True if it was found after the server started.
    appeared: bool,
    /// How often it was given up to be read again, because its files were damaged and then changed.
    revision: u32,
    /// True if it no longer exists.
    gone: bool,
    /// When it was last requested, counted in requests.
    used: u64,
    /// Data for comparisons; kept when the session itself is closed.
    run: Option<Arc<Run>>,
}

impl Entry {
    fn new(find: Find, appeared: bool) -> Self {
        Entry {
            find,
            state: State::Unopened,
            read: None,
            appeared,
            revision: 0,
            gone: false,
            used: 0,
            run: None,
        }
    }

    fn has_changed(&self) -> bool {
        self.read.as_ref().is_some_and(|read| *read != self.find.fingerprint)
    }

    /// Takes what the search found now. A session that was damaged or unreadable, because it was still being written, is
    /// read again when its files stay the same between two searches.
    fn renew(&mut self, find: Find) {
        let settled = self.find.fingerprint == find.fingerprint;
        self.find = find;
        self.gone = false;
        let broken = match &self.state {
            State::Ready(opened) => opened.is_damaged(),
            State::Failed(..) => true,
            State::Unopened | State::Loading(_) => false,
        };
        if settled && broken && self.has_changed() {
            (self.state, self.read, self.run) = (State::Unopened, None, None);
            self.revision += 1;
        }
    }
}

#[derive(Debug, Default)]
struct Shelf {
    /// By id.
    entries: Vec<Entry>,
    /// Ids, in the order of the list.
    order: Vec<usize>,
    requests: u64,
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Store {
    source: Source,
    limits: Limits,
    shelf: Mutex<Shelf>,
    /// Held by the thread that reads.
    reading: Mutex<()>,
    /// What runs logged.
    curves: Arc<Curves>,
}

impl Store {
    /// Searches for sessions once. A missing path is an error; a folder without profiles is not.
    pub(crate) fn find(source: Source, limits: Limits) -> Result<Arc<Self>, Problem> {
        let found = found::all(&source)?;
        let order = (0..found.len()).collect();
        let entries = found.into_iter().map(|find| Entry::new(find, false)).collect();
        let shelf = Mutex::new(Shelf { entries, order, requests: 0 });
        let roots = match &source {
            Source::Paths(paths) => paths.clone(),
            Source::Sample => Vec::new(),
        };
        let curves = Arc::new(Curves::of(roots));
        let counted = curves.clone();
        std::thread::spawn(move || counted.count());
        Ok(Arc::new(Store { source, limits, shelf, reading: Mutex::new(()), curves }))
    }

    /// A panic elsewhere leaves the data intact: nothing panics while the lock is held.
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What runs logged.
    pub(crate) fn curves(&self) -> Arc<Curves> {
        self.curves.clone()
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
        matches!(self.source, Source::Paths(_))
    }

    /// All sessions as the page lists them.
    pub(crate) fn list(&self) -> Value {
        let shelf = self.shelf();
        let sessions = shelf.order.iter().map(|&id| {
            let entry = &shelf.entries[id];
            let state = match &entry.state {
                State::Unopened => "unopened",
                State::Loading(_) => "loading",
                State::Ready(_) => "ready",
                State::Failed(..) => "failed",
            };
            json!({
                "id": id, "name": entry.find.name, "path": entry.find.path, "hosts": entry.find.hosts,
                "bytes": entry.find.bytes, "state": state, "appeared": entry.appeared,
                "place": entry.find.place, "revision": entry.revision,
            })
        });
        json!({
            "version": env!("CARGO_PKG_VERSION"), "current": shelf.order.first(), "watching": self.is_watching(),
            "sessions": sessions.collect::<Vec<_>>(), "curves": self.curves.len(),
        })
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

    /// Starts to open a session, if it is not open.
    pub(crate) fn preload(self: &Arc<Self>, id: usize) {
        let _ = self.look(id, false);
    }

    fn look(self: &Arc<Self>, id: usize, fresh: bool) -> Result<Looked, Refusal> {
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
            State::Loading(loading) => return Ok(Looked::Loading(loading.clone())),
            State::Failed(problem, when) if !(changed || fresh && when.elapsed() > RETRY) => {
                return Err(Refusal::Unreadable(Box::new(problem.clone())));
            }
            State::Ready(_) | State::Failed(..) | State::Unopened => {}
        }
        let loading = Arc::new(Loading::new(entry.find.hosts.len(), entry.find.bytes));
        entry.state = State::Loading(loading.clone());
        entry.read = Some(entry.find.fingerprint.clone());
        entry.run = None;
        let (find, store, told) = (entry.find.clone(), self.clone(), loading.clone());
        drop(shelf);
        tokio::task::spawn_blocking(move || store.load(id, find, &told));
        Ok(Looked::Loading(loading))
    }

    /// Reads a session. Whatever happens, the entry gets a new state and waiting requests are notified.
    fn load(&self, id: usize, find: Find, loading: &Loading) {
        let turn = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let read = catch_unwind(AssertUnwindSafe(|| Opened::read(find, loading)));
        let opened = match read {
            Ok(read) => read.map(Arc::new),
            Err(_) => Err(problem(Cause::Damaged, words::broken())),
        };
        let let_go = {
            let mut shelf = self.shelf();
            if let Some(entry) = shelf.entries.get_mut(id) {
                entry.state = match opened {
                    Ok(opened) => State::Ready(opened),
                    Err(problem) => State::Failed(problem, Instant::now()),
                };
            }
            shelf.make_room(id, self.limits)
        };
        loading.finish();
        drop(turn);
        drop(let_go);
    }

    /// Data of a session for a comparison; computed once, also for sessions that were closed since.
    pub(crate) async fn run(self: &Arc<Self>, id: usize) -> Result<Arc<Run>, Refusal> {
        if let Some(run) = self.shelf().entries.get(id).and_then(|entry| entry.run.clone()) {
            return Ok(run);
        }
        let opened = self.open(id, false).await?;
        let run = crate::answers::heavy(move || Ok(Arc::new(opened.run()))).await?;
        if let Some(entry) = self.shelf().entries.get_mut(id) {
            entry.run = Some(run.clone());
        }
        Ok(run)
    }

    /// Searches for sessions repeatedly, as long as the server runs.
    pub(crate) async fn watch(self: Arc<Self>) {
        let mut pause = WATCH;
        while self.is_watching() {
            tokio::time::sleep(pause).await;
            let store = self.clone();
            let began = Instant::now();
            let found = tokio::task::spawn_blocking(move || found::all(&store.source)).await;
            if let Ok(Ok(found)) = found {
                self.shelf().take(found);
            }
            pause = WATCH.max(began.elapsed() * WATCH_SHARE);
        }
    }
}

enum Looked {
    Ready(Arc<Opened>),
    Loading(Arc<Loading>),
}

impl Shelf {
    /// Merges newly found sessions. Sessions that share a file are the same; open ones stay open.
    fn take(&mut self, found: Vec<Find>) {
        let mut order = Vec::with_capacity(found.len());
        for find in found {
            let known = self.entries.iter().position(|entry| entry.find.shares_file(&find));
            let id = match known.filter(|id| !order.contains(id)) {
                Some(id) => {
                    self.entries[id].renew(find);
                    id
                }
                None => {
                    self.entries.push(Entry::new(find, true));
                    self.entries.len() - 1
                }
            };
            order.push(id);
        }
        let mut listed = vec![false; self.entries.len()];
        order.iter().for_each(|&id| listed[id] = true);
        for (id, entry) in self.entries.iter_mut().enumerate().filter(|(id, _)| !listed[*id]) {
            // An open session stays available, although its files are gone.
            entry.gone = !matches!(entry.state, State::Ready(_) | State::Loading(_));
            if !entry.gone {
                order.push(id);
            }
        }
        self.order = order;
    }

    /// Closes the least recently used sessions until the limits are met; never the one that was just opened.
    fn make_room(&mut self, newest: usize, limits: Limits) -> Vec<Arc<Opened>> {
        let mut open: Vec<(u64, usize, u64)> = self
            .entries
            .iter()
            .enumerate()
            .filter_map(|(id, entry)| match &entry.state {
                State::Ready(opened) => Some((entry.used, id, opened.bytes())),
                _ => None,
            })
            .collect();
        open.sort_unstable();
        let (mut count, mut bytes) = (open.len(), open.iter().map(|(_, _, bytes)| bytes).sum::<u64>());
        let mut gone = Vec::new();
        for (_, id, size) in open.into_iter().filter(|&(_, id, _)| id != newest) {
            if count <= limits.sessions && bytes <= limits.bytes {
                break;
            }
            if let State::Ready(opened) = std::mem::replace(&mut self.entries[id].state, State::Unopened) {
                gone.push(opened);
                count -= 1;
                bytes -= size;
            }
        }
        gone
    }
}
