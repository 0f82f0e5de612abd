//! `op-dominates`: one type of op fills the step, and it is not the dense matrix work that models are made of.
//!
//! A step that is mostly MatMul or Conv2D is a model at work. One that is mostly Concat, Sort or Svd usually holds
//! a mistake: a buffer rebuilt in a loop, a copy that a view would replace. Could win all of it.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

/// Dense matrix work, by parts of the type's name.
const DENSE: &[&str] =
    &["matmul", "conv", "dot", "gemm", "einsum", "attention", "addmm", "linear", "bmm", "lstm", "gru", "rnn"];
/// Types that say nothing about what is computed.
const OPAQUE: &[&str] =
    &["fusion", "call", "while", "custom-call", "xlalaunch", "partitionedcall", "unknown", "kernel"];

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let op = facts.ops.first()?;
    let name = op.op_type.to_ascii_lowercase();
    // `aten::mm`, `aten::bmm`, `aten::baddbmm`: PyTorch's products end in the same two letters.
    let ordinary = name.ends_with("mm") || DENSE.iter().chain(OPAQUE).any(|part| name.contains(part));
    let step = facts.summary.length_ms();
    // On several cores ops overlap: an op type cannot own more of the step than its share of the compute.
    let owned = op.ms_per_step.min(op.share * facts.ms(Category::Compute));
    // A kernel without an op is not something that a model is written in.
    if op.is_kernel
        || ordinary
        || step <= 0.0
        || op.share < thresholds::ONE_OP
        || owned / step < thresholds::SEVERE
    {
        return None;
    }
    let finding = Finding::new(
        FindingId::OpDominates,
        super::severity(owned / step),
        Cause::Op(op.clone()),
        facts.framework(),
    );
    Some(finding.about(op.op_type.clone()).owning(vec![(Category::Compute, owned)], Some(1.0)).sure(0.85))
}
