//! Where large blocks of memory come from: on Linux straight from the system, in huge pages. Everything else is left to
//! the system's allocator.
//!
//! The columns of a trace are a few blocks of many megabytes that are written once. In pages of 4 kB, a report of nine
//! million events took 80,000 page faults and 0.24 s of its 0.87 s of processor time in the kernel; in pages of 2 MB it takes
//! a few hundred. A block goes back to the system as soon as it is freed, which `malloc` does not promise: it keeps
//! what it expects to need again, and the peak of the process grows by that.
//!
//! It knows nothing about what is stored.

#![expect(unsafe_code, reason = "an allocator hands out raw memory; this one adds one way to get it")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::ptr::{copy_nonoverlapping, null_mut};

use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap};

/// Blocks from this size on come from the system: two huge pages, so that what the last one wastes stays small.
const LARGE: usize = 2 * HUGE_PAGE;
const HUGE_PAGE: usize = 2 << 20;
/// What the system aligns every mapping to, on all processors.
const PAGE: usize = 4 << 10;

/// The allocator of the binary.
#[derive(Debug)]
pub(crate) struct LargeMemory;

fn is_large(size: usize, align: usize) -> bool {
    size >= LARGE && align <= PAGE
}

/// The length of the mapping for a block. Linux places mappings of whole huge pages where huge pages fit.
fn mapped(size: usize) -> Option<usize> {
    size.checked_next_multiple_of(HUGE_PAGE)
}

/// New memory, filled with zeros.
fn map(size: usize) -> *mut u8 {
    let Some(len) = mapped(size) else { return null_mut() };
    // SAFETY: asks for a new mapping at any address, so no memory in use is touched.
    match unsafe { mmap_anonymous(null_mut(), len, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE) } {
        Ok(at) => {
            advise(at, len);
            at.cast()
        }
        Err(_) => null_mut(),
    }
}

/// Asks for huge pages. Without them everything works, only slower, so a refusal does not matter.
fn advise(at: *mut c_void, len: usize) {
    // SAFETY: the range is a mapping of this allocator, and the advice does not change its content.
    let _ = unsafe { madvise(at, len, Advice::LinuxHugepage) };
}

/// Grows or shrinks a mapping, which may move it; pages are moved, not copied.
///
/// # Safety
/// `block` is from [`map`] with the size `old`, and nobody uses it any more.
unsafe fn remap(block: *mut u8, old: usize, new: usize) -> *mut u8 {
    let (Some(from), Some(to)) = (mapped(old), mapped(new)) else { return null_mut() };
    if from == to {
        return block;
    }
    // SAFETY: the range is one whole mapping of this allocator.
    match unsafe { mremap(block.cast(), from, to, MremapFlags::MAYMOVE) } {
        Ok(at) => {
            advise(at, to);
            at.cast()
        }
        Err(_) => null_mut(),
    }
}

// SAFETY: `is_large` sees the same size and alignment when a block is made and when it is freed, so each block goes back
// where it came from. Mappings are aligned to pages, disjoint, and as long as was asked for or longer.
unsafe impl GlobalAlloc for LargeMemory {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_large(layout.size(), layout.align()) {
            return map(layout.size());
        }
        // SAFETY: the caller's promises are the ones that `System` asks for.
        unsafe { System.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_large(layout.size(), layout.align()) {
            return map(layout.size());
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if !is_large(layout.size(), layout.align()) {
            // SAFETY: a small block came from `System`.
            return unsafe { System.dealloc(block, layout) };
        }
        if let Some(len) = mapped(layout.size()) {
            // SAFETY: a large block is one mapping of this length, and its owner gives it up. A failure would only
            // leave it mapped.
            let _ = unsafe { munmap(block.cast(), len) };
        }
    }

    #[inline]
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        match (is_large(layout.size(), layout.align()), is_large(size, layout.align())) {
            // SAFETY: a small block came from `System`, and the caller's promises are the ones that it asks for.
            (false, false) => unsafe { System.realloc(block, layout, size) },
            // SAFETY: a large block came from `map`; its owner gives it up.
            (true, true) => unsafe { remap(block, layout.size(), size) },
            // SAFETY: the caller promises that `size` fits the alignment; both blocks hold what is copied.
            _ => unsafe {
                let new = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
                if !new.is_null() {
                    copy_nonoverlapping(block, new, layout.size().min(size));
                    self.dealloc(block, layout);
                }
                new
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_keep_their_content_when_they_grow_and_shrink_across_the_limit() {
        let mut bytes: Vec<u8> = Vec::with_capacity(LARGE - 1);
        bytes.extend((0..LARGE - 1).map(|i| (i % 251) as u8));
        for more in [1, 2, HUGE_PAGE, 5 * HUGE_PAGE + 17] {
            bytes.reserve_exact(more);
            let from = bytes.len();
            bytes.extend((from..from + more).map(|i| (i % 251) as u8));
            assert!(bytes.iter().enumerate().all(|(i, &byte)| byte == (i % 251) as u8));
        }
        for len in [LARGE + 3 * HUGE_PAGE, LARGE, LARGE - 1, 10] {
            bytes.truncate(len);
            bytes.shrink_to_fit();
            assert!(bytes.iter().enumerate().all(|(i, &byte)| byte == (i % 251) as u8));
        }
    }

    #[test]
    fn new_blocks_are_zero_although_old_ones_were_not() {
        for _ in 0..4 {
            let mut block = vec![0u64; LARGE / 8 + 1];
            assert!(block.iter().all(|&word| word == 0));
            block.fill(u64::MAX);
        }
    }

    #[test]
    fn a_size_that_no_machine_has_is_refused_and_not_rounded_to_zero() {
        assert!(map(usize::MAX - 7).is_null());
        assert!(Vec::<u8>::new().try_reserve(isize::MAX as usize).is_err());
    }
}
