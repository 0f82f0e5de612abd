//! What a rule says: which finding, how much of the step it owns, what it could win, and the typed facts
//! behind it. The sentences are made in `stepscope-render`.

mod id;

use stepscope_analyze::Category;
use stepscope_analyze::absence::Absence;
use stepscope_analyze::bounding::{IdleCause, Waits};
use stepscope_analyze::collectives::Waiting;
use stepscope_analyze::counters::{KernelCounters, Waste};
use stepscope_analyze::odd::OddSteps;
use stepscope_analyze::recurrence::Recurrence;
use stepscope_analyze::steps::How;
use stepscope_analyze::vocabulary::Framework;
use stepscope_trace::Span;

pub use id::{FindingId, Severity};

/// An op type and what it costs.
#[derive(Clone, Debug, PartialEq)]
pub struct OpCost {
    /// Its type, e.g. `MatMul`.
    pub op_type: String,
    /// The op of that type that costs most, with its scope.
    pub example: Option<String>,
    /// Milliseconds a step; on one device where there are several.
    pub ms_per_step: f64,
    /// How many a step; on one device where there are several.
    pub count_per_step: f64,
    /// How many devices are at work; 1 for the host.
    pub devices: usize,
    /// The share of all ops' time.
    pub share: f64,
    /// It is a kernel that no op is known to have launched, under its own name.
    pub is_kernel: bool,
}

/// A function that is built again and again.
#[derive(Clone, Debug, PartialEq)]
pub struct RebuiltFunction {
    /// Its name.
    pub name: String,
    /// Calls in the steps looked at.
    pub calls: u64,
    /// How many of them traced.
    pub traces: u64,
    /// How many of them compiled.
    pub compiles: u64,
    /// Milliseconds a step lost.
    pub ms_per_step: f64,
    /// The sign of why.
    pub why: Rebuilding,
}

/// Why a function is built again.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Rebuilding {
    /// Its arguments vary: Python values, shapes or types.
    ArgumentsVary,
    /// It is made anew before every call.
    Recreated,
    /// It cannot be told.
    Unknown,
}

/// Lines of the user's Python and what they cost.
#[derive(Clone, Debug, PartialEq)]
pub struct PythonLine {
    /// `file.py:12 f`, as the tracer wrote it.
    pub place: String,
    /// Milliseconds a step, with what they call.
    pub ms_per_step: f64,
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
    /// Functions of the user's own.
    Python(Vec<PythonLine>),
    /// It does not show.
    Unknown,
}

/// A tf.data pipeline, as far as advice needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Pipeline {
    /// The stage that bounds it, as tf.data runs it, e.g. `ParallelMapV2`.
    pub bounding_stage: Option<String>,
    /// The stage as the user wrote it, e.g. `MapDataset`.
    pub written_as: Option<String>,
    /// The stage that feeds the bounding one.
    pub after: Option<String>,
    /// Milliseconds a batch in that stage.
    pub stage_ms: Option<f64>,
    /// How many of it ran at once.
    pub parallelism: Option<f64>,
    /// The user asked for a prefetch.
    pub prefetches: bool,
    /// The user asked for parallel calls in the bounding stage.
    pub parallel: bool,
    /// Its calls ran in parallel, whoever asked for it: TensorFlow does by itself.
    pub ran_parallel: bool,
    /// The op of the bounding stage's function that took longest.
    pub heaviest: Option<String>,
    /// Microseconds that one call of the bounding stage's function takes.
    pub call_us: Option<f64>,
    /// Examples a batch.
    pub batch_size: Option<u64>,
    /// Python runs inside: a generator or a py_function.
    pub python_inside: bool,
    /// Elements are kept after the first epoch.
    pub caches: bool,
}

/// A kernel whose hardware counters show a trouble.
#[derive(Clone, Debug, PartialEq)]
pub struct TroubledKernel {
    /// Its counters.
    pub counters: KernelCounters,
    /// Milliseconds a step that it takes, or of the profiled time without a timeline; `None` where a timeline does
    /// not show it.
    pub ms: Option<f64>,
    /// The share of its time that a fix could win at the most; never more than its headroom. `None` where how near
    /// it is to the device's peak was not collected.
    pub winnable: Option<f64>,
    /// What keeps its units busy and goes away with the fix.
    pub waste: Waste,
}

