//! Recording: one time window, requested from one or several processes at once.
//!
//! First every server has to answer, with retries while it starts; then all start recording at the same moment;
//! the data of each is returned as received. One failure does not affect the others.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prost::bytes::Bytes;
use stepscope_read::files;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::address::Address;
use super::client::Client;
use super::error::CaptureError;
use super::messages::{ProfileOptions, ProfileRequest, ProfileResponse};
use super::place::{EXTENSION, session_name};

/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(500);
/// Time for the request to reach all of several hosts before the first one starts.
const TOGETHER: Duration = Duration::from_millis(250);
/// What other clients request; current servers ignore it.
const MAX_EVENTS: u64 = 1_000_000;

/// Level of detail.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    /// Host events: 0 none, 1 the user's own, 2 also expensive ops, 3 also cheap ones.
    pub host: u32,
    /// Device events: 0 none, 1 all.
    pub device: u32,
    /// Python calls: 0 none, 1 all.
    pub python: u32,
}

/// The options of a recording.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long to record.
    pub duration: Duration,
    /// Delay before the start.
    pub delay: Duration,
    /// How long to retry while a server is unavailable, not ready or busy.
    pub wait: Duration,
    /// How long a server may take to send the profile after the window ends.
    pub timeout: Duration,
    /// Largest profile to accept from one host.
    pub max_bytes: u64,
    /// Level of detail.
    pub levels: Levels,
    /// A private folder: a server that does not send its profile is told to write it there, which works if both
    /// share a disk.
    pub hidden: PathBuf,
}

/// The profile of one host.
#[derive(Clone, Debug)]
pub struct Recording {
    /// An `XSpace`.
    pub profile: Bytes,
    /// Time from the request to the last byte.
    pub took: Duration,
}

/// Result for one process.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its address.
    pub address: Address,
    /// Its profile, or why there is none.
    pub result: Result<Recording, CaptureError>,
}

/// Results for all processes.
#[derive(Clone, Debug)]
pub struct Recorded {
    /// Start of the window.
    pub began: SystemTime,
    /// In the order of the request.
    pub outcomes: Vec<Outcome>,
}

/// Progress of a recording.
#[derive(Debug)]
pub enum Event<'e> {
    /// Not available yet, or busy; it is being retried.
    Retrying {
        /// Why.
        error: &'e CaptureError,
        /// Remaining time.
        left: Duration,
    },
    /// Recording.
    Recording {
        /// Time until the window starts.
        starts_in: Duration,
        /// Length of the window.
        lasts: Duration,
    },
    /// Its profile has arrived.
    Received {
        /// Size of the profile.
        bytes: u64,
    },
    /// It returned none.
    Failed,
}

/// Receives progress, from any thread.
pub type Watch = Arc<dyn Fn(&Address, Event<'_>) + Send + Sync>;

/// Records, and stops when the user presses Ctrl-C, or when a [`Stopper`] says so.
#[derive(Debug)]
pub struct Recorder {
    runtime: Runtime,
    stop: watch::Receiver<bool>,
}

/// Stops a recorder from elsewhere.
#[derive(Clone, Debug)]
pub struct Stopper(watch::Sender<bool>);

impl Stopper {
    /// Ends any waiting; what was not received is lost.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl Recorder {
    /// A recorder that leaves Ctrl-C alone, and what stops it.
    pub fn stoppable() -> io::Result<(Self, Stopper)> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (stopper, stop) = watch::channel(false);
        Ok((Recorder { runtime, stop }, Stopper(stopper)))
    }

    /// From now on the first Ctrl-C ends any waiting; further ones call `insisted`.
    pub fn new(insisted: fn()) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let (stopper, stop) = watch::channel(false);
        runtime.spawn(async move {
            while tokio::signal::ctrl_c().await.is_ok() {
                if stopper.send_replace(true) {
                    insisted();
                }
            }
        });
        Ok(Recorder { runtime, stop })
    }

    /// Whether the user asked to stop.
    pub fn is_stopped(&self) -> bool {
        *self.stop.borrow()
    }

    /// Waits, or stops early if the user asks to.
    pub fn pause(&self, time: Duration) {
        self.runtime.block_on(async {
            tokio::select! {
                () = tokio::time::sleep(time) => {}
                () = stopped(self.stop.clone()) => {}
            }
        });
    }

    /// Records one window on all `targets`.
    pub fn record(&self, targets: &[Address], options: &Options, watch: &Watch) -> Recorded {
        self.runtime.block_on(record(targets, options, watch, &self.stop))
    }
}

async fn stopped(mut stop: watch::Receiver<bool>) {
    if stop.wait_for(|&stop| stop).await.is_err() {
        // Nobody is left who could stop anything.
        std::future::pending::<()>().await;
    }
}

type Results<T> = Vec<Result<T, CaptureError>>;

async fn record(
    targets: &[Address],
    options: &Options,
    watch: &Watch,
    stop: &watch::Receiver<bool>,
) -> Recorded {
    let mut connecting = JoinSet::new();
    for (index, address) in targets.iter().enumerate() {
        let (address, watch, wait) = (address.clone(), watch.clone(), options.wait);
        connecting.spawn(async move { (index, connect(&address, wait, &watch).await) });
    }
    let clients = all(connecting, targets.len(), stop).await;

    let together = if clients.iter().flatten().count() > 1 { TOGETHER } else { Duration::ZERO };
    let starts_in = options.delay.max(together);
    let began = SystemTime::now() + starts_in;
    let mut recording = JoinSet::new();
    let mut failed: Vec<(usize, CaptureError)> = Vec::new();
    for (index, client) in clients.into_iter().enumerate() {
        match (client, targets.get(index)) {
            (Ok(client), Some(address)) => {
                let host = address.file_stem(targets);
                let asked = Asked { options: options.clone(), began, starts_in, host };
                let (address, watch) = (address.clone(), watch.clone());
                recording.spawn(async move { (index, asked.of(&client, &address, &watch).await) });
            }
            (Ok(_), None) => {}
            (Err(error), _) => failed.push((index, error)),
        }
    }
    let mut results = all(recording, targets.len(), stop).await;
    for (index, error) in failed {
        if let Some(result) = results.get_mut(index) {
            *result = Err(error);
        }
    }
    let outcomes = targets.iter().cloned().zip(results);
    Recorded { began, outcomes: outcomes.map(|(address, result)| Outcome { address, result }).collect() }
}

