//! The least time that an instruction can take on its device, and how much more it took.

use super::{Level, Peaks, ProgramOp};

/// What limits an instruction at best.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bound {
    /// The rate of operations.
    Compute,
    /// The bandwidth of the device's memory.
    Memory,
    /// The bandwidth of memory on the chip.
    OnChip,
    /// The links between devices.
    Network,
    /// The link to the host.
    Host,
}

impl Bound {
    /// For tables.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Compute => "compute",
            Bound::Memory => "memory",
            Bound::OnChip => "vmem",
            Bound::Network => "network",
            Bound::Host => "host",
        }
    }
}

/// The least time of all executions of an instruction.
#[derive(Copy, Clone, Debug, PartialEq)]
pub struct BoundTime {
    /// What limits it.
    pub bound: Bound,
    /// Milliseconds at the peak.
    pub least_ms: f64,
    /// The share of the peak that was reached, 0 to 1; more than 1 if caches served part of the bytes.
    pub efficiency: f64,
    /// Milliseconds above the least.
    pub waste_ms: f64,
}

impl ProgramOp {
    /// What limits the instruction. Known without peaks for what crosses links.
    pub fn bound(&self, peaks: Option<&Peaks>) -> Option<Bound> {
        if self.facts.link_bytes.is_some() {
            return Some(Bound::Network);
        }
        if self.facts.host_memory() {
            return Some(Bound::Host);
        }
        self.bound_time(peaks?).map(|time| time.bound)
    }

    /// The least time of the instruction; `None` if its cost or a peak is unknown.
    pub fn bound_time(&self, peaks: &Peaks) -> Option<BoundTime> {
        let cost = self.cost().filter(|cost| cost.is_known())?;
        if self.facts.link_bytes.is_some() || self.facts.host_memory() {
            return None;
        }
        let memory = peaks.memory_seconds(self).map(|(level, seconds)| match level {
            Level::OnChip => (Bound::OnChip, seconds),
            Level::Main | Level::Cache => (Bound::Memory, seconds),
        });
        // A unit without a known peak is left out if memory alone already takes long: the bound stays a lower one.
        let compute = peaks.compute_seconds(&cost).or_else(|| {
            peaks.compute_seconds(&stepscope_hlo::Cost { vector: 0, transcendentals: 0, ..cost })
        });
        let (bound, seconds) = match (compute, memory) {
            (Some(compute), Some((_, memory))) if compute >= memory => (Bound::Compute, compute),
            (_, Some(memory)) => memory,
            (Some(compute), None) => (Bound::Compute, compute),
            (None, None) => return None,
        };
        let measured = self.totals.own.ms();
        let least_ms = seconds * 1e3;
        if least_ms <= 0.0 || measured <= 0.0 {
            return None;
        }
        Some(BoundTime {
            bound,
            least_ms,
            efficiency: least_ms / measured,
            waste_ms: (measured - least_ms).max(0.0),
        })
    }
}
