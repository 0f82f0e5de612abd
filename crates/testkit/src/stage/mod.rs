//! A stage for simulated GPU programs with a known truth: one run, written as different tools would record it.
//!
//! [`host`] simulates a process: threads that call the device's runtime, queues that work sequentially, copies
//! and waits that block. The result is a neutral list of [`Event`]s. [`scenes`] are runs with one known problem
//! each, or none; [`to_nsys`], [`to_kineto`] and [`to_xplane`] are the profilers. Nothing here knows the
//! program under test: the right name for a scene follows from how it was made.

pub mod host;
pub mod jobs;
pub mod model;
pub mod scenes;
pub mod scenes_changed;
pub mod scenes_many;
pub mod scenes_steps;
pub mod tensorflow;
pub mod to_kineto;
pub mod to_nsys;
pub mod to_xplane;

/// Nanoseconds since the start of the recording.
pub type Ns = i64;

/// Where something happens.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A thread of the process, by number; 0 runs the user's loop.
    Thread(i64),
    /// A queue of a device.
    Stream {
        /// The device's number.
        device: i64,
        /// The queue's number.
        stream: i64,
    },
}

/// Calls of the device's runtime, by the runtime's own names.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Call {
    /// Starts a kernel.
    Launch,
    /// Starts a graph of kernels.
    GraphLaunch,
    /// Requests a copy, which may or may not block.
    CopyAsync(Direction),
    /// Waits for one queue.
    StreamSynchronize,
    /// Waits for the device.
    DeviceSynchronize,
    /// Allocates device memory.
    Malloc,
    /// Frees device memory.
    Free,
    /// Marks a place in a queue.
    EventRecord,
    /// Makes a queue wait for a mark of another.
    StreamWaitEvent,
}

/// Which way a copy goes.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the device.
    In,
    /// From the device.
    Out,
}

/// A kernel as named by PyTorch's libraries and by XLA, and its launch.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name in a PyTorch program.
    pub torch: &'static str,
    /// Its name in an XLA program.
    pub xla: &'static str,
    /// The op that launches it in PyTorch.
    pub op: &'static str,
    /// Blocks in the grid.
    pub blocks: i64,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// An iteration of the loop, marked by the user.
    Step(i64),
    /// A request to a server, marked by the user.
    Request(i64),
    /// A range of the user's with this name, around whatever it names.
    Range(&'static str),
    /// A call of a compiled function with this name, which only JAX has.
    Function(&'static str),
    /// An op of PyTorch, around the calls that it makes.
    Op(&'static str),
    /// The loop waits for its next batch.
    WaitForBatch,
    /// Python in the training loop; only Python tracers see it.
    Python(&'static str),
    /// A compiler at work.
    Compile,
    /// A call of the device's runtime.
    Call(Call),
    /// A kernel.
    Kernel(Kernel),
    /// A kernel of a graph, by the node's number.
    Node(Kernel, i64),
    /// A graph of which only the whole was recorded.
    Graph,
    /// A copy.
    Copy {
        /// Which way.
        direction: Direction,
        /// Whether the host's memory is pinned.
        pinned: bool,
        /// How much.
        bytes: i64,
    },
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Where.
    pub place: Place,
    /// What.
    pub what: What,
    /// From when.
    pub start: Ns,
    /// Until when.
    pub end: Ns,
    /// The number shared by a call and the work it launched; 0 if there is none.
    pub id: i64,
}

/// Everything that happened in one process.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The process' number.
    pub pid: i64,
    /// The events, unordered.
    pub events: Vec<Event>,
}

impl Run {
    /// What a profiler records that was started late and stopped early: only whole events inside the time.
    pub fn cut(mut self, from: Ns, until: Ns) -> Run {
        self.events.retain(|event| event.start >= from && event.end <= until);
        self
    }

    /// What a host records whose clock is ahead by this much.
    pub fn ahead(mut self, by: Ns) -> Run {
        for event in &mut self.events {
            (event.start, event.end) = (event.start + by, event.end + by);
        }
        self
    }

    /// What a profiler records if nothing is marked.
    pub fn unmarked(mut self) -> Run {
        self.events.retain(|event| !matches!(event.what, What::Step(_) | What::Request(_)));
        self
    }
}

/// What is wrong with a scene, by construction.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing: the device computes all the time.
    Healthy,
    /// Only very short kernels.
    SmallKernels,
    /// The loop waits for batches.
    Input,
    /// Launching takes longer than running.
    Launching,
    /// Python in the training loop runs while the device idles.
    Python,
    /// Copies from unpinned memory block.
    PageableCopies,
    /// Copies from pinned memory take time in the compute queue.
    PinnedCopies,
    /// The host repeatedly waits for results, and only then prepares the next work.
    Waiting,
    /// Device memory is allocated and freed in every step.
    Allocation,
    /// Collectives that are not hidden.
    Communication,
    /// Products in single precision without matrix units.
    SinglePrecision,
    /// Two queues that alternate.
    SerialStreams,
    /// One rank is slower than the others.
    Straggler,
    /// Some steps are much longer.
    Variance,
    /// Most of the recording is compilation.
    Startup,
    /// Requests with pauses between them.
    Requests,
    /// Two processes share a device.
    SharedDevice,
}

/// A recorded scene, and the truth about it.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Its name, with its figures.
    pub name: String,
    /// What is wrong.
    pub cause: Cause,
    /// One per process.
    pub runs: Vec<Run>,
    /// Whether the user marked the steps.
    pub marked: bool,
    /// Number of steps.
    pub steps: i64,
    /// The usual time from one step's end to the next one's, or of a request.
    pub step: Ns,
    /// The share of that time that the cause owns; NaN if it cannot be known in advance.
    pub share: f64,
    /// The share of that time in which the device is idle.
    pub idle: f64,
}
