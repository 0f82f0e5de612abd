//! Results in files: a cache of hosts' results by input, and partials that appear whole or not at all.
//!
//! A file is written under another name, flushed to the disk and renamed. A killed process leaves no half-written file,
//! and a second run writes the same bytes to the same name.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use stepscope_read::files;

use crate::error::FleetError;
use crate::frame::{Frame, Header, Kind, frames};

/// Writes a file that appears whole and is still there after a crash of the machine.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<(), FleetError> {
    write(path, bytes, true)
}

fn write(path: &Path, bytes: &[u8], durable: bool) -> Result<(), FleetError> {
    let failed = |error: std::io::Error| FleetError::File { path: path.to_owned(), error };
    files::refuse_url(path).map_err(failed)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    let mut file = unfinished(folder).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    if durable {
        file.as_file().sync_all().map_err(failed)?;
    }
    file.persist(path).map_err(|error| failed(error.error))?;
    Ok(())
}

/// A file under a name that nobody looks for. Everyone who may read the folder may read it: tasks of an array and the
/// one that merges them may belong to different users.
fn unfinished(folder: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".writing-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    builder.tempfile_in(folder)
}

/// Reads a file.
pub fn read_whole(path: &Path) -> Result<Vec<u8>, FleetError> {
    files::read(path).map_err(|error| FleetError::File { path: path.to_owned(), error })
}

/// The partials below a path, by name: a file itself, or the files of a folder that end in `.part`.
pub fn partials_in(path: &Path) -> Result<Vec<PathBuf>, FleetError> {
    if !files::is_folder(path) {
        return Ok(vec![path.to_owned()]);
    }
    let entries = files::entries(path).map_err(|error| FleetError::File { path: path.to_owned(), error })?;
    let is_partial =
        |path: &PathBuf| path.extension().is_some_and(|ending| ending == "part") && files::is_file(path);
    let mut files: Vec<PathBuf> = entries.into_iter().filter(is_partial).collect();
    files.sort();
    Ok(files)
}

/// Results of hosts by the id of their input. An input that changes has another id, so nothing has to be invalidated.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// In this folder.
    pub fn at(folder: PathBuf) -> Self {
        // Results of another version or format are not comparable to the byte.
        let version = format!("{}-{}", env!("CARGO_PKG_VERSION"), crate::FORMAT);
        Cache { folder: folder.join(version) }
    }

    /// Where the user's cache is: `$XDG_CACHE_HOME/stepscope/fleet`, else below the home folder.
    pub fn of_user(variable: impl Fn(&str) -> Option<PathBuf>) -> Option<Self> {
        let caches = variable("XDG_CACHE_HOME").filter(|path| path.is_absolute());
        let caches = caches.or_else(|| variable("HOME").map(|home| home.join(".cache")));
        let caches = caches.or_else(|| variable("LOCALAPPDATA"));
        caches.map(|caches| Cache::at(caches.join("stepscope").join("fleet")))
    }

    fn path(&self, id: &str) -> Option<PathBuf> {
        // An id is a hash; anything else must not name a file elsewhere.
        let valid = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        valid.then(|| self.folder.join(&id[..2]).join(format!("{id}.part")))
    }

    /// The entry of an input under this header; `None` if it is not there or damaged.
    pub(crate) fn get(&self, header: Header) -> Option<Frame> {
        let bytes = fs::read(self.path(&header.id)?).ok()?;
        let kept = frames(&bytes).ok()?.into_iter().next()?;
        if kept.header.id != header.id || kept.header.kind != Kind::Host {
            return None;
        }
        let header = Header { timeline: kept.header.timeline, reason: kept.header.reason.clone(), ..header };
        Frame::new(header, kept.body()).ok()
    }

    /// Keeps an entry. Failures are not kept: the file may be complete next time.
    pub(crate) fn put(&self, frame: &Frame) -> Result<(), FleetError> {
        match self.path(&frame.header.id).filter(|_| frame.header.kind == Kind::Host) {
            // What a crash of the machine leaves damaged is read again: frames have checksums.
            Some(path) => write(&path, frame.raw(), false),
            None => Ok(()),
        }
    }
}
