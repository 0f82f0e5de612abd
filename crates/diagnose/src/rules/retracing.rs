//! `retracing`: tf.functions are traced again and again.
//!
//! Every new combination of Python values, shapes and types builds a new graph, which costs many times the step.
//! One step in ten that traces may hold most of the time, so the share of the time decides, and not of the steps; what
//! happens once is no habit. Could win all tracing and the compilation that follows it.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

const BUILDING: [Category; 2] = [Category::Tracing, Category::Compile];

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let share = facts.shares(&BUILDING);
    if super::is_jax(facts) || facts.share(Category::Tracing) <= 0.0 || share < thresholds::REBUILDING {
        return None;
    }
    let recurrence = super::steps_with(facts, &BUILDING);
    if !recurrence.recurs() {
        return None;
    }
    let functions = facts.rebuilt.clone();
    let subject = functions.first().map(|function| function.name.clone());
    let cause = Cause::Rebuilt { functions, steps: recurrence.steps };
    let finding = Finding::new(FindingId::Retracing, super::severity(share), cause, facts.framework())
        .owning(facts.claims(&BUILDING), Some(1.0))
        .in_steps(recurrence)
        .sure(0.95);
    Some(finding.about(subject))
}
