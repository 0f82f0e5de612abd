//! Everything as blocking calls, which any thread may make, and what is known from earlier ones: connections, lists,
//! beginnings of objects.

use std::collections::HashMap;
use std::fs::File;
use std::future::Future;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures_util::StreamExt as _;
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;

use crate::bucket::{Bucket, Settings};
use crate::error::{Error, Kind};
use crate::fetch::{self, Transfers};
use crate::list::{self, Folder, Listed, Object, Rules};
use crate::location::{Location, Scheme};

/// How long a list is believed, and how long a search: lists must last until its end.
const FRESH: Duration = Duration::from_secs(60);
const SEARCHED: Duration = Duration::from_secs(30);
/// Ranges of all objects at once.
const RANGES: usize = 16;
/// Beginnings of objects that are asked for at once.
const HEADS: usize = 32;
/// Beginnings that are kept, in bytes.
const KEPT_HEADS: usize = 256 << 20;

/// Looks up, lists and copies.
#[derive(Debug)]
pub struct Client {
    rules: Rules,
    settings: Settings,
    state: Mutex<Option<Arc<State>>>,
}

/// What a URL leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// An object.
    Object(Object),
    /// A folder: other objects have names that begin with it.
    Folder,
}

/// How far transfers are.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// Bytes that were copied.
    pub done: u64,
    /// Bytes of all objects whose copies have begun.
    pub total: u64,
    /// Keys that were listed.
    pub listed: u64,
}

/// What belongs to one process. A forked child has none of its parent's threads and must not use its connections.
struct State {
    process: u32,
    runtime: Runtime,
    transfers: Transfers,
    buckets: Mutex<HashMap<String, Bucket>>,
    folders: Mutex<HashMap<String, (Instant, Arc<Folder>)>>,
    /// Searches, and whether they took beginnings.
    searches: Mutex<HashMap<String, (Instant, bool)>>,
    objects: Mutex<HashMap<String, (Instant, Object)>>,
    heads: Mutex<Heads>,
}

impl std::fmt::Debug for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("State").field("process", &self.process).finish_non_exhaustive()
    }
}

#[derive(Debug, Default)]
struct Heads {
    by_url: HashMap<String, (Object, Vec<u8>)>,
    bytes: usize,
}

impl Client {
    /// A client with these rules. Threads and connections are made when they are needed.
    pub fn new(rules: Rules) -> Self {
        Client { rules, settings: Settings::new(), state: Mutex::new(None) }
    }

    /// The same with variables that count more than those of the environment, such as `AWS_ENDPOINT_URL`.
    pub fn with_settings(mut self, settings: &[(&str, &str)]) -> Self {
        self.settings = settings.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        self
    }

    /// What a URL leads to.
    pub fn look(&self, url: &str) -> Result<Found, Error> {
        let location = Location::parse(url)?;
        let state = self.state(&location)?;
        if let Some(known) = state.known(&location) {
            return Ok(known);
        }
        if location.key.is_empty() && location.scheme != Scheme::Web {
            return self.list(&state, &location).map(|_| Found::Folder);
        }
        let bucket = self.bucket(&state, &location)?;
        let object = {
            let location = location.clone();
            state.wait(&location.clone(), async move { fetch::look(&bucket, &location).await })
        };
        let missing = match object {
            Ok(object) => {
                lock(&state.objects).insert(location.url(), (Instant::now(), object.clone()));
                return Ok(Found::Object(object));
            }
            Err(error) => error,
        };
        // A folder is nothing that could be looked up; and who may list need not be allowed to look up.
        let may_be_folder = matches!(missing.kind, Kind::NotFound | Kind::Denied(_));
        if location.scheme == Scheme::Web || !may_be_folder {
            return Err(missing);
        }
        match self.list(&state, &location) {
            Ok(folder) if folder.exists => Ok(Found::Folder),
            Ok(_) => Err(missing),
            Err(error) => Err(error),
        }
    }

