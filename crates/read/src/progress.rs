//! Reading progress: readers count, other threads look.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counters that a reader advances and other threads may read.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: AtomicU64,
    total: AtomicU64,
    events: AtomicU64,
    stopped: StopFlag,
}

/// Whether somebody stopped a reading, for code that has no progress to report. Who asks shows that it is not stuck.
#[derive(Clone, Debug, Default)]
pub(crate) struct StopFlag(Arc<Signal>);

#[derive(Debug, Default)]
struct Signal {
    stopped: AtomicBool,
    /// Goes up whenever a reader shows that it is not stuck.
    beats: AtomicU64,
}

impl StopFlag {
    pub(crate) fn is_set(&self) -> bool {
        self.0.beats.fetch_add(1, Ordering::Relaxed);
        self.0.stopped.load(Ordering::Relaxed)
    }
}

/// What a stopped reader unwinds with.
#[derive(Debug)]
struct Stopped;

impl Progress {
    /// Nothing read yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Announces `bytes` more to read.
    pub fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Records `bytes` more read, with `events` more events.
    pub fn advance(&self, bytes: u64, events: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.events.fetch_add(events, Ordering::Relaxed);
        self.check();
    }

    /// Stops the reading that reports this progress. The caller must catch the unwinding, and can recognise it
    /// with [`Progress::is_stop`].
    ///
    /// Readers are a deep stack of loops on many threads. Unwinding ends all of them at the next place where they count,
    /// without a result to pass up through every function, and gives their memory back.
    pub fn stop(&self) {
        self.stopped.0.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether it was stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped.is_set()
    }

    /// The flag that [`Progress::stop`] sets.
    pub(crate) fn stop_flag(&self) -> StopFlag {
        self.stopped.clone()
    }

    /// Unwinds if it was stopped, and shows that the reader is not stuck. Long work that does not count calls this now and
    /// then.
    pub fn check(&self) {
        if self.is_stopped() {
            std::panic::resume_unwind(Box::new(Stopped));
        }
    }

    /// Whether a caught unwinding comes from [`Progress::stop`].
    pub fn is_stop(caught: &(dyn Any + Send)) -> bool {
        caught.is::<Stopped>()
    }

    /// A number that changes while a reader is not stuck.
    pub fn beats(&self) -> u64 {
        self.stopped.0.beats.load(Ordering::Relaxed)
    }

    /// Adds what another one counted since the last time; `seen` remembers what that was.
    pub fn take_over(&self, other: &Progress, seen: &mut [u64; 3]) {
        let now = [other.bytes(), other.total(), other.events()];
        for ((counter, now), seen) in [&self.bytes, &self.total, &self.events].into_iter().zip(now).zip(seen)
        {
            counter.fetch_add(now.saturating_sub(*seen), Ordering::Relaxed);
            *seen = now;
        }
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Total bytes to read, as far as known.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Events read so far.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }
}
