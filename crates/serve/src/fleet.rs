//! The fleet: all recordings below the paths, and those in partials, as one report.
//!
//! Nothing is read before somebody opens the page. Then hosts are read in the background, with low priority, and only as
//! long as somebody asks; results are kept in the cache that `stepscope fleet report` uses as well, so that what either
//! has read is there for the other. When files change, the report is made again, from the cache but for what is new.

pub(crate) mod links;
pub(crate) mod routes;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::words;
use axum::body::Bytes;
use serde_json::{Value, json};
use stepscope_fleet::store::{Cache, partials_at, read_whole};
use stepscope_fleet::{FinishOptions, FleetError, Local, Options, Set, Workers, finish_with, plan, run};
use stepscope_render::fleet::write_json;
use stepscope_results::fleet::SeriesRow;
use stepscope_session::{Cause, Problem};

use crate::error::problem_json;
use crate::home::stand_back;
use crate::store::{Fingerprint, SessionSource, Store};
use links::Links;

/// Reading stops after this long without a request.
const FORGOTTEN: Duration = Duration::from_secs(20);
/// How often to look whether somebody still asks.
const LOOK: Duration = Duration::from_millis(250);
/// After a change of files, the report is made again after this long at the earliest, or after this many times its own duration.
const AGAIN: Duration = Duration::from_secs(5);
const AGAIN_SHARE: u32 = 10;

/// What the page says of the fleet, beside the paths.
#[derive(Clone, Debug)]
pub struct FleetOptions {
    /// How to name jobs, and which recordings count.
    pub plan: Options,
    /// Device hours.
    pub finish: FinishOptions,
    /// How hosts are read.
    pub workers: Workers,
    /// Where results of hosts are kept.
    pub cache: Option<Cache>,
}

impl Default for FleetOptions {
    fn default() -> Self {
        FleetOptions {
            plan: Options::default(),
            finish: FinishOptions::default(),
            workers: Workers::default(),
            cache: Cache::of_user(),
        }
    }
}

/// Where the fleet's recordings come from.
#[derive(Debug, Default)]
struct Sources {
    /// Log directories and profiles.
    logs: Vec<PathBuf>,
    /// Partials.
    partials: Vec<PathBuf>,
    options: FleetOptions,
}

/// A finished report.
#[derive(Debug)]
struct Ready {
    set: Set,
    /// The document.
    document: Bytes,
    series: Vec<SeriesRow>,
    /// Partials that could not be read, and why.
    damage: Vec<String>,
}

#[derive(Debug, Default)]
struct State {
    /// Grows with every report.
    version: u64,
    /// The files of the last report, or of the one that is being made.
    files: Option<Vec<Fingerprint>>,
    ended: Option<Instant>,
    took: Duration,
    asked: Option<Instant>,
    /// What is being read now.
    local: Option<Arc<Local>>,
    total: u64,
    ready: Option<Arc<Ready>>,
    problem: Option<Problem>,
    links: Links,
}

/// The fleet of a server.
#[derive(Debug, Default)]
pub(crate) struct Fleet {
    sources: Sources,
    state: Mutex<State>,
}

impl Fleet {
    /// Takes the partials out of the paths. In their place, the folders that they were made of are served, if they exist.
    pub(crate) fn of(source: SessionSource, options: FleetOptions) -> Result<(SessionSource, Self), Problem> {
        let SessionSource::Paths(paths) = source else { return Ok((source, Fleet::default())) };
        let mut sources = Sources { options, ..Sources::default() };
        for path in paths {
            match partials_at(&path).map_err(|error| told(&error))? {
                Some(files) => sources.partials.extend(files),
                None => sources.logs.push(path),
            }
        }
        let mut served = sources.logs.clone();
        served.extend(links::folders_of(&sources.partials));
        Ok((SessionSource::Paths(served), Fleet { sources, state: Mutex::default() }))
    }

