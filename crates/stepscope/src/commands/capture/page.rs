//! Recording for the web page: the capture of the command line with fixed limits, told to the page instead of a terminal.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use stepscope_capture::grpc::record::Watch;
use stepscope_capture::grpc::{Address, CaptureError, Event, Levels, Recorder};
use stepscope_serve::{Record, RecordListener, RecordStage, RecordWish};
use stepscope_session::{Cause, Problem};

use super::steady::{self, Waited};
use super::take::{NotTaken, Taker};
use super::watch::{Listener, Shown, doing};
use super::words;

/// How long to retry while nothing listens: somebody is looking at the page.
const WAIT: Duration = Duration::from_secs(5);
/// How long a process may take to send the profile after the window.
const TIMEOUT: Duration = Duration::from_secs(120);
/// How long to wait for steady steps.
const PATIENCE: Duration = Duration::from_secs(120);
/// Largest profile to accept from one process.
const LARGEST: u64 = 2_000_000_000;
/// Processes of one capture.
const MOST: usize = 64;

/// Records what the page asks for into one log directory.
#[derive(Debug)]
pub(crate) struct FromPage {
    into: PathBuf,
}

impl FromPage {
    /// Into this log directory.
    pub(crate) fn into(folder: PathBuf) -> Self {
        FromPage { into: folder }
    }
}

impl Record for FromPage {
    fn folder(&self) -> &Path {
        &self.into
    }

    fn record(&self, wish: &RecordWish, listener: &RecordListener) -> Result<PathBuf, Problem> {
        let hosts = hosts(&wish.address)?;
        let (recorder, stopper) = Recorder::stoppable().map_err(|error| {
            Problem::new(Cause::Nothing, "the recording cannot start")
                .then(error.to_string())
                .then("try again")
        })?;
        listener.at_cancel(move || stopper.stop());
        let told = OnPage { listener: listener.clone(), looking: Mutex::default() };
        let taker = Taker {
            recorder: &recorder,
            listener: &told,
            hosts,
            logdir: self.into.clone(),
            duration: wish.duration,
            delay: Duration::ZERO,
            wait: WAIT,
            timeout: TIMEOUT,
            max_bytes: LARGEST,
            levels: Levels { host: 2, device: 1, python: 0 },
        };
        if wish.until_steady {
            listener.stage(RecordStage::Settling);
            listener.remark("looking for steady steps");
            match steady::wait(&taker, PATIENCE) {
                Waited::Record => {}
                Waited::Stopped => return Err(words::interrupted()),
                Waited::Ended => return Err(advised(words::ended(&taker.hosts), ENDED)),
            }
        }
        told.settled();
        let taken = taker.take().map_err(|not| problem(not, &taker))?;
        match taken.missing.first() {
            Some(missing) => listener.remark(missing.to_string()),
            None => listener.remark("written"),
        }
        Ok(taken.session.path)
    }
}

/// The processes that a text names.
fn hosts(text: &str) -> Result<Vec<Address>, Problem> {
    let wrong = |why: String| {
        Problem::new(Cause::Usage, "the address cannot be used")
            .then(why)
            .then("give a host and a port, such as localhost:6009")
    };
    let mut all: Vec<Address> = Vec::new();
    for part in text.split_whitespace() {
        for host in words::addresses(part).map_err(wrong)?.0 {
            if all.len() >= MOST {
                return Err(wrong(format!("it names more than {MOST} processes")));
            }
            if !all.iter().any(|known| known.is_same_process(&host)) {
                all.push(host);
            }
        }
    }
    if all.is_empty() { Err(wrong("it is empty".to_owned())) } else { Ok(all) }
}

/// What to do where the command line would name its options.
const ENDED: &str =
    "let the program run longer, or record its first steps: start again without “until steady”";

fn advice(error: &CaptureError) -> Option<&'static str> {
    match error {
        CaptureError::Refused => Some(
            "check the port, and that the program still runs; it needs a profiler server, started before the loop with \
             tf.profiler.experimental.server.start(6009) or jax.profiler.start_server(9999)",
        ),
        CaptureError::Busy { .. } => Some(
            "a process records one profile at a time: wait for the other one (a capture, a TensorBoard callback, a trace \
             started in the program), then try again",
        ),
        CaptureError::Unavailable { .. } => Some("try again in a few seconds"),
        CaptureError::Empty => Some(
            "check that the loop is running and not blocked; record longer, or choose “until steady” to wait for steps",
        ),
        CaptureError::TooLarge { .. } => {
            Some("record a shorter time, or use `stepscope capture` with --max-size")
        }
        CaptureError::TimedOut { .. } => Some(
            "large profiles take long to collect: record a shorter time, or use `stepscope capture` with --timeout 15m",
        ),
        CaptureError::Server { .. } => Some("check the log of the process, then try again"),
        _ => None,
    }
}

/// The same problem with other advice.
fn advised(problem: Problem, todo: &str) -> Problem {
    let part = |place: usize| problem.parts().get(place).cloned().unwrap_or_default();
    Problem::new(Cause::Nothing, part(0)).then(part(1)).then(todo)
}

/// Why nothing was recorded.
fn problem(not: NotTaken, taker: &Taker<'_>) -> Problem {
    let failed = not.failed.into_iter().next();
    match failed {
        Some((address, error)) => {
            let problem = words::problem(&address, &error, taker);
            match advice(&error) {
                Some(todo) => advised(problem, todo),
                None => problem,
            }
        }
        None => {
            let unwritten = not.problems.into_iter().next_back().unwrap_or_else(words::interrupted);
            advised(unwritten, "free some space, or start the server with another folder for --record-into")
        }
    }
}

/// Tells the page how a capture goes.
struct OnPage {
    listener: RecordListener,
    /// Whether the windows that are recorded now only look for steady steps.
    looking: Mutex<Looking>,
}

#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
enum Looking {
    #[default]
    ForSteps,
    No,
}

impl OnPage {
    /// The next window is the one to keep.
    fn settled(&self) {
        *self.looking.lock().unwrap_or_else(PoisonError::into_inner) = Looking::No;
        self.listener.stage(RecordStage::Connecting);
        self.listener.remark("connecting");
    }
}

impl Listener for OnPage {
    fn remark(&self, text: &str) {
        self.listener.remark(text);
    }

    fn report(&self, problem: &Problem) {
        self.listener.remark(problem.to_string());
    }

    fn watch(&self) -> (Option<Shown>, Watch) {
        let looking = *self.looking.lock().unwrap_or_else(PoisonError::into_inner);
        let (listener, began) = (self.listener.clone(), Instant::now());
        let watch = move |address: &Address, event: Event<'_>| {
            if looking == Looking::ForSteps {
                return;
            }
            match &event {
                Event::Retrying { .. } => listener.stage(RecordStage::Connecting),
                Event::Recording { starts_in, lasts } => listener.window(*starts_in, *lasts),
                Event::Received { .. } => listener.stage(RecordStage::Receiving),
                Event::Failed => {}
            }
            listener.remark(format!("{address}: {}", doing(&event, began.elapsed())));
        };
        (None, Arc::new(watch))
    }
}
