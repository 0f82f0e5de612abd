//! Copies between host and device, or between devices, fill the step.
//!
//! # What it means
//! The step waits for copies. Copies that run in parallel with compute are hidden and do not count.
//!
//! # How it is detected
//! `transfer_in`, `transfer_out` and `transfer_device` together own at least {TRANSFER} of the step. The finding says which
//! memory they use (pageable or pinned, if the profiler says so), how fast they are, whether they run on streams that also
//! compute, and how many block the host. If most of the waiting is for copies between the device's and the host's memory inside
//! a compiled program, the program offloads arrays, and the finding names them. In a capture without steps, copies before the
//! first kernel and after the last are made once: unless they take {ONCE} of the capture, they are only mentioned. Migrations of unified memory that `unified-memory-faults` claims do not count. A fix saves at most {GAIN} of this time.
//!
//! # How to fix it
//! With pinned memory already in use: copy less, keep on the device what is copied in every step, and copy on a separate
//! stream.
//!
//! PyTorch: `pin_memory=True` and `.to(device, non_blocking=True)`.
//!
//! TensorFlow and Keras: `tf.data.experimental.prefetch_to_device` as the last stage.
//!
//! JAX: `jax.device_put` of the next batch ahead of the step; `donate_argnums`.
//!
//! Arrays that a program offloads: keep on the device what fits, and begin copies earlier.
//!
//! In all frameworks: send smaller types (`uint8` images) and convert on the device.
//!
//! # How to check
//! The transfers drop, or hide under compute: `stepscope devices PATH`.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::Framework;
use stepscope_text::{duration_ms, quoted};

use super::shared::copies::{COPIES, known, may_pin};
use super::shared::offload::Offload;
use super::shared::{of_step, severity, total};
use crate::facts::{CopyFacts, Facts};
use crate::finding::{Cause, Finding, Severity, Words};
use crate::rule::{About, Check, Rule, doc_of, thresholds};
use crate::words::frameworks::few_reads;
use crate::words::lines;

/// The rule.
pub static RULE: Rule = Rule {
    id: "transfer-bound",
    about: About::Cause,
    view: "devices",
    check: Check::Profile(check),
    thresholds: THRESHOLDS,
    source: doc_of!("transfer_bound.rs"),
};

thresholds! {
    /// What copies may take.
    TRANSFER: Share = 0.15;
    /// Of a capture without steps: below this, copies that are made once are not what limits the program.
    ONCE: Share = 0.50;
    /// A copy that overlaps with compute costs the step nothing.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    // Pages that move by themselves are a finding of its own.
    let pages = super::unified_memory_faults::check(facts).map_or(0.0, |pages| {
        pages.claims.iter().filter(|(category, _)| COPIES.contains(category)).map(|(_, ms)| ms).sum()
    });
    let share = facts.shares(&COPIES) - of_step(facts, pages);
    (share >= TRANSFER).then(|| {
        let mut directions = facts.claims(&COPIES);
        directions.sort_by(|a, b| b.1.total_cmp(&a.1));
        let steps = facts.summary.count.max(1) as f64;
        let hidden_ms = facts.summary.bound().map_or(0.0, |host| host.hidden_copies_ms) / steps;
        let offload = Offload::of(facts, total(&directions));
        let at_ends = facts.detail.as_ref().map_or(0.0, |detail| detail.per_step(detail.copies.at_ends));
        let once = share < ONCE && share - of_step(facts, at_ends) < TRANSFER;
        let cause = Transfer { directions, hidden_ms, copies: facts.copies(), offload, once };
        let severity = if once { Severity::Info } else { severity(share) };
        Finding::new(&RULE, severity, cause, facts.framework())
            .owning(facts.claims(&COPIES), Some(GAIN).filter(|_| !once))
            .sure(0.9)
    })
}