/// What is known of copies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CopyFacts {
    /// Copies a step between host and device.
    pub per_step: f64,
    /// The share of their time from or to memory that the system may move; `None`: unknown.
    pub pageable: Option<f64>,
    /// Bytes a second while copying to the device.
    pub bandwidth_in: Option<f64>,
    /// Bytes a second while copying from the device.
    pub bandwidth_out: Option<f64>,
    /// The share of their time on streams that also compute.
    pub on_computing_streams: f64,
    /// Copies a step whose calls waited for them.
    pub blocking: f64,
    /// Milliseconds a step inside these calls.
    pub blocked_ms: f64,
}

/// The facts behind a finding, by rule.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// The recording broke off or was mended; what it said, and where.
    Damage {
        /// What broke.
        what: String,
        /// At which byte.
        offset: Option<u64>,
    },
    /// The recorder dropped events.
    Dropped {
        /// How many, where it is known.
        count: u64,
    },
    /// The device's side is missing.
    DeviceMissing {
        /// Why, as far as the recording tells.
        absence: Absence,
        /// The recorder's own errors, and its warnings about the device.
        complaints: Vec<String>,
    },
    /// Nothing repeats.
    NothingRepeats,
    /// Warm-up.
    Startup {
        /// Steps that only warm up.
        steps: usize,
        /// Steps after them.
        steady: usize,
        /// The share of the recorded step time that they hold.
        share: f64,
    },
    /// Few steps.
    FewSteps {
        /// How many count.
        count: usize,
        /// By what they were found.
        how: How,
    },
    /// The recorder's own cost.
    Overhead {
        /// Events a millisecond of step time.
        events_per_ms: f64,
        /// The share of events that are frames of a Python tracer.
        python_frames: f64,
    },
    /// Waiting for data.
    Input {
        /// How it is loaded.
        loader: Loader,
        /// Milliseconds a step that wait.
        wait_ms: f64,
    },
    /// The model's own work.
    Compute {
        /// The op types that cost most.
        top: Vec<OpCost>,
        /// On a device, rather than on the host's processor?
        on_device: bool,
    },
    /// One op.
    Op(OpCost),
    /// Functions built again and again.
    Rebuilt {
        /// Which, the worst first.
        functions: Vec<RebuiltFunction>,
        /// Steps in which something was built.
        steps: usize,
    },
    /// Ops started one by one.
    Eager {
        /// How many a step.
        ops_per_step: f64,
        /// What starting one costs, in microseconds, Python included.
        us_per_op: f64,
        /// The compiled function that the loop calls beside them at about every step.
        beside: Option<String>,
        /// How many of them a step change variables.
        updates_per_step: f64,
        /// The types that come most often, with how many a step.
        types: Vec<(String, f64)>,
    },
    /// Python that a compiled program calls.
    Callback {
        /// By which op, e.g. `pure_callback`.
        op: String,
        /// The user's function, where a Python tracer saw it.
        function: Option<String>,
        /// How many calls a step.
        calls_per_step: f64,
        /// Milliseconds a step inside them.
        ms: f64,
    },
    /// Pipelines that are set up in the loop.
    SetUp {
        /// Iterators made ready a step.
        iterators_per_step: f64,
        /// Milliseconds a step.
        ms: f64,
    },
    /// The framework around ops.
    Dispatch {
        /// Milliseconds a step.
        ms: f64,
        /// Ops a step.
        ops_per_step: f64,
    },
    /// Python.
    Python {
        /// The lines that cost most, where a Python tracer saw them.
        lines: Vec<PythonLine>,
    },
    /// Writing.
    Output {
        /// The ops that write, e.g. `SaveV2`.
        ops: Vec<OpCost>,
    },
    /// Kernels and their launches.
    Kernels {
        /// Kernels a step.
        per_step: f64,
        /// Their mean length in microseconds.
        mean_us: f64,
        /// The median length of the calls that launch them.
        launch_us: Option<f64>,
        /// The program replays graphs of kernels already.
        replays: bool,
        /// The share of the step in which the device is busy.
        busy: f64,
    },
    /// A device that idles, by what the host does meanwhile.
    Idle {
        /// The share of the step in which the device is busy.
        busy: f64,
        /// Categories of the idle time in milliseconds a step, the longest first.
        meanwhile: Vec<(Category, f64)>,
        /// Causes of the idle time in milliseconds a step, the longest first.
        causes: Vec<(IdleCause, f64)>,
        /// Milliseconds a step of gaps that follow a wait for the device or a copy which held up the host.
        after_waits_ms: f64,
        /// The user's ranges that hold what nothing else explains, in milliseconds per step, the longest first.
        ranges: Vec<(String, f64)>,
    },
    /// Device memory that is allocated in the steps.
    Allocation {
        /// Calls a step that allocate or free it.
        per_step: f64,
        /// Milliseconds a step that the device waits for them.
        ms: f64,
    },
    /// Something is set up while the device waits: its runtime, a library, code at its first use.
    SettingUp {
        /// Milliseconds per step that the device waits for it.
        ms: f64,
        /// The share of the step, or of the capture where there are no steps.
        share: f64,
        /// The calls in which that happens, with their milliseconds per step, the longest first.
        calls: Vec<(String, f64)>,
    },
    /// Copies that are slower, or hold up more, than they need.
    Copies {
        /// What is known of them.
        copies: CopyFacts,
        /// Milliseconds per step in which the device has nothing to do while a copy holds up the host.
        in_ms: f64,
        /// Milliseconds per step for which the device has nothing to do after copies that held up the host.
        after_ms: f64,
    },
    /// Elementwise kernels in a row.
    Unfused {
        /// Kernels a step in such chains.
        kernels_per_step: f64,
        /// Kernels of a chain, on average.
        length: f64,
        /// The share of kernel time that they have.
        share: f64,
        /// The share of kernel time that one kernel a chain could spare at the most.
        winnable: f64,
        /// The kernel with the most time.
        example: Option<String>,
    },
    /// Streams that take turns.
    Serial {
        /// Milliseconds a step of kernels by stream, the busiest first.
        streams: Vec<(i64, f64)>,
        /// Milliseconds a step in which two of them run.
        overlap_ms: f64,
        /// Milliseconds a step that running side by side could win at the most.
        winnable_ms: f64,
        /// What is known of waits of one for another.
        waits: Waits,
    },
    /// Blocking calls.
    Sync {
        /// Milliseconds a step in which the host is blocked on an idle device.
        ms: f64,
        /// Milliseconds a step that the device has nothing to do after a wait, because the host was blocked in it.
        after_ms: f64,
    },
    /// Copies.
    Transfer {
        /// Milliseconds a step in each direction that are not hidden.
        directions: Vec<(Category, f64)>,
        /// Milliseconds a step that hide under compute.
        hidden_ms: f64,
        /// What is known of the copies.
        copies: Option<CopyFacts>,
    },
    /// Collectives.
    Communication {
        /// Milliseconds a step that are not hidden.
        ms: f64,
        /// Milliseconds a step that hide under compute.
        hidden_ms: f64,
        /// Several ranks' collectives held against one another.
        waiting: Option<Waiting>,
    },
    /// One rank that arrives late at collectives.
    Latecomer {
        /// Its name.
        name: String,
        /// The share of the collectives at which it is the last.
        last: f64,
        /// Milliseconds a step that the rank which waits longest waits.
        waiting_ms: f64,
        /// How many ranks there are.
        of: usize,
    },
    /// One of several that is slower.
    Slowest {
        /// Its name.
        name: String,
        /// Its median step in milliseconds.
        ms: f64,
        /// The middle one's.
        usual_ms: f64,
        /// How many there are.
        of: usize,
    },
    /// Matrix work without matrix units.
    MatrixUnits {
        /// The share of kernel time.
        share: f64,
        /// The kernel that costs most.
        kernel: String,
        /// How many times faster the matrix units are at the most.
        speedup: f64,
        /// The units know float16 alone.
        only_half: bool,
    },
    /// Kernels that leave the device empty.
    Occupancy {
        /// The kernel that costs most.
        kernel: String,
        /// Its occupancy, 0 to 1.
        occupancy: f64,
        /// What limits it.
        limiter: Option<String>,
        /// The share of kernel time of all such kernels.
        share: f64,
    },
    /// Hardware counters; the finding's id says which of them show the trouble.
    Counters {
        /// The kernels that win most when mended, the best first.
        kernels: Vec<TroubledKernel>,
        /// How many kernels have the trouble.
        count: usize,
    },
    /// Memory that grows.
    Growth {
        /// The allocator.
        allocator: String,
        /// Bytes a step.
        bytes_per_step: f64,
        /// What is never freed, the largest first: op or place, blocks a step.
        kept: Vec<(String, f64)>,
    },
    /// Memory that is nearly full.
    Pressure {
        /// The allocator.
        allocator: String,
        /// Bytes in use at the peak.
        peak_bytes: f64,
        /// Bytes there are.
        capacity_bytes: f64,
    },
    /// Free memory in pieces.
    Fragmentation {
        /// The allocator.
        allocator: String,
        /// The share of free memory that no large request could use.
        share: f64,
    },
    /// Steps that differ.
    Variance {
        /// Standard deviation over mean.
        spread: f64,
        /// The 90th percentile over the median.
        tail: f64,
        /// The category that varies most from step to step.
        varies: Option<Category>,
        /// Steps that come back and do something which the others do not.
        odd: Option<OddSteps>,
    },
    /// Requests.
    Latency {
        /// Calls looked at.
        count: usize,
        /// The middle one in milliseconds.
        p50_ms: f64,
        /// The 90th percentile.
        p90_ms: f64,
        /// The 99th percentile.
        p99_ms: f64,
        /// The category that owns most of a call that is not compute, and its share.
        mostly: Option<(Category, f64)>,
    },
}

