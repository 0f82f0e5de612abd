//! One type of op fills the step, and it is not the dense matrix work of a model.
//!
//! # What it means
//! A step that is mostly `MatMul` or `Conv2D` is a model at work. A step that is mostly concatenation, sorting or copying
//! usually hides a mistake: a buffer that is rebuilt in a loop, a copy that a view would replace. The subject is the op
//! type.
//!
//! # How it is detected
//! The costliest op type takes at least {ONE_OP} of all op time and owns at least {SEVERE} of the step. Matrix products,
//! convolutions, attention and recurrent cells are excluded, and so are names that say nothing (`fusion`, `while`, calls),
//! by whole words of the name. Host callbacks have a finding of their own. A fix saves at most {GAIN} of the op's time
//! and, on the host's processor, of the executor's work in proportion.
//!
//! # How to fix it
//! Concatenation: collect the parts and join them once.
//!
//! Sort, top-k, unique: run them less often, on less data.
//!
//! Gather and scatter: fewer, denser and sorted accesses.
//!
//! Transposes, casts, copies: keep one layout and one type throughout.
//!
//! Decompositions: every few steps, or iteratively.
//!
//! # How to check
//! The op's row in `stepscope ops PATH`.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::{is_callback, is_dense, is_opaque};
use stepscope_text::quoted;

use super::shared::ops::cost;
use super::shared::severity;
use crate::facts::{Facts, OpCost};
use crate::finding::{Cause, Finding, Words};
use crate::rule::{About, Rule, doc_of, thresholds};
use crate::thresholds::SEVERE;

/// The rule.
pub static RULE: Rule = Rule {
    id: "op-dominates",
    about: About::Cause,
    view: "ops",
    check,
    thresholds: THRESHOLDS,
    source: doc_of!("op_dominates.rs"),
};

thresholds! {
    /// An op type with half of all op time dominates the model, whatever else the step does.
    ONE_OP: Share = 0.50;
    /// An op that should not be there can go entirely.
    GAIN: Share = 1.0;
}

fn check(facts: &Facts) -> Option<Finding> {
    let op = facts.ops.first()?;
    // A callback is Python that the model calls, and has a rule of its own.
    let ordinary = is_dense(&op.op_type) || is_opaque(&op.op_type) || is_callback(&op.op_type);
    let step = facts.summary.length_ms();
    // On several cores ops overlap: an op type cannot own more of the step than its share of the compute.
    let owned = op.ms_per_step.min(op.share * facts.ms(Category::Compute));
    // A kernel without an op is not something that a model is written in.
    if op.is_kernel || ordinary || step <= 0.0 || op.share < ONE_OP || owned / step < SEVERE {
        return None;
    }
    let finding = Finding::new(&RULE, severity(owned / step), OneOp(op.clone()), facts.framework());
    // What the executor does between ops is mostly done for the one that fills the step: it allocates and frees its
    // tensors and wakes its threads. On a device the host's overhead has nothing to do with what its kernels compute.
    let around = if facts.on_device() { 0.0 } else { facts.ms(Category::Dispatch) * op.share };
    let claims = vec![(Category::Compute, owned), (Category::Dispatch, around)];
    Some(finding.about(op.op_type.clone()).owning(claims, Some(GAIN)).sure(0.85))
}

/// The op that fills the step.
#[derive(Clone, Debug)]
pub struct OneOp(pub OpCost);

impl Cause for OneOp {
    fn words(&self, finding: &Finding) -> Words {
        let OneOp(op) = self;
        let example = op.example.as_deref().filter(|example| *example != op.op_type);
        let scope = example.map_or(String::new(), |example| format!(", most of it in {}", quoted(example)));
        let name = quoted(&op.op_type);
        Words {
            summary: format!("Op dominates: {name} takes {}{scope}.", finding.owned(op.ms_per_step)),
            evidence: vec![cost(op)],
            advice: vec![
                rewrite(&op.op_type, &name),
                format!("Find where it comes from: `stepscope ops PATH --filter {}`.", filter(&op.op_type)),
            ],
        }
    }
}

/// A pattern for the command line that needs no quotes.
fn filter(op_type: &str) -> String {
    let word: String =
        op_type.chars().take_while(|c| c.is_alphanumeric() || *c == '_' || *c == ':').collect();
    if word.is_empty() { "REGEX".to_owned() } else { word }
}

/// What usually stands behind an op that should not fill a step.
fn rewrite(op_type: &str, name: &str) -> String {
    let lower = op_type.to_ascii_lowercase();
    let is = |parts: &[&str]| parts.iter().any(|part| lower.contains(part));
    if is(&["concat", "cat", "pack", "stack"]) {
        format!(
            "{name} copies all of its inputs: do not grow a tensor in a loop. Collect the parts and join them once, \
             or write into a buffer of full size."
        )
    } else if is(&["sort", "topk", "top_k", "unique"]) {
        format!(
            "Run {name} less often or on less data: keep the k best instead of sorting, or sort when preparing data."
        )
    } else if is(&["gather", "scatter", "embedding", "index"]) {
        format!(
            "{name} reads scattered memory: look up several rows at once, sort indices, or make rows denser."
        )
    } else if is(&["transpose", "permute", "contiguous", "copy", "clone", "identity", "cast", "convert"]) {
        format!("{name} only moves data: keep one layout and one type throughout, and remove copies.")
    } else if is(&["svd", "qr", "cholesky", "inv", "eigh", "solve", "det"]) {
        format!("Run {name} less often (every few steps), on a smaller matrix, or iteratively.")
    } else if is(&["random", "rand", "dropout", "normal", "uniform"]) {
        format!("Instead of {name}, draw random numbers once for the whole batch, or outside the step.")
    } else if is(&["print", "pyfunc", "py_function", "numpy_function", "io_callback", "assert"]) {
        format!("Remove {name} from the step: it calls back into Python.")
    } else {
        format!(
            "Run {name} less often or on less data, or replace it: it takes longer than everything else together."
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::shared::ops::sample;
    use crate::rules::testing::speaks;

    #[test]
    fn it_speaks() {
        for op in ["ConcatV2", "Sort", "GatherV2", "Transpose", "Svd", "RandomUniform", "Print", "Foo"] {
            speaks(&RULE, OneOp(sample(op)));
        }
    }
}
