//! A run of a command, on one page: how it ended, its steps, throughput, utilisation and memory, and what follows from
//! them. Plain values that the caller fills; [`write_text`] words them, [`write_json`] writes `stepscope.run.v1`.

mod json;
mod text;
mod usage;

use stepscope_diagnose::hints::Hint;

pub use json::write_json;
pub use text::write_text;
pub(crate) use usage::lines as usage_lines;
pub use usage::{GpuUse, Spread, Use, write_use_json};

/// All of a run.
#[derive(Clone, Debug, Default)]
pub struct RunPage {
    /// The program and its arguments.
    pub command: Vec<String>,
    /// When it began, in nanoseconds since 1970.
    pub begun_wall_ns: i64,
    /// How long it took.
    pub wall_s: f64,
    /// The exit code, as a shell shows it.
    pub exit_code: u8,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Examples in a batch, where known.
    pub batch_size: Option<u64>,
    /// Its steps.
    pub steps: Option<RunSteps>,
    /// Its use of the hardware.
    pub usage: Use,
    /// Its use of the hardware while steps were steady.
    pub steady_usage: Option<SteadyUse>,
    /// What the utilisation suggests.
    pub hints: Vec<Hint>,
    /// What a profile of it shows.
    pub verdict: Option<Verdict>,
    /// Why the profile that was asked for is not there.
    pub no_profile: Option<String>,
    /// Where all of it was saved.
    pub saved: Option<String>,
}

/// What a profile of a run shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// The verdict's sentence.
    pub sentence: String,
    /// The verdict's public id.
    pub id: Option<String>,
    /// Where the profile lies.
    pub path: String,
}

/// Where step times come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepSource {
    /// Lines that the program printed.
    Lines,
    /// Event files that it wrote; this tag.
    Events(String),
    /// Figures that it printed.
    Said,
}

/// A run's steps.
#[derive(Clone, Debug, PartialEq)]
pub struct RunSteps {
    /// Where the times come from.
    pub source: StepSource,
    /// They are single examples: the program counts these, and nobody said how many make a batch.
    pub examples: bool,
    /// How many were observed.
    pub count: u64,
    /// How many of them came before the steady state.
    pub warm_up: u64,
    /// How many more are left out, since our own profile slowed them.
    pub profiled: u64,
    /// Is there a steady state?
    pub steady: bool,
    /// Medians of the levels that there were, with how many steps each had, in milliseconds.
    pub levels: Vec<(u64, f64)>,
    /// Seconds until the first step was heard of.
    pub first_s: f64,
    /// Single steps could not be told apart.
    pub bursty: bool,
    /// Milliseconds a step.
    pub mean_ms: f64,
    /// The median.
    pub median_ms: f64,
    /// Nine in ten are below.
    pub p90_ms: f64,
    /// 99 in 100 are below.
    pub p99_ms: f64,
    /// The standard deviation.
    pub deviation_ms: f64,
    /// The program's own figure.
    pub own_ms: Option<f64>,
    /// The program's own throughput.
    pub own_examples_per_s: Option<f64>,
    /// Each observation: the last step's number, how many steps, seconds since the start, milliseconds a step, warm-up.
    pub observed: Vec<(u64, u64, f64, f64, bool)>,
}

/// Utilisation while steps were steady.
#[derive(Copy, Clone, Debug, Default, PartialEq)]
pub struct SteadyUse {
    /// Cores that were kept busy.
    pub cpu: Option<f64>,
    /// The share of all cores' time spent waiting for disks.
    pub io_wait: Option<f64>,
    /// The share of time in which the busiest GPU ran any kernel.
    pub gpu_busy: Option<f64>,
}

impl RunPage {
    /// Steps a second, over all steady steps.
    pub fn steps_per_s(&self) -> Option<f64> {
        self.steps
            .as_ref()
            .filter(|steps| !steps.examples && steps.mean_ms > 0.0)
            .map(|steps| 1e3 / steps.mean_ms)
    }

    /// Examples a second: from the batch, from a count of examples, or as the program has it.
    pub fn examples_per_s(&self) -> Option<f64> {
        let steps = self.steps.as_ref()?;
        if steps.examples {
            return (steps.mean_ms > 0.0).then(|| 1e3 / steps.mean_ms);
        }
        let batch = self.batch_size.map(|batch| batch as f64);
        self.steps_per_s().zip(batch).map(|(steps, batch)| steps * batch).or(steps.own_examples_per_s)
    }
}
