//! Loads: each on threads of its own, a few at a time, within limits of time and memory.
//!
//! A thread cannot be ended from outside. A load that meets a limit is told to stop ([`Progress::stop`]), and nobody
//! waits until it does: its place is free for the next one at once.
//!
//! [`Progress::stop`]: stepscope_read::Progress::stop

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::words;
use stepscope_session::{Cause, Problem};

use super::limits::{Limits, anonymous_bytes};
use super::loading::Loading;
use crate::error::problem;

/// How often a load is held against its limits.
const LOOK: Duration = Duration::from_millis(50);
/// What other work may add meanwhile to the memory of the process, which is all that the system tells.
const OTHERS: u64 = 32 << 20;

/// How a load ended.
#[derive(Debug)]
pub(super) enum Ended<T> {
    /// With a result.
    Done(T),
    /// Without one: what was read is unreadable, too large or too slow.
    Failed(Problem),
    /// It was abandoned, and others waited.
    GaveWay,
}

/// The places for loads.
#[derive(Debug)]
pub(super) struct Loads {
    places: Mutex<Places>,
    freed: Condvar,
}

#[derive(Debug)]
struct Places {
    free: usize,
    waiting: usize,
}

/// A place that is taken until this is dropped.
pub(super) struct Place<'l>(&'l Loads);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.places().free += 1;
        self.0.freed.notify_one();
    }
}

impl Default for Loads {
    /// As many as there are cores, but at least two: one bad file must not keep the others out.
    fn default() -> Self {
        let free = thread::available_parallelism().map_or(2, |cores| cores.get().clamp(2, 8));
        Loads { places: Mutex::new(Places { free, waiting: 0 }), freed: Condvar::new() }
    }
}

impl Loads {
    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a free place.
    pub(super) fn place(&self) -> Place<'_> {
        let mut places = self.places();
        places.waiting += 1;
        while places.free == 0 {
            places = self.freed.wait(places).unwrap_or_else(PoisonError::into_inner);
        }
        places.waiting -= 1;
        places.free -= 1;
        Place(self)
    }

    #[cfg(test)]
    pub(super) fn free(&self) -> usize {
        self.places().free
    }

    /// Runs `work` and blocks until it ends or meets a limit.
    pub(super) fn run<T: Send + 'static>(
        &self,
        loading: &Arc<Loading>,
        limits: Limits,
        work: impl FnOnce(&Loading) -> Result<T, Problem> + Send + 'static,
    ) -> Ended<T> {
        let _place = self.place();
        loading.start();
        let (began, before) = (Instant::now(), anonymous_bytes());
        let (send, done) = mpsc::channel();
        let reading = loading.clone();
        let spawned = thread::Builder::new().name("load".to_owned()).spawn(move || {
            let read = catch_unwind(AssertUnwindSafe(|| on_own_cores(|| work(&reading))));
            // Nobody may be waiting any more.
            let _ = send.send(read);
        });
        if let Err(error) = spawned {
            return Ended::Failed(problem(Cause::Nothing, words::cannot_run(&error.to_string())));
        }
        loop {
            match done.recv_timeout(LOOK) {
                Ok(Ok(Ok(read))) => return Ended::Done(read),
                Ok(Ok(Err(problem))) => return Ended::Failed(problem),
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                    return Ended::Failed(problem(Cause::Damaged, words::broken()));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            let grown = anonymous_bytes().zip(before).map_or(0, |(now, before)| now.saturating_sub(before));
            let met = if began.elapsed() > limits.load {
                Some(words::too_slow(limits.load.as_secs_f64()))
            } else if grown > limits.bytes.max(OTHERS) {
                Some(words::too_large(limits.bytes.max(OTHERS)))
            } else {
                None
            };
            if let Some(why) = met {
                loading.progress.stop();
                return Ended::Failed(problem(Cause::Nothing, why));
            }
            if loading.is_forsaken() && self.places().waiting > 0 {
                loading.progress.stop();
                return Ended::GaveWay;
            }
        }
    }
}

/// Runs `work` on a pool of threads of its own, so that a load that hangs holds up no other work.
fn on_own_cores<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    match rayon::ThreadPoolBuilder::new().thread_name(|_| "load".to_owned()).build() {
        Ok(pool) => pool.install(work),
        Err(_) => work(),
    }
}
