//! An open session: its timeline, and every answer that was computed once.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use axum::body::Bytes;
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use stepscope_analyze::fleet::HostPartial;
use stepscope_analyze::memory::{Ledger, MemoryPartial};
use stepscope_diagnose::compare::Run;
use stepscope_query::{Database, Limits};
use stepscope_read::Progress;
use stepscope_render::report::Report;
use stepscope_session::report::{HostLook, report_on};
use stepscope_session::side::run_of;
use stepscope_session::{HostProfile, Problem, Profile, SAMPLE_HOST, sample};

use super::found::Find;
use super::loading::Loading;
use crate::error::Refusal;
use crate::tfprof::LazyModel;
use crate::timeline::model::{Findings, LaidOut, Model};
use crate::timeline::search::Found;

/// Number of searches that are kept: those of the last few keystrokes.
const SEARCHES: usize = 4;

/// An answer that is computed once; `Err` if that failed.
type Kept = Arc<OnceLock<Result<Bytes, Refusal>>>;

/// An open session.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) model: Model,
    path: String,
    /// The data for the report; taken by the first request.
    looks: Mutex<Option<Vec<HostLook>>>,
    answers: Mutex<FxHashMap<String, Kept>>,
    searches: Mutex<Vec<(String, Arc<Found>)>>,
    ledgers: OnceLock<Ledgers>,
    database: OnceLock<Database>,
    /// The model behind runs of classic TensorFlow.
    pub(crate) tfprof: LazyModel,
}

/// Memory ownership.
#[derive(Debug)]
pub(crate) struct Ledgers {
    /// Host and name of each allocator, in the order of the memory view.
    pub(crate) allocators: Vec<(usize, String)>,
    /// By host.
    pub(crate) hosts: Vec<Ledger>,
}

impl Opened {
    /// Reads a session and analyses each of its hosts.
    pub(crate) fn read(find: Find, loading: &Loading) -> Result<Self, Problem> {
        loading.start();
        let (path, runs) = (find.path.clone(), find.runs());
        let profile = profile(find, &loading.progress)?;
        loading.analyse();
        Ok(Opened { tfprof: LazyModel::of(runs), ..Self::of(profile, path) })
    }

    /// Analyses each host of a profile. If an analysis fails, only what depends on it is missing.
    pub(crate) fn of(profile: Profile, path: String) -> Self {
        // A profile with one busy thread leaves cores free in both, so they share them.
        let look_at_all =
            || profile.hosts.par_iter().map(look).collect::<Vec<(Findings, Option<HostLook>)>>();
        let (looked, laid_out) = rayon::join(look_at_all, || LaidOut::of(&profile));
        let (findings, looks): (Vec<Findings>, Vec<Option<HostLook>>) = looked.into_iter().unzip();
        Opened {
            model: Model::of(profile, findings, laid_out),
            path,
            looks: Mutex::new(looks.into_iter().collect()),
            answers: Mutex::new(FxHashMap::default()),
            searches: Mutex::new(Vec::new()),
            ledgers: OnceLock::new(),
            database: OnceLock::new(),
            tfprof: LazyModel::default(),
        }
    }

    /// Whether part of it could not be read.
    pub(crate) fn is_damaged(&self) -> bool {
        !self.model.profile.problems().is_empty()
    }

    /// The problem of a file that changed since it was read, if arguments would still be decoded from it.
    pub(crate) fn changed(&self) -> Option<Problem> {
        let profile = &self.model.profile;
        let changed = profile.hosts.iter().any(|loaded| !loaded.trace.is_intact());
        changed.then(|| profile.problems().into_iter().next()).flatten()
    }

    /// Memory in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.model.bytes()
    }

    /// The answer with this name, computed by the first request. Failures stay isolated.
    pub(crate) fn answer(
        &self,
        name: &str,
        work: impl FnOnce(&Opened) -> Result<Vec<u8>, Refusal>,
    ) -> Result<Bytes, Refusal> {
        let kept = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            answers.entry(name.to_owned()).or_default().clone()
        };
        let answer = kept.get_or_init(|| {
            let worked = catch_unwind(AssertUnwindSafe(|| work(self)));
            worked.unwrap_or(Err(Refusal::Broken)).map(Bytes::from)
        });
        answer.clone()
    }

    /// The report.
    pub(crate) fn report(&self) -> Result<Report, Refusal> {
        let looks = self.looks.lock().unwrap_or_else(PoisonError::into_inner).take();
        let looks = looks.ok_or(Refusal::Broken)?;
        let made = report_on(&self.model.profile, looks, vec![self.path.clone()]);
        made.map_err(|problem| Refusal::Unreadable(Box::new(problem)))
    }

    /// Data for a comparison.
    pub(crate) fn run(&self) -> Run {
        run_of(&self.model.profile, &self.model.profile.session)
    }

    /// Events whose names match a text; the last few searches are kept.
    pub(crate) fn search(&self, text: &str) -> Result<Arc<Found>, Refusal> {
        let searches = || self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, found)) = searches().iter().find(|(known, _)| known == text) {
            return Ok(found.clone());
        }
        let pattern = crate::timeline::search::pattern(text)
            .map_err(|_| Refusal::Query("q", text.chars().take(80).collect()))?;
        let found = Arc::new(Found::of(&self.model, text, &pattern));
        let mut kept = searches();
        kept.insert(0, (text.to_owned(), found.clone()));
        kept.truncate(SEARCHES);
        Ok(found)
    }

    /// The session as tables; what queries computed is kept for the next ones.
    pub(crate) fn database(&self) -> &Database {
        self.database.get_or_init(|| Database::new(self.model.profile.clone(), Limits::PAGE))
    }

    /// Which allocations were live when.
    pub(crate) fn ledgers(&self) -> &Ledgers {
        self.ledgers.get_or_init(|| {
            let hosts = &self.model.profile.hosts;
            let both = hosts.par_iter().map(|loaded| {
                let context = loaded.context();
                (Ledger::of(&context), MemoryPartial::of(&context))
            });
            let (ledgers, partials): (Vec<Ledger>, Vec<MemoryPartial>) = both.unzip();
            let mut all = MemoryPartial::default();
            partials.into_iter().for_each(|one| all.merge(one));
            let place = |host: &str| hosts.iter().position(|loaded| loaded.host == host).unwrap_or(0);
            let named =
                all.finish().allocators.into_iter().map(|allocator| (place(&allocator.host), allocator.name));
            Ledgers { allocators: named.collect(), hosts: ledgers }
        })
    }
}

fn profile(find: Find, progress: &Progress) -> Result<Profile, Problem> {
    match find.chosen {
        Some(chosen) => Profile::load(chosen, progress),
        None => {
            let inputs = vec![(SAMPLE_HOST.to_owned(), Ok(sample()))];
            Profile::read(find.name.clone(), vec![find.name], inputs, progress)
        }
    }
}

/// Analyses one host for the report and the timeline together, because both need the same states and steps.
fn look(loaded: &HostProfile) -> (Findings, Option<HostLook>) {
    let context = loaded.context();
    let findings = catch_unwind(AssertUnwindSafe(|| Findings::of(&context)));
    let look = catch_unwind(AssertUnwindSafe(|| (loaded.source_row(), HostPartial::of(&context))));
    (findings.unwrap_or_else(|_| Findings::none(&loaded.trace)), look.ok())
}
