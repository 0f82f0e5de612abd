//! A session that is being opened: its progress, and a signal for waiting requests.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use stepscope_read::Progress;
use tokio::sync::watch;

/// A page polls several times per second while a session loads; after this long without a request, the load is abandoned.
const FORSAKEN: Duration = Duration::from_secs(5);

/// Progress of opening a session.
#[derive(Debug)]
pub(crate) struct Loading {
    /// The reader's own counters.
    pub(crate) progress: Progress,
    started: AtomicBool,
    analysing: AtomicBool,
    hosts: usize,
    bytes: u64,
    done: watch::Sender<bool>,
    created: Instant,
    /// When somebody last asked for it, in milliseconds since it was created.
    asked_ms: AtomicU64,
}

/// The same as the page reads it.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Progressed {
    stage: &'static str,
    bytes: u64,
    total_bytes: u64,
    events: u64,
    hosts: usize,
    hosts_done: usize,
}

impl Loading {
    /// Nothing is read yet.
    pub(crate) fn new(hosts: usize, bytes: u64) -> Self {
        Loading {
            progress: Progress::new(),
            started: AtomicBool::new(false),
            analysing: AtomicBool::new(false),
            hosts,
            bytes,
            done: watch::Sender::new(false),
            created: Instant::now(),
            asked_ms: AtomicU64::new(0),
        }
    }

    /// Notes that somebody asks for it.
    pub(crate) fn asked(self: &Arc<Self>) -> Arc<Self> {
        self.asked_ms.store(self.age_ms(), Ordering::Relaxed);
        self.clone()
    }

    /// Whether it was abandoned.
    pub(crate) fn is_forsaken(&self) -> bool {
        let since = self.age_ms().saturating_sub(self.asked_ms.load(Ordering::Relaxed));
        Duration::from_millis(since) > FORSAKEN
    }

    fn age_ms(&self) -> u64 {
        u64::try_from(self.created.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Reading starts.
    pub(crate) fn start(&self) {
        self.started.store(true, Ordering::Relaxed);
    }

    /// Reading is done.
    pub(crate) fn analyse(&self) {
        self.analysing.store(true, Ordering::Relaxed);
    }

    /// Wakes all waiting requests.
    pub(crate) fn finish(&self) {
        self.done.send_replace(true);
    }

    /// Waits for the end, up to a limit.
    pub(crate) async fn wait(&self, patience: Duration) {
        let mut done = self.done.subscribe();
        // Either way the state is checked next.
        let _ = tokio::time::timeout(patience, done.wait_for(|done| *done)).await;
    }

    /// The current progress.
    pub(crate) fn progressed(&self) -> Progressed {
        let analysing = self.analysing.load(Ordering::Relaxed);
        let stage = match (self.started.load(Ordering::Relaxed), analysing) {
            (false, _) => "queued",
            (true, false) => "reading",
            (true, true) => "analysing",
        };
        // Compressed files are larger inside than on disk.
        let total_bytes = self.progress.total().max(self.bytes);
        let bytes = if analysing { total_bytes } else { self.progress.bytes().min(total_bytes) };
        // Hosts are read in parallel; the bytes show roughly how many are done.
        let share = bytes as f64 / total_bytes.max(1) as f64;
        let hosts_done = if analysing { self.hosts } else { (share * self.hosts as f64) as usize };
        let events = self.progress.events();
        Progressed { stage, bytes, total_bytes, events, hosts: self.hosts, hosts_done }
    }
}