/// Where to look.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// On which host.
    pub host: String,
    /// When.
    pub span: Span,
}

/// What a rule says.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Which.
    pub id: FindingId,
    /// How much it matters.
    pub severity: Severity,
    /// What it is about: an op type, a function, an allocator.
    pub subject: Option<String>,
    /// What it owns of the mean step, in milliseconds by category. Rules compete for these.
    pub claims: Vec<(Category, f64)>,
    /// The share of what it owns that mending it could win at the most; `None` where nobody can say.
    pub winnable: Option<f64>,
    /// How sure it is, 0 to 1.
    pub confidence: f64,
    /// The facts.
    pub cause: Cause,
    /// Who wrote the trace: advice speaks that framework's language.
    pub framework: Framework,
    /// Where to look.
    pub place: Option<Place>,
    /// In which steps it happens, where those are not all; set by the rule or the engine.
    pub recurrence: Option<Recurrence>,
    /// Milliseconds of the mean step that it is about, also those that other findings own; set by the engine.
    pub about_ms: Option<f64>,
    /// The share of the step that it is about; set by the engine.
    pub fraction: Option<f64>,
    /// The most that mending it could win, in milliseconds a step; set by the engine.
    pub gain_ms: Option<f64>,
}

impl Finding {
    /// A finding that owns nothing of the step.
    pub fn new(id: FindingId, severity: Severity, cause: Cause, framework: Framework) -> Self {
        Finding {
            id,
            severity,
            subject: None,
            claims: Vec::new(),
            winnable: None,
            confidence: 1.0,
            cause,
            framework,
            place: None,
            recurrence: None,
            about_ms: None,
            fraction: None,
            gain_ms: None,
        }
    }

