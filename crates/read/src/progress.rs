//! Reading progress: readers count, other threads look.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that a reader advances and other threads may read.
#[derive(Debug, Default)]
pub struct Progress {
    bytes: AtomicU64,
    total: AtomicU64,
    events: AtomicU64,
}

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
