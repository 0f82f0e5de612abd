//! Recording from the page: one capture at a time, from a running process into the folder that the user named when the
//! server started. How to record is the front end's business ([`Record`]); this module knows who may ask, what runs, and
//! what came of it. It knows nothing about protocols and profiles.

pub(crate) mod routes;
#[cfg(test)]
mod tests;

use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stepscope_session::Problem;

use crate::error::{Refusal, problem_json};
use crate::store::Store;

/// Longest window that the page may ask for.
const LONGEST: Duration = Duration::from_secs(600);
/// Longest text for addresses.
const LONGEST_ADDRESS: usize = 1_000;

/// What the page asks to be recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordWish {
    /// Addresses of the processes, as the user wrote them.
    pub address: String,
    /// How long to record.
    pub duration: Duration,
    /// Whether to wait until steps are steady.
    pub until_steady: bool,
}

/// Something that can record from running processes.
pub trait Record: Debug + Send + Sync {
    /// The folder that recordings are written to.
    fn folder(&self) -> &Path;

    /// Records, and returns the folder of the new session. Blocks until it is written, fails or is cancelled.
    fn record(&self, wish: &RecordWish, listener: &RecordListener) -> Result<PathBuf, Problem>;
}

/// How far a capture is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum RecordStage {
    /// It connects, or tries again.
    Connecting,
    /// It waits until steps are steady.
    Settling,
    /// The window is being recorded.
    Recording,
    /// The profile is being collected and written.
    Receiving,
}

impl RecordStage {
    fn name(self) -> &'static str {
        match self {
            RecordStage::Connecting => "connecting",
            RecordStage::Settling => "settling",
            RecordStage::Recording => "recording",
            RecordStage::Receiving => "receiving",
        }
    }
}

/// A capture that runs.
struct Running {
    wish: RecordWish,
    began: Instant,
    stage: RecordStage,
    /// The last remark.
    said: String,
    /// When the window began, and how long it lasts.
    window: Option<(Instant, Duration)>,
    cancelled: bool,
    at_cancel: Option<Box<dyn FnOnce() + Send>>,
}

/// What came of a capture.
enum End {
    /// A session, by its id if the store found it.
    Done(PathBuf, Option<usize>),
    Failed(Problem),
    Cancelled,
}

#[derive(Default)]
struct State {
    /// Captures started so far.
    number: u64,
    running: Option<Running>,
    last: Option<End>,
}

#[derive(Default)]
struct Shared(Mutex<State>);

impl Shared {
    /// Nothing panics while the lock is held.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("number", &self.state().number).finish_non_exhaustive()
    }
}

/// What a capture reports to, from any thread.
#[derive(Clone, Debug)]
pub struct RecordListener(Arc<Shared>);

impl RecordListener {
    fn change(&self, change: impl FnOnce(&mut Running)) {
        if let Some(running) = &mut self.0.state().running {
            change(running);
        }
    }

    /// How far it is.
    pub fn stage(&self, stage: RecordStage) {
        self.change(|running| running.stage = stage);
    }

    /// What to tell the user.
    pub fn remark(&self, text: impl Into<String>) {
        let text = text.into();
        self.change(|running| running.said = text);
    }

    /// The window begins after a while, and lasts so long.
    pub fn window(&self, starts_in: Duration, lasts: Duration) {
        self.change(|running| {
            running.stage = RecordStage::Recording;
            running.window = Some((Instant::now() + starts_in, lasts));
        });
    }

    /// Whether the user cancelled it.
    pub fn is_cancelled(&self) -> bool {
        self.0.state().running.as_ref().is_none_or(|running| running.cancelled)
    }

    /// What to do if the user cancels; done at once if that has happened.
    pub fn at_cancel(&self, act: impl FnOnce() + Send + 'static) {
        let mut state = self.0.state();
        match &mut state.running {
            Some(running) if !running.cancelled => running.at_cancel = Some(Box::new(act)),
            _ => {
                drop(state);
                act();
            }
        }
    }
}

