//! One short profile over gRPC, recorded once the program has reported enough steps to be past its warm-up.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use super::listen::Listener;
use crate::grpc::record::Watch;
use crate::grpc::{Address, CaptureError, Levels, Options, Recorder, SessionFolder};

/// A profile to record.
#[derive(Clone, Debug)]
pub struct ProfileRequest {
    /// Address of the program's profiler server.
    pub address: Address,
    /// How long to record.
    pub duration: Duration,
    /// The log directory for it.
    pub into: PathBuf,
}

/// The result.
#[derive(Debug)]
pub struct Captured {
    /// The session's folder, or why there is none.
    pub session: Result<PathBuf, CaptureFailure>,
    /// When the program was being profiled, which slows it down.
    pub during: Option<(SystemTime, SystemTime)>,
}

/// Why there is no profile.
#[derive(Debug, thiserror::Error)]
pub enum CaptureFailure {
    /// The program ended before its steps were steady.
    #[error("the program ended before a profile could be taken")]
    TooShort,
    /// The server returned none.
    #[error(transparent)]
    Server(#[from] CaptureError),
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] std::io::Error),
}

/// Number of step reports after which the warm-up counts as over.
const MOMENTS: usize = 15;
/// A program that reports no steps is profiled after this time.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long one attempt waits for the server. It is repeated for as long as the program runs.
const WAIT: Duration = Duration::from_secs(1);
const TIMEOUT: Duration = Duration::from_secs(120);
const MOST_BYTES: u64 = 2 << 30;
const TICK: Duration = Duration::from_millis(50);

/// A profile being recorded.
pub(super) struct Profiler {
    ended: Arc<AtomicBool>,
    thread: JoinHandle<Captured>,
}

impl ProfileRequest {
    pub(super) fn start(self, listener: Arc<Mutex<Listener>>) -> Profiler {
        let ended = Arc::new(AtomicBool::new(false));
        let over = Arc::clone(&ended);
        let thread = std::thread::spawn(move || {
            let begun = Instant::now();
            let moments = || listener.lock().unwrap_or_else(PoisonError::into_inner).moments();
            while moments() < MOMENTS && begun.elapsed() < PATIENCE {
                if over.load(Ordering::Relaxed) {
                    return Captured { session: Err(CaptureFailure::TooShort), during: None };
                }
                std::thread::sleep(TICK);
            }
            loop {
                let mut during = None;
                let session = self.take(&mut during);
                // Some programs start their server late: after loading data, or once the first epoch is over.
                let is_early = matches!(
                    session,
                    Err(CaptureFailure::Server(CaptureError::Refused | CaptureError::Unreachable { .. }))
                );
                if !is_early || over.load(Ordering::Relaxed) {
                    return Captured { session, during };
                }
                std::thread::sleep(TICK);
            }
        });
        Profiler { ended, thread }
    }

    pub(super) fn take(
        &self,
        during: &mut Option<(SystemTime, SystemTime)>,
    ) -> Result<PathBuf, CaptureFailure> {
        let place = SessionFolder::below(&self.into);
        let options = Options {
            duration: self.duration,
            delay: Duration::ZERO,
            wait: WAIT,
            timeout: TIMEOUT,
            max_bytes: MOST_BYTES,
            levels: Levels { host: 2, device: 1, python: 0 },
            hidden: place.hidden(),
        };
        // A second Ctrl-C goes to the child, like the first one.
        let recorder = Recorder::new(|| {})?;
        let unheard: Watch = Arc::new(|_, _| {});
        let recorded = recorder.record(std::slice::from_ref(&self.address), &options, &unheard);
        let outcome = recorded.outcomes.into_iter().next().ok_or(CaptureFailure::TooShort)?;
        let recording = outcome.result?;
        // Until the profile has been received: assembling it takes the program's time as well.
        *during = Some((recorded.began, SystemTime::now()));
        let host = format!("{}_{}", outcome.address.host.replace(':', "_"), outcome.address.port);
        Ok(place.write(recorded.began, [(host, &recording.profile[..])])?.path)
    }
}

impl Profiler {
    /// The run has ended.
    pub(super) fn finish(self) -> Option<Captured> {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.join().ok()
    }
}
