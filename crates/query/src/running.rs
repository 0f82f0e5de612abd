//! A query under way: the recording that it asks, and how long it may take.
//!
//! Analyses behind the tables can take longer than a query may. Nothing can end them halfway, so they run on a thread of
//! their own and the query only waits. If its time is up, or if nobody wants its answer any more, it ends at once; the
//! analysis goes on, and its result is kept for the next query that asks for it. Queries that need the same analysis at
//! the same time wait for one thread.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::{Error, Result, ffi};
use rustc_hash::FxHashMap;
use stepscope_read::Progress;

use crate::family::Family;
use crate::meaning::{Meaning, NOTHING};
use crate::postings::Postings;
use crate::recording::{Place, Recording};
use crate::rows::Rows;
use crate::{Limits, Spawn};

/// How often a query that waits looks whether it may go on.
const TICK: Duration = Duration::from_millis(10);

/// Something that is computed once.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Work {
    /// The rows of a table.
    Rows(usize),
    /// The order of a table's rows by a column.
    Order(usize, usize),
    /// Steps and meanings of all hosts.
    Meanings,
    /// The events of all hosts by kind.
    Postings,
    /// What surrounds the events of a track.
    Family(u32),
}

/// The work of a recording that somebody started and that has not ended well.
#[derive(Debug, Default)]
pub(crate) struct UnderWay {
    all: Mutex<FxHashMap<Work, State>>,
    ended: Condvar,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum State {
    Running,
    Failed,
}

impl UnderWay {
    fn all(&self) -> MutexGuard<'_, FxHashMap<Work, State>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A query.
pub(crate) struct RunningQuery {
    pub(crate) recording: Arc<Recording>,
    /// None if that is beyond what clocks can say.
    deadline: Option<Instant>,
    progress: Arc<Progress>,
    spawn: Spawn,
    /// Whether it ended while it waited for an analysis.
    gave_up: AtomicBool,
}

impl RunningQuery {
    pub(crate) fn new(
        recording: Arc<Recording>,
        limits: Limits,
        progress: Arc<Progress>,
        spawn: Spawn,
    ) -> Self {
        let deadline = Instant::now().checked_add(limits.time);
        RunningQuery { recording, deadline, progress, spawn, gave_up: AtomicBool::new(false) }
    }

    /// Whether its time is up, or nobody waits for the answer any more.
    pub(crate) fn is_over(&self) -> bool {
        self.progress.is_stopped() || self.deadline.is_some_and(|deadline| Instant::now() > deadline)
    }

    /// Whether nobody waits for the answer any more.
    pub(crate) fn is_stopped(&self) -> bool {
        self.progress.is_stopped()
    }

    /// Whether it ended while it waited for an analysis.
    pub(crate) fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Relaxed)
    }

    /// The rows of a table.
    pub(crate) fn rows(&self, table: usize) -> Result<Option<&dyn Rows>> {
        self.ensure(Work::Rows(table))?;
        Ok(self.recording.rows(table))
    }

    /// The rows of a table in the order of a column.
    pub(crate) fn order(&self, table: usize, column: usize) -> Result<Option<Arc<Vec<u32>>>> {
        self.ensure(Work::Order(table, column))?;
        Ok(self.recording.order(table, column))
    }

    /// Steps and meanings of all hosts.
    pub(crate) fn meanings(&self) -> Result<Vec<&Meaning>> {
        self.ensure(Work::Meanings)?;
        Ok(self.recording.meanings())
    }

    /// Steps and meanings of one host.
    pub(crate) fn meaning_of(&self, place: &Place<'_>) -> Result<&Meaning> {
        match self.recording.known_meaning(place.number) {
            Some(meaning) => Ok(meaning),
            None => Ok(self.meanings()?.get(place.number).copied().unwrap_or(&NOTHING)),
        }
    }

    /// The events of a host by kind.
    pub(crate) fn postings(&self, number: usize) -> Result<Option<&Arc<Postings>>> {
        self.ensure(Work::Postings)?;
        Ok(self.recording.postings(number))
    }

    /// The parents and own times of a track's events.
    pub(crate) fn family(&self, track: u32) -> Result<Option<&Family>> {
        match self.recording.known_family(track) {
            Some(family) => Ok(Some(family)),
            None => self.ensure(Work::Family(track)).map(|()| self.recording.family(track)),
        }
    }

    /// Waits until the work is done.
    #[inline]
    fn ensure(&self, work: Work) -> Result<()> {
        if self.recording.has(work) { Ok(()) } else { self.wait_for(work) }
    }

    #[cold]
    fn wait_for(&self, work: Work) -> Result<()> {
        let under_way = &self.recording.under_way;
        let mut all = under_way.all();
        while !self.recording.has(work) {
            if self.is_over() {
                self.gave_up.store(true, Ordering::Relaxed);
                return Err(Error::SqliteFailure(ffi::Error::new(ffi::SQLITE_INTERRUPT), None));
            }
            match all.get(&work) {
                Some(State::Failed) => {
                    return Err(Error::ModuleError("an analysis failed; please report this".to_owned()));
                }
                Some(State::Running) => {}
                None => {
                    all.insert(work, State::Running);
                    drop(all);
                    self.start(work);
                    all = under_way.all();
                    continue;
                }
            }
            all = under_way.ended.wait_timeout(all, TICK).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    fn start(&self, work: Work) {
        let recording = self.recording.clone();
        (self.spawn)(Box::new(move || {
            // A panic has been reported by then, and must not leave others waiting.
            let _ = catch_unwind(AssertUnwindSafe(|| recording.compute(work)));
            let mut all = recording.under_way.all();
            if recording.has(work) {
                all.remove(&work);
            } else {
                all.insert(work, State::Failed);
            }
            recording.under_way.ended.notify_all();
        }));
    }
}

/// On a thread of its own; on this one if there is none to be had.
pub(crate) fn on_a_thread() -> Spawn {
    Arc::new(|work| {
        let kept = Arc::new(Mutex::new(Some(work)));
        let theirs = Arc::clone(&kept);
        let run = |kept: &Mutex<Option<Box<dyn FnOnce() + Send>>>| {
            let work = kept.lock().unwrap_or_else(PoisonError::into_inner).take();
            work.into_iter().for_each(|work| work());
        };
        let thread = std::thread::Builder::new().name("analysis".to_owned());
        if thread.spawn(move || run(&theirs)).is_err() {
            run(&kept);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::recording;

    fn query(recording: &Arc<Recording>, spawn: Spawn) -> RunningQuery {
        let limits = Limits { time: Duration::from_millis(50), ..Limits::TERMINAL };
        RunningQuery::new(Arc::clone(recording), limits, Arc::default(), spawn)
    }

    #[test]
    fn work_that_breaks_is_an_error_and_is_not_tried_again() {
        let recording = recording();
        // No table has this number.
        let broken = Work::Rows(usize::MAX);
        let first = query(&recording, on_a_thread()).wait_for(broken);
        assert!(matches!(first, Err(Error::ModuleError(_))), "{first:?}");
        let never: Spawn = Arc::new(|_| panic!("started again"));
        assert!(query(&recording, never).wait_for(broken).is_err());
    }

    #[test]
    fn a_query_waits_only_until_its_time_is_up() {
        let recording = recording();
        let idle: Spawn = Arc::new(drop);
        let query = query(&recording, idle);
        assert!(query.meanings().is_err());
        assert!(query.gave_up() && query.is_over());
    }
}