    /// Lists all that matters below a URL, many folders at once, and with `heads` takes the beginnings of all objects.
    pub fn search(&self, url: &str, heads: bool) -> Result<(), Error> {
        if let Found::Object(_) = self.look(url)? {
            return Ok(());
        }
        let location = Location::parse(url)?;
        let state = self.state(&location)?;
        let recent = |(at, had): &(Instant, bool)| at.elapsed() < SEARCHED && (*had || !heads);
        if lock(&state.searches).get(&location.url()).is_some_and(recent) {
            return Ok(());
        }
        let (bucket, rules, at) = (self.bucket(&state, &location)?, self.rules, location.clone());
        let counters = state.transfers.counters.clone();
        // It was listed just now, to see whether it is a folder.
        let root =
            lock(&state.folders).get(&location.url()).filter(|(at, _)| at.elapsed() < SEARCHED).cloned();
        let root = root.map(|(_, folder)| Folder::clone(&folder));
        let found = state.wait(&location, async move {
            list::tree(&bucket, &at, root, rules, &Listed::new(&counters.listed)).await
        })?;
        let now = Instant::now();
        let mut objects = Vec::new();
        for (location, folder) in found {
            let named = folder.objects.iter().map(|(name, object)| (location.join(name), object.clone()));
            objects.extend(named);
            lock(&state.folders).insert(location.url(), (now, Arc::new(folder)));
        }
        if heads {
            self.take_heads(&state, &location, objects)?;
        }
        lock(&state.searches).insert(location.url(), (now, heads));
        Ok(())
    }

    /// Names of folders, then of objects, that matter in a folder.
    pub fn entries(&self, url: &str) -> Result<(Vec<String>, Vec<String>), Error> {
        let location = Location::parse(url)?;
        let state = self.state(&location)?;
        let known = lock(&state.folders).get(&location.url()).filter(|(at, _)| at.elapsed() < FRESH).cloned();
        let folder = match known {
            Some((_, folder)) => folder,
            None => self.list(&state, &location)?,
        };
        Ok((folder.folders.iter().cloned().collect(), folder.objects.keys().cloned().collect()))
    }

    /// The first bytes of an object, as many as there are.
    pub fn head(&self, url: &str, bytes: usize) -> Result<Vec<u8>, Error> {
        let location = Location::parse(url)?;
        let state = self.state(&location)?;
        if let Some((object, head)) = lock(&state.heads).by_url.get(&location.url())
            && head.len() as u64 >= object.bytes.min(bytes as u64)
        {
            return Ok(head.get(..bytes).unwrap_or(head).to_vec());
        }
        if self.is_empty(url)? {
            return Ok(Vec::new());
        }
        let (bucket, at) = (self.bucket(&state, &location)?, location.clone());
        state.wait(&location, async move { fetch::head(&bucket, &at, bytes).await })
    }

    /// A copy of an object, as a file without a name.
    pub fn fetch(&self, url: &str) -> Result<File, Error> {
        let location = Location::parse(url)?;
        let state = self.state(&location)?;
        if self.is_empty(url)? {
            let folder = crate::space::folder();
            return crate::space::file(&folder)
                .map_err(|error| Error::at(&location, Kind::Disk(format!("{}: {error}", folder.display()))));
        }
        let (bucket, at, transfers) =
            (self.bucket(&state, &location)?, location.clone(), state.transfers.clone());
        state.wait(&location, async move { fetch::whole(&bucket, &at, &transfers).await })
    }

    /// How far transfers are.
    pub fn moved(&self) -> Moved {
        let state = lock(&self.state).clone();
        state.map_or_else(Moved::default, |state| {
            let counters = &state.transfers.counters;
            let value = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
            Moved {
                done: value(&counters.done),
                total: value(&counters.total),
                listed: value(&counters.listed),
            }
        })
    }

    fn bucket(&self, state: &State, location: &Location) -> Result<Bucket, Error> {
        if let Some(bucket) = lock(&state.buckets).get(&location.root) {
            return Ok(bucket.clone());
        }
        let _inside = state.runtime.enter();
        let bucket = Bucket::connect(location, &self.settings)?;
        lock(&state.buckets).insert(location.root.clone(), bucket.clone());
        Ok(bucket)
    }

    /// An object without bytes has no range that could be asked for.
    fn is_empty(&self, url: &str) -> Result<bool, Error> {
        Ok(matches!(self.look(url)?, Found::Object(object) if object.bytes == 0))
    }

    fn list(&self, state: &Arc<State>, location: &Location) -> Result<Arc<Folder>, Error> {
        let (bucket, rules, at) = (self.bucket(state, location)?, self.rules, location.clone());
        let counters = state.transfers.counters.clone();
        let folder = state.wait(location, async move {
            list::folder(&bucket, &at, rules, &Listed::new(&counters.listed)).await
        })?;
        let folder = Arc::new(folder);
        lock(&state.folders).insert(location.url(), (Instant::now(), folder.clone()));
        Ok(folder)
    }

