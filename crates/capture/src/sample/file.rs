//! Small files of /proc and /sys: opened once, read repeatedly into one buffer, parsed without copies.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// More than any of the files that are read here; what is longer is cut.
const LONGEST: usize = 1 << 20;
const PIECE: usize = 16 << 10;

/// A file that is read at every sample. A file that is not there stays silent.
#[derive(Debug)]
pub(super) struct Polled {
    path: PathBuf,
    file: Option<File>,
}

impl Polled {
    pub(super) fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let file = File::open(&path).ok();
        Polled { path, file }
    }

    pub(super) fn is_open(&self) -> bool {
        self.file.is_some()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// All of it: files of many records come in pieces of a page.
    pub(super) fn read<'b>(&self, buffer: &'b mut Vec<u8>) -> Option<&'b str> {
        let file = self.file.as_ref()?;
        let mut filled = 0;
        while filled < LONGEST {
            if buffer.len() < filled + PIECE {
                buffer.resize(filled + PIECE, 0);
            }
            match file.read_at(buffer.get_mut(filled..)?, filled as u64).ok()? {
                0 => break,
                read => filled += read,
            }
        }
        text(buffer.get(..filled)?)
    }

    /// The first piece: enough for files of one record, and half the cost, since the kernel makes up such a file
    /// anew for every call.
    pub(super) fn read_record<'b>(&self, buffer: &'b mut Vec<u8>) -> Option<&'b str> {
        let file = self.file.as_ref()?;
        if buffer.len() < PIECE {
            buffer.resize(PIECE, 0);
        }
        let read = file.read_at(buffer, 0).ok()?;
        text(buffer.get(..read)?)
    }
}

/// A file that is read once.
pub(super) fn read_once(path: &Path) -> Option<String> {
    std::fs::read_to_string(path).ok()
}

/// The one number that a file holds.
pub(super) fn number(path: &Path) -> Option<u64> {
    read_once(path)?.trim().parse().ok()
}

/// A process may call itself anything; the figures behind its name are always ASCII.
fn text(bytes: &[u8]) -> Option<&str> {
    if bytes.is_empty() {
        return None;
    }
    std::str::from_utf8(bytes).ok().or_else(|| {
        let after_name = bytes.iter().rposition(|&byte| byte == b')')?;
        std::str::from_utf8(bytes.get(after_name..)?).ok()
    })
}

/// The number after `key` at the beginning of a line: `VmHWM:     1234 kB`, `nr_throttled 3`.
pub(super) fn keyed(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    line.trim_start_matches([':', ' ', '\t']).split_ascii_whitespace().next()?.parse().ok()
}