/// Copies.
#[derive(Clone, Debug)]
pub struct Transfer {
    /// Milliseconds per step in each direction that are not hidden, the longest first.
    pub directions: Vec<(Category, f64)>,
    /// Milliseconds per step that hide under compute.
    pub hidden_ms: f64,
    /// What is known of the copies.
    pub copies: Option<CopyFacts>,
    /// Arrays that a compiled program keeps in the host's memory, if they explain the copies.
    pub offload: Option<Offload>,
    /// True if nearly all of them are made once, before the first kernel or after the last.
    pub once: bool,
}

impl Cause for Transfer {
    fn words(&self, finding: &Finding) -> Words {
        let all = self.directions.iter().map(|(_, ms)| ms).sum();
        let mut evidence: Vec<String> = self
            .directions
            .iter()
            .map(|(category, ms)| {
                format!("Copies {} take {} per step that is not hidden.", way(*category), duration_ms(*ms))
            })
            .collect();
        if self.once {
            evidence.push(
                "Nearly all of them are made once, before the first kernel or after the last: a longer run pays no more for \
                 them."
                    .to_owned(),
            );
        }
        if self.hidden_ms > 0.0 {
            evidence.push(format!("Another {} per step hides under compute.", duration_ms(self.hidden_ms)));
        }
        if let Some(offload) = &self.offload {
            evidence.extend(offload.evidence());
        } else {
            evidence.extend(self.copies.iter().flat_map(known));
        }
        let mostly = self.directions.first().map(|(category, _)| *category);
        let towards = mostly.map_or(String::new(), |category| format!(", mostly {},", way(category)));
        let what = match &self.offload {
            Some(offload) => {
                format!("copies of arrays that {} offloads to host memory", quoted(&offload.program))
            }
            None => "copies".to_owned(),
        };
        let advice = match &self.offload {
            Some(offload) => offload.advice(finding.framework),
            None => copy_less(
                finding.framework,
                mostly.unwrap_or(Category::TransferIn),
                may_pin(self.copies.as_ref()),
            ),
        };
        Words {
            summary: format!("Transfer-bound: {what}{towards} take {}.", finding.owned(all)),
            evidence,
            advice,
        }
    }
}

fn way(category: Category) -> &'static str {
    match category {
        Category::TransferIn => "to the device",
        Category::TransferOut => "from the device",
        _ => "between devices",
    }
}

fn copy_less(framework: Framework, mostly: Category, may_pin: bool) -> Vec<String> {
    match (mostly, framework) {
        (Category::TransferIn, Framework::PyTorch) if !may_pin => lines([
            "Pinned memory is in use, so the bus is the limit: keep weights and buffers on the device instead of copying \
             them in every step.",
            "Copy the next batch or layer on a separate stream while this one computes: `with \
             torch.cuda.stream(copying):` and `x.to(device, non_blocking=True)`.",
            "Copy less: send 16-bit or `uint8` values and convert on the device.",
        ]),
        (Category::TransferIn, Framework::PyTorch) => lines([
            "Copy from pinned memory without waiting: `DataLoader(..., pin_memory=True)` and \
             `x.to(device, non_blocking=True)`.",
            "Copy less: send `uint8` images and convert on the device.",
        ]),
        (Category::TransferIn, Framework::TensorFlow | Framework::Keras) => lines([
            "Copy ahead of the step: `ds.apply(tf.data.experimental.prefetch_to_device(\"/gpu:0\"))` as the last stage.",
            "Copy less: send `uint8` images and convert on the device.",
        ]),
        (Category::TransferIn, Framework::Jax) => lines([
            "Copy ahead of the step: `jax.device_put(next_batch)` in a background thread while this step computes.",
            "Copy less: send `uint8` images and convert on the device; keep state on the device.",
        ]),
        (Category::TransferOut, framework) => lines([
            few_reads(framework),
            "Reduce on the device before you copy: send sums instead of whole tensors.",
        ]),
        (Category::TransferDevice, Framework::Jax) => lines([
            "Reuse buffers instead of copying: `jax.jit(step, donate_argnums=0)`.",
            "Place arrays where they are used: check their `.sharding`.",
        ]),
        (Category::TransferDevice, _) => lines([
            "Keep tensors where they are used, in one layout throughout: each change of layout is a copy.",
        ]),
        _ if may_pin => {
            lines(["Copy from pinned memory, ahead of the step, and less: convert on the device."])
        }
        _ => lines([
            "Pinned memory is in use, so the bus is the limit: keep on the device what is copied in every step, or copy it \
             on a separate stream while the device computes.",
            "Copy less: send smaller types and convert on the device.",
        ]),
    }
}

