//! What facts are made of: ops, functions, lines of Python, loaders and copies, as far as advice needs them.

/// An op type and what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct OpCost {
    /// Its type, e.g. `MatMul`.
    pub op_type: String,
    /// The op of that type that costs most, with its scope.
    pub example: Option<String>,
    /// Where that op comes from, by its program: scopes, operation, line of source.
    pub origin: Option<String>,
    /// Milliseconds per step; on one device where there are several.
    pub ms_per_step: f64,
    /// How many per step; on one device where there are several.
    pub count_per_step: f64,
    /// How many devices are at work; 1 for the host.
    pub devices: usize,
    /// The share of all ops' time.
    pub share: f64,
    /// It is a kernel that no op is known to have launched, under its own name.
    pub is_kernel: bool,
}

/// Lines of the user's Python and what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonLine {
    /// `file.py:12 f`, as the tracer wrote it.
    pub place: String,
    /// Milliseconds per step, with what they call.
    pub ms_per_step: f64,
    /// The library call that takes most of it, if one takes at least half.
    pub through: Option<String>,
}

impl PythonLine {
    /// A line that says nothing about what it calls.
    pub fn new(place: impl Into<String>, ms_per_step: f64) -> Self {
        PythonLine { place: place.into(), ms_per_step, through: None }
    }
}

/// How data is loaded.
#[derive(Clone, Debug, PartialEq)]
pub enum Loader {
    /// tf.data.
    TfData(Pipeline),
    /// PyTorch's DataLoader.
    TorchLoader {
        /// Does it have processes of its own?
        workers: bool,
        /// What takes longest inside it, where a Python tracer saw it.
        inside: Option<PythonLine>,
    },
    /// Another thread or process, through a queue.
    Queue,
    /// Functions of the user's own.
    Python(Vec<PythonLine>),
    /// It does not show.
    Unknown,
}

/// A tf.data pipeline, as far as advice needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pipeline {
    /// The stage that bounds it, as tf.data runs it, e.g. `ParallelMapV2`.
    pub bottleneck_stage: Option<String>,
    /// The stage as the user wrote it, e.g. `MapDataset`.
    pub written_as: Option<String>,
    /// The stage that feeds the bottleneck stage.
    pub after: Option<String>,
    /// Milliseconds per batch in that stage.
    pub stage_ms: Option<f64>,
    /// How many of it ran at once.
    pub parallelism: Option<f64>,
    /// The user asked for a prefetch.
    pub prefetches: bool,
    /// The user asked for parallel calls in the bottleneck stage.
    pub parallel: bool,
    /// Whether its calls ran in parallel; TensorFlow may have added this by itself.
    pub ran_parallel: bool,
    /// The op of the bottleneck stage's function that took longest.
    pub heaviest: Option<String>,
    /// Microseconds that one call of the bottleneck stage's function takes.
    pub call_us: Option<f64>,
    /// Examples per batch.
    pub batch_size: Option<u64>,
    /// Python runs inside: a generator or a py_function.
    pub python_inside: bool,
    /// The user's function that it calls, if Python was sampled.
    pub python_line: Option<PythonLine>,
    /// Elements are kept after the first epoch.
    pub caches: bool,
    /// The tf.data service that delivers batches.
    pub service: Option<Box<ServiceFacts>>,
}

/// A tf.data service, as far as advice needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServiceFacts {
    /// The workers that are asked, each with its share of the time inside these calls.
    pub workers: Vec<(String, f64)>,
    /// How many workers would keep up, if each delivers as fast as now.
    pub needed: Option<u64>,
    /// How many are asked now.
    pub now: u64,
    /// The pipeline of the recorded workers.
    pub pipeline: Option<Box<Pipeline>>,
    /// Is this the pipeline of such a worker itself, rather than of one who asks it?
    pub here: bool,
}

/// What is known of copies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CopyFacts {
    /// Copies per step between host and device.
    pub per_step: f64,
    /// The share of their time from or to memory that the system may move; `None`: unknown.
    pub pageable: Option<f64>,
    /// Bytes per second while copying to the device.
    pub bandwidth_in: Option<f64>,
    /// Bytes per second while copying from the device.
    pub bandwidth_out: Option<f64>,
    /// The share of their time on streams that also compute.
    pub on_computing_streams: f64,
    /// Copies per step whose calls waited for them.
    pub blocking: f64,
    /// Milliseconds per step inside these calls.
    pub blocked_ms: f64,
}
