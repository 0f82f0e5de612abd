//! The source of batches: tf.data pipelines, PyTorch's DataLoader, or plain Python; what limits them, and how
//! long the step waits for them.
//!
//! One [`InputPartial`] per host, merged, then finished into an [`Input`].

mod loader;
mod pipeline;
mod service;
mod stage;
mod tfdata;

use stepscope_trace::Dur;

use crate::analysis::Analysis;
use crate::breakdown::Category;
use crate::context::Context;
use crate::job::JobPart;
use crate::time::python::{PythonFrames, PythonPartial};

pub use loader::Loader;
pub use pipeline::{BatchFrom, Bound, Pipeline, Stage, Written};
pub use service::{Service, ServiceWorker};
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
    #[serde(default)]
    service: service::ServicePartial,
    #[serde(default)]
    of_hosts: Vec<HostInput>,
}

/// What limits the pipeline of one host.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct HostInput {
    /// The host.
    pub host: String,
    /// The stage that limits its pipeline, as it was written if that is known.
    pub stage: Option<String>,
    /// Milliseconds per batch in that stage.
    pub stage_ms: Option<f64>,
    /// How many of its calls run at once, if stated; 1 if it is written without parallel calls.
    pub at_once: Option<u64>,
    /// Examples per batch.
    pub batch_size: Option<u64>,
}

impl HostInput {
    fn of(host: &str, pipeline: Option<&Pipeline>) -> Option<Self> {
        let pipeline = pipeline?;
        let stage = pipeline.bottleneck();
        let alone = stage.filter(|stage| !stage.name.starts_with("Parallel")).map(|_| 1);
        Some(HostInput {
            host: host.to_owned(),
            stage: stage.map(|stage| stage.name.clone()),
            stage_ms: pipeline.bound.as_ref().map(|bound| bound.ms_per_batch),
            at_once: stage.and_then(|stage| stage.parallelism).or(alone),
            batch_size: pipeline.batch_size.map(|(size, _)| size),
        })
    }
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
    /// The tf.data service that delivers batches; `None` without one.
    pub service: Option<Service>,
    /// What limits the pipeline of each host that has one.
    pub of_hosts: Vec<HostInput>,
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
        let pipeline = tfdata::TfData::of(context);
        // A worker of the tf.data service has no steps: its pipeline is what others wait for.
        if JobPart::of(context.trace) == Some(JobPart::DataWorker) {
            let service = service::ServicePartial::worker(pipeline);
            return InputPartial { hosts: 1, service, ..Default::default() };
        }
        let of_host = HostInput::of(&context.host, Pipeline::of(pipeline.clone()).as_ref());
        InputPartial {
            hosts: 1,
            steps,
            waited,
            stepped,
            pipeline,
            loaders: loader::loaders(context),
            python: PythonPartial::of(context),
            service: service::ServicePartial::of(context),
            of_hosts: of_host.into_iter().collect(),
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
        self.service.merge(other.service);
        self.of_hosts.extend(other.of_hosts);
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
            service: self.service.finish(self.steps, self.waited),
            of_hosts: self.of_hosts,
        }
    }
}