    /// Beginnings of objects, many at once, so that none has to be waited for later.
    fn take_heads(
        &self,
        state: &Arc<State>,
        root: &Location,
        objects: Vec<(Location, Object)>,
    ) -> Result<(), Error> {
        let bucket = self.bucket(state, root)?;
        let mut room = KEPT_HEADS.saturating_sub(lock(&state.heads).bytes);
        let mut wanted = Vec::new();
        for (location, object) in objects {
            let known = lock(&state.heads).by_url.get(&location.url()).is_some_and(|(of, _)| *of == object);
            let bytes = (self.rules.head)(name_of(&location))
                .min(usize::try_from(object.bytes).unwrap_or(usize::MAX));
            if known || bytes == 0 || bytes > room {
                continue;
            }
            room -= bytes;
            wanted.push((location, object, bytes));
        }
        let keeper = state.clone();
        state.wait(root, async move {
            let heads = futures_util::stream::iter(wanted).map(|(location, object, bytes)| {
                let bucket = &bucket;
                async move { (fetch::head(bucket, &location, bytes).await, location, object) }
            });
            let mut heads = heads.buffer_unordered(HEADS);
            while let Some((head, location, object)) = heads.next().await {
                // A reader that needs this file asks for it again, and reports the error.
                let Ok(head) = head else { continue };
                let mut kept = lock(&keeper.heads);
                kept.bytes += head.len();
                if let Some((_, before)) = kept.by_url.insert(location.url(), (object, head)) {
                    kept.bytes = kept.bytes.saturating_sub(before.len());
                }
            }
            Ok(())
        })
    }

    /// What belongs to this process.
    fn state(&self, location: &Location) -> Result<Arc<State>, Error> {
        let mut kept = lock(&self.state);
        if let Some(state) = kept.as_ref().filter(|state| state.process == std::process::id()) {
            return Ok(state.clone());
        }
        let failed = |error: std::io::Error| Error::at(location, Kind::Disk(error.to_string()));
        let threads = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
        let state = Arc::new(State {
            process: std::process::id(),
            runtime: threads.map_err(failed)?,
            transfers: Transfers { ranges: Arc::new(Semaphore::new(RANGES)), counters: Arc::default() },
            buckets: Mutex::default(),
            folders: Mutex::default(),
            searches: Mutex::default(),
            objects: Mutex::default(),
            heads: Mutex::default(),
        });
        // The end of a parent's threads, which do not exist here, would be waited for for ever.
        std::mem::forget(kept.replace(state.clone()));
        Ok(state)
    }
}

impl State {
    /// What is known from a list, or from the last look.
    fn known(&self, location: &Location) -> Option<Found> {
        let fresh = |at: &Instant| at.elapsed() < FRESH;
        let url = location.url();
        if let Some((at, folder)) = lock(&self.folders).get(&url)
            && fresh(at)
            && (folder.exists || location.key.is_empty())
        {
            return Some(Found::Folder);
        }
        if let Some((at, object)) = lock(&self.objects).get(&url)
            && fresh(at)
        {
            return Some(Found::Object(object.clone()));
        }
        let (folder, name) = location.parent()?;
        let folders = lock(&self.folders);
        let (_, folder) = folders.get(&folder.url()).filter(|(at, _)| fresh(at))?;
        if let Some(object) = folder.objects.get(name) {
            return Some(Found::Object(object.clone()));
        }
        folder.folders.contains(name).then_some(Found::Folder)
    }

    /// Waits for work on this client's threads. The caller may be a thread of another runtime, which must not wait itself.
    fn wait<T: Send + 'static>(
        &self,
        location: &Location,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> Result<T, Error> {
        let (done, result) = std::sync::mpsc::sync_channel(1);
        self.runtime.spawn(async move {
            // Nobody waits for it any more: the caller has ended.
            let _ = done.send(work.await);
        });
        let stopped = || Error::at(location, Kind::Answer("the transfer stopped".to_owned()));
        result.recv().unwrap_or_else(|_| Err(stopped()))
    }
}

fn name_of(location: &Location) -> &str {
    let path = if location.scheme == Scheme::Web { &location.root } else { &location.key };
    path.rsplit('/').next().unwrap_or_default()
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
