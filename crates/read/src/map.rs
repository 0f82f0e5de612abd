//! Files mapped into memory, and what happens if one of them shrinks under its map.
//!
//! A read beyond the new end of a mapped file raises `SIGBUS`, which ends the program. Here a signal handler looks
//! up the map that the address belongs to, puts empty memory in place of the map from that page on, and marks the
//! map. The reader goes on with zeros, as with any damaged file; [`Map::has_changed`] reports it afterwards. An address
//! outside all maps is passed on to the handler that was there before.
//!
//! The code is unsafe, because mapping a file, replacing a part of a map and handling a signal cannot be done otherwise.
//! It knows nothing about formats.
#![expect(unsafe_code, reason = "maps files and handles the signal of a file that shrinks under its map")]

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::SystemTime;

use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;

use crate::input::Bytes;

/// Maps that are guarded at a time. Beyond that, files are read instead.
const MOST_MAPS: usize = 2_048;

/// The largest page of common systems.
#[cfg(unix)]
const LARGEST_PAGE: usize = 64 << 10;

/// What a write to a file changes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// Its size in bytes.
    pub(crate) len: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    /// The current stamp of an open file, whatever its path refers to by now.
    pub(crate) fn of(file: &File) -> io::Result<Self> {
        let data = file.metadata()?;
        Ok(Stamp { len: data.len(), modified: data.modified().ok() })
    }
}

/// The place of a map in the list that the signal handler searches. Free if `start` is 0.
#[derive(Debug)]
struct Slot {
    /// Odd while the range changes, and another number afterwards: a handler must not take the start of one map and the
    /// length of another.
    version: AtomicUsize,
    start: AtomicUsize,
    len: AtomicUsize,
    fell: AtomicBool,
}

impl Slot {
    const fn free() -> Self {
        Slot {
            version: AtomicUsize::new(0),
            start: AtomicUsize::new(0),
            len: AtomicUsize::new(0),
            fell: AtomicBool::new(false),
        }
    }

    /// Takes the slot, unless somebody has it.
    fn take(&self) -> bool {
        self.start.compare_exchange(0, usize::MAX, SeqCst, SeqCst).is_ok()
    }

    /// Sets the range; a start of 0 gives the slot back. Only its owner calls this.
    fn set(&self, start: usize, len: usize) {
        self.version.fetch_add(1, SeqCst);
        self.len.store(len, SeqCst);
        self.version.fetch_add(1, SeqCst);
        // The last step: from then on, somebody else may take it.
        self.start.store(start, SeqCst);
    }

    /// The start and the length of its map, if it has one and does not change at this moment. The map of a thread that reads
    /// from it cannot change.
    #[cfg(any(unix, test))]
    fn range(&self) -> Option<(usize, usize)> {
        let version = self.version.load(SeqCst);
        let (start, len) = (self.start.load(SeqCst), self.len.load(SeqCst));
        let is_still = version.is_multiple_of(2) && self.version.load(SeqCst) == version;
        (is_still && start != 0 && start != usize::MAX && self.start.load(SeqCst) == start)
            .then_some((start, len))
    }
}

static SLOTS: [Slot; MOST_MAPS] = [const { Slot::free() }; MOST_MAPS];

/// A file mapped into memory.
#[derive(Debug)]
pub(crate) struct Map {
    map: Mmap,
    /// Kept open to notice changes; the path may refer to another file by now.
    file: File,
    opened: Stamp,
    slot: &'static Slot,
}

impl Map {
    /// Maps a file whose stamp was just taken; `None` if too many files are mapped.
    pub(crate) fn of(file: File, opened: Stamp) -> io::Result<Option<Self>> {
        fault::install();
        let Some(slot) = SLOTS.iter().find(|slot| slot.take()) else { return Ok(None) };
        // SAFETY: the map is read-only and private to this process. Nobody reinterprets its bytes as anything but
        // bytes, and every reader accepts any content, so that another process that writes to the file can cause
        // wrong values, never wrong memory. If the file shrinks, the handler below replaces what is missing.
        let map = match unsafe { Mmap::map(&file) } {
            Ok(map) => map,
            Err(error) => {
                slot.set(0, 0);
                return Err(error);
            }
        };
        slot.fell.store(false, SeqCst);
        slot.set(map.as_ptr().addr(), map.len());
        Ok(Some(Map { map, file, opened, slot }))
    }

    /// Takes the pages of a range out of this process's memory. A later read brings them back.
    #[cfg(unix)]
    pub(crate) fn release(&self, range: Range<usize>) {
        // Only whole pages inside the range: neighbours are still in use.
        let start = range.start.next_multiple_of(LARGEST_PAGE);
        let end = range.end.min(self.map.len()) / LARGEST_PAGE * LARGEST_PAGE;
        if start < end {
            // SAFETY: the map is of a file and read-only, so that its pages hold nothing but the file's bytes, before and
            // after; empty memory in place of a file that shrank is empty again. If the system refuses, pages only stay
            // in memory.
            let advice = UncheckedAdvice::DontNeed;
            let _ = unsafe { self.map.unchecked_advise_range(advice, start, end - start) };
        }
    }

    /// This system keeps the pages.
    #[cfg(not(unix))]
    pub(crate) fn release(&self, _: Range<usize>) {}

    /// Whether the file was written to since it was opened.
    pub(crate) fn has_changed(&self) -> bool {
        self.slot.fell.load(SeqCst) || !Stamp::of(&self.file).is_ok_and(|now| now == self.opened)
    }
}

