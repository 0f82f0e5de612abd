//! Files that stepscope itself keeps: where the user's cache is, and files that appear completely or not at all.
//!
//! A file is written beside its place and then renamed. A reader sees the old file or the new one, and
//! a full disk or a killed process leaves the old one as it was. What a killed process leaves beside it starts with a
//! dot and has an ending that no search looks for.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, process};

use crate::files;

/// Names to try beside a file; others are in use or were left behind.
const NAMES: u32 = 1_000;

/// The folder of the user's cache, `$XDG_CACHE_HOME/stepscope` or below the home folder; `None` if there is no such place.
pub fn cache_folder() -> Option<PathBuf> {
    cache_in(|name| env::var_os(name).map(PathBuf::from), env::home_dir)
}

fn cache_in(
    variable: impl Fn(&str) -> Option<PathBuf>,
    home: impl Fn() -> Option<PathBuf>,
) -> Option<PathBuf> {
    // A relative path would mean another folder wherever the program is started.
    let named = |name: &str| variable(name).filter(|path| path.is_absolute());
    let of_system = || if cfg!(windows) { named("LOCALAPPDATA") } else { None };
    let below_home = || home().filter(|home| home.is_absolute()).map(|home| home.join(".cache"));
    let caches = named("XDG_CACHE_HOME").or_else(of_system).or_else(below_home);
    caches.map(|caches| caches.join("stepscope"))
}

/// Writes a file that is still there after a crash of the machine. Pipes and devices, such as `/dev/stdout`, are
/// written to directly.
pub fn write_whole(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    written(path, true, write)
}

/// Writes a file of a cache, which is checked when it is read: it need not survive a crash of the machine. Creates its
/// folder.
pub fn write_cached(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    written(path, false, |out| out.write_all(bytes))
}

fn written(
    path: &Path,
    durable: bool,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    files::refuse_url(path)?;
    let existing = fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|data| !data.is_file()) {
        let mut out = BufWriter::new(File::options().write(true).open(path)?);
        write(&mut out)?;
        return out.flush();
    }
    // A link stays a link: the file that it leads to is replaced.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (file, beside) = beside(&place)?;
    let mut out = BufWriter::with_capacity(1 << 20, file);
    write(&mut out)?;
    out.flush()?;
    let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
    if durable {
        // Some file systems notice that they are full only now.
        file.sync_all()?;
    }
    if let Some(data) = existing {
        // Who may read it does not change; where that cannot be set, the defaults hold.
        let _ = file.set_permissions(data.permissions());
    }
    drop(file);
    fs::rename(&beside.0, &place)
}

/// A file that is removed unless it was renamed by then.
struct Beside(PathBuf);

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// A new file beside a place, under a unique name: not another thread, not a process with the same
/// number on another machine, and none that was killed.
fn beside(place: &Path) -> io::Result<(File, Beside)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = place.file_name().ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
    let mut last = io::Error::from(ErrorKind::AlreadyExists);
    for _ in 0..NAMES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(OsStr::new(&format!(".{}-{number}.unfinished", process::id())));
        let path = place.with_file_name(hidden);
        match File::options().write(true).create_new(true).open(&path) {
            Ok(file) => return Ok((file, Beside(path))),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => last = error,
            Err(error) => return Err(error),
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn the_cache_is_where_the_system_says() {
        let none = |_: &str| None;
        let home = || Some(PathBuf::from("/home/a"));
        assert_eq!(cache_in(|_| Some(PathBuf::from("/c")), home), Some(PathBuf::from("/c/stepscope")));
        assert_eq!(cache_in(none, home), Some(PathBuf::from("/home/a/.cache/stepscope")));
        let relative = |_: &str| Some(PathBuf::from("c"));
        assert_eq!(cache_in(relative, home), Some(PathBuf::from("/home/a/.cache/stepscope")));
        assert_eq!(cache_in(|_| Some(PathBuf::new()), || None), None);
    }

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

    #[test]
    fn several_writers_of_one_file_do_not_disturb_each_other() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep").join("entry");
        std::thread::scope(|scope| {
            for number in 0..8_u8 {
                let path = &path;
                scope.spawn(move || write_cached(path, &[number; 9_000]).unwrap());
            }
        });
        let bytes = fs::read(&path).unwrap();
        assert!(bytes.len() == 9_000 && bytes.iter().all(|byte| *byte == bytes[0]));
        assert_eq!(names(&folder.path().join("deep")), ["entry"]);
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
