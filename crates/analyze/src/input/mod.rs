//! The source of batches: tf.data pipelines, PyTorch's DataLoader, or plain Python; what limits them, and how
//! long the step waits for them.
//!
//! One [`InputPartial`] per host, merged, then finished into an [`Input`].

mod loader;
mod pipeline;
mod stage;
mod tfdata;

use stepscope_trace::Dur;

use crate::analysis::Analysis;
use crate::breakdown::Category;
use crate::context::Context;
use crate::time::python::{PythonFrames, PythonPartial};

pub use loader::Loader;
pub use pipeline::{BatchFrom, Bound, Pipeline, Stage, Written};
pub use stage::{FunctionOp, StageKind};

/// The input of one host.
#[derive(Clone, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct InputPartial {
    hosts: usize,
    steps: usize,
    waited: Dur,
    stepped: Dur,
    pipeline: tfdata::TfData,
    loaders: Vec<loader::LoaderTally>,
    python: PythonPartial,
}

/// The source of batches.
#[derive(Clone, Debug)]
pub struct Input {
    /// Number of hosts analysed.
    pub hosts: usize,
    /// Number of counted steps over all hosts; 0 if there are none and the whole capture is analysed.
    pub steps: usize,
    /// How long a step waits for its batch, in milliseconds; `None` without steps.
    pub wait_ms_per_step: Option<f64>,
    /// Share of the steps, or of the capture, spent waiting.
    pub wait_fraction: f64,
    /// The tf.data pipeline.
    pub pipeline: Option<Pipeline>,
    /// PyTorch's loaders.
    pub loaders: Vec<Loader>,
    /// The user's own Python, if a Python tracer ran: a plain loader appears here.
    pub python: PythonFrames,
}

impl Analysis for InputPartial {
    type Output = Input;

    /// What one host says.
    fn of(context: &Context) -> Self {
        let breakdown = context.breakdown();
        let (mut waited, mut stepped, mut steps) = (Dur::ZERO, Dur::ZERO, 0);
        for (_, shares) in breakdown.counted() {
            waited += shares.shares.get(Category::Input);
            stepped += shares.window.dur();
            steps += usize::from(!breakdown.steps.whole_capture);
        }
        InputPartial {
            hosts: 1,
            steps,
            waited,
            stepped,
            pipeline: tfdata::TfData::of(context),
            loaders: loader::loaders(context),
            python: PythonPartial::of(context),
        }
    }

    /// Adds another host.
    fn merge(&mut self, other: InputPartial) {
        self.hosts += other.hosts;
        self.steps += other.steps;
        self.waited += other.waited;
        self.stepped += other.stepped;
        self.pipeline.merge(other.pipeline);
        loader::merge(&mut self.loaders, other.loaders);
        self.python.merge(other.python);
    }

    /// Keeps a bounded number of fetches and frames.
    fn bound(&mut self) {
        self.loaders.iter_mut().for_each(loader::LoaderTally::bound);
        self.python.bound();
    }

    /// The result.
    fn finish(self) -> Input {
        Input {
            hosts: self.hosts,
            steps: self.steps,
            wait_ms_per_step: (self.steps > 0).then(|| self.waited.ms() / self.steps as f64),
            wait_fraction: self.waited.fraction_of(self.stepped),
            pipeline: Pipeline::of(self.pipeline),
            loaders: self.loaders.into_iter().map(loader::LoaderTally::finish).collect(),
            python: self.python.finish(),
        }
    }
}
