//! `setup-in-loop`: an input pipeline is set up inside the loop, again and again.
//!
//! `model.predict`, `fit` and `evaluate` make datasets, functions and an iterator at every call, and `iter(dataset)` makes
//! an iterator. For one batch that costs many times the model's work. Claims all of the set-up, its tracing and its first
//! wait too; could win all of it.

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let setup = &facts.setup;
    let claims = facts.owned_over(&setup.shares, setup.steps);
    let ms: f64 = claims.iter().map(|(_, ms)| ms).sum();
    let step = facts.summary.length_ms();
    if step <= 0.0 || ms / step < thresholds::NOTABLE || !setup.recurrence.recurs() {
        return None;
    }
    let cause = Cause::SetUp { iterators_per_step: setup.iterators as f64 / setup.steps.max(1) as f64, ms };
    let finding = Finding::new(FindingId::SetupInLoop, super::severity(ms / step), cause, facts.framework());
    Some(finding.owning(claims, Some(1.0)).in_steps(setup.recurrence).sure(0.9))
}
