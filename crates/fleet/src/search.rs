//! Searches paths for profiles, and goes around what does not answer.
//!
//! Below one path there are often mounts of many machines. If a search stands still, its folder is listed and each entry
//! is searched by itself, level by level, until only what hangs is left. That is named and the rest is planned.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use stepscope_read::discover::{Discovery, discover_watched};
use stepscope_read::{Progress, ReadError, files};

use crate::error::FleetError;
use crate::workers::{Reader, Workers, lock};

/// Paths to search at once.
const AT_ONCE: usize = 16;
/// Number of levels below a path that hangs which are searched one by one.
const DEEPEST: usize = 16;

/// What was found below one of several paths.
#[derive(Debug, Default)]
pub(crate) struct Searched {
    /// With the number of the path that the user gave.
    pub(crate) found: Vec<(usize, Discovery)>,
    /// What does not answer.
    pub(crate) stuck: Vec<(usize, PathBuf)>,
}

/// How a search of one path ended.
enum Ended {
    Found(Discovery),
    /// It stood still; these are its entries.
    Split(Vec<PathBuf>),
    Stuck,
}

/// Searches all paths. A path of which nothing moves for `patience` is stuck.
pub(crate) fn searched(paths: &[PathBuf], patience: Duration) -> Result<Searched, FleetError> {
    let workers = Workers { threads: Some(AT_ONCE), patience };
    let mut all = Searched::default();
    let mut todo: Vec<(usize, PathBuf)> = paths.iter().cloned().enumerate().collect();
    for depth in 0..DEEPEST {
        let ended: Mutex<BTreeMap<usize, Ended>> = Mutex::default();
        let places: Vec<usize> = (0..todo.len()).collect();
        workers.each(&places, |reader, &place| {
            let Some((_, path)) = todo.get(place) else { return Ok(()) };
            let one = match search(reader, path) {
                Ok(one) => one,
                // What the user names must be there; of what was listed, it may be gone by now.
                Err(error) if depth == 0 => return Err(error.into()),
                Err(_) => Ended::Found(Discovery::default()),
            };
            lock(&ended).insert(place, one);
            Ok(())
        })?;
        let ended = ended.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut next = Vec::new();
        for ((root, path), ended) in todo.into_iter().zip(ended.into_values()) {
            match ended {
                Ended::Found(discovery) => all.found.push((root, discovery)),
                Ended::Split(entries) => next.extend(entries.into_iter().map(|entry| (root, entry))),
                Ended::Stuck => all.stuck.push((root, path)),
            }
        }
        todo = next;
        if todo.is_empty() {
            break;
        }
    }
    all.stuck.extend(todo);
    Ok(all)
}

/// Searches one path.
fn search(reader: &mut Reader, path: &Path) -> Result<Ended, ReadError> {
    reader.meet(path);
    let progress = Progress::new();
    let own = [path.to_owned()];
    if let Ok(found) = reader.watched(&progress, move |progress| discover_watched(&own, progress)) {
        return found.map(Ended::Found);
    }
    let own = path.to_owned();
    let entries = reader.watched(&progress, move |_| entries(&own));
    Ok(entries.ok().flatten().map_or(Ended::Stuck, Ended::Split))
}

/// The entries of a folder; `None` of anything else.
fn entries(path: &Path) -> Option<Vec<PathBuf>> {
    let mut entries = files::entries(path).ok()?;
    entries.sort();
    Some(entries)
}