/// Captures of this server: at most one at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Captures {
    with: Option<Arc<dyn Record>>,
    shared: Arc<Shared>,
}

impl Captures {
    /// Captures by `with`; without it there are none.
    pub(crate) fn new(with: Option<Arc<dyn Record>>) -> Self {
        Captures { with, shared: Arc::default() }
    }

    /// Starts a capture on a thread of its own.
    pub(crate) fn start(&self, wish: RecordWish, store: &Arc<Store>) -> Result<(), Refusal> {
        let with = self.with.clone().ok_or(Refusal::RecordingOff)?;
        if wish.duration.is_zero() || wish.duration > LONGEST {
            return Err(Refusal::Query("duration_ms", wish.duration.as_millis().to_string()));
        }
        if wish.address.trim().is_empty() || wish.address.len() > LONGEST_ADDRESS {
            return Err(Refusal::Query("address", wish.address.chars().take(80).collect()));
        }
        let mut state = self.shared.state();
        if state.running.is_some() {
            return Err(Refusal::Recording);
        }
        state.number += 1;
        state.last = None;
        state.running = Some(Running {
            wish: wish.clone(),
            began: Instant::now(),
            stage: RecordStage::Connecting,
            said: String::new(),
            window: None,
            cancelled: false,
            at_cancel: None,
        });
        drop(state);
        let (shared, store) = (self.shared.clone(), store.clone());
        std::thread::spawn(move || {
            // However it ends, the next one may start.
            let _ends = Ends(shared.clone());
            let ended = with.record(&wish, &RecordListener(shared.clone()));
            let end = match ended {
                // A capture that was complete when the user cancelled stays: its files are there.
                Ok(path) => {
                    let id = store.session_in(&path);
                    End::Done(path, id)
                }
                Err(_) if RecordListener(shared.clone()).is_cancelled() => End::Cancelled,
                Err(problem) => End::Failed(problem),
            };
            shared.state().last = Some(end);
        });
        Ok(())
    }

    /// Cancels the capture that runs, if one does.
    pub(crate) fn cancel(&self) -> Result<(), Refusal> {
        self.with.as_ref().ok_or(Refusal::RecordingOff)?;
        let act = self.shared.state().running.as_mut().and_then(|running| {
            running.cancelled = true;
            running.at_cancel.take()
        });
        if let Some(act) = act {
            act();
        }
        Ok(())
    }

    /// What runs, or what came of the last capture.
    pub(crate) fn about(&self) -> Value {
        let Some(with) = &self.with else { return json!({"into": null, "state": "off", "number": 0}) };
        let state = self.shared.state();
        let mut about = json!({
            "into": with.folder().display().to_string(), "number": state.number, "state": "idle", "session": null,
            "error": null,
        });
        if let Some(running) = &state.running {
            let ms = |time: Duration| time.as_secs_f64() * 1e3;
            about["state"] = json!("running");
            about["address"] = json!(running.wish.address);
            about["stage"] = json!(running.stage.name());
            about["said"] = json!(running.said);
            about["cancelled"] = json!(running.cancelled);
            about["elapsed_ms"] = json!(ms(running.began.elapsed()));
            about["window"] = running.window.map_or(Value::Null, |(start, lasts)| {
                let elapsed = Instant::now().saturating_duration_since(start).min(lasts);
                json!({"elapsed_ms": ms(elapsed), "lasts_ms": ms(lasts)})
            });
            return about;
        }
        match &state.last {
            Some(End::Done(path, id)) => {
                about["state"] = json!("done");
                about["path"] = json!(path.display().to_string());
                about["session"] = json!(id);
            }
            Some(End::Failed(problem)) => {
                about["state"] = json!("failed");
                about["error"] = problem_json(problem);
            }
            Some(End::Cancelled) => about["state"] = json!("cancelled"),
            None => {}
        }
        about
    }
}

/// Ends what runs when dropped, even after a panic.
struct Ends(Arc<Shared>);

impl Drop for Ends {
    fn drop(&mut self) {
        self.0.state().running = None;
    }
}
