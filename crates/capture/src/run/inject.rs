//! Follows the Python programs of a command without any change to them: a private folder, first in `PYTHONPATH`, whose
//! `sitecustomize` finds the steps of a program and records a window of them. What it does is in `python/stepscope/hook.py`;
//! this file puts it there, reads what it reports, and removes the folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};
use stepscope_read::files;
use stepscope_results::run::StepSource;

use super::series::Observation;
use super::steady::steady;
use super::steps::Steps;

/// The files of the hook.
const FILES: &[(&str, &str)] = &[
    ("sitecustomize.py", include_str!("../../python/sitecustomize.py")),
    ("hook.py", include_str!("../../python/hook.py")),
    ("record.py", include_str!("../../python/record.py")),
    ("turns.py", crate::turns::MODULE.1),
    ("memory.py", include_str!("../../python/memory.py")),
];
/// Names the folder to the hook; its folder in `PYTHONPATH` is the other variable that a command gets.
const VARIABLE: &str = "STEPSCOPE_RUN";
/// A program may start any number of others; this many are looked at.
const MOST_PROCESSES: usize = 4096;
/// Steps of one program that are read.
const MOST_STEPS: usize = 1 << 17;

/// The private folder. It is removed with everything in it when this value is dropped.
#[derive(Debug)]
pub(crate) struct Injection {
    folder: PathBuf,
    into: PathBuf,
    /// `into` was not there before.
    own: bool,
}

/// What the hook is for.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To record a program from its start, and who holds its memory if that is wanted.
    Recording { memory: bool },
    /// To record one window of a program that runs already, and to leave it as it was.
    OneWindow,
    /// To let programs take turns.
    Turns,
}

/// A program that trained.
#[derive(Clone, Debug, Default)]
pub struct Followed {
    /// Its process id.
    pub pid: u32,
    /// Its rank, if a launcher started several.
    pub rank: Option<i64>,
    /// The framework that it trains with.
    pub framework: Option<String>,
    /// The folder of its recording.
    pub session: Option<PathBuf>,
    /// What it does: `waiting`, `recording`, `recorded`, `done`, `failed`.
    pub state: String,
    /// How many steps it has done.
    pub steps: u64,
    /// What went wrong.
    pub problems: Vec<String>,
    /// When each step ended, in seconds since 1970, and how long it took; without those that were recorded.
    timed: Vec<(f64, f64)>,
}

/// What was followed.
#[derive(Clone, Debug, Default)]
pub struct Following {
    /// Number of Python interpreters that could be followed.
    pub interpreters: usize,
    /// Those that trained, by rank.
    pub programs: Vec<Followed>,
}

impl Injection {
    /// Makes the folder; recordings go below `into`.
    pub(crate) fn new(into: &Path, purpose: Purpose) -> io::Result<Self> {
        let into = std::path::absolute(into)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
        let name = format!("stepscope-{}-{now:x}", std::process::id());
        let folder = std::path::absolute(std::env::temp_dir())?.join(name);
        // Nobody else may put anything there that a program would run.
        DirBuilder::new().mode(0o700).create(&folder)?;
        let own = !into.exists();
        let injection = Injection { folder, into, own };
        for (name, text) in FILES {
            fs::write(injection.folder.join(name), text)?;
        }
        let options = json!({
            "into": injection.into.to_string_lossy(),
            "once": purpose == Purpose::OneWindow,
            "memory": purpose == Purpose::Recording { memory: true },
        });
        fs::write(injection.folder.join("options.json"), options.to_string())?;
        Ok(injection)
    }

