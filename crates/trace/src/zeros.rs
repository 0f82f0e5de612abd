//! Columns of zeros whose memory was not written to yet.
//!
//! The system clears a page when it is first written to. That costs more than anything that is written into it, so it must
//! happen on the core that fills the page, and only once. `vec![Time::ZERO; len]` would write all of it at once, on one
//! core: Rust asks the system for zeros only where it knows that a type's zero is one, which excludes own types.
#![expect(unsafe_code, reason = "asks the allocator for zeros of types whose zero is all zero bits")]

use std::alloc::{Layout, alloc_zeroed, handle_alloc_error};

use crate::huge_pages::prefer_huge_pages;
use crate::ids::KindId;
use crate::time::Time;

/// A type for which all zero bits are a valid value and which needs no drop.
///
/// # Safety
/// Only to be implemented for such types.
pub(crate) unsafe trait Zero: Copy {}

// SAFETY: plain integers, or a transparent wrapper around one.
unsafe impl Zero for u8 {}
// SAFETY: as above.
unsafe impl Zero for u16 {}
// SAFETY: as above.
unsafe impl Zero for u32 {}
// SAFETY: as above.
unsafe impl Zero for Time {}
// SAFETY: as above.
unsafe impl Zero for KindId {}

/// `len` zeros in memory that was not touched yet, in large pages if it is large.
pub(crate) fn zeros<T: Zero>(len: usize) -> Vec<T> {
    let Ok(layout) = Layout::array::<T>(len) else { return Vec::new() };
    if layout.size() == 0 {
        return Vec::new();
    }
    // SAFETY: the layout is not empty. The allocator's zeros are valid values of `T`, and the vector owns them with the
    // layout with which they were allocated.
    let mut all = unsafe {
        let memory = alloc_zeroed(layout);
        if memory.is_null() {
            handle_alloc_error(layout);
        }
        Vec::from_raw_parts(memory.cast::<T>(), len, len)
    };
    prefer_huge_pages(&mut all);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_are_zeros_of_any_number() {
        for len in [0, 1, 1_000, 3 << 20] {
            assert!(zeros::<Time>(len).iter().all(|&time| time == Time::ZERO));
            let mut kinds = zeros::<KindId>(len);
            assert_eq!(kinds.len(), len);
            kinds.push(KindId(7));
            assert_eq!(kinds.last(), Some(&KindId(7)));
        }
    }
}
