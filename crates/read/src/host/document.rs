//! The file `stepscope.host.v1` as plain values: what `python/stepscope/record.py` writes beside a profile.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The schema of the file; it is also how the file is recognised.
pub(super) const SCHEMA: &str = "stepscope.host.v1";

/// A window of a Python program, as its own interpreter saw it. Times are nanoseconds since the first reading of the clock.
#[derive(Debug, Default, Deserialize)]
pub(super) struct HostLog {
    pub(super) schema: String,
    #[serde(default)]
    pub(super) python: String,
    /// Readings of the wall clock and of the monotonic clock, in nanoseconds: at the start, at the end.
    #[serde(default)]
    pub(super) clock: Vec<(i64, i64)>,
    /// The system's number of the thread that runs the loop.
    #[serde(default)]
    pub(super) loop_thread: Option<i64>,
    #[serde(default)]
    pub(super) steps: Option<Steps>,
    #[serde(default)]
    pub(super) window: Option<Window>,
    #[serde(default)]
    pub(super) sites: Vec<Site>,
    /// Places in `sites`, outermost first.
    #[serde(default)]
    pub(super) stacks: Vec<Vec<usize>>,
    #[serde(default)]
    pub(super) threads: Vec<Thread>,
    /// Pauses of the garbage collector: start, duration, generation.
    #[serde(default)]
    pub(super) collections: Vec<(i64, i64, i64)>,
    /// Waits of the loop's thread for the interpreter lock: end, duration, stack of the thread that holds it.
    #[serde(default)]
    pub(super) lock_waits: Vec<(i64, i64, Option<usize>)>,
    /// Opened files: time, thread, path, whether for writing.
    #[serde(default)]
    pub(super) opens: Vec<(i64, Option<i64>, String, bool)>,
    /// Started programs: time, thread, path.
    #[serde(default)]
    pub(super) children: Vec<(i64, Option<i64>, String)>,
    #[serde(default)]
    pub(super) versions: BTreeMap<String, String>,
}

/// Steps that the program's calls show.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Steps {
    /// The code that runs the loop.
    #[serde(default, rename = "loop")]
    pub(super) looping: Option<Loop>,
    /// Where steps begin; the last one is where the last step ends.
    #[serde(default)]
    pub(super) times: Vec<i64>,
}

/// The code that runs the loop.
#[derive(Debug, Deserialize)]
pub(super) struct Loop {
    pub(super) file: String,
    pub(super) function: String,
}

/// The recorded window.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Window {
    /// The number of its first step in the run.
    #[serde(default)]
    pub(super) first_step: i64,
}

/// A line of code that was sampled.
#[derive(Debug, Deserialize)]
pub(super) struct Site {
    pub(super) file: String,
    pub(super) line: u32,
    pub(super) first_line: u32,
    pub(super) function: String,
    /// Whether it is the program's own code.
    pub(super) user: bool,
    #[serde(default)]
    pub(super) generator: bool,
}

/// The samples of one thread.
#[derive(Debug, Deserialize)]
pub(super) struct Thread {
    /// The system's number, if it is known.
    #[serde(default)]
    pub(super) id: Option<i64>,
    #[serde(default)]
    pub(super) name: String,
    /// Time, nanoseconds that the sample stands for, stack.
    pub(super) samples: Vec<(i64, i64, usize)>,
}

impl HostLog {
    /// The file, unless it is damaged or of another kind.
    pub(super) fn of(bytes: &[u8]) -> Option<HostLog> {
        let log: HostLog = serde_json::from_slice(bytes).ok()?;
        (log.schema == SCHEMA).then_some(log)
    }

    /// Whether a site is in the code that runs the loop: there, lines differ in what they do.
    pub(super) fn is_loop(&self, site: &Site) -> bool {
        let looping = self.steps.as_ref().and_then(|steps| steps.looping.as_ref());
        site.function == "<module>"
            || looping.is_some_and(|place| place.file == site.file && place.function == site.function)
    }
}
