//! A model server under load.
//!
//! An *open loop* sends each request at its due time, even if earlier ones are unanswered, and counts the
//! latency from the due time. If a server stalls for a second, every request that it delayed shows that second.
//! A *closed loop* has a fixed number of clients, each of which waits for its answer before it sends the next
//! request: it shows how much a server can do, but hides stalls, because no request is sent while all clients wait.
//!
//! A [`Client`] holds the connections; [`Client::run`] makes one measurement, [`sweep::sweep`] makes many with
//! rising load.

mod connection;
mod schedule;
pub mod sweep;
mod tally;
mod target;

use std::net::{SocketAddr, ToSocketAddrs};
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use rustix::time::{ClockId, clock_gettime};
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::{mpsc, watch};

pub use connection::{Failure, Fault, Reply};
pub use stepscope_results::load_test::{Arrivals, Broken, Load};
pub use tally::{Failures, Outcome};
pub use target::{Protocol, Target};

use super::{BenchError, Stop};
use connection::{Pool, Times};
use schedule::{Schedule, sleep_exactly, sleep_until};
use tally::{Around, Ended, Tally};

/// Maximum number of waiting requests: a server that is this far behind will not catch up.
const MOST_WAITING: usize = 100_000;

/// How long to measure, and how long to wait.
#[derive(Copy, Clone, Debug)]
pub struct Plan {
    /// The load.
    pub load: Load,
    /// Warm-up: requests sent before this do not count.
    pub warmup: Duration,
    /// How long requests are sent after the warm-up.
    pub duration: Duration,
    /// Longest wait for answers after the last request; never beyond the timeout.
    pub drain: Duration,
}

/// Limits for requests to the server.
#[derive(Copy, Clone, Debug)]
pub struct Limits {
    /// Timeout of a request.
    pub timeout: Duration,
    /// Maximum number of open connections.
    pub connections: usize,
}

/// The first request, reported separately: it opens the connection, and servers load or compile on it.
#[derive(Clone, Debug)]
pub struct First {
    /// Its duration.
    pub took: Duration,
    /// Its answer.
    pub reply: Reply,
}

/// Connections to one server.
#[derive(Debug)]
pub struct Client {
    runtime: Runtime,
    pool: Arc<Pool>,
    body: u64,
    limits: Limits,
}

/// What all requests of one measurement share.
#[derive(Clone, Debug)]
struct Shared {
    pool: Arc<Pool>,
    tally: Arc<Mutex<Tally>>,
    timeout: Duration,
    /// Becomes true when answers are no longer waited for.
    over: watch::Receiver<bool>,
    /// Unanswered requests count as failures, unless the user ended the measurement.
    stop: Stop,
}

impl Client {
    /// Resolves the server's name; sends nothing yet.
    pub fn new(target: &Target, limits: Limits) -> Result<Client, BenchError> {
        let resolve = |source| BenchError::Resolve { host: target.host.clone(), source };
        let found = (target.host.as_str(), target.port).to_socket_addrs().map_err(resolve)?;
        let addresses: Vec<SocketAddr> = found.collect();
        if addresses.is_empty() {
            return Err(resolve(io::Error::from(io::ErrorKind::NotFound)));
        }
        let runtime = Builder::new_multi_thread().enable_all().build()?;
        let pool = Arc::new(Pool::new(target.clone(), addresses, limits.connections));
        Ok(Client { runtime, pool, body: target.body_bytes(), limits })
    }

    /// Sends one request and returns the answer or the failure. Shows whether a measurement makes sense.
    pub fn first(&self) -> Result<First, Fault> {
        let begun = Instant::now();
        let mut times = Times::default();
        let asked = async { tokio::time::timeout(self.limits.timeout, self.pool.ask(&mut times)).await };
        let reply = self.runtime.block_on(asked).unwrap_or_else(|_| Err(timed_out()))?;
        Ok(First { took: begun.elapsed(), reply })
    }

