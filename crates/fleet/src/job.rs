//! Which job, session and day a profile belongs to: from a pattern that the user gives, else from its path.
//!
//! Profilers have habits: XProf, JAX and Keras write `<run>/plugins/profile/<date>/<host>.xplane.pb`, torchtitan
//! `<run>/iteration_<n>/rank<r>_trace.json`, PyTorch's handler `<run>/<host>_<pid>.<time>.pt.trace.json`.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use regex::Regex;
use stepscope_read::files;
use stepscope_text::utc_seconds;

use crate::error::FleetError;

/// What a path says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) job: String,
    pub(crate) session: String,
    pub(crate) host: Option<String>,
    /// Seconds since 1970.
    pub(crate) at: Option<i64>,
    /// Other named groups of the pattern.
    pub(crate) labels: BTreeMap<String, String>,
    /// Does the user's pattern match it?
    pub(crate) matched: bool,
}

/// Names jobs.
#[derive(Debug)]
pub(crate) struct Namer {
    pattern: Option<Regex>,
    progress: Option<Regex>,
    date: Option<Regex>,
}

/// Folders in which a job writes one profile after the other.
const PROGRESS: &str = r"^(?:iteration|iter|step|epoch|global_step|trace)[_-]?\d+$";
/// Dates, with or without a time of day.
const DATE: &str = r"(?:^|[^0-9])(20\d\d)[-_.]?([01]\d)[-_.]?([0-3]\d)(?:[-_T ]?([0-2]\d)[-_:.]?([0-5]\d)[-_:.]?([0-5]\d))?(?:[^0-9]|$)";

impl Namer {
    /// With the user's pattern, if there is one.
    pub(crate) fn new(pattern: Option<&str>) -> Result<Self, FleetError> {
        let pattern = pattern.map(|text| {
            Regex::new(text).map_err(|_| {
                FleetError::Usage(format!(
                    "--job-pattern is not a valid regular expression: {text}; the pattern cannot be parsed; escape \
                     special characters with a backslash"
                ))
            })
        });
        let pattern = pattern.transpose()?;
        if pattern.as_ref().is_some_and(|pattern| pattern.capture_names().flatten().next().is_none()) {
            return Err(FleetError::Usage(
                "--job-pattern names nothing; found no named group; write for example \
                 '(?P<job>[^/]+)/(?P<date>[0-9-]+)/'"
                    .to_owned(),
            ));
        }
        // Both are literals; without them, guesses are coarser.
        Ok(Namer { pattern, progress: Regex::new(PROGRESS).ok(), date: Regex::new(DATE).ok() })
    }

    /// Names a file below a root. `session` is the name that discovery gave to its session.
    pub(crate) fn name(&self, root: &Path, path: &Path, session: &str) -> Named {
        let mut named = self.guess(root, path, session);
        let text = path.to_string_lossy().replace('\\', "/");
        let Some((pattern, found)) = self.pattern.as_ref().and_then(|it| Some((it, it.captures(&text)?)))
        else {
            return named;
        };
        named.matched = true;
        for group in pattern.capture_names().flatten() {
            let Some(value) = found.name(group).map(|value| value.as_str().to_owned()) else { continue };
            match group {
                "job" => named.job = value,
                "session" => named.session = value,
                "host" => named.host = Some(value),
                "date" | "day" | "time" => named.at = self.time_in(&value).or(named.at),
                _ => drop(named.labels.insert(group.to_owned(), value)),
            }
        }
        named
    }

    fn guess(&self, root: &Path, path: &Path, session: &str) -> Named {
        let folder = path.parent().unwrap_or(root);
        let above = folder.ancestors().find(|folder| folder.ends_with("plugins/profile"));
        let last = name_of(folder);
        let (run, session) = match above {
            Some(plugins) => (plugins.ancestors().nth(2).unwrap_or(root), last),
            None if folder.starts_with(root) && folder != root && self.is_progress(&last) => {
                (folder.parent().unwrap_or(root), last)
            }
            None => (folder, session.to_owned()),
        };
        let at = self.time_in(&session).or_else(|| {
            let below = path.strip_prefix(root).unwrap_or(path);
            below.components().rev().find_map(|part| self.time_in(&part.as_os_str().to_string_lossy()))
        });
        Named { job: job_of(root, run), session, host: None, at, labels: BTreeMap::new(), matched: false }
    }

    fn is_progress(&self, name: &str) -> bool {
        self.progress.as_ref().is_some_and(|pattern| pattern.is_match(name)) || self.time_in(name).is_some()
    }

    /// The first date in a text, in seconds since 1970.
    pub(crate) fn time_in(&self, text: &str) -> Option<i64> {
        let found = self.date.as_ref()?.captures(text)?;
        let number = |group: usize| found.get(group).and_then(|part| part.as_str().parse::<i64>().ok());
        let time = (number(4).unwrap_or(0), number(5).unwrap_or(0), number(6).unwrap_or(0));
        utc_seconds((number(1)?, number(2)?, number(3)?), time)
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// The run's path below the root; the root's own name if they are the same.
fn job_of(root: &Path, run: &Path) -> String {
    let below = run.strip_prefix(root).unwrap_or(run);
    let parts: Vec<String> = below
        .components()
        .filter(|part| matches!(part, Component::Normal(_)))
        .map(|part| part.as_os_str().to_string_lossy().into_owned())
        .collect();
    if !parts.is_empty() {
        return parts.join("/");
    }
    let real = files::canonical(root);
    let folder = real.as_deref().unwrap_or(root);
    let folder = if files::is_file(folder) { folder.parent().unwrap_or(folder) } else { folder };
    let name = name_of(folder);
    if name.is_empty() { "job".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(pattern: Option<&str>, path: &str) -> (String, String, Option<i64>) {
        let namer = Namer::new(pattern).unwrap();
        let named = namer.name(Path::new("/logs"), Path::new(path), "found");
        (named.job, named.session, named.at)
    }

    #[test]
    fn habits_of_profilers_name_the_job() {
        let monday = Some(1_792_994_400);
        assert_eq!(
            named(None, "/logs/team/resnet/plugins/profile/2026_10_26_06_00_00/vm-1.xplane.pb"),
            ("team/resnet".to_owned(), "2026_10_26_06_00_00".to_owned(), monday)
        );
        let titan = named(None, "/logs/llama/iteration_10/rank3_trace.json");
        assert_eq!(titan, ("llama".to_owned(), "iteration_10".to_owned(), None));
        assert_eq!(named(None, "/logs/a/2026-10-26T06:00:00/r0.json").2, monday);
        assert_eq!(named(None, "/logs/a/worker0.pt.trace.json").0, "a");
        assert_eq!(named(None, "/logs/worker0.1792994400000.pt.trace.json").0, "logs");
    }

    #[test]
    fn a_pattern_names_what_its_groups_match() {
        let pattern = r"/logs/(?P<date>\d{8})/(?P<team>\w+)-(?P<job>\w+)/";
        let namer = Namer::new(Some(pattern)).unwrap();
        let named = namer.name(Path::new("/logs"), Path::new("/logs/20261026/vision-resnet/x.json"), "s");
        assert_eq!((named.job.as_str(), named.at), ("resnet", Some(1_792_972_800)));
        assert_eq!(named.labels.get("team").map(String::as_str), Some("vision"));
        assert!(Namer::new(Some("(")).is_err() && Namer::new(Some("x")).is_err());
        let other = namer.name(Path::new("/logs"), Path::new("/logs/else/x.json"), "s");
        assert_eq!(other.job, "else", "what does not match is guessed");
    }
}
