//! A stage on which GPU programs are played with known truth: one play, written down as different tools would have.
//!
//! [`host`] simulates a process: threads that call the device's runtime, queues that work one piece after the other,
//! copies and waits that block. What happens is a neutral list of [`Event`]s. [`scenes`] are plays with one known
//! trouble each, or none; [`to_nsys`], [`to_kineto`] and [`to_xplane`] are the recorders. Nothing here knows the
//! program under test: what a play should be called is a matter of how it was made.

pub mod host;
pub mod model;
pub mod scenes;
pub mod scenes_many;
pub mod to_kineto;
pub mod to_nsys;
pub mod to_xplane;

/// Nanoseconds since the recording began.
pub type Ns = i64;

/// Where something happens.
#[derive(Copy, Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// A thread of the process, by number; 0 is the one that runs the user's loop.
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
    /// Asks for a copy, which may or may not block.
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

/// A kernel as PyTorch's libraries and as XLA would call it, and how it is launched.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name in a PyTorch program.
    pub torch: &'static str,
    /// Its name in an XLA program.
    pub xla: &'static str,
    /// The op that starts it in PyTorch.
    pub op: &'static str,
    /// Blocks in the grid.
    pub blocks: i64,
}

/// What happens.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A turn of the loop, marked by the user.
    Step(i64),
    /// A request to a server, marked by the user.
    Request(i64),
    /// A call of a compiled function of this name, which only JAX has.
    Function(&'static str),
    /// An op of PyTorch, around the calls that it makes.
    Op(&'static str),
    /// The loop waits for its next batch.
    WaitForBatch,
    /// Python of the loop's own; only Python tracers see it.
    Python(&'static str),
    /// A compiler at work.
    Compile,
    /// A call of the device's runtime.
    Call(Call),
    /// A kernel.
    Kernel(Kernel),
    /// A kernel of a graph, by the node's number.
    Node(Kernel, i64),
    /// A graph of which the recorder saw only the whole.
    Graph,
    /// A copy.
    Copy {
        /// Which way.
        direction: Direction,
        /// Is the host's memory pinned?
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
    /// The number that a call and the work it started share; 0 for what has none.
    pub id: i64,
}

/// All that happened in one process.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// The process' number.
    pub pid: i64,
    /// What happened, in no order.
    pub events: Vec<Event>,
}

impl Run {
    /// What a recorder sees that was started late, and stopped early: whole events inside the time.
    pub fn cut(mut self, from: Ns, until: Ns) -> Run {
        self.events.retain(|event| event.start >= from && event.end <= until);
        self
    }

    /// What a recorder sees to which nobody marked anything.
    pub fn unmarked(mut self) -> Run {
        self.events.retain(|event| !matches!(event.what, What::Step(_) | What::Request(_)));
        self
    }
}

/// What is wrong with a play, by how it was made.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Nothing: the device computes all the time.
    Healthy,
    /// Nothing but kernels that are very short.
    SmallKernels,
    /// The loop waits for batches.
    Input,
    /// Launching takes longer than running.
    Launching,
    /// The loop's own Python runs while the device idles.
    Python,
    /// Copies from memory that is not pinned block.
    PageableCopies,
    /// Copies from pinned memory take their time in the queue that computes.
    PinnedCopies,
    /// The host waits for results again and again, and only then prepares the next work.
    Waiting,
    /// Device memory is allocated and freed in every step.
    Allocation,
    /// Collectives that nothing hides.
    Communication,
    /// Products in single precision without matrix units.
    SinglePrecision,
    /// Two queues that take turns.
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

/// A play that was recorded, and the truth about it.
#[derive(Clone, Debug)]
pub struct Scene {
    /// What it is called, with its figures.
    pub name: String,
    /// What is wrong.
    pub cause: Cause,
    /// One a process.
    pub runs: Vec<Run>,
    /// Did the user mark the steps?
    pub marked: bool,
    /// How many there are.
    pub steps: i64,
    /// The usual time from one step's end to the next one's, or of a request.
    pub step: Ns,
    /// The share of that time that the cause owns; not a number where that cannot be told in advance.
    pub share: f64,
    /// The share of that time in which the device has nothing to do.
    pub idle: f64,
}
