//! `op-dominates`: one type of op fills the step, and it is not the dense matrix work that models are made of.
//!
//! A step that is mostly MatMul or Conv2D is a model at work. One that is mostly Concat, Sort or Svd usually holds
//! a mistake: a buffer rebuilt in a loop, a copy that a view would replace. Could win all of it.

use stepscope_analyze::Category;
use stepscope_analyze::vocabulary::{is_callback, is_dense, is_opaque};

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let op = facts.ops.first()?;
    // A callback is Python that the model calls, and has a rule of its own.
    let ordinary = is_dense(&op.op_type) || is_opaque(&op.op_type) || is_callback(&op.op_type);
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
    // What the executor does between ops is mostly done for the one that fills the step: it allocates and frees its
    // tensors and wakes its threads. On a device the host's overhead has nothing to do with what its kernels compute.
    let around = if facts.on_device() { 0.0 } else { facts.ms(Category::Dispatch) * op.share };
    let claims = vec![(Category::Compute, owned), (Category::Dispatch, around)];
    Some(finding.about(op.op_type.clone()).owning(claims, Some(1.0)).sure(0.85))
}
