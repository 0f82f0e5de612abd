//! Files that appear completely or not at all: written beside their place, then renamed. Whoever reads the place sees the
//! old file or the new one, and a full disk leaves the old one as it was.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use stepscope_session::{Cause, Problem};

/// Writes a file. Pipes and devices, such as `/dev/stdout`, are written to directly.
pub(crate) fn write_whole(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    stepscope_read::files::refuse_url(path)?;
    let existing = fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|data| !data.is_file()) {
        let mut out = BufWriter::new(File::options().write(true).open(path)?);
        write(&mut out)?;
        return out.flush();
    }
    // A link stays a link: the file that it leads to is replaced.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let beside = Beside(beside(&place)?);
    let mut out =
        BufWriter::with_capacity(1 << 20, File::options().write(true).create_new(true).open(&beside.0)?);
    write(&mut out)?;
    out.flush()?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    // Some file systems notice that they are full only now.
    file.sync_all()?;
    if let Some(data) = existing {
        // Who may read it does not change; where that cannot be set, the defaults hold.
        let _ = file.set_permissions(data.permissions());
    }
    drop(file);
    fs::rename(&beside.0, &place)
}

/// Adds to a file that others add to as well, in one piece. If that fails halfway, the file gets its old end back.
pub(crate) fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    stepscope_read::files::refuse_url(path)?;
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

/// The same with an error for the user; `todo` says where else to write.
pub(crate) fn save(
    path: &Path,
    cause: Cause,
    todo: &str,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Problem> {
    write_whole(path, write).map_err(|error| unwritable(path, cause, &error, todo))
}

/// Why a file could not be written.
pub(crate) fn unwritable(path: &Path, cause: Cause, error: &io::Error, todo: &str) -> Problem {
    let full =
        matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge);
    let problem = Problem::new(cause, format!("cannot write {}", path.display())).then(error.to_string());
    problem.then(if full { "nothing was saved; free some space, or write to another disk" } else { todo })
}

/// A file that is removed unless it was renamed by then.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A name beside a file that nobody else uses.
fn beside(place: &Path) -> io::Result<PathBuf> {
    let name = place.file_name().ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
    let mut hidden = OsString::from(".");
    hidden.push(name);
    hidden.push(format!(".{}.part", std::process::id()));
    Ok(place.with_file_name(hidden))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stepscope_testkit::corpus::names_in as names;

    #[test]
    fn what_fails_halfway_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("report.html");
        write_whole(&path, |out| out.write_all(b"old")).unwrap();
        let failed = write_whole(&path, |out| {
            out.write_all(&[b'x'; 3 << 20])?;
            Err(ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(
            (fs::read(&path).unwrap(), names(folder.path())),
            (b"old".to_vec(), vec!["report.html".to_owned()])
        );
        write_whole(&path, |out| out.write_all(b"new")).unwrap();
        assert_eq!((fs::read(&path).unwrap(), names(folder.path()).len()), (b"new".to_vec(), 1));
    }

    #[cfg(unix)]
    #[test]
    fn links_and_permissions_stay_and_devices_are_written_to() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        symlink(&file, &link).unwrap();
        write_whole(&link, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        write_whole(Path::new("/dev/null"), |out| out.write_all(b"x")).unwrap();
        let full = write_whole(Path::new("/dev/full"), |out| out.write_all(b"x"));
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
    }
}
