//! The results of the requests of one measurement.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::Load;
use super::connection::{Failure, Fault, Reply, Times};
use crate::bench::latencies::{Distribution, Recorder};

/// Number of failures, and the first message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    /// How often.
    pub count: u64,
    /// The message of the server or the system; may be empty.
    pub said: String,
}

/// One measurement: one rate or number of clients, for some time.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The requested load.
    pub load: Load,
    /// Duration of the measurement, without the warm-up.
    pub window: Duration,
    /// From the start of the window to the last answer to one of its requests.
    pub elapsed: Duration,
    /// True if the user ended it early.
    pub stopped: bool,
    /// Number of warm-up requests, which count nowhere else.
    pub warmup: u64,
    /// Completed requests of the window, successful or not.
    pub requests: u64,
    /// Successful requests.
    pub answered: u64,
    /// Time from due (open loop) or sent (closed loop) to the end of the answer. A request that timed out is
    /// included with the time waited, because excluding it would flatter the server.
    pub latency: Distribution,
    /// Time from sent to the end of the answer.
    pub service: Distribution,
    /// Time from due until the generator handled the request. Empty in a closed loop.
    pub lateness: Distribution,
    /// Requests that found all connections in use.
    pub waited: u64,
    /// What failed.
    pub failures: BTreeMap<Failure, Failures>,
    /// Bytes of bodies sent.
    pub bytes_out: u64,
    /// Bytes of bodies received.
    pub bytes_in: u64,
    /// Connections opened.
    pub connections: u64,
    /// Number of answers after which the server closed the connection.
    pub closed: u64,
    /// Successful answers within the window, including those to warm-up requests.
    in_window: u64,
    /// Processor time of the generator over the whole measurement.
    pub cpu: Duration,
}

impl Outcome {
    /// Answers per second: all answers over the time to the last one, or those within the window over the
    /// window. A single late answer makes the first too small; unfinished answers make the second too small.
    pub fn throughput(&self) -> f64 {
        let rate = |answers: u64, time: Duration| answers as f64 / time.as_secs_f64().max(1e-9);
        rate(self.answered, self.elapsed).max(rate(self.in_window, self.window))
    }

    /// Share of failed requests.
    pub fn failed(&self) -> f64 {
        let failed = self.requests - self.answered;
        failed as f64 / (self.requests.max(1)) as f64
    }

    /// Whether the generator was the bottleneck instead of the server. Late requests count from their due time,
    /// so a late generator makes the server look slow.
    pub fn generator_late(&self) -> bool {
        let (Some(late), Some(latency)) = (self.lateness.percentile(0.9), self.latency.percentile(0.9))
        else {
            return false;
        };
        late > LATE && late.as_secs_f64() > LATE_SHARE * latency.as_secs_f64()
    }
}

/// Smaller delays do not matter.
const LATE: Duration = Duration::from_millis(1);
/// Share of the latency from which on the generator's delay makes a figure unreliable.
const LATE_SHARE: f64 = 0.1;

/// A completed request.
#[derive(Debug)]
pub(super) struct Ended {
    /// Its due time.
    pub(super) due: Instant,
    /// When the generator handled it.
    pub(super) picked: Instant,
    pub(super) times: Times,
    /// When all was over.
    pub(super) end: Instant,
    pub(super) result: Result<Reply, Fault>,
}

/// Collects requests as they end.
#[derive(Debug)]
pub(super) struct Tally {
    open: bool,
    /// End of the warm-up.
    from: Instant,
    /// The last request is sent before this.
    until: Instant,
    last: Instant,
    in_window: u64,
    warmup: u64,
    requests: u64,
    answered: u64,
    latency: Recorder,
    service: Recorder,
    lateness: Recorder,
    failures: BTreeMap<Failure, Failures>,
    bytes_in: u64,
}

impl Tally {
    pub(super) fn new(open: bool, from: Instant, until: Instant) -> Tally {
        Tally {
            open,
            from,
            until,
            last: from,
            in_window: 0,
            warmup: 0,
            requests: 0,
            answered: 0,
            latency: Recorder::default(),
            service: Recorder::default(),
            lateness: Recorder::default(),
            failures: BTreeMap::new(),
            bytes_in: 0,
        }
    }

    pub(super) fn take(&mut self, ended: Ended) {
        let Ended { due, picked, times, end, result } = ended;
        let end = times.done.unwrap_or(end);
        self.in_window += u64::from(result.is_ok() && (self.from..self.until).contains(&end));
        if due < self.from {
            self.warmup += 1;
            return;
        }
        self.requests += 1;
        self.last = self.last.max(end);
        if self.open {
            self.lateness.record(picked.saturating_duration_since(due));
        }
        let sent = times.sent.unwrap_or(picked);
        let begin = if self.open { due } else { sent };
        let failure = result.as_ref().err().map(|fault| fault.failure);
        // A refusal comes at once and says nothing about the duration of an answer; a timeout says "at least".
        if matches!(failure, None | Some(Failure::Timeout | Failure::Unfinished)) {
            self.latency.record(end.saturating_duration_since(begin));
            self.service.record(end.saturating_duration_since(sent));
        }
        match result {
            Ok(reply) => {
                self.answered += 1;
                self.bytes_in += reply.bytes;
            }
            Err(fault) => self.fail(fault),
        }
    }

    /// A request that was never sent.
    pub(super) fn refuse(&mut self, due: Instant) {
        if due >= self.from {
            self.requests += 1;
            self.fail(Fault::new(Failure::Backlog, String::new()));
        }
    }

    fn fail(&mut self, fault: Fault) {
        let failures = self.failures.entry(fault.failure).or_insert(Failures { count: 0, said: fault.said });
        failures.count += 1;
    }

    /// `until` is when the last request was due or sent.
    pub(super) fn finish(self, load: Load, until: Instant, around: Around) -> Outcome {
        let window = until.saturating_duration_since(self.from);
        Outcome {
            load,
            window,
            elapsed: self.last.saturating_duration_since(self.from).max(window),
            stopped: around.stopped,
            warmup: self.warmup,
            requests: self.requests,
            answered: self.answered,
            latency: self.latency.finish(),
            service: self.service.finish(),
            lateness: self.lateness.finish(),
            waited: around.waited,
            failures: self.failures,
            bytes_out: self.requests * around.body,
            bytes_in: self.bytes_in,
            connections: around.connections,
            closed: around.closed,
            in_window: self.in_window,
            cpu: around.cpu,
        }
    }
}

/// What is known about a measurement besides its requests.
#[derive(Debug)]
pub(super) struct Around {
    pub(super) stopped: bool,
    pub(super) waited: u64,
    pub(super) connections: u64,
    pub(super) closed: u64,
    pub(super) body: u64,
    pub(super) cpu: Duration,
}
