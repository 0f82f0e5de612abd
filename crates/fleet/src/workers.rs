//! Hosts are read side by side, and one that hangs does not hold up the others.
//!
//! A read from a mount that does not answer never returns, and nothing can end it from outside. So each worker reads in
//! threads of its own and watches them: if nothing moves for a while, it leaves these threads to themselves, says so in
//! the host's entry, and goes on with new ones.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rayon::{ThreadPool, ThreadPoolBuilder};
use stepscope_read::{Progress, files};

use crate::error::FleetError;

/// How long nothing may move. Analysing the largest profiles takes less than a minute.
const PATIENCE: Duration = Duration::from_secs(5 * 60);
/// The same for what comes from a network: requests have time limits of their own, and a large copy takes a while.
const NETWORK: Duration = Duration::from_secs(30 * 60);
/// How often to look at most.
const LOOK: Duration = Duration::from_millis(100);

/// How hosts are read.
#[derive(Clone, Debug)]
pub struct Workers {
    /// Hosts to read at once, and threads for all of them; one per core if `None`.
    pub threads: Option<usize>,
    /// A host of which nothing could be read for this long is given up.
    pub patience: Duration,
}

impl Default for Workers {
    fn default() -> Self {
        Workers { threads: None, patience: PATIENCE }
    }
}

impl Workers {
    /// Number of workers.
    pub fn of(threads: usize) -> Self {
        Workers { threads: Some(threads), ..Workers::default() }
    }

    /// Runs a task on each element, each worker with a reader of its own. Plain threads: one that waits inside a rayon
    /// pool takes up other work meanwhile, and a trace would be held for each.
    pub(crate) fn each<T: Sync>(
        &self,
        all: &[T],
        task: impl Fn(&mut Reader, &T) -> Result<(), FleetError> + Sync,
    ) -> Result<(), FleetError> {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.threads.unwrap_or_else(cores).max(1);
        let workers = threads.min(all.len());
        let next = AtomicUsize::new(0);
        let failed = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..workers {
                scope.spawn(|| {
                    let share = threads.div_ceil(workers);
                    let mut reader = Reader::new(share, self.patience);
                    while let Some(element) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if let Err(error) = task(&mut reader, element) {
                            next.store(all.len(), Ordering::Relaxed);
                            lock(&failed).get_or_insert(error);
                        }
                    }
                });
            }
        });
        let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
        failed.map_or(Ok(()), Err)
    }
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Why there is no result.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// Nothing moved for too long.
    Up,
    /// It ended without a result.
    Broken,
    /// Somebody stopped all reading.
    Stopped,
}

/// Threads that read one host after the other.
#[derive(Debug)]
pub(crate) struct Reader {
    threads: usize,
    /// How long nothing may move on a file system.
    usual: Duration,
    /// How long nothing may move now.
    pub(crate) patience: Duration,
    /// Made when it is needed. Not that of the process: one that a parent process used does not work after a fork, and
    /// threads that hang would be missing everywhere.
    pool: Option<ThreadPool>,
}

impl Reader {
    fn new(threads: usize, patience: Duration) -> Self {
        Reader { threads, usual: patience, patience, pool: None }
    }

    /// Gets ready for a path.
    pub(crate) fn meet(&mut self, path: &Path) {
        self.patience = if files::is_url(path) { self.usual.max(NETWORK) } else { self.usual };
    }

    /// Runs work that may hang, and passes on how far it is. Work that was given up is stopped as soon as it moves again.
    pub(crate) fn watched<R: Send + 'static>(
        &mut self,
        all: &Progress,
        work: impl FnOnce(&Arc<Progress>) -> R + Send + 'static,
    ) -> Result<R, Given> {
        let own = Arc::new(Progress::new());
        let (send, receive) = sync_channel(1);
        let theirs = own.clone();
        let read = move || {
            // One file of ten thousand must not end the run, whatever is in it.
            if let Ok(result) = catch_unwind(AssertUnwindSafe(|| work(&theirs))) {
                // Nobody receives what comes too late.
                let _ = send.send(result);
            }
        };
        let build = || ThreadPoolBuilder::new().num_threads(self.threads).build().ok();
        match self.pool.take().or_else(build) {
            Some(pool) => self.pool.insert(pool).spawn(read),
            None => read(),
        }
        let (mut passed_on, mut beats, mut moved) = ([0; 3], own.beats(), Instant::now());
        loop {
            let received = receive.recv_timeout(LOOK.min(self.patience));
            all.take_over(&own, &mut passed_on);
            if let Ok(result) = received {
                return Ok(result);
            }
            if own.beats() != beats {
                (beats, moved) = (own.beats(), Instant::now());
            }
            let given = match received {
                _ if all.is_stopped() => Given::Stopped,
                Err(RecvTimeoutError::Disconnected) => Given::Broken,
                _ if moved.elapsed() < self.patience => continue,
                _ => Given::Up,
            };
            own.stop();
            self.pool = None;
            return Err(given);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_hangs_is_given_up_and_others_go_on() {
        let workers = Workers { threads: Some(2), patience: Duration::from_millis(700) };
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let held = Mutex::new(Some(held));
        let done = Mutex::new(Vec::new());
        let elements: Vec<usize> = (0..6).collect();
        let task = |reader: &mut Reader, element: &usize| {
            let element = *element;
            let hangs = (element == 1).then(|| lock(&held).take()).flatten();
            let result = reader.watched(&Progress::new(), move |progress| {
                progress.check();
                hangs.map(|held| held.recv());
                element
            });
            lock(&done).push((element, result.is_ok()));
            Ok(())
        };
        workers.each(&elements, task).unwrap();
        drop(hold);
        let mut done = done.into_inner().unwrap();
        done.sort_unstable();
        assert_eq!(done, [(0, true), (1, false), (2, true), (3, true), (4, true), (5, true)]);
    }

    #[test]
    fn what_moves_is_waited_for_and_what_is_stopped_ends() {
        let mut reader = Reader::new(1, Duration::from_millis(700));
        let all = Progress::new();
        let slow = |progress: &Arc<Progress>| {
            for _ in 0..8 {
                std::thread::sleep(Duration::from_millis(150));
                progress.advance(10, 1);
            }
        };
        assert_eq!(reader.watched(&all, slow), Ok(()));
        assert_eq!((all.bytes(), all.events()), (80, 8));
        all.stop();
        let waits = |_: &Arc<Progress>| std::thread::sleep(Duration::from_millis(900));
        assert_eq!(reader.watched(&all, waits), Err(Given::Stopped));
        reader.patience = Duration::from_secs(60);
        let breaks = |_: &Arc<Progress>| -> u8 { panic!("meant to") };
        assert_eq!(reader.watched(&Progress::new(), breaks), Err(Given::Broken));
    }
}
