//! Device memory is allocated or freed in the steps while the device is idle.
//!
//! # What it means
//! Frameworks keep the memory that they once had, so steady steps allocate nothing. Calls in every step mean that the
//! cache is full and emptied repeatedly, or that some code allocates by hand. Each call waits for the device.
//!
//! # How it is detected
//! Calls such as `cudaMalloc` and `cudaFree` on the launching threads own at least {NOTABLE} of the step while the device
//! is idle. Without steps, a single start-up would look the same: then the finding needs {MANY} such calls that set nothing
//! up, and is `info`. A fix saves at most {GAIN} of this time.
//!
//! # How to fix it
//! PyTorch: use less memory per step, set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`, and do not call
//! `torch.cuda.empty_cache()` in the loop.
//!
//! TensorFlow and Keras: no `set_memory_growth`, or `TF_GPU_ALLOCATOR=cuda_malloc_async`.
//!
//! JAX: leave preallocation on.
//!
//! Your own code: allocate before the loop, or use `cudaMallocAsync`.
//!
//! # How to check
//! `dispatch` drops. `stepscope devices PATH` shows no gaps in allocating calls.

use stepscope_analyze::vocabulary::Framework;
use stepscope_text::several;

use super::shared::{of_step, severity, total};
use crate::facts::Facts;
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::thresholds::NOTABLE;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "allocation-stall",
    about: About::Cause,
    view: "devices",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("allocation_stall.rs"),
};

thresholds! {
    /// Steady steps need no allocation.
    GAIN: Share = 1.0;
    /// Fewer calls without steps may be all that the program allocates.
    MANY: Number = 10.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let detail = facts.detail.as_ref()?;
    let claims = facts.owned_of(&detail.idle.allocation);
    let ms = total(&claims);
    let share = of_step(facts, ms);
    let whole = facts.summary.bound().is_none_or(|host| host.whole_capture);
    // Without steps, a few calls may happen once.
    let recurs = !whole || detail.idle.allocations as f64 >= MANY;
    (share >= NOTABLE && recurs).then(|| {
        let calls = detail.idle.allocations as f64 / detail.steps.max(1) as f64;
        let severity = if whole { Severity::Info } else { severity(share) };
        let cause = Allocation { calls, ms };
        Finding::new(&RULE, severity, cause, facts.framework()).owning(claims, Some(GAIN)).sure(0.85)
    })
}

/// Device memory that is allocated in the steps.
#[derive(Copy, Clone, Debug)]
pub struct Allocation {
    /// Calls per step that allocate or free it; in the whole capture without steps.
    pub calls: f64,
    /// Milliseconds per step that the device waits for them.
    pub ms: f64,
}

impl Cause for Allocation {
    fn words(&self, finding: &Finding) -> Words {
        let mut advice = keep(finding.framework);
        advice.extend(lines(["Shapes that change between steps need new blocks: pad them to a few sizes."]));
        Words {
            summary: format!(
                "Allocation stall: the device waits {} while its memory is allocated and freed.",
                finding.owned(self.ms)
            ),
            evidence: vec![if finding.stepless {
                format!(
                    "{} device memory.",
                    several(
                        self.calls,
                        "call in the capture allocates or frees",
                        "calls in the capture allocate or free"
                    )
                )
            } else {
                format!(
                    "{} device memory; steady steps need none.",
                    several(
                        self.calls,
                        "call per step allocates or frees",
                        "calls per step allocate or free"
                    )
                )
            }],
            advice,
        }
    }
}

fn keep(framework: Framework) -> Vec<String> {
    match framework {
        Framework::PyTorch => lines([
            "The caching allocator runs out and empties itself: use less memory (smaller batches, \
             `torch.utils.checkpoint`), or set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True` against fragmented \
             blocks.",
            "Do not call `torch.cuda.empty_cache()` in the loop.",
        ]),
        Framework::TensorFlow | Framework::Keras => {
            lines(["Let TensorFlow keep its memory: remove `set_memory_growth`, or set \
             `TF_GPU_ALLOCATOR=cuda_malloc_async`."])
        }
        Framework::Jax => lines(["Leave `XLA_PYTHON_CLIENT_PREALLOCATE` on, so that memory is taken once."]),
        Framework::Unknown => lines([
            "Allocate before the loop and reuse, or take memory from a pool: `cudaMallocAsync` instead of `cudaMalloc`.",
        ]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        speaks(&RULE, Allocation { calls: 6.0, ms: 4.0 });
        speaks(&RULE, Allocation { calls: 1.0, ms: 4.0 });
    }
}
