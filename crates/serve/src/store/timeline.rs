//! The open traces of a session, for its timeline and for what was live at a moment.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rayon::prelude::*;
use stepscope_analyze::Analysis;
use stepscope_analyze::memory::{Ledger, MemoryPartial};
use stepscope_query::{Database, Limits};
use stepscope_session::{Problem, Profile};

use super::found::Find;
use super::loading::Loading;
use super::open::profile;
use crate::error::Refusal;
use stepscope_timeline::model::{Findings, LaidOut, Model};
use stepscope_timeline::search::Found;

/// Number of searches that are kept: those of the last few keystrokes.
const SEARCHES: usize = 4;

/// The open traces of a session.
#[derive(Debug)]
pub(crate) struct Timeline {
    /// On the clock that the page shows by itself.
    pub(crate) model: Model,
    /// On recorded clocks, where those differ from the shown one.
    recorded: Option<Model>,
    searches: Mutex<Vec<(String, bool, Arc<Found>)>>,
    ledgers: OnceLock<Ledgers>,
    database: OnceLock<Database>,
}

/// Memory ownership.
#[derive(Debug)]
pub(crate) struct Ledgers {
    /// Host and name of each allocator, in the order of the memory view.
    pub(crate) allocators: Vec<(usize, String)>,
    /// By host.
    pub(crate) hosts: Vec<Ledger>,
}

impl Timeline {
    /// Reads all hosts of a session, which stay in memory.
    pub(super) fn read(find: &Find, loading: &Loading) -> Result<Self, Problem> {
        let profile = profile(find, &loading.progress)?;
        loading.analyse();
        Ok(Timeline::analysed(profile))
    }

    /// Analyses each host of a profile.
    pub(crate) fn analysed(profile: Profile) -> Self {
        Timeline::on_both(Model::analysed(profile))
    }

    /// The timeline of traces that are already analysed.
    pub(super) fn of(profile: Profile, findings: Vec<Findings>, laid_out: LaidOut) -> Self {
        Timeline::on_both(Model::of(profile, findings, laid_out))
    }

    fn on_both((model, recorded): (Model, Option<Model>)) -> Self {
        Timeline {
            model,
            recorded,
            searches: Mutex::new(Vec::new()),
            ledgers: OnceLock::new(),
            database: OnceLock::new(),
        }
    }

    /// Memory in use.
    pub(super) fn bytes(&self) -> u64 {
        self.model.bytes()
    }

    /// The timeline on the clock with this name: the shown one, or the recorded ones.
    pub(crate) fn on(&self, clock: Option<&str>) -> &Model {
        self.recorded.as_ref().filter(|_| clock == Some("recorded")).unwrap_or(&self.model)
    }

    /// Events whose names match a text; the last few searches are kept.
    pub(crate) fn search(&self, model: &Model, text: &str) -> Result<Arc<Found>, Refusal> {
        let searches = || self.searches.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |known: &str, aligned: bool| known == text && aligned == model.aligned;
        if let Some((.., found)) = searches().iter().find(|(known, aligned, _)| same(known, *aligned)) {
            return Ok(found.clone());
        }
        let pattern = stepscope_timeline::search::pattern(text)
            .map_err(|_| Refusal::Query("q", text.chars().take(80).collect()))?;
        let found = Arc::new(Found::of(model, text, &pattern));
        let mut kept = searches();
        kept.insert(0, (text.to_owned(), model.aligned, found.clone()));
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
