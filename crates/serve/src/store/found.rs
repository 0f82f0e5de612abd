//! Sessions below the paths, and how to detect that one has changed.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use stepscope_read::{Input, reader_for};
use stepscope_session::{Problem, ResolvedSession, SAMPLE_HOST, SAMPLE_NAME, all_sessions, sample};
use stepscope_trace::Delivers;

use super::Source;

/// State of a session's files: path, size, modification time.
pub(crate) type Fingerprint = Vec<(PathBuf, u64, Option<SystemTime>)>;

/// A session that was found.
#[derive(Clone, Debug)]
pub(crate) struct Find {
    /// Its name.
    pub(crate) name: String,
    /// Its path, for people.
    pub(crate) path: String,
    /// The hosts of its files.
    pub(crate) hosts: Vec<String>,
    /// The size of its files.
    pub(crate) bytes: u64,
    pub(crate) fingerprint: Fingerprint,
    /// Position of the path that it was found below, if several were given.
    pub(crate) place: Option<usize>,
    /// The files; `None` for the sample.
    pub(crate) chosen: Option<ResolvedSession>,
}

impl Find {
    fn of(chosen: ResolvedSession) -> Self {
        let parts = chosen.files.iter().flat_map(|file| {
            std::iter::once((&file.path, file)).chain(file.parts.iter().map(move |part| (part, file)))
        });
        let fingerprint: Fingerprint = parts
            .map(|(path, file)| {
                let data = std::fs::metadata(path).ok();
                let modified = data.as_ref().and_then(|data| data.modified().ok());
                // A folder that counts as one file has no size of its own.
                let bytes = data.filter(|_| !file.is_folder).map_or(file.bytes, |data| data.len());
                (path.clone(), bytes, modified)
            })
            .collect();
        let path = match &chosen.files[..] {
            [only] => Some(only.path.as_path()),
            files => files.first().and_then(|file| file.path.parent()),
        };
        Find {
            name: chosen.session.clone(),
            path: path.map_or_else(String::new, |path| path.display().to_string()),
            hosts: chosen.files.iter().map(|file| file.host.clone()).collect(),
            bytes: fingerprint.iter().map(|(_, bytes, _)| bytes).sum(),
            fingerprint,
            place: None,
            chosen: Some(chosen),
        }
    }

    fn sample() -> Self {
        Find {
            name: "sample".to_owned(),
            path: SAMPLE_NAME.to_owned(),
            hosts: vec![SAMPLE_HOST.to_owned()],
            bytes: sample().raw().len() as u64,
            fingerprint: Vec::new(),
            place: None,
            chosen: None,
        }
    }

    /// Whether both share a file.
    pub(crate) fn shares_file(&self, other: &Find) -> bool {
        let has = |path: &PathBuf| other.fingerprint.iter().any(|(other, ..)| other == path);
        self.fingerprint.iter().any(|(path, ..)| has(path))
    }

    /// The files of classic TensorFlow's runs.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let files = self.chosen.iter().flat_map(|chosen| &chosen.files);
        let runs = files.filter(|file| file.format.delivers == Delivers::Runs);
        runs.flat_map(|file| std::iter::once(&file.path).chain(&file.parts)).cloned().collect()
    }
}

/// All sessions, in the order of the paths, and newest first below each. Sessions from different paths stay separate, so
/// that they can be compared. File times do not decide the order of paths: copying changes them.
pub(crate) fn all(source: &Source) -> Result<Vec<Find>, Problem> {
    let Source::Paths(paths) = source else { return Ok(vec![Find::sample()]) };
    let mut all: Vec<Find> = Vec::new();
    for (number, place) in places(paths).into_iter().enumerate() {
        for chosen in all_sessions(&place)? {
            let find = Find { place: (paths.len() > 1).then_some(number), ..Find::of(chosen) };
            if !all.iter().any(|known| known.shares_file(&find)) {
                all.push(find);
            }
        }
    }
    if paths.len() > 1 {
        tell_apart(&mut all);
    }
    Ok(all)
}

/// Where to look. Runs of one program that are named file by file are one session, as for a report of them.
fn places(paths: &[PathBuf]) -> Vec<Vec<PathBuf>> {
    let mut places: Vec<Vec<PathBuf>> = Vec::new();
    let mut runs: Vec<(String, usize)> = Vec::new();
    for path in paths {
        // Names of runs of one program differ in their numbers alone.
        let name: String = path.display().to_string().chars().filter(|c| !c.is_ascii_digit()).collect();
        let is_run = paths.len() > 1 && is_run(path);
        match runs.iter().find(|(known, _)| is_run && *known == name) {
            Some((_, at)) => places[*at].push(path.clone()),
            None => {
                runs.extend(is_run.then_some((name, places.len())));
                places.push(vec![path.clone()]);
            }
        }
    }
    places
}

fn is_run(path: &Path) -> bool {
    let reader = Input::open(path).ok().and_then(|input| reader_for(&input));
    reader.is_some_and(|reader| reader.format().delivers == Delivers::Runs)
}

/// Sessions with equal names in different places are named by their paths.
fn tell_apart(all: &mut [Find]) {
    let names: Vec<String> = all.iter().map(|find| find.name.clone()).collect();
    for find in all.iter_mut() {
        if names.iter().filter(|name| **name == find.name).count() > 1 {
            find.name = find.path.clone();
        }
    }
}
