//! How far reading has come. Readers count; whoever waits looks.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that a reader advances and another thread may look at.
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

    /// There are `bytes` more to be read.
    pub fn expect(&self, bytes: u64) {
        self.total.fetch_add(bytes, Ordering::Relaxed);
    }

    /// `bytes` more have been read, `events` more were in them.
    pub fn advance(&self, bytes: u64, events: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.events.fetch_add(events, Ordering::Relaxed);
    }

    /// Bytes read so far.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Bytes to be read in all, as far as is known.
    pub fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Events read so far.
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }
}
