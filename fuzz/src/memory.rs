//! Counts memory, to find inputs that make a reader use too much memory although nothing breaks.
#![expect(unsafe_code, reason = "counts what the allocator hands out")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

struct Counting;

static NOW: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);
static BEFORE: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: every call goes unchanged to the system's allocator; only the sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = NOW.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(now, Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        NOW.fetch_sub(layout.size(), Relaxed);
        unsafe { System.dealloc(at, layout) }
    }
}

/// Restarts the count.
pub fn restart() {
    BEFORE.store(NOW.load(Relaxed), Relaxed);
    MOST.store(NOW.load(Relaxed), Relaxed);
}

/// The peak since the last restart.
pub fn most() -> usize {
    MOST.load(Relaxed).saturating_sub(BEFORE.load(Relaxed))
}

/// Allowed memory for any input: four times what one file may inflate to ([`BUDGET`]).
pub const ALLOWED: usize = 4 * BUDGET as usize;

/// What one file may inflate to here. Smaller than the default, so that greed shows with small inputs.
pub const BUDGET: u64 = 16 << 20;
