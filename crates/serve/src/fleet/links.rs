//! Which session shows a recording of the fleet, so that the page leads from one to the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use stepscope_fleet::Set;
use stepscope_fleet::store::read_whole;
use stepscope_results::fleet::SeriesRow;

use crate::store::{Fingerprint, Store};

/// The session of each recording, by its id.
#[derive(Debug, Default)]
pub(crate) struct Links {
    /// For these files.
    files: Vec<Fingerprint>,
    known: BTreeMap<String, usize>,
}

impl Links {
    /// The sessions of recordings; looked for again when files changed.
    pub(super) fn of(
        &mut self,
        series: &[SeriesRow],
        files: &[Fingerprint],
        store: &Store,
    ) -> BTreeMap<String, usize> {
        if self.known.is_empty() || self.files != files {
            self.files = files.to_vec();
            self.known = linked(series, &store.places());
        }
        self.known.clone()
    }
}

/// A session: its number, its name, and the folder of its first file.
pub(crate) type Place = (usize, String, PathBuf);

fn linked(series: &[SeriesRow], places: &[Place]) -> BTreeMap<String, usize> {
    let mut real: HashMap<PathBuf, PathBuf> = HashMap::new();
    // The same folder may be named in several ways; each is looked up once.
    let mut canonical = |path: &Path| {
        let known = real.entry(path.to_owned());
        known.or_insert_with(|| fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())).clone()
    };
    let mut by_folder: HashMap<PathBuf, Vec<(usize, &str)>> = HashMap::new();
    for (id, name, folder) in places {
        by_folder.entry(canonical(folder)).or_default().push((*id, name));
    }
    let mut links = BTreeMap::new();
    for row in series {
        let found = match by_folder.get(&canonical(Path::new(&row.folder))).map(Vec::as_slice) {
            Some([(id, _)]) => Some(*id),
            Some(several) => several.iter().find(|(_, name)| is_named(name, &row.session)).map(|(id, _)| *id),
            None => None,
        };
        links.extend(found.map(|id| (row.recording.clone(), id)));
    }
    links
}

/// Is this the session's name? Sessions with equal names in different folders are named by their path.
fn is_named(name: &str, session: &str) -> bool {
    name == session
        || Path::new(name).file_name().is_some_and(|last| last.to_string_lossy().starts_with(session))
}

/// The folders that partials were made of, as far as they are on this machine. A job's folder stands for its sessions.
/// What cannot be read is named with the report.
pub(super) fn folders_of(partials: &[PathBuf]) -> Vec<PathBuf> {
    let mut folders = BTreeSet::new();
    for file in partials {
        let Ok(set) = read_whole(file).and_then(|bytes| Set::read(&bytes)) else { continue };
        folders.extend(set.folders().into_iter().map(|folder| job_folder(Path::new(folder)).to_owned()));
    }
    let mut kept: Vec<PathBuf> = Vec::new();
    // In this order, a folder comes after those that it lies in.
    for folder in folders.into_iter().filter(|folder| folder.is_dir()) {
        if kept.last().is_none_or(|above| !folder.starts_with(above)) {
            kept.push(folder);
        }
    }
    kept
}

fn job_folder(folder: &Path) -> &Path {
    let profiles = folder.parent().filter(|above| above.ends_with("plugins/profile"));
    profiles.and_then(|profiles| profiles.ancestors().nth(2)).unwrap_or(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recordings_lead_to_sessions_by_folder_and_name() {
        let row = |recording: &str, folder: &str, session: &str| SeriesRow {
            recording: recording.to_owned(),
            folder: folder.to_owned(),
            session: session.to_owned(),
            ..SeriesRow::default()
        };
        let place = |id, name: &str, folder: &str| (id, name.to_owned(), PathBuf::from(folder));
        let places =
            [place(0, "s", "/no/a"), place(1, "one", "/no/flat"), place(2, "/no/flat/two.json", "/no/flat")];
        let series = [
            row("x", "/no/a", "s"),
            row("y", "/no/flat", "two"),
            row("z", "/no/flat", "one"),
            row("gone", "/no/b", "s"),
        ];
        let links = linked(&series, &places);
        let expected = [("x", 0), ("y", 2), ("z", 1)].map(|(name, id)| (name.to_owned(), id));
        assert_eq!(links, BTreeMap::from(expected));
        assert_eq!(job_folder(Path::new("/l/job/plugins/profile/2026")), Path::new("/l/job"));
        assert_eq!(job_folder(Path::new("/l/flat")), Path::new("/l/flat"));
    }
}
