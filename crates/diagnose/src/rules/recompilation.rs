//! `recompilation`: programs are compiled again and again.
//!
//! A jitted function is compiled for every new shape, type or static argument. Could win all of tracing and
//! compiling.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

const BUILDING: [Category; 2] = [Category::Compile, Category::Tracing];

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.shares(&BUILDING);
    let compiles = facts.share(Category::Compile) > 0.0;
    // Where tf.functions are traced anew, that is the cause, and compiling follows from it.
    let traced = !super::is_jax(facts) && facts.share(Category::Tracing) > 0.0;
    let recurrence = super::steps_with(facts, &BUILDING);
    if !compiles || traced || share < thresholds::REBUILDING || !recurrence.recurs() {
        return None;
    }
    let functions = facts.rebuilt.clone();
    let subject = functions.first().map(|function| function.name.clone());
    let cause = Cause::Rebuilt { functions, steps: recurrence.steps };
    let finding = Finding::new(FindingId::Recompilation, super::severity(share), cause, facts.framework())
        .owning(facts.claims(&BUILDING), Some(1.0))
        .in_steps(recurrence)
        .sure(0.95);
    Some(finding.about(subject))
}
