//! The program ran out of memory, or will.
//!
//! # What it means
//! A request for memory failed, or memory grows so fast that one will.
//!
//! # How it is detected
//! The snapshot contains a request that failed. Or: at its rate of growth, an allocator reaches its capacity within {HORIZON}
//! times the recorded steps.
//!
//! # How to fix it
//! Start with the line that holds the most memory. If memory grows, free what is kept. If it is free in pieces, see
//! `memory-fragmentation`. Otherwise use a smaller batch, recompute activations, or shard the optimizer's state.
//!
//! # How to check
//! `stepscope memory PATH --at oom` shows what was live, by line. Record again: the request succeeds.

use stepscope_analyze::memory::OutOfMemory;
use stepscope_text::{bytes, quoted, short};

use crate::facts::{Facts, Memory};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "oom-risk",
    about: About::Cause,
    view: "memory",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("oom_risk.rs"),
};

thresholds! {
    /// Times the recorded steps: a run is much longer than its recording.
    HORIZON: Number = 10.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    if let Some((memory, failure)) = facts.memory.allocators.iter().map(Memory::of).find_map(|memory| {
        let failure = memory.out_of_memory.clone()?;
        Some((memory, failure))
    }) {
        let cause = Oom::Failed { allocator: memory.allocator.clone(), failure };
        let finding = Finding::new(&RULE, Severity::Critical, cause, facts.framework());
        return Some(finding.about(memory.allocator).sure(0.95));
    }
    facts.memory.allocators.iter().map(Memory::of).find_map(|memory| {
        let cause = fills(&memory)?;
        let finding = Finding::new(&RULE, Severity::Warning, cause, facts.framework());
        Some(finding.about(memory.allocator).sure(0.7))
    })
}

/// When growth reaches the capacity.
fn fills(memory: &Memory) -> Option<Oom> {
    let (peak, capacity, growth) = (memory.peak_bytes?, memory.capacity_bytes?, memory.growth_per_step?);
    let steps = (capacity - peak).max(0.0) / growth;
    let soon = growth > 0.0 && steps <= HORIZON * memory.steps as f64;
    soon.then(|| Oom::Filling { allocator: memory.allocator.clone(), growth, capacity, steps })
}

/// Memory that does not suffice.
#[derive(Clone, Debug)]
pub enum Oom {
    /// A request failed.
    Failed {
        /// The allocator.
        allocator: String,
        /// The request and what it met.
        failure: OutOfMemory,
    },
    /// One will fail.
    Filling {
        /// The allocator.
        allocator: String,
        /// Bytes per step.
        growth: f64,
        /// Bytes there are.
        capacity: f64,
        /// Steps until it is full.
        steps: f64,
    },
}

impl Cause for Oom {
    fn words(&self, _: &Finding) -> Words {
        match self {
            Oom::Failed { allocator, failure } => Words {
                summary: summary(allocator, failure),
                evidence: evidence(failure),
                advice: lines([
                    "Start with the line that holds the most: `stepscope memory PATH --at oom`.",
                    "If it must all be live, use a smaller batch, or recompute activations instead of keeping them.",
                ]),
            },
            Oom::Filling { allocator, growth, capacity, steps } => Words {
                summary: format!(
                    "Out of memory soon: {} grows by {} per step and is full after {} more steps.",
                    quoted(allocator),
                    bytes(*growth),
                    short(steps.ceil()),
                ),
                evidence: vec![format!("Capacity: {}.", bytes(*capacity))],
                advice: lines(["Free what is kept from step to step: `stepscope memory PATH --leaks`."]),
            },
        }
    }

    fn verify(&self) -> Option<&'static str> {
        Some("record again, then run `stepscope memory BEFORE AFTER`")
    }

    fn leads(&self) -> bool {
        matches!(self, Oom::Failed { .. })
    }
}

fn summary(allocator: &str, failure: &OutOfMemory) -> String {
    let place = failure.line.as_ref().map_or(String::new(), |line| format!(" at {}", quoted(line)));
    format!(
        "Out of memory: {} was asked for {}{place} with {} in use.",
        quoted(allocator),
        bytes(failure.requested as f64),
        bytes(failure.allocated as f64)
    )
}

fn evidence(failure: &OutOfMemory) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(reserved) = failure.reserved {
        let unused = (reserved as f64 - failure.allocated as f64).max(0.0);
        let outside = failure
            .device_free
            .map_or(String::new(), |free| format!("; free on the device: {}", bytes(free as f64)));
        lines.push(format!("Reserved but not in use: {}{outside}.", bytes(unused)));
    }
    if let Some(free) = &failure.free {
        lines.push(format!("The largest free piece has {}.", bytes(free.largest as f64)));
    }
    for live in failure.holders.iter().take(3) {
        let name = live.line.as_deref().unwrap_or(&live.op);
        lines.push(format!("{} holds {}.", quoted(name), bytes(live.bytes as f64)));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        let failure = OutOfMemory {
            at: None,
            requested: 258_000_000,
            line: Some("model.py:58 head".into()),
            allocated: 5_600_000_000,
            reserved: Some(7_400_000_000),
            device_free: Some(30_000_000),
            free: None,
            holders: Vec::new(),
        };
        speaks(&RULE, Oom::Failed { allocator: "CUDA:0".into(), failure });
        speaks(&RULE, Oom::Filling { allocator: "CUDA:0".into(), growth: 1e7, capacity: 8e9, steps: 12.0 });
    }

    #[test]
    fn growth_matters_if_it_reaches_the_capacity_soon() {
        let memory = |capacity: f64| Memory {
            allocator: "CUDA:0".into(),
            growth_per_step: Some(10.0),
            peak_bytes: Some(100.0),
            capacity_bytes: Some(capacity),
            steps: 5,
            ..Memory::default()
        };
        assert!(fills(&memory(600.0)).is_some() && fills(&memory(601.0)).is_none());
    }
}
