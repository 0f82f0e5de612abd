//! The sessions that the server shows: found, watched, opened when somebody looks at them, and let go when there are
//! too many.
//!
//! A log directory holds dozens of sessions, and each may fill a gigabyte once it is opened. So a session is read when
//! it is first asked for, on a thread of its own, one after the other; whoever asks meanwhile is told how far it is.
//! Those looked at longest ago are let go first, and read again if somebody comes back to them.

mod found;
mod loading;
mod open;
#[cfg(test)]
mod tests;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stepscope_diagnose::compare::Run;
use stepscope_render::words::serve as words;
use stepscope_session::{Exit, Problem};

use crate::error::{Refusal, problem};
use found::{Find, Fingerprint};
pub(crate) use loading::{Loading, Progressed};
pub(crate) use open::Opened;

/// How long a request waits for a session that is being opened.
const PATIENCE: Duration = Duration::from_millis(250);
/// How often the folders are looked through for new sessions, at the most.
const WATCH: Duration = Duration::from_secs(3);
/// Looking may take up to one part in this many of the time.
const WATCH_SHARE: u32 = 10;
/// A session that could not be read is tried again after this long.
const RETRY: Duration = Duration::from_secs(2);

/// Where sessions come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// Files and folders.
    Paths(Vec<PathBuf>),
    /// The sample that the binary carries.
    Sample,
}

/// How much may be open at a time.
#[derive(Copy, Clone, Debug)]
pub struct Limits {
    /// Sessions.
    pub sessions: usize,
    /// Bytes of memory, mapped files included.
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
    /// What the files were like when they were read.
    read: Option<Fingerprint>,
    /// Found after the server started.
    appeared: bool,
    /// No longer there.
    gone: bool,
    /// When it was last asked for, in requests.
    used: u64,
    /// What a comparison wants to know; kept when the session itself is let go.
    run: Option<Arc<Run>>,
}

impl Entry {
    fn new(find: Find, appeared: bool) -> Self {
        Entry { find, state: State::Unopened, read: None, appeared, gone: false, used: 0, run: None }
    }

    fn has_changed(&self) -> bool {
        self.read.as_ref().is_some_and(|read| *read != self.find.fingerprint)
    }
}

#[derive(Debug, Default)]
struct Shelf {
    /// By id.
    entries: Vec<Entry>,
    /// Ids, newest first.
    order: Vec<usize>,
    requests: u64,
}

/// All sessions.
#[derive(Debug)]
pub(crate) struct Store {
    source: Source,
    limits: Limits,
    shelf: Mutex<Shelf>,
    /// Held by the one that reads.
    reading: Mutex<()>,
}

impl Store {
    /// Looks for sessions once. A path that is not there is an error; a folder without profiles is not.
    pub(crate) fn find(source: Source, limits: Limits) -> Result<Arc<Self>, Problem> {
        let found = found::all(&source)?;
        let order = (0..found.len()).collect();
        let entries = found.into_iter().map(|find| Entry::new(find, false)).collect();
        let shelf = Mutex::new(Shelf { entries, order, requests: 0 });
        Ok(Arc::new(Store { source, limits, shelf, reading: Mutex::new(()) }))
    }

    /// A panic elsewhere leaves the shelf whole: nothing panics while it is held.
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many sessions there are.
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
            })
        });
        json!({
            "version": env!("CARGO_PKG_VERSION"), "current": shelf.order.first(), "watching": self.is_watching(),
            "sessions": sessions.collect::<Vec<_>>(),
        })
    }

    /// The session of this id, opened. `fresh` is for those who come to it anew: they get what is in the files now.
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

    /// Begins to open a session, if it is not open.
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
            State::Ready(opened) if !changed => return Ok(Looked::Ready(opened.clone())),
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

    /// Reads a session. Whatever happens, the entry gets a new state and whoever waits is told.
    fn load(&self, id: usize, find: Find, loading: &Loading) {
        let turn = self.reading.lock().unwrap_or_else(PoisonError::into_inner);
        let read = catch_unwind(AssertUnwindSafe(|| Opened::read(find, loading)));
        let opened = match read {
            Ok(read) => read.map(Arc::new),
            Err(_) => Err(problem(Exit::Damaged, words::broken())),
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

    /// What a comparison wants to know of a session; computed once, also for sessions that were let go since.
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

    /// Looks for sessions again and again, as long as the server runs.
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
    /// Takes in what was found now. Sessions that share a file are the same one; what is open stays open.
    fn take(&mut self, found: Vec<Find>) {
        let mut order = Vec::with_capacity(found.len());
        for find in found {
            let known = self.entries.iter().position(|entry| entry.find.shares_file(&find));
            let id = match known.filter(|id| !order.contains(id)) {
                Some(id) => {
                    self.entries[id].find = find;
                    self.entries[id].gone = false;
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
            // What is open can still be looked at, although its files are gone.
            entry.gone = !matches!(entry.state, State::Ready(_) | State::Loading(_));
            if !entry.gone {
                order.push(id);
            }
        }
        self.order = order;
    }

    /// Lets sessions go, those used longest ago first, until the limits are kept; never the one that was just opened.
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