impl Deref for Map {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        &self.map
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // Before the memory is unmapped, so that no later map at this address is taken for this one.
        self.slot.set(0, 0);
    }
}

/// A value that refers to bytes, together with these bytes.
#[derive(Debug)]
pub(crate) struct Pinned<T> {
    // Dropped in this order.
    value: T,
    _bytes: Bytes,
}

impl<T> Pinned<T> {
    /// Builds a value over bytes that live as long as it does. `build` must not keep them anywhere else.
    pub(crate) fn over<E>(
        bytes: Bytes,
        build: impl FnOnce(&'static [u8]) -> Result<T, E>,
    ) -> Result<Self, E> {
        let slice: *const [u8] = &*bytes;
        // SAFETY: the bytes stand behind a shared pointer that this value holds, so they neither move nor end before
        // the value does; fields are dropped in the order of their declaration.
        let value = build(unsafe { &*slice })?;
        Ok(Pinned { value, _bytes: bytes })
    }
}

impl<T> Deref for Pinned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

#[cfg(unix)]
mod fault {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    use super::SLOTS;

    /// The system's page size.
    static PAGE: AtomicUsize = AtomicUsize::new(0);

    /// The handler that was there before.
    static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

    /// Installs the handler once per process.
    pub(super) fn install() {
        BEFORE.get_or_init(|| {
            // SAFETY: both structures are plain data for which zeros are valid; the handler only uses atomics and
            // `mmap`, which is a bare system call.
            unsafe {
                let page = libc::sysconf(libc::_SC_PAGESIZE);
                PAGE.store(usize::try_from(page).unwrap_or(4_096), SeqCst);
                let mut before: libc::sigaction = std::mem::zeroed();
                let mut action: libc::sigaction = std::mem::zeroed();
                action.sa_sigaction = on_fault as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
                libc::sigemptyset(&raw mut action.sa_mask);
                libc::sigaction(libc::SIGBUS, &raw const action, &raw mut before);
                before
            }
        });
    }

    extern "C" fn on_fault(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
        // SAFETY: the system passes a valid structure, and SIGBUS has an address.
        let address = unsafe { (*info).si_addr() }.addr();
        let page = PAGE.load(SeqCst).max(1);
        for slot in &SLOTS {
            let Some((start, len)) = slot.range() else { continue };
            if address < start || address - start >= len {
                continue;
            }
            slot.fell.store(true, SeqCst);
            let first = start + (address - start) / page * page;
            // SAFETY: the range is a part of a live map of this process: the thread that faulted still uses it.
            let put = unsafe {
                libc::mmap(
                    first as *mut libc::c_void,
                    start + len - first,
                    libc::PROT_READ,
                    libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED,
                    -1,
                    0,
                )
            };
            if put != libc::MAP_FAILED {
                return;
            }
        }
        // Somebody else's fault: the instruction runs again, under the handler that was there before.
        if let Some(before) = BEFORE.get() {
            // SAFETY: the structure came from the system.
            unsafe { libc::sigaction(libc::SIGBUS, &raw const *before, std::ptr::null_mut()) };
        }
    }

    #[cfg(test)]
    mod tests {
        use std::fs::OpenOptions;
        use std::io::Write;

        use crate::input::bytes_of;

        /// Larger than what is read instead of mapped.
        const SIZE: usize = 8 << 20;

        #[test]
        fn a_file_that_shrinks_under_its_map_reads_as_zeros_and_is_known_to_have_changed() {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a");
            std::fs::write(&path, vec![7; SIZE]).unwrap();
            let (bytes, other) = (bytes_of(&path).unwrap(), bytes_of(&path).unwrap());
            assert!(!bytes.has_changed());
            OpenOptions::new().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
            assert!(bytes.has_changed(), "by its size, before any fault");
            assert_eq!((bytes[0], bytes[SIZE - 1], bytes[SIZE / 2]), (7, 0, 0));
            assert_eq!(bytes.iter().map(|&byte| u64::from(byte)).sum::<u64>(), 7 << 20);
            // Every thread and every map survives, in any order.
            std::thread::scope(|scope| {
                for part in 0..4 {
                    let other = &other;
                    scope.spawn(move || assert_eq!(other[SIZE - 1 - part * (1 << 20)], 0));
                }
            });
            drop(bytes);
            assert!(other.has_changed());
        }

        #[test]
        fn a_file_that_is_replaced_keeps_its_content_and_one_that_is_overwritten_has_changed() {
            let folder = tempfile::tempdir().unwrap();
            let (path, new) = (folder.path().join("a"), folder.path().join("b"));
            std::fs::write(&path, vec![7; SIZE]).unwrap();
            let bytes = bytes_of(&path).unwrap();
            std::fs::write(&new, b"other").unwrap();
            std::fs::rename(&new, &path).unwrap();
            assert!(!bytes.has_changed());
            assert_eq!(bytes[SIZE - 1], 7);
            std::fs::write(&path, vec![8; SIZE]).unwrap();
            let bytes = bytes_of(&path).unwrap();
            // File times advance with the clock's ticks.
            std::thread::sleep(std::time::Duration::from_millis(50));
            OpenOptions::new().write(true).open(&path).unwrap().write_all(b"9").unwrap();
            assert!(bytes.has_changed());
        }
    }
}

#[cfg(not(unix))]
mod fault {
    /// Windows refuses to shrink a mapped file.
    pub(super) fn install() {}
}
