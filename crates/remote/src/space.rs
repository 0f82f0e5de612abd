//! Where copies go: files without a name, which the system removes however the process ends. No other process can open them.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Names a folder for copies; the usual one is often in memory.
const VARIABLE: &str = "STEPSCOPE_TMPDIR";
/// Room that is left to others.
const MARGIN: u64 = 16 << 20;

/// The folder for copies.
pub(crate) fn folder() -> PathBuf {
    std::env::var_os(VARIABLE)
        .filter(|folder| !folder.is_empty())
        .map_or_else(std::env::temp_dir, PathBuf::from)
}

/// A file without a name.
pub(crate) fn file(folder: &Path) -> io::Result<File> {
    let file = tempfile::tempfile_in(folder)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Free space if this much does not fit; `None` if it fits or is unknown.
pub(crate) fn lacks(folder: &Path, bytes: u64) -> Option<u64> {
    free(folder).filter(|free| bytes.saturating_add(MARGIN) > *free)
}

#[cfg(unix)]
fn free(folder: &Path) -> Option<u64> {
    let stat = rustix::fs::statvfs(folder).ok()?;
    Some(stat.f_bavail.saturating_mul(stat.f_frsize))
}

#[cfg(not(unix))]
fn free(_: &Path) -> Option<u64> {
    None
}

/// Writes at a place of a file.
pub(crate) fn write_at(file: &File, bytes: &[u8], at: u64) -> io::Result<()> {
    #[cfg(unix)]
    return std::os::unix::fs::FileExt::write_all_at(file, bytes, at);
    #[cfg(windows)]
    {
        let mut done = 0;
        while let Some(rest) = bytes.get(done..).filter(|rest| !rest.is_empty()) {
            done += std::os::windows::fs::FileExt::seek_write(file, rest, at + done as u64)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_no_disk_can_hold_does_not_fit() {
        let folder = std::env::temp_dir();
        assert_eq!(lacks(&folder, 0), None);
        #[cfg(unix)]
        assert!(lacks(&folder, u64::MAX).is_some());
    }

    #[cfg(unix)]
    #[test]
    fn copies_have_no_name_and_are_private() {
        use std::os::unix::fs::MetadataExt;
        let folder = tempfile::tempdir().unwrap();
        let file = file(folder.path()).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let data = file.metadata().unwrap();
        assert_eq!((data.nlink(), data.mode() & 0o077), (0, 0));
    }
}
