//! `eager-dispatch`: the loop starts ops one by one, and starting them costs more than running them.
//!
//! Claims the framework's overhead, the Python between the ops, and, where kernels are shorter than what starting
//! them costs, the kernels too: a compiler fuses such ops into few.

use stepscope_analyze::Category;

use crate::facts::Facts;
use crate::finding::{Cause, Finding, FindingId};
use crate::thresholds;

/// Op types named.
const NAMED: usize = 3;

pub(super) fn check(facts: &Facts) -> Option<Finding> {
    let steps = facts.eager.steps.max(1) as f64;
    let ops_per_step = facts.eager.ops as f64 / steps;
    let between = (facts.eager.between.ms() / steps).min(facts.ms(Category::Python));
    let dispatch = facts.own_ms(Category::Dispatch);
    let overhead = dispatch + between;
    let step = facts.summary.length_ms();
    if ops_per_step < thresholds::EAGER_OPS || step <= 0.0 || overhead / step < thresholds::SEVERE {
        return None;
    }
    let kernels = (facts.eager.kernels.ms() / steps).min(facts.ms(Category::Compute));
    let mut claims = vec![(Category::Dispatch, dispatch), (Category::Python, between)];
    if kernels < overhead {
        claims.push((Category::Compute, kernels));
    }
    let mut types: Vec<(String, f64)> =
        facts.eager.types.iter().map(|(op, count)| (op.clone(), *count as f64 / steps)).collect();
    types.sort_by(|a, b| b.1.total_cmp(&a.1));
    types.truncate(NAMED);
    let cause = Cause::Eager {
        ops_per_step,
        us_per_op: overhead * 1e3 / ops_per_step,
        beside: facts.eager.compiled_step().map(str::to_owned),
        updates_per_step: facts.eager.updates() as f64 / steps,
        types,
    };
    let severity = super::severity(overhead / step);
    let finding = Finding::new(FindingId::EagerDispatch, severity, cause, facts.framework());
    Some(finding.owning(claims, Some(1.0)).sure(0.9))
}
