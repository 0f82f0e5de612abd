//! The findings, one per file. A rule looks at [`Facts`](crate::Facts) and reports at most one finding;
//! [`crate::engine`] settles which finding owns what of the step.
//!
//! A new finding is one file here and one line in the list below. `cargo xtask docs --write` renews `docs/findings.md`.

mod shared;
#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use shared::counters::{CounterCause, TroubledKernel};
pub(crate) use shared::severity;

use crate::rule::Rule;

/// Declares the modules and lists their rules.
macro_rules! rules {
    ($($name:ident,)+) => {
        $(pub mod $name;)+

        /// Every rule, in no particular order.
        pub static RULES: &[&Rule] = &[$(&$name::RULE),+];
    };
}

rules! {
    activation_share,
    allocation_stall,
    blocking_copies,
    collective_not_overlapped,
    communication_bound,
    compute_bound,
    device_idle,
    dispatch_bound,
    eager_dispatch,
    float32_matmul,
    hbm_peak,
    host_callback,
    host_python,
    inference_latency,
    input_bound,
    kernel_launch_bound,
    kernel_stalls,
    large_constants,
    layout_copies,
    layout_transposes,
    loop_overhead,
    loss_not_finite,
    low_mfu,
    low_occupancy,
    low_precision_unused,
    memory_bound_ops,
    memory_fragmentation,
    memory_growth,
    memory_pressure,
    no_device_trace,
    no_steps,
    oom_risk,
    op_dominates,
    output_bound,
    overhead_distorts,
    padding_waste,
    pageable_copies,
    parameter_server_bound,
    range_dominates,
    recompilation,
    remat_cost,
    restarted_run,
    retracing,
    serial_streams,
    setup_in_loop,
    shared_memory_limited,
    small_kernels,
    stalled_run,
    startup_profiled,
    step_variance,
    straggler,
    sync_stall,
    throughput_drift,
    throughput_drop,
    too_few_steps,
    transfer_bound,
    truncated_trace,
    uncoalesced_access,
    unfused_batch_norm,
    unfused_elementwise,
    unfused_ops,
    unified_memory_faults,
}

/// The rule with this id.
pub fn find(id: &str) -> Option<&'static Rule> {
    RULES.iter().copied().find(|rule| rule.id == id)
}
