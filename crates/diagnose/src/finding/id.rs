//! Which findings there are, by their public names, and how much one matters.

/// Which finding. The names are public: an id never changes its meaning.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FindingId {
    /// The recording is damaged or incomplete.
    TruncatedTrace,
    /// The device's side was not recorded.
    NoDeviceTrace,
    /// No steps were found.
    NoSteps,
    /// Mostly warm-up was recorded.
    StartupProfiled,
    /// Too few steps to say how they vary.
    TooFewSteps,
    /// The recording itself slowed the program down.
    OverheadDistorts,
    /// The step waits for its next batch.
    InputBound,
    /// The model's ops fill the step.
    ComputeBound,
    /// One type of op fills the step.
    OpDominates,
    /// A tf.function is traced again and again.
    Retracing,
    /// A program is compiled again and again.
    Recompilation,
    /// Ops are started one by one.
    EagerDispatch,
    /// The framework's overhead fills the step although ops run inside functions.
    DispatchBound,
    /// The loop's own Python fills the step.
    HostPython,
    /// A compiled step calls Python on the host.
    HostCallback,
    /// An input pipeline is set up again and again.
    SetupInLoop,
    /// Checkpoints, summaries or results fill the step.
    OutputBound,
    /// The device waits for the host to launch its kernels.
    KernelLaunchBound,
    /// Kernels are so short that starting them costs as much as running them.
    SmallKernels,
    /// The device has nothing to do, for no single reason.
    DeviceIdle,
    /// The host waits for an idle device.
    SyncStall,
    /// Device memory is allocated in the steps while the device waits.
    AllocationStall,
    /// Copies fill the step.
    TransferBound,
    /// Copies go from or to memory that the system may move.
    PageableCopies,
    /// Copies hold up the host, so that the device runs dry after them.
    BlockingCopies,
    /// Collectives fill the step.
    CommunicationBound,
    /// One host or device holds up the others.
    Straggler,
    /// Matrix units are there and not used.
    LowPrecisionUnused,
    /// Elementwise kernels follow one another that could be one.
    UnfusedElementwise,
    /// Streams take turns that could run side by side.
    SerialStreams,
    /// Kernels leave much of the device empty.
    LowOccupancy,
    /// Memory is read in pieces that waste bandwidth.
    UncoalescedAccess,
    /// Shared memory limits kernels.
    SharedMemoryLimited,
    /// Warps wait for one thing most of the time.
    KernelStalls,
    /// Memory grows from step to step.
    MemoryGrowth,
    /// Memory is nearly full.
    MemoryPressure,
    /// Free memory is in too small pieces.
    MemoryFragmentation,
    /// Steps differ much from one another.
    StepVariance,
    /// How long requests take.
    InferenceLatency,
}

impl FindingId {
    /// The public name.
    pub fn key(self) -> &'static str {
        match self {
            FindingId::TruncatedTrace => "truncated-trace",
            FindingId::NoDeviceTrace => "no-device-trace",
            FindingId::NoSteps => "no-steps",
            FindingId::StartupProfiled => "startup-profiled",
            FindingId::TooFewSteps => "too-few-steps",
            FindingId::OverheadDistorts => "overhead-distorts",
            FindingId::InputBound => "input-bound",
            FindingId::ComputeBound => "compute-bound",
            FindingId::OpDominates => "op-dominates",
            FindingId::Retracing => "retracing",
            FindingId::Recompilation => "recompilation",
            FindingId::EagerDispatch => "eager-dispatch",
            FindingId::DispatchBound => "dispatch-bound",
            FindingId::HostPython => "host-python",
            FindingId::HostCallback => "host-callback",
            FindingId::SetupInLoop => "setup-in-loop",
            FindingId::OutputBound => "output-bound",
            FindingId::KernelLaunchBound => "kernel-launch-bound",
            FindingId::SmallKernels => "small-kernels",
            FindingId::DeviceIdle => "device-idle",
            FindingId::SyncStall => "sync-stall",
            FindingId::AllocationStall => "allocation-stall",
            FindingId::TransferBound => "transfer-bound",
            FindingId::PageableCopies => "pageable-copies",
            FindingId::BlockingCopies => "blocking-copies",
            FindingId::CommunicationBound => "communication-bound",
            FindingId::Straggler => "straggler",
            FindingId::LowPrecisionUnused => "low-precision-unused",
            FindingId::UnfusedElementwise => "unfused-elementwise",
            FindingId::SerialStreams => "serial-streams",
            FindingId::LowOccupancy => "low-occupancy",
            FindingId::UncoalescedAccess => "uncoalesced-access",
            FindingId::SharedMemoryLimited => "shared-memory-limited",
            FindingId::KernelStalls => "kernel-stalls",
            FindingId::MemoryGrowth => "memory-growth",
            FindingId::MemoryPressure => "memory-pressure",
            FindingId::MemoryFragmentation => "memory-fragmentation",
            FindingId::StepVariance => "step-variance",
            FindingId::InferenceLatency => "inference-latency",
        }
    }

    /// Is it about many small things that a loop does again and again?
    pub fn is_about_habits(self) -> bool {
        matches!(
            self,
            FindingId::EagerDispatch
                | FindingId::DispatchBound
                | FindingId::KernelLaunchBound
                | FindingId::SmallKernels
                | FindingId::HostPython
        )
    }

    /// Does it say that the recording cannot be trusted? Such findings come first.
    pub fn is_about_trust(self) -> bool {
        self <= FindingId::OverheadDistorts
    }
}

/// How much it matters.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Severity {
    /// Mend this first.
    Critical,
    /// Worth mending.
    Warning,
    /// Worth knowing.
    Info,
}

impl Severity {
    /// The public name.
    pub fn key(self) -> &'static str {
        match self {
            Severity::Critical => "critical",
            Severity::Warning => "warning",
            Severity::Info => "info",
        }
    }
}