#[cfg(test)]
mod tests {
    use stepscope_analyze::window::Window;
    use stepscope_analyze::work::programs::{Movement, OpFacts, Programs};

    use super::*;
    use crate::rules::shared::copies::sample;
    use crate::rules::shared::programs::testing;
    use crate::rules::testing::{speaks, words};

    fn transfer(pageable: Option<f64>) -> Transfer {
        let directions = vec![(Category::TransferIn, 5.0)];
        Transfer { directions, hidden_ms: 0.0, copies: Some(sample(pageable)), offload: None, once: false }
    }

    #[test]
    fn it_speaks() {
        speaks(&RULE, transfer(Some(0.0)));
        for way in COPIES {
            speaks(
                &RULE,
                Transfer {
                    directions: vec![(way, 5.0)],
                    hidden_ms: 2.0,
                    copies: None,
                    offload: None,
                    once: false,
                },
            );
        }
    }

    /// Steps of 100 ms that copy to the device for 80, of which a program waits this share for its own arrays.
    fn offloading(share: f64, opcode: &str) -> Option<Finding> {
        let facts = OpFacts {
            opcode: opcode.to_owned(),
            movement: Some(Movement::Between { from: 5, to: 0 }),
            label: "weights".to_owned(),
            ..OpFacts::default()
        };
        let ops = vec![testing::op("copy-done.1", share, facts)];
        let owned = [(Category::Compute, 20), (Category::TransferIn, 80)];
        check(&testing::facts_of(&owned, Programs { ops, window: Window::Steps(10), ..Programs::default() }))
    }

    #[test]
    fn offloaded_arrays_are_named_and_nobody_is_told_to_send_batches_ahead() {
        let said = |share, opcode: &str| {
            let words = offloading(share, opcode).map(|finding| finding.words()).unwrap_or_default();
            format!("{} {} {}", words.summary, words.evidence.concat(), words.advice.concat())
        };
        let offloads = said(0.41, "copy-done");
        assert!(offloads.contains("`weights`") && !offloads.contains("uint8"), "{offloads}");
        assert!(!said(0.39, "copy-done").contains("weights"), "something else copies more");
        assert!(!said(0.9, "copy-start").contains("weights"), "starting is not waiting");
        for framework in [Framework::Jax, Framework::Unknown] {
            let cause = offloading(0.9, "copy-done").and_then(|finding| finding.cause::<Transfer>().cloned());
            let advice = words(&RULE, cause.unwrap_or_else(|| transfer(None)), framework).advice.concat();
            assert!(advice.contains("Hide the rest"), "{advice}");
        }
    }

    #[test]
    fn pinned_memory_is_advised_only_where_it_may_help() {
        let told = |pageable, framework| words(&RULE, transfer(pageable), framework).advice.concat();
        for framework in [Framework::PyTorch, Framework::Jax, Framework::Keras, Framework::Unknown] {
            assert!(!told(Some(0.0), framework).contains("pin_memory"), "{framework:?}");
            assert!(!told(Some(0.0), framework).contains("Copy from pinned"), "{framework:?}");
        }
        assert!(told(Some(1.0), Framework::PyTorch).contains("pin_memory"));
        assert!(told(None, Framework::PyTorch).contains("pin_memory"));
        let evidence = words(&RULE, transfer(Some(0.0)), Framework::PyTorch).evidence;
        assert!(evidence.iter().any(|line| line.contains("pinned memory already")), "{evidence:?}");
        assert!(evidence.iter().any(|line| line.contains("12.0 GB/s to the device")), "{evidence:?}");
    }
}