    /// Were partials given?
    pub(crate) fn has_partials(&self) -> bool {
        !self.sources.partials.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far it is, and which session shows which recording.
    fn answer(self: &Arc<Self>, store: &Store) -> Value {
        let seen: Vec<Fingerprint> = store.seen().into_iter().map(|seen| seen.fingerprint).collect();
        let mut state = self.state();
        state.asked = Some(Instant::now());
        if state.is_due(&seen) {
            self.begin(&mut state, seen.clone());
        }
        let ready = state.ready.clone();
        let sessions = ready.as_ref().map(|ready| state.links.of(&ready.series, &seen, store));
        let done = state.local.as_ref().map_or(state.total, |local| local.done.load(Ordering::Relaxed));
        let at = match (&state.local, &state.problem) {
            (Some(_), _) => "reading",
            (None, Some(_)) => "failed",
            (None, None) => "ready",
        };
        let damage = ready.as_ref().map_or(&[][..], |ready| &ready.damage);
        json!({
            "schema": "stepscope.fleet-page.v1", "state": at, "version": state.version, "done": done, "total": state.total,
            "problem": state.problem.as_ref().map(problem_json), "damage": damage, "sessions": sessions.unwrap_or_default(),
        })
    }

    /// Starts to read.
    fn begin(self: &Arc<Self>, state: &mut State, files: Vec<Fingerprint>) {
        let FleetOptions { workers, cache, .. } = self.sources.options.clone();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        // Half of the machine is left to those who look at a session meanwhile.
        let workers = Workers { threads: workers.threads.or(Some(cores.div_ceil(2))), ..workers };
        let local = Arc::new(Local { workers, cache, ..Local::default() });
        (state.local, state.files, state.total) = (Some(local.clone()), Some(files), 0);
        let fleet = self.clone();
        let started = std::thread::Builder::new().name("fleet".to_owned()).spawn(move || {
            stand_back();
            let began = Instant::now();
            let made = std::thread::scope(|scope| {
                scope.spawn(|| fleet.watch(&local));
                let made = fleet.made(&local);
                local.progress.stop();
                made
            });
            fleet.take(made, began.elapsed());
        });
        if started.is_err() {
            state.local = None;
        }
    }

    /// Stops the reading if there are no more requests.
    fn watch(&self, local: &Local) {
        while !local.progress.is_stopped() {
            std::thread::sleep(LOOK);
            if self.state().asked.is_none_or(|asked| asked.elapsed() > FORGOTTEN) {
                local.progress.stop();
            }
        }
    }

    /// The report.
    fn made(&self, local: &Local) -> Result<Ready, FleetError> {
        let Sources { logs, partials, options } = &self.sources;
        let (mut set, mut damage) = (Set::new(), Vec::new());
        for file in partials {
            if let Err(error) = read_whole(file).and_then(|bytes| set.add(&bytes)) {
                damage.push(format!("{}: {error}", file.display()));
            }
            // Finished recordings are small, so that memory holds few hosts at a time.
            set.settle();
        }
        if !logs.is_empty() {
            let works = plan(logs, &options.plan)?;
            let inputs = works.iter().flat_map(|work| &work.pieces).map(|piece| piece.inputs.len() as u64);
            self.state().total = inputs.sum();
            set.join(run(&works, local)?);
        }
        set.settle();
        let report = finish_with(&set, &options.finish)?;
        let mut document = Vec::new();
        write_json(&report, &mut document).map_err(|error| FleetError::Content(error.to_string()))?;
        Ok(Ready { set, document: document.into(), series: report.series, damage })
    }

    fn take(&self, made: Result<Ready, FleetError>, took: Duration) {
        let mut state = self.state();
        (state.local, state.ended, state.took) = (None, Some(Instant::now()), took);
        match made {
            Ok(ready) => {
                (state.ready, state.problem) = (Some(Arc::new(ready)), None);
                state.version += 1;
                state.links = Links::default();
            }
            // It begins again when somebody asks; what was read is in the cache.
            Err(FleetError::Stopped) => (state.files, state.ended) = (None, None),
            Err(error) => state.problem = Some(told(&error)),
        }
    }
}

impl State {
    /// Is it time to read?
    fn is_due(&self, seen: &[Fingerprint]) -> bool {
        let pause = AGAIN.max(self.took * AGAIN_SHARE);
        self.local.is_none()
            && self.files.as_deref() != Some(seen)
            && self.ended.is_none_or(|ended| ended.elapsed() > pause)
    }
}

/// An error as the page shows it.
fn told(error: &FleetError) -> Problem {
    let [what, found, todo] = words::no_fleet(&error.to_string());
    Problem::new(Cause::Damaged, what).then(found).then(todo)
}
