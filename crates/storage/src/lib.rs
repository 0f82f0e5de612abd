//! Files that stepscope itself writes: where the user's cache is, and files that appear completely or not at all. It knows
//! nothing about what is in them.
//!
//! A file is written beside its place and then renamed. A reader sees the old file or the new one, and
//! a full disk or a killed process leaves the old one as it was. On Linux, the file has no name until then, so that a killed
//! process leaves nothing. Elsewhere it leaves a name that starts with a dot and has an ending that no search looks for.

mod nameless;

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, process};

pub use nameless::survive_file_limit;

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

/// Whether a path is a URL, which no local file is meant by.
pub fn is_url(path: &Path) -> bool {
    let start = path.to_str().and_then(|text| text.split_once("://")).map(|(scheme, _)| scheme);
    start.is_some_and(|scheme| {
        scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
    })
}

/// Refuses to write to a URL: nothing is ever written to a store, and a folder called `s3:` would be a mistake.
pub fn refuse_url(path: &Path) -> io::Result<()> {
    if is_url(path) {
        return Err(io::Error::new(ErrorKind::InvalidInput, "stepscope never writes to object stores"));
    }
    Ok(())
}

/// Writes a file that is still there after a crash of the machine. Pipes and devices, such as `/dev/stdout`, are
/// written to directly.
pub fn write_atomically(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
    refuse_url(path)?;
    let existing = fs::metadata(path).ok();
    if existing.as_ref().is_some_and(|data| !data.is_file()) {
        let mut out = BufWriter::new(File::options().write(true).open(path)?);
        write(&mut out)?;
        return out.flush();
    }
    // A link stays a link: the file that it leads to is replaced.
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let unfinished = Unfinished::beside(&place, FOR_ALL)?;
    unfinished.fill(write)?;
    // Some file systems notice that they are full only now.
    unfinished.file.sync_all()?;
    if let Some(data) = existing {
        // Who may read it does not change; where that cannot be set, the defaults hold.
        let _ = unfinished.file.set_permissions(data.permissions());
    }
    unfinished.put(&place)
}

/// Writes a file of a cache, for this user alone. It is checked when it is read: it need not survive a crash of the machine.
/// Whatever is in its place, such as a link to a device, is replaced and never written to. Creates its folder.
pub fn write_cached(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        create_cache(folder)?;
    }
    let unfinished = Unfinished::beside(path, FOR_USER)?;
    unfinished.fill(|out| out.write_all(bytes))?;
    unfinished.put(path)
}

/// Adds to a file of a cache, for this user alone. Whatever else is in its place is replaced. Creates its folder.
pub fn append_cached(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if !fs::symlink_metadata(path).is_ok_and(|data| data.is_file()) {
        return write_cached(path, bytes);
    }
    restrict(path);
    File::options().append(true).open(path)?.write_all(bytes)
}

/// Creates a folder for files of a cache, for this user alone.
pub fn create_cache(folder: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// Takes a file of a cache from all others: earlier versions and other tools do not. Where that cannot be changed, it stays.
pub fn restrict(path: &Path) {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let _ = fs::set_permissions(path, fs::Permissions::from_mode(FOR_USER));
    }
    #[cfg(not(unix))]
    let _ = path;
}

/// Who may read a new file, as far as the user's own settings allow it.
const FOR_ALL: u32 = 0o666;
const FOR_USER: u32 = 0o600;

/// A file on its way. It has no name where the system can do that, else a hidden one that is removed unless the file was put
/// in its place by then.
struct Unfinished {
    file: File,
    named: Option<Hidden>,
}

impl Unfinished {
    /// A new file in the folder of `place`.
    fn beside(place: &Path, mode: u32) -> io::Result<Self> {
        let folder = place.parent().unwrap_or(Path::new("."));
        if let Some(file) = nameless::create(folder, mode) {
            return Ok(Unfinished { file, named: None });
        }
        let mut options = File::options();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
        let (file, hidden) = hidden(place, |path| options.open(path))?;
        Ok(Unfinished { file, named: Some(hidden) })
    }

    fn fill(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        let mut out = BufWriter::with_capacity(1 << 20, &self.file);
        write(&mut out)?;
        out.flush()
    }

    /// Puts it in its place. A file without a name needs one first: only a name can replace another.
    fn put(self, place: &Path) -> io::Result<()> {
        let hidden = match self.named {
            Some(hidden) => hidden,
            None => hidden(place, |path| nameless::give_name(&self.file, path))?.1,
        };
        drop(self.file);
        fs::rename(&hidden.0, place)
    }
}

/// A hidden name that is removed unless the file was renamed by then.
struct Hidden(PathBuf);

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Makes a hidden name beside a place, a unique one: not another thread, not a process with the same
/// number on another machine, and none that was killed.
fn hidden<T>(place: &Path, make: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, Hidden)> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let name = place.file_name().ok_or_else(|| io::Error::from(ErrorKind::InvalidInput))?;
    let mut last = io::Error::from(ErrorKind::AlreadyExists);
    for _ in 0..NAMES {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut hidden = OsString::from(".");
        hidden.push(name);
        hidden.push(OsStr::new(&format!(".{}-{number}.unfinished", process::id())));
        let path = place.with_file_name(hidden);
        match make(&path) {
            Ok(made) => return Ok((made, Hidden(path))),
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
        write_atomically(&path, |out| out.write_all(b"old")).unwrap();
        let failed = write_atomically(&path, |out| {
            out.write_all(&[b'x'; 3 << 20])?;
            Err(ErrorKind::StorageFull.into())
        });
        assert_eq!(failed.unwrap_err().kind(), ErrorKind::StorageFull);
        assert_eq!(
            (fs::read(&path).unwrap(), names(folder.path())),
            (b"old".to_vec(), vec!["report.html".to_owned()])
        );
        write_atomically(&path, |out| out.write_all(b"new")).unwrap();
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
    fn a_cache_is_for_its_user_and_never_writes_where_a_link_leads() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let mode = |path: &Path| fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777;
        let folder = tempfile::tempdir().unwrap();
        let (cache, other) = (folder.path().join("cache"), folder.path().join("other"));
        fs::write(&other, "theirs").unwrap();
        type Write = fn(&Path, &[u8]) -> io::Result<()>;
        for (number, write) in [write_cached as Write, append_cached as Write].into_iter().enumerate() {
            for (place, target) in
                [("zero", Path::new("/dev/zero")), ("full", Path::new("/dev/full")), ("file", &other)]
            {
                let path = cache.join(format!("{place}{number}"));
                create_cache(&cache).unwrap();
                symlink(target, &path).unwrap();
                write(&path, b"new").unwrap();
                assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"new".to_vec(), 0o600), "{place}");
            }
            let pipe = cache.join(format!("pipe{number}"));
            assert!(process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
            write(&pipe, b"new").unwrap();
            assert_eq!(fs::read(&pipe).unwrap(), b"new");
        }
        assert_eq!((fs::read(&other).unwrap(), mode(&cache)), (b"theirs".to_vec(), 0o700));
        let open = cache.join("open");
        fs::write(&open, "a").unwrap();
        append_cached(&open, b"b").unwrap();
        assert_eq!((fs::read(&open).unwrap(), mode(&open)), (b"ab".to_vec(), 0o600));
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
        write_atomically(&link, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        write_atomically(Path::new("/dev/null"), |out| out.write_all(b"x")).unwrap();
        let full = write_atomically(Path::new("/dev/full"), |out| out.write_all(b"x"));
        assert_eq!(full.unwrap_err().kind(), ErrorKind::StorageFull);
    }
}
