//! Much of the free memory is in pieces too small for large requests.
//!
//! # What it means
//! Memory is short, and a large request may fail although enough bytes are free in total.
//!
//! # How it is detected
//! A request failed although enough bytes were free in total: it is larger than the largest free piece. The finding names the
//! line whose live blocks keep nearly empty segments. Segments without anything live do not count, because allocators give
//! them back before they fail.
//!
//! Recordings without failed requests: at a peak of at least {SHORT} of the capacity, at least {FRAGMENTATION} of the free memory
//! is in small pieces, and the largest block of the recording would not fit into what is left in one piece.
//!
//! # How to fix it
//! Pad to few sizes.
//!
//! PyTorch: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.
//!
//! TensorFlow and Keras: `TF_GPU_ALLOCATOR=cuda_malloc_async`.
//!
//! JAX: leave preallocation on.
//!
//! # How to check
//! `stepscope memory PATH` shows less fragmentation.

use stepscope_analyze::memory::{OutOfMemory, Pin};
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{bytes, plural, quoted, share};

use crate::facts::{Facts, Memory};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "memory-fragmentation",
    about: About::Cause,
    view: "memory",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("memory_fragmentation.rs"),
};

thresholds! {
    /// Of the capacity: fragments matter only if memory is short.
    SHORT: Share = 0.70;
    /// Of the free memory: no large request can use it.
    FRAGMENTATION: Share = 0.50;
}

fn check(facts: &Facts) -> Option<Finding> {
    facts.memory.allocators.iter().map(Memory::of).find_map(|memory| {
        let failed = memory.out_of_memory.clone().filter(OutOfMemory::is_fragmentation);
        let (share, severity, sure) = match &failed {
            Some(_) => (memory.fragmentation.unwrap_or(1.0), Severity::Critical, 0.95),
            None => (at_peak(&memory)?, Severity::Warning, 0.7),
        };
        let cause = Fragments { allocator: memory.allocator.clone(), share, failed };
        Some(Finding::new(&RULE, severity, cause, facts.framework()).about(memory.allocator).sure(sure))
    })
}

/// The share of free memory in small pieces, if the largest request would not fit into the largest piece.
fn at_peak(memory: &Memory) -> Option<f64> {
    let (peak, capacity, share) = (memory.peak_bytes?, memory.capacity_bytes?, memory.fragmentation?);
    let free = (capacity - peak).max(0.0);
    let fits =
        memory.largest_request.is_some_and(|request| request <= free * (1.0 - share) || request > free);
    (capacity > 0.0 && peak / capacity >= SHORT && share >= FRAGMENTATION && !fits).then_some(share)
}

/// Free memory in pieces.
#[derive(Clone, Debug)]
pub struct Fragments {
    /// The allocator.
    pub allocator: String,
    /// The share of free memory that no large request can use.
    pub share: f64,
    /// The request that failed because of it.
    pub failed: Option<OutOfMemory>,
}

impl Cause for Fragments {
    fn words(&self, finding: &Finding) -> Words {
        let (summary, evidence) = match &self.failed {
            Some(failure) => (failed(&self.allocator, failure), pins(failure)),
            None => (
                format!(
                    "Memory fragmentation: {} of the free memory of {} is in pieces too small for large requests.",
                    share(self.share),
                    quoted(&self.allocator)
                ),
                lines(["Measured at the peak, when memory is short."]),
            ),
        };
        Words {
            summary,
            evidence,
            advice: lines([
                fewer_pieces(finding.framework),
                "Pad batches to a few sizes: each new size cuts memory into more pieces.",
            ]),
        }
    }

    fn verify(&self) -> Option<&'static str> {
        Some("record again, then run `stepscope memory BEFORE AFTER`")
    }

    fn leads(&self) -> bool {
        self.failed.is_some()
    }
}

fn failed(allocator: &str, failure: &OutOfMemory) -> String {
    let free = failure.free.clone().unwrap_or_default();
    let pin = free.pins.first().map_or(String::new(), |pin| format!(", pinned by {}", quoted(&pin.line)));
    format!(
        "Memory fragmentation: {} ran out of memory at a request for {} although {} were free, in pieces of at most {}{pin}.",
        quoted(allocator),
        bytes(failure.requested as f64),
        bytes(free.bytes as f64),
        bytes(free.largest as f64),
    )
}

fn pins(failure: &OutOfMemory) -> Vec<String> {
    let pins = failure.free.iter().flat_map(|free| &free.pins);
    let line = |pin: &Pin| {
        format!(
            "{}: {} in {} keep {} of free memory from being used.",
            quoted(&pin.line),
            plural(pin.blocks, "block", "blocks"),
            plural(pin.segments, "segment", "segments"),
            bytes(pin.free_bytes as f64)
        )
    };
    pins.take(3).map(line).collect()
}

fn fewer_pieces(framework: Framework) -> &'static str {
    match framework {
        Framework::PyTorch => "Let segments grow: `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`.",
        Framework::TensorFlow | Framework::Keras => {
            "Use the driver's own pool: `TF_GPU_ALLOCATOR=cuda_malloc_async`."
        }
        Framework::Jax => {
            "Take memory once at the start: leave `XLA_PYTHON_CLIENT_PREALLOCATE` on, and use few different shapes."
        }
        Framework::Unknown => "Use few different sizes, and allocate the large ones first.",
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::memory::FreeMemory;

    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, Fragments { allocator: "bfc".into(), share: 0.6, failed: None });
        let pin = Pin {
            line: "model.py:47 cache".into(),
            free_bytes: 1_000_000_000,
            bytes: 9,
            blocks: 9,
            segments: 3,
        };
        let free = FreeMemory {
            bytes: 1_800_000_000,
            largest: 60_000_000,
            pins: vec![pin],
            ..FreeMemory::default()
        };
        let failure = OutOfMemory {
            at: None,
            requested: 258_000_000,
            line: None,
            allocated: 5_600_000_000,
            reserved: None,
            device_free: None,
            free: Some(free),
            holders: Vec::new(),
        };
        speaks(&RULE, Fragments { allocator: "CUDA:0".into(), share: 1.0, failed: Some(failure) });
    }
}
