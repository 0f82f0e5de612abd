//! Thresholds that the engine and several rules share, each with its reason. Those of a single rule are in its file.
//! Shares are of the mean step unless the reason says otherwise.

crate::rule::thresholds! {
    /// Anything below this share is within the noise of most runs and not worth a finding.
    NOTABLE: Share = 0.10;
    /// A category with this share of the step has an owner among the findings, or the verdict says why not.
    OWNED: Share = 0.20;
    /// Fixing a share this large makes the step a third shorter or more, so it comes before anything else.
    SEVERE: Share = 0.30;
    /// A promise of at least this confidence comes before a healthy verdict.
    RELIABLE: Share = 0.70;
    /// A shorter step is not the step of a model: starting one op takes as long.
    TINY: Milliseconds = 0.01;
    /// A capture without certain steps that has fewer events shows nothing about a program.
    FEW_EVENTS: Number = 30.0;
    /// Fewer steps say nothing about how steps vary.
    FEW_STEPS: Number = 3.0;
    /// If at most half of the steps hold this share of the finding's time, it happens in those steps. The remainder is
    /// what every step shows anyway.
    IN_SOME_STEPS: Share = 0.90;
    /// If graphs start this share of the kernels, the program does not launch them one by one.
    REPLAYED: Share = 0.50;
    /// Kernels this short cost about as much to start as to run on current devices.
    SMALL_KERNEL: Microseconds = 10.0;
    /// What fused kernels or parallel streams must be able to save to be worth a rewrite. Two reads and writes in a row
    /// save up to half, so twice this share is in such chains.
    FUSABLE: Share = 0.10;
    /// The share of kernel time that a property of kernels must concern.
    KERNEL_SHARE: Share = 0.30;
    /// Below this occupancy, latency is no longer hidden well.
    OCCUPANCY: Share = 0.25;
    /// A kernel that reaches this share of a peak of the device is bound by that unit. Below it, latency limits the
    /// kernel, and more resident warps would hide it (Nsight Compute's own limit).
    LATENCY: Share = 0.60;
    /// Plain copies reach 85 to 93 % of the peak of device memory; nothing gets closer.
    STREAMING: Share = 0.85;
    /// What a launch takes by the profiler's clock if its kernel does nothing. No fix gets below it. Kernels of one small
    /// block last 1.6 to 1.8 µs on current devices.
    EMPTY_LAUNCH: Microseconds = 1.5;
}
