//! Where batches come from: tf.data pipelines, PyTorch's DataLoader, or plain Python; what bounds them, and how
//! long the step waits for them.
//!
//! One [`InputPartial`] a host, merged, then finished into an [`Input`].

mod loader;
mod pipeline;
mod stage;
mod tfdata;

use stepscope_trace::Dur;

use crate::breakdown::Category;
use crate::context::Context;
use crate::python::{PythonFrames, PythonPartial};

pub use loader::Loader;
pub use pipeline::{BatchFrom, Bound, Pipeline, Stage, Written};
pub use stage::{FunctionOp, StageKind};

/// What one host says.
#[derive(Clone, Debug, Default)]
pub struct InputPartial {
    hosts: usize,
    steps: usize,
    waited: Dur,
    stepped: Dur,
    pipeline: tfdata::TfData,
    loaders: Vec<loader::LoaderTally>,
    python: PythonPartial,
}

/// Where batches come from.
#[derive(Clone, Debug)]
pub struct Input {
    /// How many hosts were looked at.
    pub hosts: usize,
    /// How many steps count, over all hosts; 0 where there are none, and the whole capture is looked at.
    pub steps: usize,
    /// How long a step waits for its batch, in milliseconds; `None` without steps.
    pub wait_ms_per_step: Option<f64>,
    /// The share of the steps, or of the capture, spent waiting.
    pub wait_fraction: f64,
    /// The tf.data pipeline.
    pub pipeline: Option<Pipeline>,
    /// PyTorch's loaders.
    pub loaders: Vec<Loader>,
    /// The user's own Python, where a Python tracer ran: a plain loader shows here.
    pub python: PythonFrames,
}

impl InputPartial {
    /// What one host says.
    pub fn of(context: &Context) -> Self {
        let breakdown = context.breakdown();
        let (mut waited, mut stepped, mut steps) = (Dur::ZERO, Dur::ZERO, 0);
        for (_, shares) in breakdown.counted() {
            waited += shares.shares.get(Category::Input);
            stepped += shares.window.dur();
            steps += usize::from(!breakdown.whole_capture);
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
    pub fn merge(&mut self, other: InputPartial) {
        self.hosts += other.hosts;
        self.steps += other.steps;
        self.waited += other.waited;
        self.stepped += other.stepped;
        self.pipeline.merge(other.pipeline);
        loader::merge(&mut self.loaders, other.loaders);
        self.python.merge(other.python);
    }

    /// The result.
    pub fn finish(self) -> Input {
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
