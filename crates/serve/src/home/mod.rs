//! All runs at a glance: when each was recorded, on what, how fast its steps were, and the verdict.
//!
//! A log directory holds thousands of runs, and a verdict costs reading the whole profile. Therefore verdicts are computed one
//! after the other on one thread of low priority, only while the list is open and no session is being loaded, and
//! kept in a file outside the log directory ([`cache`]). Nothing runs when the list is complete.

mod cache;
mod summary;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Router;
use serde_json::{Value, json};

use crate::routes::{Answer, App, Asked, Reply, data};
use crate::store::{Seen, Store};
use cache::Cache;
use summary::Summary;

/// A file that changed this recently may still be written.
const SETTLED: Duration = Duration::from_secs(5);
/// How often to look whether somebody still waits for a session.
const PAUSE: Duration = Duration::from_millis(100);
/// Larger runs are only read when they are opened: a list must not fill the memory.
const LARGEST: u64 = 2 << 30;

/// The address of the list.
pub(crate) fn router() -> Router<App> {
    Router::new().route("/api/home", data(|asked| Box::pin(list(asked))))
}

async fn list(Asked { app: App { store, home, .. }, query, .. }: Asked) -> Answer {
    let since = query.number_or("since", 0_u64)?;
    crate::answers::heavy(move || {
        let answer = home.answer(&store.seen(), since, SystemTime::now());
        home.go_on(&store);
        Ok(Reply::value(&answer))
    })
    .await
}

/// What is known of one run.
#[derive(Debug)]
struct Row {
    /// Changes when its files do.
    key: u64,
    version: u64,
    bytes: u64,
    modified: Option<SystemTime>,
    writing: bool,
    summary: Option<Arc<Summary>>,
}

#[derive(Debug, Default)]
struct Rows {
    /// Grows with every change.
    version: u64,
    by_session: BTreeMap<usize, Row>,
}

/// The list of runs.
#[derive(Debug)]
pub(crate) struct Home {
    rows: Mutex<Rows>,
    cache: Mutex<Cache>,
    working: AtomicBool,
}

impl Home {
    pub(crate) fn in_user_cache() -> Self {
        Home::with(Cache::of_user())
    }

    fn with(cache: Cache) -> Self {
        Home { rows: Mutex::default(), cache: Mutex::new(cache), working: AtomicBool::new(false) }
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The runs that changed after version `since`, of those that exist.
    fn answer(&self, seen: &[Seen], since: u64, now: SystemTime) -> Value {
        let (mut cache, mut rows) = (self.cache(), self.rows());
        for one in seen {
            rows.take(one, now, &mut cache);
        }
        // A server that was started again counts anew.
        let since = if since > rows.version { 0 } else { since };
        let known: Vec<(&Seen, &Row)> =
            seen.iter().filter_map(|one| Some((one, rows.by_session.get(&one.id)?))).collect();
        let done = known.iter().filter(|(_, row)| row.is_done()).count();
        let changed = known.iter().filter(|(_, row)| row.version > since).map(|(one, row)| row.json(one.id));
        json!({
            "version": rows.version, "total": known.len(), "done": done, "runs": changed.collect::<Vec<_>>(),
        })
    }

    /// Computes missing verdicts in the background.
    fn go_on(self: &Arc<Self>, store: &Arc<Store>) {
        if self.next().is_none() || self.working.swap(true, Ordering::AcqRel) {
            return;
        }
        let (home, store) = (self.clone(), store.clone());
        let started = std::thread::Builder::new().name("verdicts".to_owned()).spawn(move || {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(1).start_handler(|_| stand_back()).build();
            if let Ok(pool) = pool {
                pool.install(|| home.work(&store));
            }
            home.working.store(false, Ordering::Release);
        });
        if started.is_err() {
            self.working.store(false, Ordering::Release);
        }
    }

    /// The next run without a verdict.
    fn next(&self) -> Option<(usize, u64)> {
        let rows = self.rows();
        let pending = rows.by_session.iter().find(|(_, row)| !row.is_done() && !row.writing);
        pending.map(|(id, row)| (*id, row.key))
    }

    fn work(&self, store: &Store) {
        while let Some((id, key)) = self.next() {
            while store.is_reading() {
                std::thread::sleep(PAUSE);
            }
            let found = store.find_of(id);
            let summary = found.map_or_else(Summary::gone, Summary::of);
            self.cache().keep(key, &summary);
            let mut rows = self.rows();
            rows.version += 1;
            let version = rows.version;
            if let Some(row) = rows.by_session.get_mut(&id).filter(|row| row.key == key) {
                (row.summary, row.version) = (Some(Arc::new(summary)), version);
            }
        }
    }
}

impl Rows {
    fn take(&mut self, seen: &Seen, now: SystemTime, cache: &mut Cache) {
        let age = seen.modified.and_then(|at| now.duration_since(at).ok());
        let writing = age.is_some_and(|age| age < SETTLED);
        let key = cache.key(&seen.fingerprint);
        let known = self.by_session.get(&seen.id);
        if known.is_some_and(|row| row.key == key && row.writing == writing) {
            return;
        }
        self.version += 1;
        let kept = known.filter(|row| row.key == key).and_then(|row| row.summary.clone());
        let summary = kept.or_else(|| cache.get(key).map(Arc::new));
        let row =
            Row { key, version: self.version, bytes: seen.bytes, modified: seen.modified, writing, summary };
        self.by_session.insert(seen.id, row);
    }
}

impl Row {
    fn is_done(&self) -> bool {
        self.summary.is_some() || self.bytes > LARGEST
    }

    fn json(&self, id: usize) -> Value {
        let modified = self.modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
        json!({
            "id": id, "modified_ms": modified.map(|since| since.as_millis() as u64), "writing": self.writing,
            "skipped": self.summary.is_none() && self.bytes > LARGEST, "summary": self.summary.as_deref(),
        })
    }
}

/// Gives way to every other thread of the machine. Failing to do so only makes the machine busier.
pub(crate) fn stand_back() {
    #[cfg(unix)]
    let _ = rustix::process::nice(10);
}
