//! Training curves: the runs below the paths, read once, kept, and read on while they grow.
//!
//! Nothing is read before somebody asks. Readers remember how far they have read, so a look at five hundred runs that do
//! not grow costs as many looks at a file's length. Each run counts its changes; a page asks what changed since it last
//! asked, and draws only that again.

mod answer;
mod frame;
mod heat;
mod model;
mod pictures;
mod profiles;
pub(crate) mod routes;
mod study;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

use rayon::prelude::*;
use rustc_hash::FxHashMap;
use stepscope_analyze::curves::RunCurves;
use stepscope_diagnose::{RunVerdict, diagnose_run};
use stepscope_read::tfevents::{FoundRun, RunReader, find_runs};
use stepscope_trace::series::{OtherKind, RunLog};

use answer::{csv, findings, listing, points, range, state};
use heat::heat;
pub(crate) use profiles::ProfileAt;
use profiles::{KnownProfile, profiles};

/// Files are looked at no more often than this.
const LOOK: Duration = Duration::from_millis(400);
/// Folders are searched for new runs no more often than this.
const SEARCH: Duration = Duration::from_secs(2);
/// Searching may take up to one part in this many of the time.
const SEARCH_SHARE: u32 = 50;

/// A run as far as it was read.
#[derive(Debug)]
pub(crate) struct Run {
    reader: RunReader,
    files: Vec<PathBuf>,
    /// Counted by [`Curves`]: the version in which it changed last.
    version: u64,
    /// Does it no longer exist?
    gone: bool,
    looked: OnceLock<Arc<(RunCurves, RunVerdict)>>,
}

impl Run {
    /// The run in figures; made by the first who asks after a change.
    fn looked(&self) -> Arc<(RunCurves, RunVerdict)> {
        let look = || {
            let curves = RunCurves::of(self.reader.so_far());
            let verdict = diagnose_run(&curves);
            Arc::new((curves, verdict))
        };
        self.looked.get_or_init(look).clone()
    }

    fn folder(&self) -> Option<&Path> {
        self.files.first().and_then(|file| file.parent())
    }
}

/// What the list of runs shows of a log besides its points: how many tags, and how many texts, pictures, graphs and settings
/// were written.
fn listed(log: &RunLog) -> (usize, u64) {
    let is_shown =
        |kind| matches!(kind, OtherKind::Text | OtherKind::Image | OtherKind::Graph | OtherKind::Hparams);
    let shown = log.others.iter().filter(|other| is_shown(other.kind)).map(|other| other.count);
    (log.series.len() + log.others.len(), shown.sum())
}

/// A run that several may look at.
pub(crate) type Shared = Arc<RwLock<Run>>;

#[derive(Debug, Default)]
struct Shelf {
    /// By id.
    runs: Vec<Shared>,
    /// Goes up with every change of any run.
    version: u64,
    /// The version in which runs or tags were last added or lost.
    listing: u64,
    looked: Option<Instant>,
    searched: Option<Instant>,
    pause: Duration,
}

/// All runs below the paths.
#[derive(Debug, Default)]
pub(crate) struct Curves {
    roots: Vec<PathBuf>,
    shelf: Mutex<Shelf>,
    /// Held while files are examined.
    looking: Mutex<()>,
    /// Runs of the first reading: how many there are, and how many were read.
    total: AtomicUsize,
    done: AtomicUsize,
    /// When profiles were recorded.
    profiles: Mutex<FxHashMap<PathBuf, KnownProfile>>,
    graphs: model::Graphs,
}

