//! What commands write to files, with errors that say where else to write. Files appear completely or not at all.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::Path;

use stepscope_session::{Cause, Problem};
use stepscope_storage::{refuse_url, write_atomically};

/// Adds to a file that others add to as well, in one piece. If that fails halfway, the file gets its old end back.
pub(crate) fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    refuse_url(path)?;
    let mut file = File::options().create(true).append(true).open(path)?;
    let is_file = file.metadata()?.is_file();
    // Two programs that add at the same time take turns; where there are no locks, one write is all the care there is.
    let _ = file.lock();
    let before = file.metadata()?.len();
    let written = file.write_all(bytes).and_then(|()| if is_file { file.sync_all() } else { Ok(()) });
    if written.is_err() && is_file {
        let _ = file.set_len(before);
    }
    written
}

/// Writes a file, with an error for the user; `todo` says where else to write.
pub(crate) fn save(
    path: &Path,
    cause: Cause,
    todo: &str,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Problem> {
    write_atomically(path, write).map_err(|error| unwritable(path, cause, &error, todo))
}

/// Why a file could not be written.
pub(crate) fn unwritable(path: &Path, cause: Cause, error: &io::Error, todo: &str) -> Problem {
    let full =
        matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge);
    let problem = Problem::new(cause, format!("cannot write {}", path.display())).then(error.to_string());
    problem.then(if full { "nothing was saved; free some space, or write to another disk" } else { todo })
}
