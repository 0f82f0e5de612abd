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
use crate::looked::{Looked, NOTHING};
use crate::postings::Postings;
use crate::rows::Rows;
use crate::world::{Place, World};
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
    Looked,
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
pub(crate) struct Asked {
    pub(crate) world: Arc<World>,
    /// None if that is beyond what clocks can say.
    deadline: Option<Instant>,
    progress: Arc<Progress>,
    spawn: Spawn,
    /// Whether it ended while it waited for an analysis.
    gave_up: AtomicBool,
}

impl Asked {
    pub(crate) fn new(world: Arc<World>, limits: Limits, progress: Arc<Progress>, spawn: Spawn) -> Self {
        let deadline = Instant::now().checked_add(limits.time);
        Asked { world, deadline, progress, spawn, gave_up: AtomicBool::new(false) }
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
        Ok(self.world.rows(table))
    }

    /// The rows of a table in the order of a column.
    pub(crate) fn order(&self, table: usize, column: usize) -> Result<Option<Arc<Vec<u32>>>> {
        self.ensure(Work::Order(table, column))?;
        Ok(self.world.order(table, column))
    }

    /// Steps and meanings of all hosts.
    pub(crate) fn looked(&self) -> Result<Vec<&Looked>> {
        self.ensure(Work::Looked)?;
        Ok(self.world.looked())
    }

    /// Steps and meanings of one host.
    pub(crate) fn looked_at(&self, place: &Place<'_>) -> Result<&Looked> {
        match self.world.known_looked(place.number) {
            Some(looked) => Ok(looked),
            None => Ok(self.looked()?.get(place.number).copied().unwrap_or(&NOTHING)),
        }
    }

    /// The events of a host by kind.
    pub(crate) fn postings(&self, number: usize) -> Result<Option<&Arc<Postings>>> {
        self.ensure(Work::Postings)?;
        Ok(self.world.postings(number))
    }

    /// The parents and own times of a track's events.
    pub(crate) fn family(&self, track: u32) -> Result<Option<&Family>> {
        match self.world.known_family(track) {
            Some(family) => Ok(Some(family)),
            None => self.ensure(Work::Family(track)).map(|()| self.world.family(track)),
        }
    }

    /// Waits until the work is done.
    #[inline]
    fn ensure(&self, work: Work) -> Result<()> {
        if self.world.has(work) { Ok(()) } else { self.wait_for(work) }
    }

    #[cold]
    fn wait_for(&self, work: Work) -> Result<()> {
        let under_way = &self.world.under_way;
        let mut all = under_way.all();
        while !self.world.has(work) {
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
        let world = self.world.clone();
        (self.spawn)(Box::new(move || {
            // A panic has been reported by then, and must not leave others waiting.
            let _ = catch_unwind(AssertUnwindSafe(|| world.compute(work)));
            let mut all = world.under_way.all();
            if world.has(work) {
                all.remove(&work);
            } else {
                all.insert(work, State::Failed);
            }
            world.under_way.ended.notify_all();
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
    use crate::world::tests::world;

    fn asked(world: &Arc<World>, spawn: Spawn) -> Asked {
        let limits = Limits { time: Duration::from_millis(50), ..Limits::TERMINAL };
        Asked::new(Arc::clone(world), limits, Arc::default(), spawn)
    }

    #[test]
    fn work_that_breaks_is_an_error_and_is_not_tried_again() {
        let world = world();
        // No table has this number.
        let broken = Work::Rows(usize::MAX);
        let first = asked(&world, on_a_thread()).wait_for(broken);
        assert!(matches!(first, Err(Error::ModuleError(_))), "{first:?}");
        let never: Spawn = Arc::new(|_| panic!("started again"));
        assert!(asked(&world, never).wait_for(broken).is_err());
    }

    #[test]
    fn a_query_waits_only_until_its_time_is_up() {
        let world = world();
        let idle: Spawn = Arc::new(drop);
        let asked = asked(&world, idle);
        assert!(asked.looked().is_err());
        assert!(asked.gave_up() && asked.is_over());
    }
}