impl Curves {
    /// Of these paths; nothing is read yet.
    pub(crate) fn of(roots: Vec<PathBuf>) -> Self {
        Curves { roots, ..Curves::default() }
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of runs, as far as they were searched for.
    pub(crate) fn len(&self) -> usize {
        let known = self.shelf().runs.len();
        known.max(self.total.load(Ordering::Relaxed))
    }

    /// Searches for runs without reading them, so that the page knows whether there are any.
    pub(crate) fn count(&self) {
        let found: usize = self.roots.iter().map(|root| found_below(root).len()).sum();
        self.total.store(found, Ordering::Relaxed);
    }

    /// The run with this id.
    fn run(&self, id: usize) -> Option<Shared> {
        self.shelf().runs.get(id).cloned()
    }

    fn all(&self) -> Vec<Shared> {
        self.shelf().runs.clone()
    }

    /// Looks at files, unless that was done just now or is being done. Blocks only the first time.
    pub(crate) fn look(&self) {
        let Ok(turn) = self.looking.try_lock() else { return };
        let (search, look) = {
            let shelf = self.shelf();
            let due =
                |last: Option<Instant>, after: Duration| last.is_none_or(|last| last.elapsed() >= after);
            (due(shelf.searched, SEARCH.max(shelf.pause)), due(shelf.looked, LOOK))
        };
        if search {
            let began = Instant::now();
            self.search();
            let mut shelf = self.shelf();
            (shelf.searched, shelf.pause) = (Some(Instant::now()), began.elapsed() * SEARCH_SHARE);
        }
        if look {
            self.read_on();
            self.shelf().looked = Some(Instant::now());
        }
        drop(turn);
    }

    /// Takes in new runs and new files of known ones, and notes which are gone.
    fn search(&self) {
        let several = self.roots.len() > 1;
        let mut found: Vec<FoundRun> = Vec::new();
        for root in &self.roots {
            let name = |within: String| match within.as_str() {
                _ if !several => within,
                "." => root.display().to_string(),
                _ => root.join(&within).display().to_string(),
            };
            found.extend(found_below(root).into_iter().map(|(within, files)| (name(within), files)));
        }
        self.total.store(found.len(), Ordering::Relaxed);
        let known = self.all();
        let name_of = |run: &Shared| read(run).reader.name().to_owned();
        let ids: HashMap<String, usize> =
            known.iter().enumerate().map(|(id, run)| (name_of(run), id)).collect();
        let mut new = Vec::new();
        let mut there = BTreeSet::new();
        for (name, files) in found {
            match ids.get(&name).and_then(|id| Some((*id, known.get(*id)?))) {
                Some((id, run)) => {
                    there.insert(id);
                    let mut run = write(run);
                    run.gone = false;
                    if run.files != files {
                        files.iter().for_each(|file| run.reader.add(file.clone()));
                        run.files = files;
                    }
                }
                None => new.push((name, files)),
            }
        }
        self.leave(&known, &there);
        self.take(new);
    }

    fn leave(&self, known: &[Shared], there: &BTreeSet<usize>) {
        for (_, run) in known.iter().enumerate().filter(|(id, _)| !there.contains(id)) {
            if !read(run).gone {
                let mut shelf = self.shelf();
                shelf.version += 1;
                shelf.listing = shelf.version;
                let version = shelf.version;
                drop(shelf);
                let mut run = write(run);
                (run.gone, run.version) = (true, version);
            }
        }
    }

    /// Reads new runs on all cores; each is there as soon as it is read.
    fn take(&self, new: Vec<FoundRun>) {
        self.done.store(0, Ordering::Relaxed);
        let read: Vec<Run> = new
            .into_par_iter()
            .map(|(name, files)| {
                let mut reader = RunReader::new(name, files.clone());
                // What cannot be read now may be read later; its damage is told.
                let _ = reader.read();
                self.done.fetch_add(1, Ordering::Relaxed);
                Run { reader, files, version: 0, gone: false, looked: OnceLock::new() }
            })
            .collect();
        if read.is_empty() {
            return;
        }
        let mut shelf = self.shelf();
        shelf.version += 1;
        shelf.listing = shelf.version;
        let version = shelf.version;
        shelf.runs.extend(read.into_iter().map(|run| Arc::new(RwLock::new(Run { version, ..run }))));
    }

    /// Reads what known runs wrote since.
    fn read_on(&self) {
        self.all().par_iter().for_each(|run| {
            if read(run).gone {
                return;
            }
            let mut run = write(run);
            let before = (run.reader.so_far().records, listed(run.reader.so_far()));
            let _ = run.reader.read();
            let after = (run.reader.so_far().records, listed(run.reader.so_far()));
            if before == after {
                return;
            }
            let mut shelf = self.shelf();
            shelf.version += 1;
            if before.1 != after.1 {
                shelf.listing = shelf.version;
            }
            (run.version, run.looked) = (shelf.version, OnceLock::new());
        });
    }
}

fn read(run: &Shared) -> std::sync::RwLockReadGuard<'_, Run> {
    run.read().unwrap_or_else(PoisonError::into_inner)
}

fn write(run: &Shared) -> std::sync::RwLockWriteGuard<'_, Run> {
    run.write().unwrap_or_else(PoisonError::into_inner)
}

/// A path that is a file is a run only if it is an event file.
fn found_below(root: &Path) -> Vec<FoundRun> {
    let is_other = stepscope_read::files::is_file(root)
        && !root
            .file_name()
            .is_some_and(|name| stepscope_read::tfevents::is_event_file(&name.to_string_lossy()));
    if is_other { Vec::new() } else { find_runs(root) }
}