/// Waits for all tasks, or until the user asks to stop; unfinished ones are interrupted.
async fn all<T: Send + 'static>(
    mut tasks: JoinSet<(usize, Result<T, CaptureError>)>,
    count: usize,
    stop: &watch::Receiver<bool>,
) -> Results<T> {
    let mut results: Results<T> = (0..count).map(|_| Err(CaptureError::Interrupted)).collect();
    let gather = async {
        while let Some(done) = tasks.join_next().await {
            if let Ok((index, result)) = done
                && let Some(slot) = results.get_mut(index)
            {
                *slot = result;
            }
        }
    };
    tokio::select! {
        () = gather => {}
        () = stopped(stop.clone()) => {}
    }
    results
}

/// Retries until it answers, `wait` has passed, or retrying is pointless.
async fn connect(address: &Address, wait: Duration, watch: &Watch) -> Result<Client, CaptureError> {
    let until = Instant::now() + wait;
    loop {
        match Client::connect(address).await {
            Err(error) if error.may_pass() && tried_again(&error, until, address, watch).await => {}
            Err(error) => {
                watch(address, Event::Failed);
                return Err(error);
            }
            connected => return connected,
        }
    }
}

/// Waits before the next attempt; returns false if there is no time left for one.
async fn tried_again(error: &CaptureError, until: Instant, address: &Address, watch: &Watch) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    watch(address, Event::Retrying { error, left });
    tokio::time::sleep(left.min(PAUSE)).await;
    true
}

/// A request to one server.
struct Asked {
    options: Options,
    began: SystemTime,
    starts_in: Duration,
    /// The name of its file.
    host: String,
}

impl Asked {
    async fn of(&self, client: &Client, address: &Address, watch: &Watch) -> Result<Recording, CaptureError> {
        let until = Instant::now() + self.options.wait;
        loop {
            match self.once(client, address, watch).await {
                Err(error) if error.may_pass() && tried_again(&error, until, address, watch).await => {}
                result => {
                    let event = match &result {
                        Ok(recording) => Event::Received { bytes: recording.profile.len() as u64 },
                        Err(_) => Event::Failed,
                    };
                    watch(address, event);
                    return result;
                }
            }
        }
    }

    async fn once(
        &self,
        client: &Client,
        address: &Address,
        watch: &Watch,
    ) -> Result<Recording, CaptureError> {
        let Options { duration, timeout, max_bytes, .. } = self.options;
        watch(address, Event::Recording { starts_in: self.starts_in, lasts: duration });
        let asked = Instant::now();
        let patience = self.starts_in.saturating_add(duration).saturating_add(timeout);
        let response = client.profile(self.request(), max_bytes, patience).await?;
        let profile = self.profile_in(response)?;
        Ok(Recording { profile, took: asked.elapsed() })
    }

    fn request(&self) -> ProfileRequest {
        let Levels { host, device, python } = self.options.levels;
        let duration_ms = u64::try_from(self.options.duration.as_millis()).unwrap_or(u64::MAX);
        let since = self.began.duration_since(UNIX_EPOCH).unwrap_or_default();
        let began_ns = u64::try_from(since.as_nanos()).unwrap_or(0);
        ProfileRequest {
            duration_ms,
            max_events: MAX_EVENTS,
            opts: Some(ProfileOptions {
                include_dataset_ops: true,
                host_tracer_level: host,
                device_tracer_level: device,
                python_tracer_level: python,
                version: 1,
                enable_hlo_proto: true,
                start_timestamp_ns: if self.starts_in.is_zero() { 0 } else { began_ns },
                duration_ms,
                raise_error_on_start_failure: true,
            }),
            repository_root: self.options.hidden.display().to_string(),
            session_id: session_name(self.began),
            host_name: self.host.clone(),
            emit_xspace: true,
        }
    }

    fn profile_in(&self, response: ProfileResponse) -> Result<Bytes, CaptureError> {
        match response {
            ProfileResponse { empty_trace: true, .. } => Err(CaptureError::Empty),
            ProfileResponse { xspace: Some(profile), .. } if !profile.is_empty() => Ok(profile),
            _ => self.profile_on_disk(),
        }
    }

    /// The profile that a server wrote to its own disk, if that disk is visible here.
    fn profile_on_disk(&self) -> Result<Bytes, CaptureError> {
        let folder = self.options.hidden.join(session_name(self.began));
        let there = folder.join(format!("{}.{EXTENSION}", self.host));
        let Ok(size) = fs::metadata(&there).map(|data| data.len()) else {
            return Err(CaptureError::NotSent { there });
        };
        let limit = self.options.max_bytes;
        let read = if size > limit {
            Err(CaptureError::TooLarge { found: Some(size), limit })
        } else {
            files::read_at_most(&there, limit)
                .map(Bytes::from)
                .map_err(|_| CaptureError::NotSent { there: there.clone() })
        };
        // The folder is private; what cannot be removed there does no harm.
        let _ = fs::remove_file(&there);
        let _ = fs::remove_dir(&folder);
        let _ = fs::remove_dir(&self.options.hidden);
        read
    }
}
