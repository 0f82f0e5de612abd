//! Allocators, in the shape that rules need.

use stepscope_analyze::memory::{Allocator, OutOfMemory, RoleSource};
use stepscope_trace::memory::Role;

/// One allocator.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Its name.
    pub allocator: String,
    /// Bytes per step by which it grows steadily; `None` if it does not.
    pub growth_per_step: Option<f64>,
    /// What was allocated and never freed: op or place, blocks per step; the largest first.
    pub kept: Vec<(String, f64)>,
    /// Bytes in use at the peak.
    pub peak_bytes: Option<f64>,
    /// Bytes there are.
    pub capacity_bytes: Option<f64>,
    /// The share of free memory at the peak that no large request could use.
    pub fragmentation: Option<f64>,
    /// The largest block that was asked for, in bytes.
    pub largest_request: Option<f64>,
    /// The last request that failed.
    pub out_of_memory: Option<OutOfMemory>,
    /// Bytes at the peak per role, the largest first.
    pub roles: Vec<(Option<Role>, f64)>,
    /// Where those roles come from.
    pub roles_from: Option<RoleSource>,
    /// Steps that were recorded.
    pub steps: usize,
}

impl Memory {
    /// Of an allocator.
    pub fn of(allocator: &Allocator) -> Self {
        let steps = allocator.steps.len().max(1) as f64;
        let growth = allocator.growth.as_ref().filter(|growth| growth.grows);
        let kept = allocator.leaks.iter().map(|leak| {
            let steps = if leak.per_step.is_some() { leak.steps.max(1) as f64 } else { steps };
            (leak.op.clone(), leak.blocks as f64 / steps)
        });
        Memory {
            allocator: allocator.name.clone(),
            growth_per_step: growth.map(|growth| growth.bytes_per_step),
            kept: kept.collect(),
            peak_bytes: Some(allocator.peak as f64),
            capacity_bytes: allocator.capacity.map(|bytes| bytes as f64),
            fragmentation: allocator.fragmentation_at_peak,
            largest_request: allocator.largest_request.map(|bytes| bytes as f64),
            out_of_memory: allocator.out_of_memory.clone(),
            roles: allocator.roles.iter().map(|&(role, bytes)| (role, bytes as f64)).collect(),
            roles_from: allocator.roles_from,
            steps: allocator.steps.len(),
        }
    }
}
