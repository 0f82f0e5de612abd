//! All thresholds of the rules, each with its reason. Shares are of the mean step.

/// Below this share nothing is worth a finding: it is within the noise of most runs.
pub const NOTABLE: f64 = 0.10;

/// A step shorter than this in milliseconds is no step of a model: starting one op takes as long.
pub const TINY_MS: f64 = 0.01;

/// A capture without steps that holds fewer events than this shows nothing of a program.
pub const FEW_EVENTS: u64 = 30;

/// A promise of at least this confidence comes before a healthy verdict.
pub const RELIABLE: f64 = 0.70;

/// A share that is worth mending before anything else: mending it makes the step a third shorter or more.
pub const SEVERE: f64 = 0.30;

/// The step waits for input. Twice what a well-fed loop shows: fetching a ready batch costs some Python and
/// dispatch of its own, which in steps of a few milliseconds is up to a seventh of them.
pub const INPUT: f64 = 0.20;

/// The model's ops fill the step. Below this, something else is a better answer.
pub const COMPUTE: f64 = 0.50;

/// One op type holds at least half of all ops' time, and a severe share of the step: what else the step does says
/// nothing about whether one op dominates the model.
pub const ONE_OP: f64 = 0.50;

/// Tracing or compiling in the steps. Steady steps do neither; a tenth means that it happens again and again.
pub const REBUILDING: f64 = 0.10;

/// The share of what a finding is about that some steps must hold, no more than half of all, to be the steps in which it
/// happens: the rest is what every step shows anyway.
pub const IN_SOME_STEPS: f64 = 0.90;

/// Ops started one by one: fewer a step than this cannot add up.
pub const EAGER_OPS: f64 = 20.0;

/// The share that the loop's own Python may have.
pub const PYTHON: f64 = 0.20;

/// The share that checkpoints, summaries and results may have.
pub const OUTPUT: f64 = 0.10;

/// The share that copies, collectives or synchronisation may have.
pub const TRANSFER: f64 = 0.15;

/// Kernels shorter than the calls that launch them cannot keep a device busy from one thread.
pub const LAUNCH_RATIO: f64 = 1.0;

/// From this share of kernels on that graphs start, launching them one by one is not what a program does.
pub const REPLAYED: f64 = 0.50;

/// A device that is busy for a larger share than this does not wait for launches.
pub const BUSY: f64 = 0.80;

/// The share that one kernel instead of several could spare, or streams side by side, from which on it is worth a
/// rewrite: two reads and writes in a row spare up to half, so this is twice that in chains.
pub const FUSABLE: f64 = 0.10;

/// Streams whose kernels overlap for a larger share of the shorter one's time already run side by side.
pub const OVERLAP: f64 = 0.05;

/// Of the collectives, at which one rank must be the last to arrive to be called late: with chance alone it would be
/// one in as many as there are ranks, and half of them for two.
pub const LATE: f64 = 0.75;

/// Kernels of this length in microseconds or less cost about as much to start as to run on current devices.
pub const SMALL_KERNEL_US: f64 = 10.0;

/// Warm-up that holds more than this share of the recorded step time drowns the rest.
pub const STARTUP: f64 = 0.50;

/// Fewer steps than this say nothing about how steps vary.
pub const FEW_STEPS: usize = 3;

/// A host or device whose step is this much longer than the middle one's holds up the others.
pub const STRAGGLER: f64 = 1.10;

/// Steps whose 90th percentile is this many times the median, or …
pub const TAIL: f64 = 1.5;
/// … whose standard deviation is this share of the mean, differ too much for one number to describe them.
pub const SPREAD: f64 = 0.35;

/// Memory in use over memory there is.
pub const PRESSURE: f64 = 0.90;

/// Free memory that no large request could use.
pub const FRAGMENTATION: f64 = 0.50;

/// Occupancy below which latency is no longer hidden well.
pub const OCCUPANCY: f64 = 0.25;

/// The share of kernel time that a property of kernels must concern.
pub const KERNEL_SHARE: f64 = 0.30;

/// The share of global memory's sectors that an ideal pattern would not need. Contiguous lanes that are not
/// aligned take five sectors instead of four, a fifth too many; more is a stride.
pub const EXCESS_SECTORS: f64 = 0.25;

/// The share of shared memory's accesses that bank conflicts repeat (Nsight Compute's own limit).
pub const BANK_CONFLICTS: f64 = 0.10;

/// Microseconds that a launch takes by the profiler's clock if its kernel does nothing: no fix brings one below it.
/// Kernels of one small block last 1.6 to 1.8 on current devices.
pub const EMPTY_LAUNCH_US: f64 = 1.5;

/// The share of a warp's time that waiting for one thing must have to be worth naming (Nsight Compute's own).
pub const STALL: f64 = 0.30;

/// Schedulers that issue in a larger share of cycles have enough warps that do not wait.
pub const ISSUING: f64 = 0.80;

/// A kernel that is nearer than this to a peak of the device is bound by it; below, by latency, which more
/// resident warps would hide (Nsight Compute's own limit).
pub const LATENCY: f64 = 0.60;

/// Recorded events a millisecond of step time above which the recorder itself is felt: a Python tracer costs
/// about a microsecond an event, so this many are a fifth of the step.
pub const EVENTS_PER_MS: f64 = 200.0;
