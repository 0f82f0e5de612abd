//! Runs work without the interpreter lock, on threads of this module's own, while the calling thread shows progress and
//! listens for Ctrl-C.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use stepscope_read::Progress;

/// How often progress is shown and signals are looked at.
const TICK: Duration = Duration::from_millis(100);

/// The threads, and the process that has them.
static POOL: Mutex<Option<(u32, Arc<ThreadPool>)>> = Mutex::new(None);

/// A function that shows progress: bytes read, bytes in all, events read.
pub(crate) struct Shown {
    pub(crate) progress: Arc<Progress>,
    pub(crate) tick: Option<Py<PyAny>>,
}

impl Shown {
    fn show(&self, py: Python<'_>) -> PyResult<()> {
        let Some(tick) = &self.tick else { return Ok(()) };
        let progress = &self.progress;
        tick.call1(py, (progress.bytes(), progress.total(), progress.events())).map(drop)
    }
}

/// Runs `work` and waits for it. An interrupt ends the wait at once and stops the progress; the work itself is abandoned
/// and ends later.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    shown: Option<Shown>,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (done, waiting) = mpsc::channel();
    pool()?.spawn(move || {
        // A panic on a thread of the pool would end the process. Nobody may be waiting any more.
        let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
    });
    wait(py, shown.as_ref(), waiting)
}

/// Runs `work` as [`run`] does, on a thread of its own: it may wait for the threads of the pool.
pub(crate) fn run_on_thread<T: Send + 'static>(
    py: Python<'_>,
    shown: &Shown,
    work: impl FnOnce() -> T + Send + 'static,
) -> PyResult<T> {
    let (done, waiting) = mpsc::channel();
    let thread = std::thread::Builder::new().name("stepscope-query".to_owned());
    thread.spawn(move || {
        let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
    })?;
    wait(py, Some(shown), waiting)
}

fn wait<T: Send>(
    py: Python<'_>,
    shown: Option<&Shown>,
    mut waiting: Receiver<std::thread::Result<T>>,
) -> PyResult<T> {
    loop {
        let (outcome, back) = py.detach(move || (waiting.recv_timeout(TICK), waiting));
        waiting = back;
        match outcome {
            Ok(Ok(result)) => return Ok(result),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => {
                return Err(PyRuntimeError::new_err("stepscope failed; please report this with the profile"));
            }
            Err(RecvTimeoutError::Timeout) => {
                let interrupted =
                    py.check_signals().and_then(|()| shown.map_or(Ok(()), |shown| shown.show(py)));
                if let (Err(_), Some(shown)) = (&interrupted, shown) {
                    shown.progress.stop();
                }
                interrupted?;
            }
        }
    }
}

/// The threads of this process. A forked child has none of its parent's, and would wait for them for ever, so it gets
/// its own. The lock is only taken with the interpreter lock held, as is a fork, so no child inherits it locked.
pub(crate) fn pool() -> PyResult<Arc<ThreadPool>> {
    let mut held = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let process = std::process::id();
    if let Some((owner, pool)) = &*held
        && *owner == process
    {
        return Ok(Arc::clone(pool));
    }
    let pool = ThreadPoolBuilder::new().thread_name(|number| format!("stepscope-{number}")).build();
    let pool = Arc::new(pool.map_err(|error| PyRuntimeError::new_err(error.to_string()))?);
    // The parent's pool cannot be ended from here: its threads do not exist.
    std::mem::forget(held.replace((process, Arc::clone(&pool))));
    Ok(pool)
}