    /// Says what it is about, where that is known.
    pub fn about(mut self, subject: impl Into<Option<String>>) -> Self {
        self.subject = subject.into();
        self
    }

    /// Claims time of the step, of which a share could be won.
    pub fn owning(mut self, claims: Vec<(Category, f64)>, winnable: Option<f64>) -> Self {
        self.claims = claims;
        self.winnable = winnable;
        self
    }

    /// Says in which steps it happens.
    pub fn in_steps(mut self, recurrence: Recurrence) -> Self {
        self.recurrence = Some(recurrence);
        self
    }

    /// Says how sure it is.
    pub fn sure(mut self, confidence: f64) -> Self {
        self.confidence = confidence;
        self
    }

    /// The most by which the time of what it is about can fall, 0 to 1; `None` where nobody can say. The only promise where
    /// there are no steps.
    pub fn gain_fraction(&self) -> Option<f64> {
        let of_step = self.gain_ms.zip(self.about_ms.filter(|about| *about > 0.0));
        of_step.map(|(gain, about)| gain / about).or(self.winnable).map(|share| share.clamp(0.0, 1.0))
    }

    /// Milliseconds of the step that it claims.
    pub fn claimed_ms(&self) -> f64 {
        self.claims.iter().map(|(_, ms)| ms).sum()
    }
}
