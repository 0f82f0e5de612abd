//! The summary of a run: how it ended, its steps, throughput, utilisation and memory, and what follows from them.

use stepscope_diagnose::hints::Hint;
use stepscope_diagnose::warnings::Warning;

use crate::usage::Usage;

/// Everything about a run.
#[derive(Clone, Debug, Default)]
pub struct RunPage {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its start, in nanoseconds since 1970.
    pub begun_wall_ns: i64,
    /// Its duration in seconds.
    pub wall_s: f64,
    /// The exit code, as a shell shows it.
    pub exit_code: u8,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Examples per batch, if known.
    pub batch_size: Option<u64>,
    /// Its steps.
    pub steps: Option<RunSteps>,
    /// Its hardware use.
    pub usage: Usage,
    /// Its hardware use while steps were steady.
    pub steady_usage: Option<SteadyUse>,
    /// What the utilisation suggests.
    pub hints: Vec<Hint>,
    /// What frameworks warned of, with the line of the output that proves it and how often it came.
    pub warnings: Vec<(Warning, String, u64)>,
    /// True if its output counts up but arrived all at once.
    pub held_back: bool,
    /// The verdict of a profile of the run.
    pub verdict: Option<Verdict>,
    /// Why the requested profile is missing.
    pub no_profile: Option<String>,
    /// Why a Python program was not recorded by itself.
    pub not_recorded: Option<NotRecorded>,
    /// Where the run was saved.
    pub saved: Option<String>,
}

/// The verdict of a profile of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// The verdict's sentence.
    pub sentence: String,
    /// The verdict's public id.
    pub id: Option<String>,
    /// Path of the profile.
    pub path: String,
    /// The user's code that it is about, as `train.py:41 make_batch`.
    pub line: Option<String>,
    /// What to do first.
    pub advice: Option<String>,
    /// Who holds memory, in one line, if that was recorded.
    pub memory: Option<String>,
    /// True if stepscope recorded it by itself, without a change to the program.
    pub unasked: bool,
}

/// Why a Python program was not recorded by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotRecorded {
    /// No interpreter let itself be followed, although the command is Python's, because of this option.
    Closed(String),
    /// It uses a framework, but no steps were seen.
    NoSteps,
    /// There were too few steps.
    TooShort,
    /// The profiler failed.
    Failed(String),
}

/// Source of the step times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepSource {
    /// Lines that the program printed, by their arrival.
    Lines,
    /// Event files that the program wrote, by the times in them; with the tag.
    Events(String),
    /// Figures that the program printed, because there was nothing to time.
    Reported,
    /// The program's own calls, timed inside it.
    Inside,
}

/// A run's steps.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSteps {
    /// Source of the times.
    pub source: StepSource,
    /// True if these are single examples: the program counts examples, and the batch size is unknown.
    pub examples: bool,
    /// Number of observed steps.
    pub count: u64,
    /// Number of warm-up steps among them.
    pub warm_up: u64,
    /// Number of steps excluded because stepscope's own profile slowed them down.
    pub profiled: u64,
    /// True if there is a steady state.
    pub steady: bool,
    /// The levels of the step time: number of steps and median in milliseconds.
    pub levels: Vec<(u64, f64)>,
    /// Seconds until the first step was seen.
    pub first_s: f64,
    /// True if single steps could not be distinguished.
    pub bursty: bool,
    /// Mean milliseconds per step.
    pub mean_ms: f64,
    /// The median.
    pub median_ms: f64,
    /// 90th percentile.
    pub p90_ms: f64,
    /// 99th percentile.
    pub p99_ms: f64,
    /// The standard deviation.
    pub deviation_ms: f64,
    /// The step time that the program itself reports.
    pub own_ms: Option<f64>,
    /// The throughput that the program itself reports.
    pub own_examples_per_s: Option<f64>,
    /// Each observation: number of the last step, number of steps, seconds since the start, milliseconds per
    /// step, warm-up.
    pub observed: Vec<(u64, u64, f64, f64, bool)>,
}

/// Utilisation while steps were steady.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct SteadyUse {
    /// Average number of busy cores.
    pub cpu: Option<f64>,
    /// Share of all cores' time spent waiting for disks.
    pub io_wait: Option<f64>,
    /// Share of time in which the busiest GPU ran any kernel.
    pub gpu_busy: Option<f64>,
}

impl RunPage {
    /// Steps per second over all steady steps.
    pub fn steps_per_s(&self) -> Option<f64> {
        self.steps
            .as_ref()
            .filter(|steps| !steps.examples && steps.mean_ms > 0.0)
            .map(|steps| 1e3 / steps.mean_ms)
    }

    /// Examples per second: from the batch size, from a count of examples, or as the program reports it.
    pub fn examples_per_s(&self) -> Option<f64> {
        let steps = self.steps.as_ref()?;
        if steps.examples {
            return (steps.mean_ms > 0.0).then(|| 1e3 / steps.mean_ms);
        }
        let batch = self.batch_size.map(|batch| batch as f64);
        self.steps_per_s().zip(batch).map(|(steps, batch)| steps * batch).or(steps.own_examples_per_s)
    }
}