    /// Makes one measurement.
    pub fn run(&self, plan: &Plan, stop: &Stop) -> Outcome {
        let (opened, waited, closed) = (&self.pool.opened, &self.pool.waited, &self.pool.closed);
        let counts = || [opened, waited, closed].map(|count| count.load(Ordering::Relaxed));
        let ([opened_before, waited_before, closed_before], cpu_before) = (counts(), cpu());
        let start = Instant::now();
        let from = start + plan.warmup;
        let until = from + plan.duration;
        let (end_all, over) = watch::channel(false);
        let open = matches!(plan.load, Load::Open { .. });
        let shared = Shared {
            pool: Arc::clone(&self.pool),
            tally: Arc::new(Mutex::new(Tally::new(open, from, until))),
            timeout: self.limits.timeout,
            over,
            stop: stop.clone(),
        };
        let (done, mut waiting) = mpsc::channel::<()>(1);
        let ended = self.send(plan.load, start..until, &shared, done);
        let patience = plan.drain.min(self.limits.timeout);
        let mut stopped = stop.watch();
        self.runtime.block_on(async {
            tokio::select! {
                _ = waiting.recv() => {}
                () = tokio::time::sleep(patience) => {}
                _ = stopped.wait_for(|wished| *wished) => {}
            }
            // Requests that are still waiting now record how long they waited.
            end_all.send_replace(true);
            waiting.recv().await;
        });
        let [opened, waited, closed] = counts();
        let around = Around {
            stopped: stop.is_wished(),
            waited: waited - waited_before,
            connections: opened - opened_before,
            closed: closed - closed_before,
            body: self.body,
            cpu: cpu().saturating_sub(cpu_before),
        };
        let empty = Tally::new(open, from, until);
        let tally = std::mem::replace(&mut *shared.lock(), empty);
        tally.finish(plan.load, ended, around)
    }

    /// Sends requests until the time is up or the user stops, and returns when that was. Each request holds
    /// `done` until it has its answer.
    fn send(&self, load: Load, when: Range<Instant>, shared: &Shared, done: mpsc::Sender<()>) -> Instant {
        let (start, until) = (when.start, when.end);
        match load {
            Load::Open { per_second, arrivals } => {
                let due = Schedule::new(arrivals, per_second).map(|at| start + at);
                dispatch(due.take_while(|at| *at < until), self.runtime.handle(), shared, done);
                if shared.stop.is_wished() { Instant::now().min(until) } else { until }
            }
            Load::Closed { clients } => {
                for _ in 0..clients {
                    self.runtime.spawn(client(shared.clone(), until, done.clone()));
                }
                drop(done);
                let mut stopped = shared.stop.watch();
                self.runtime.block_on(async {
                    let _ = tokio::time::timeout_at(until.into(), stopped.wait_for(|wished| *wished)).await;
                });
                Instant::now().min(until)
            }
        }
    }
}

/// Hands each request to the runtime at its due time. Uses a separate thread for sleeping, because the
/// runtime's timers are only accurate to a millisecond.
fn dispatch(
    due: impl Iterator<Item = Instant> + Send,
    runtime: &Handle,
    shared: &Shared,
    done: mpsc::Sender<()>,
) {
    thread::scope(|scope| {
        scope.spawn(|| {
            sleep_exactly();
            let done = done;
            for due in due {
                if !sleep_until(due, || shared.stop.is_wished()) {
                    break;
                }
                if Arc::strong_count(&shared.tally) > MOST_WAITING {
                    shared.lock().refuse(due);
                    continue;
                }
                let (shared, done) = (shared.clone(), done.clone());
                runtime.spawn(async move {
                    shared.request(due).await;
                    drop(done);
                });
            }
        });
    });
}

/// Sends, waits, and repeats.
async fn client(shared: Shared, until: Instant, done: mpsc::Sender<()>) {
    loop {
        let now = Instant::now();
        if now >= until || shared.stop.is_wished() {
            break;
        }
        let failed_at_once = shared.request(now).await;
        if failed_at_once {
            // A server that refuses everything must not be hammered at the speed of the processor.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    drop(done);
}

impl Shared {
    fn lock(&self) -> std::sync::MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One request, from when it is handled until it is recorded; `true` if it failed.
    async fn request(&self, due: Instant) -> bool {
        let picked = Instant::now();
        let mut times = Times::default();
        let mut over = self.over.clone();
        let result = tokio::select! {
            biased;
            result = tokio::time::timeout_at((picked + self.timeout).into(), self.pool.ask(&mut times)) => {
                result.unwrap_or_else(|_| Err(timed_out()))
            }
            _ = over.wait_for(|over| *over) => {
                if self.stop.is_wished() {
                    return true;
                }
                Err(Fault::new(Failure::Unfinished, String::new()))
            }
        };
        let failed = result.is_err();
        self.lock().take(Ended { due, picked, times, end: Instant::now(), result });
        failed
    }
}

fn timed_out() -> Fault {
    Fault::new(Failure::Timeout, String::new())
}

/// Processor time of this process so far.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or(0))
}
