//! The rules, one a file. A rule looks at [`Facts`] and says at most one thing; [`crate::engine`] settles who
//! owns what. A new rule is one file and one line in [`RULES`].

mod allocation_stall;
mod blocking_copies;
mod communication_bound;
mod compute_bound;
mod counters;
mod device_idle;
mod dispatch_bound;
mod eager_dispatch;
mod host_callback;
mod host_python;
mod inference_latency;
mod input_bound;
mod kernel_launch_bound;
mod kernel_stalls;
mod low_occupancy;
mod low_precision_unused;
mod memory_fragmentation;
mod memory_growth;
mod memory_pressure;
mod no_device_trace;
mod no_steps;
mod op_dominates;
mod output_bound;
mod overhead_distorts;
mod pageable_copies;
mod recompilation;
mod retracing;
mod serial_streams;
mod setup_in_loop;
mod shared_memory_limited;
mod small_kernels;
mod startup_profiled;
mod step_variance;
mod straggler;
mod sync_stall;
mod too_few_steps;
mod transfer_bound;
mod truncated_trace;
mod uncoalesced_access;
mod unfused_elementwise;

use stepscope_analyze::Category;
use stepscope_analyze::recurrence::Recurrence;
use stepscope_analyze::vocabulary::Framework;

use crate::facts::Facts;
use crate::finding::{Finding, FindingId, Severity};
use crate::thresholds;

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// What it finds.
    pub id: FindingId,
    /// Looks at the facts.
    pub check: fn(&Facts) -> Option<Finding>,
}

/// Every rule.
pub const RULES: &[Rule] = &[
    Rule { id: FindingId::TruncatedTrace, check: truncated_trace::check },
    Rule { id: FindingId::NoDeviceTrace, check: no_device_trace::check },
    Rule { id: FindingId::NoSteps, check: no_steps::check },
    Rule { id: FindingId::StartupProfiled, check: startup_profiled::check },
    Rule { id: FindingId::TooFewSteps, check: too_few_steps::check },
    Rule { id: FindingId::OverheadDistorts, check: overhead_distorts::check },
    Rule { id: FindingId::InputBound, check: input_bound::check },
    Rule { id: FindingId::ComputeBound, check: compute_bound::check },
    Rule { id: FindingId::OpDominates, check: op_dominates::check },
    Rule { id: FindingId::Retracing, check: retracing::check },
    Rule { id: FindingId::Recompilation, check: recompilation::check },
    Rule { id: FindingId::EagerDispatch, check: eager_dispatch::check },
    Rule { id: FindingId::DispatchBound, check: dispatch_bound::check },
    Rule { id: FindingId::HostPython, check: host_python::check },
    Rule { id: FindingId::HostCallback, check: host_callback::check },
    Rule { id: FindingId::SetupInLoop, check: setup_in_loop::check },
    Rule { id: FindingId::OutputBound, check: output_bound::check },
    Rule { id: FindingId::KernelLaunchBound, check: kernel_launch_bound::check },
    Rule { id: FindingId::SmallKernels, check: small_kernels::check },
    Rule { id: FindingId::DeviceIdle, check: device_idle::check },
    Rule { id: FindingId::SyncStall, check: sync_stall::check },
    Rule { id: FindingId::AllocationStall, check: allocation_stall::check },
    Rule { id: FindingId::TransferBound, check: transfer_bound::check },
    Rule { id: FindingId::PageableCopies, check: pageable_copies::check },
    Rule { id: FindingId::BlockingCopies, check: blocking_copies::check },
    Rule { id: FindingId::CommunicationBound, check: communication_bound::check },
    Rule { id: FindingId::Straggler, check: straggler::check },
    Rule { id: FindingId::LowPrecisionUnused, check: low_precision_unused::check },
    Rule { id: FindingId::UnfusedElementwise, check: unfused_elementwise::check },
    Rule { id: FindingId::SerialStreams, check: serial_streams::check },
    Rule { id: FindingId::LowOccupancy, check: low_occupancy::check },
    Rule { id: FindingId::UncoalescedAccess, check: uncoalesced_access::check },
    Rule { id: FindingId::SharedMemoryLimited, check: shared_memory_limited::check },
    Rule { id: FindingId::KernelStalls, check: kernel_stalls::check },
    Rule { id: FindingId::MemoryGrowth, check: memory_growth::check },
    Rule { id: FindingId::MemoryPressure, check: memory_pressure::check },
    Rule { id: FindingId::MemoryFragmentation, check: memory_fragmentation::check },
    Rule { id: FindingId::StepVariance, check: step_variance::check },
    Rule { id: FindingId::InferenceLatency, check: inference_latency::check },
];

/// How much a share of the step matters.
fn severity(share: f64) -> Severity {
    if share >= thresholds::SEVERE {
        Severity::Critical
    } else if share >= thresholds::NOTABLE {
        Severity::Warning
    } else {
        Severity::Info
    }
}

fn is_jax(facts: &Facts) -> bool {
    facts.framework() == Framework::Jax
}

/// In which of the steps that count these categories own anything worth mentioning.
fn steps_with(facts: &Facts, categories: &[Category]) -> Recurrence {
    let Some(host) = facts.summary.bound() else { return Recurrence::default() };
    let notable = |step: &stepscope_analyze::summary::StepRow| {
        let owned: f64 = categories.iter().map(|&category| step.shares.get(category).ms()).sum();
        owned >= thresholds::REBUILDING * step.span.dur().ms() && owned > 0.0
    };
    Recurrence::of(host.counted().map(notable))
}
