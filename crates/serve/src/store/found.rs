//! Sessions below the paths, and how to detect that one has changed.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use rustc_hash::{FxHashMap, FxHashSet};
use stepscope_read::discover::{Known, format_of};
use stepscope_read::files;
use stepscope_session::{Problem, ResolvedSession, SAMPLE_HOST, SAMPLE_NAME, all_sessions_again, sample};
use stepscope_trace::Delivers;

use super::SessionSource;

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
        let mut fingerprint: Fingerprint = Vec::with_capacity(chosen.files.len());
        for file in &chosen.files {
            // The search has just looked at the first file; its parts' sizes are in the sum alone.
            let parts = file.parts.iter().map(|part| {
                let data = files::data(part).ok();
                let modified = data.as_ref().and_then(|data| data.modified);
                (part.clone(), data.map_or(0, |data| data.bytes), modified)
            });
            let parts: Fingerprint = parts.collect();
            let of_parts: u64 = parts.iter().map(|(_, bytes, _)| bytes).sum();
            fingerprint.push((file.path.clone(), file.bytes.saturating_sub(of_parts), Some(file.modified())));
            fingerprint.extend(parts);
        }
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

    /// The files of classic TensorFlow's runs.
    pub(crate) fn runs(&self) -> Vec<PathBuf> {
        let files = self.chosen.iter().flat_map(|chosen| &chosen.files);
        let runs = files.filter(|file| file.format.delivers == Delivers::Runs);
        runs.flat_map(|file| std::iter::once(&file.path).chain(&file.parts)).cloned().collect()
    }
}

/// Folders are listed again this often, although they seem unchanged: not every file system dates them.
const THOROUGH: Duration = Duration::from_secs(60);

/// Searches for sessions repeatedly. What did not change is not looked at twice.
#[derive(Debug)]
pub(crate) struct Finder {
    source: SessionSource,
    places: Vec<(Vec<PathBuf>, Known)>,
    /// Number of searches in a row that found nothing new.
    quiet: u32,
    thorough: Option<Instant>,
}

impl Finder {
    /// Nothing is searched yet.
    pub(crate) fn new(source: &SessionSource) -> Self {
        let places = match source {
            SessionSource::Paths(paths) => places(paths),
            SessionSource::Sample => Vec::new(),
        };
        let places = places.into_iter().map(|place| (place, Known::default())).collect();
        Finder { source: source.clone(), places, quiet: 0, thorough: None }
    }

    /// All sessions, in the order of the paths, and newest first below each; `None` if nothing changed in the last two
    /// searches. Sessions from different paths stay separate, so that they can be compared. File times do not decide the
    /// order of paths: copying changes them.
    pub(crate) fn look(&mut self) -> Result<Option<Vec<Find>>, Problem> {
        let SessionSource::Paths(paths) = &self.source else { return Ok(Some(vec![Find::sample()])) };
        let several = paths.len() > 1;
        let thorough = self.thorough.is_none_or(|last| last.elapsed() > THOROUGH);
        if thorough {
            self.thorough = Some(Instant::now());
        }
        // A file counts as complete when two searches in a row find it unchanged.
        let anyway = self.quiet < 2;
        let mut found = Vec::with_capacity(self.places.len());
        for (place, known) in &mut self.places {
            known.be_thorough(thorough);
            found.push(all_sessions_again(place, known, anyway)?);
        }
        let changed = self.places.iter().any(|(_, known)| known.has_changed());
        self.quiet = if changed { 0 } else { self.quiet.saturating_add(1) };
        if found.iter().all(Option::is_none) {
            return Ok(None);
        }
        let mut all: Vec<Find> = Vec::new();
        let mut seen: FxHashSet<PathBuf> = FxHashSet::default();
        for (number, (found, (place, known))) in found.into_iter().zip(&mut self.places).enumerate() {
            let found = match found {
                Some(found) => found,
                None => all_sessions_again(place, known, true)?.unwrap_or_default(),
            };
            for chosen in found {
                let find = Find { place: several.then_some(number), ..Find::of(chosen) };
                if several && find.fingerprint.iter().any(|(path, ..)| seen.contains(path)) {
                    continue;
                }
                if several {
                    seen.extend(find.fingerprint.iter().map(|(path, ..)| path.clone()));
                }
                all.push(find);
            }
        }
        if several {
            tell_apart(&mut all);
        }
        Ok(Some(all))
    }
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
    format_of(path).is_some_and(|format| format.delivers == Delivers::Runs)
}

/// Sessions with equal names in different places are named by their paths.
fn tell_apart(all: &mut [Find]) {
    let mut times: FxHashMap<String, u32> = FxHashMap::default();
    all.iter().for_each(|find| *times.entry(find.name.clone()).or_default() += 1);
    for find in all.iter_mut().filter(|find| times.get(&find.name).is_some_and(|&times| times > 1)) {
        find.name = find.path.clone();
    }
}