    /// The private folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The variables that the command gets.
    pub(crate) fn environment(&self) -> [(&'static str, OsString); 2] {
        [("PYTHONPATH", python_path(&[&self.folder])), (VARIABLE, self.folder.clone().into_os_string())]
    }

    /// What the programs report so far.
    pub(super) fn following(&self) -> Following {
        let mut following = Following::default();
        let Ok(entries) = fs::read_dir(&self.folder) else { return following };
        let mut programs = BTreeMap::new();
        for entry in entries.flatten().take(MOST_PROCESSES) {
            let name = entry.file_name().to_string_lossy().into_owned();
            match name.split_once('.') {
                Some(("python", _)) => following.interpreters += 1,
                Some(("state", pid)) => {
                    let Ok(pid) = pid.parse() else { continue };
                    let state =
                        files::read(&entry.path()).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
                    let Some(state) = state else { continue };
                    let timed = self.timed(pid);
                    programs.insert(pid, followed(pid, &state, timed));
                }
                _ => {}
            }
        }
        following.programs = programs.into_values().collect();
        following.programs.sort_by_key(|program| (program.rank.unwrap_or(0), program.pid));
        following
    }

    fn timed(&self, pid: u32) -> Vec<(f64, f64)> {
        let bytes = files::read(&self.folder.join(format!("steps.{pid}"))).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
        let pair =
            |line: &str| line.split_once(' ').and_then(|(end, took)| Some((number(end)?, number(took)?)));
        text.lines().filter_map(pair).take(MOST_STEPS).collect()
    }
}

/// Folders in Python's path, before what the user has there.
pub(crate) fn python_path(folders: &[&Path]) -> OsString {
    let own = std::env::var_os("PYTHONPATH").filter(|own| !own.is_empty());
    let parts = folders.iter().map(|folder| folder.as_os_str().to_owned()).chain(own);
    parts.collect::<Vec<_>>().join(std::ffi::OsStr::new(":"))
}

/// How often programs are asked what they do.
const TICK: Duration = Duration::from_millis(300);

impl Injection {
    /// Calls `say` whenever a program does something else, until `ended`.
    pub(super) fn watch(&self, say: fn(&Following), ended: &AtomicBool) {
        let mut before = String::new();
        while !ended.load(Ordering::Relaxed) {
            let following = self.following();
            let state = following.trained().map(|program| program.state.clone()).unwrap_or_default();
            if state != before {
                say(&following);
                before = state;
            }
            std::thread::sleep(TICK);
        }
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        // What cannot be removed is in the system's folder for such things.
        let _ = fs::remove_dir_all(&self.folder);
        // Nothing was recorded: the folder for it stays away, too. Others may have put something there.
        if self.own {
            let _ = fs::remove_dir(&self.into);
        }
    }
}

fn followed(pid: u32, state: &Value, timed: Vec<(f64, f64)>) -> Followed {
    let text = |key: &str| state.get(key).and_then(Value::as_str).map(str::to_owned);
    let problems = state.get("problems").and_then(Value::as_array);
    Followed {
        pid,
        rank: state.get("rank").and_then(Value::as_i64),
        framework: text("framework"),
        session: text("session").map(PathBuf::from),
        state: text("state").unwrap_or_default(),
        steps: state.get("steps").and_then(Value::as_u64).unwrap_or(0),
        problems: problems.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect(),
        timed,
    }
}

impl Following {
    /// The program whose steps count: the first rank with a recording, else the first with steps.
    pub fn trained(&self) -> Option<&Followed> {
        let recorded = self.programs.iter().filter(|program| program.session.is_some());
        recorded.min_by_key(|program| program.rank.unwrap_or(0)).or_else(|| self.programs.first())
    }

    /// Its steps, as timed inside it.
    pub(super) fn steps(&self, begun_wall_s: f64) -> Option<Steps> {
        let program = self.trained()?;
        let observe = |(place, &(end, seconds)): (usize, &(f64, f64))| Observation {
            step: place as u64 + 1,
            steps: 1,
            end_s: (end - begun_wall_s).max(0.0),
            seconds,
        };
        let observed: Vec<Observation> = program.timed.iter().enumerate().map(observe).collect();
        let first = observed.first()?;
        Some(Steps {
            source: StepSource::Inside,
            examples: false,
            profiled: program.steps.saturating_sub(1).saturating_sub(observed.len() as u64),
            first_s: first.end_s,
            restarts: 0,
            bursty: false,
            own_ms: None,
            own_examples_per_s: None,
            steady: steady(&observed.iter().map(Observation::ms).collect::<Vec<_>>()),
            observed,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_folder_is_private_and_goes_away_with_all_that_is_in_it() {
        let into = tempfile::tempdir().unwrap();
        let injection =
            Injection::new(&into.path().join("logs"), Purpose::Recording { memory: true }).unwrap();
        let folder = injection.folder.clone();
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(folder.join("sitecustomize.py").is_file() && folder.join("hook.py").is_file());
        drop(injection);
        assert!(!folder.exists());
    }

    #[test]
    fn what_programs_report_is_read_and_what_is_damaged_is_not() {
        let into = tempfile::tempdir().unwrap();
        let injection = Injection::new(into.path(), Purpose::Recording { memory: true }).unwrap();
        let write = |name: &str, text: &str| fs::write(injection.folder.join(name), text).unwrap();
        write("python.7", "3.11.7");
        write(
            "state.7",
            r#"{"state": "done", "rank": null, "steps": 4, "session": "/x", "problems": ["a"]}"#,
        );
        write("steps.7", "100.5 0.5\nnot a line\n101.0 0.5\n101.5 nan\n");
        write("state.8", "{");
        let following = injection.following();
        assert_eq!((following.interpreters, following.programs.len()), (1, 1));
        let steps = following.steps(100.0).unwrap();
        assert_eq!((steps.count(), steps.profiled, steps.first_s), (2, 1, 0.5));
    }
}
