//! Results in files: a cache of hosts' results by input, and partials that appear whole or not at all.
//!
//! A killed process leaves no half-written file, and a second run writes the same bytes to the same name.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use stepscope_read::files;
use stepscope_storage::{cache_folder, refuse_url, write_atomically, write_cached};

use crate::error::FleetError;
use crate::frame::{Frame, Header, Kind, frames};
use crate::set::Set;

/// Writes a file that appears whole and is still there after a crash of the machine. Creates its folder.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), FleetError> {
    let failed = |error: std::io::Error| FleetError::File { path: path.to_owned(), error };
    refuse_url(path).map_err(failed)?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failed)?;
    }
    write_atomically(path, |out| out.write_all(bytes)).map_err(failed)
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

/// The partials that a path means: a file that is one, or those of a folder with at least one. `None` if it means
/// profiles.
pub fn partials_at(path: &Path) -> Result<Option<Vec<PathBuf>>, FleetError> {
    if files::is_folder(path) {
        let found = partials_in(path)?;
        // Of a file in a store only the name tells, so that nothing is copied for its first bytes.
        return Ok(found.iter().any(|file| files::is_url(file) || is_partial(file)).then_some(found));
    }
    let named = path.extension().is_some_and(|ending| ending == "part");
    Ok((named || is_partial(path)).then(|| vec![path.to_owned()]))
}

fn is_partial(path: &Path) -> bool {
    let head = || -> std::io::Result<Vec<u8>> {
        let mut head = Vec::new();
        // Of a file in a store, all would be copied.
        if files::is_url(path) {
            return Ok(head);
        }
        files::open(path)?.take(16).read_to_end(&mut head)?;
        Ok(head)
    };
    head().is_ok_and(|head| Set::recognises(&head))
}

/// Largest entry of the cache, in bytes. A partial of one host has a few hundred kilobytes.
const LARGEST: u64 = 256 << 20;

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

    /// In the user's cache; `None` if there is no place for it.
    pub fn of_user() -> Option<Self> {
        cache_folder().map(|folder| Cache::at(folder.join("fleet")))
    }

    fn path(&self, id: &str) -> Option<PathBuf> {
        // An id is a hash; anything else must not name a file elsewhere.
        let valid = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        valid.then(|| self.folder.join(&id[..2]).join(format!("{id}.part")))
    }

    /// The entry of an input under this header; `None` if it is not there or damaged.
    pub(crate) fn get(&self, header: Header) -> Option<Frame> {
        let bytes = files::read_at_most(&self.path(&header.id)?, LARGEST).ok()?;
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
            Some(path) => write_cached(&path, frame.raw()).map_err(|error| FleetError::File { path, error }),
            None => Ok(()),
        }
    }
}
